"""`tf.sparse.SparseTensor`: what `VarLenFeature` gives, and how it becomes an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import hooks, ops, tree
from pydtconv.compat.tensorflow.arrays import Array, array
from pydtconv.compat.tensorflow.dtypes import DType, as_dtype
from pydtconv.compat.tensorflow.specs import Shape
from pydtconv.ops.operations import Card, Waiting


class SparseTensor(Waiting):
    """indices (n, rank) of values (n); elsewhere a tensor of dense_shape (rank) is 0.

    A cast changes the values; other functions of `keras.ops` get the whole tensor.
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices, self.values = array(np.asarray(indices), "int64"), array(values)
        self.dense_shape = array(np.asarray(dense_shape), "int64")
        expected = (self.values.shape[0], len(self.dense_shape))
        if tuple(self.indices.shape) != expected:
            raise ValueError(f"SparseTensor: indices: expected shape {expected}, got {tuple(self.indices.shape)}")

    @property
    def shape(self) -> Shape:
        """The shape of the tensor."""
        return Shape(self.dense_shape.tolist())

    def get_shape(self) -> Shape:
        """The shape of the tensor."""
        return self.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return as_dtype(self.values.dtype)

    def apply_function(self, card: Card, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if card.name == "cast":
            call, config = card.split(args, kwargs)
            return SparseTensor(self.indices, array(call[0].values, config["dtype"]), self.dense_shape)
        whole = tree.map_structure(lambda x: to_dense(x) if isinstance(x, SparseTensor) else x, (args, kwargs))
        return getattr(ops, card.name)(*whole[0], **whole[1])

    def row(self, index: int) -> SparseTensor:
        """The part at an index of the first axis."""
        there = np.asarray(self.indices[:, 0]) == index
        return SparseTensor(np.asarray(self.indices)[there, 1:], self.values[there], np.asarray(self.dense_shape)[1:])

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"


def joined_rows(rows: Sequence[SparseTensor]) -> SparseTensor:
    """Tensors of one rank along a new first axis."""
    shape = np.max([np.asarray(each.dense_shape) for each in rows], axis=0)
    places = [np.insert(np.asarray(each.indices), 0, i, axis=1) for i, each in enumerate(rows)]
    values = np.concatenate([np.asarray(each.values) for each in rows])
    return SparseTensor(np.concatenate(places), values, (len(rows), *shape))


def to_dense(sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None) -> Array:
    """The whole tensor; default_value: where it has no value, by default 0 or an empty string."""
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(f"tf.sparse.to_dense: expected a SparseTensor, got {type(sp_input).__name__}")
    kind = sp_input.dtype
    usual: Any = b"" if kind == "string" else 0
    value = usual if default_value is None else array(default_value, kind).numpy()
    indices, extents = np.asarray(sp_input.indices), np.asarray(sp_input.dense_shape)
    if ((indices < 0) | (indices >= extents)).any():
        raise ValueError(
            f"tf.sparse.to_dense: indices: expected those of shape {tuple(extents.tolist())}, got {indices.tolist()}"
        )
    found = np.full(tuple(extents), value, kind.as_numpy_dtype)
    if not isinstance(sp_input.values, np.ndarray) or hooks.recording_of([sp_input.values]) is not None:
        return ops.scatter_update(found, indices.astype("int32"), sp_input.values)
    found[tuple(indices.T)] = sp_input.values
    return array(found)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """A tensor's elements that are not 0."""
    x = array(tensor)
    places = np.argwhere(np.asarray(x) != (b"" if x.dtype == "string" else 0))
    return SparseTensor(places, x[tuple(places.T)], x.shape)


def table() -> dict[str, Any]:
    """The names of `tf.sparse`."""
    return {"SparseTensor": SparseTensor, "to_dense": to_dense, "from_dense": from_dense}
