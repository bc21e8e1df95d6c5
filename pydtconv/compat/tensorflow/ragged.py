"""`tf.ragged`: rows of different lengths along the second axis, which layers that look up words take."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from pydtconv.compat import patches
from pydtconv.compat.tensorflow.arrays import Array, array
from pydtconv.compat.tensorflow.dtypes import DType, as_dtype
from pydtconv.compat.tensorflow.specs import Shape
from pydtconv.layers.preprocessing.lookups import IntegerLookup, StringLookup
from pydtconv.layers.preprocessing.vocabulary import Vocabulary
from pydtconv.ops.operations import Card, Waiting

_REFUSED = (
    "expected a tensor, got a RaggedTensor: to_tensor() gives one, and tf.ragged.map_flat_values calls a function "
    "of its values"
)


class RaggedTensor(Waiting):
    """Rows of different lengths: row i is values[row_splits[i] : row_splits[i + 1]].

    A cast changes the values; other functions of `keras.ops` are refused: `to_tensor` gives an array for them.
    """

    def __init__(self, values: Any, row_splits: Any) -> None:
        self.values, splits = array(values), np.asarray(row_splits)
        fits = splits.ndim == 1 and splits.size and splits.dtype.kind in "iu" and self.values.ndim
        if not fits or splits[0] != 0 or (np.diff(splits) < 0).any() or splits[-1] != len(self.values):
            raise ValueError(
                f"RaggedTensor: row_splits: expected integers that rise from 0 to {len(np.atleast_1d(self.values))}, "
                f"the number of values, got {splits.tolist()}"
            )
        self.row_splits = array(splits, "int64")

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Of values of all rows, and where each row begins, and the last one ends."""
        return cls(values, row_splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Of values of all rows, and the length of each."""
        return cls(values, np.concatenate([[0], np.cumsum(np.asarray(row_lengths, "int64"))]))

    @property
    def flat_values(self) -> Array:
        """The values of all rows."""
        return self.values

    @property
    def shape(self) -> Shape:
        """The extents, None along the second axis."""
        return Shape((len(self), None, *self.values.shape[1:]))

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return as_dtype(self.values.dtype)

    def nrows(self, out_type: Any = None, name: str | None = None) -> Array:
        """How many rows there are."""
        return array(len(self), out_type or "int64")

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Array:
        """How many values each row has."""
        if axis != 1:
            raise ValueError(f"RaggedTensor.row_lengths: axis: expected 1, which is ragged, got {axis}")
        return array(np.diff(np.asarray(self.row_splits)), "int64")

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Rows of the same lengths with other values."""
        return RaggedTensor(new_values, self.row_splits)

    with_flat_values = with_values

    def to_list(self) -> list[Any]:
        """The rows as lists."""
        return [np.asarray(row).tolist() for row in self]

    def numpy(self) -> np.ndarray:
        """An array of rows where their lengths differ, else an array of all."""
        rows = [row.numpy() for row in self]
        if len({len(row) for row in rows}) == 1:
            return np.stack(rows)
        found = np.empty(len(rows), object)
        found[:] = rows
        return found

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Array:
        """Rows filled with default_value, by default 0 or an empty string, to the longest one; or cut to a shape."""
        inner = self.values.shape[1:]
        extents = [len(self), int(max(self.row_lengths(), default=0)), *inner]
        for axis, extent in enumerate(() if shape is None else shape):
            extents[axis] = extents[axis] if extent is None else int(extent)
        if tuple(extents[2:]) != tuple(inner):
            raise ValueError(f"RaggedTensor.to_tensor: shape: expected (rows, columns, *{tuple(inner)}), got {shape}")
        usual: Any = b"" if self.dtype == "string" else 0
        value = usual if default_value is None else array(default_value, self.dtype).numpy()
        found = np.full(extents, value, self.dtype.as_numpy_dtype)
        for to, row in zip(found, self, strict=False):
            to[: len(row)] = row[: len(to)]
        return array(found)

    def apply_function(self, card: Card, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if card.name == "cast":
            call, config = card.split(args, kwargs)
            return self.with_values(array(call[0].values, config["dtype"]))
        raise NotImplementedError(f"{card.name}: {_REFUSED}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise NotImplementedError(_REFUSED)

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def _refuse(self, *_: Any) -> NoReturn:
        raise NotImplementedError(f"operators of a RaggedTensor: {_REFUSED}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __neg__ = __abs__ = __pow__ = __floordiv__ = __mod__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            raise NotImplementedError(f"RaggedTensor[...]: expected one row or a slice of rows, got {key!r}")
        if isinstance(key, slice):
            return _of_rows([self[i] for i in range(len(self))[key]], self.values)
        i = range(len(self))[int(key)]
        return self.values[self.row_splits[i] : self.row_splits[i + 1]]

    def __repr__(self) -> str:
        return f"<tf.RaggedTensor {self.to_list()}>"


def _of_rows(rows: Sequence[Any], values: Array) -> RaggedTensor:
    joined = np.concatenate([values[:0], *map(np.asarray, rows)])
    return RaggedTensor.from_row_lengths(array(joined, values.dtype), [len(row) for row in rows])


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = None,
) -> RaggedTensor:
    """Of a list of lists; ragged along their second axis alone."""
    rows = [list(row) for row in pylist]
    values = list(itertools.chain(*rows))
    deep = any(isinstance(value, (list, tuple, np.ndarray)) for value in values)
    if deep or inner_shape is not None or ragged_rank not in (None, 1):
        raise NotImplementedError(
            "tf.ragged.constant: expected a list of lists of values, and ragged_rank=1: one axis is ragged here"
        )
    return RaggedTensor.from_row_lengths(array(values, dtype or (None if values else "float32")), list(map(len, rows)))


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of the values of ragged arguments, whose rows have the same lengths; the result has them, too."""
    given = [each for each in (*args, *kwargs.values()) if isinstance(each, RaggedTensor)]
    if any((np.asarray(each.row_splits) != np.asarray(given[0].row_splits)).any() for each in given):
        raise ValueError("tf.ragged.map_flat_values: expected rows of the same lengths")

    def flat(value: Any) -> Any:
        return value.values if isinstance(value, RaggedTensor) else value

    found = op(*map(flat, args), **{name: flat(value) for name, value in kwargs.items()})
    return given[0].with_values(found) if given else found


def _looked_up(original: Any, self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Indices of ragged words are ragged; vectors are those of each row."""
    if not isinstance(inputs, RaggedTensor):
        return original(self, inputs, *args, **kwargs)
    if self.output_mode == "int":
        return inputs.with_values(original(self, inputs.values))
    if self.output_mode == "one_hot":
        raise ValueError(f"{type(self).__name__} {self.name!r}: one_hot: expected an array, got a RaggedTensor")
    nothing = np.zeros_like(original(self, np.array(self.get_vocabulary()[-1:])))
    return array(np.stack([original(self, row) if len(row) else nothing for row in inputs]))


def _adapt(original: Any, self: Any, data: Any, *args: Any, **kwargs: Any) -> None:
    rows = (np.asarray(row)[None] for row in data) if isinstance(data, RaggedTensor) else data
    original(self, rows, *args, **kwargs)


_watched: list[bool] = []


def table() -> dict[str, Any]:
    """The names of `tf.ragged`; from then on lookups take ragged words."""
    if not _watched:
        _watched.append(True)
        patches.undo(_watched.clear)
        patches.around(Vocabulary, "adapt", _adapt)
        for kind in (IntegerLookup, StringLookup):
            patches.around(kind, "__call__", _looked_up)
    return {"constant": constant, "map_flat_values": map_flat_values}
