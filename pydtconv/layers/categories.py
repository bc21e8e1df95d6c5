"""Numbers and strings as classes: CategoryEncoding, Discretization, IntegerLookup, StringLookup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.dtypes import real
from pydtconv.extents import check
from pydtconv.layers.arguments import positive
from pydtconv.layers.layer import Layer
from pydtconv.serialization.configurable import builtin
from pydtconv.serialization.lambdas import refuse_path
from pydtconv.utils.reading import open_regular

#: how indices are handed out: as they are, or as vectors of the classes
MODES = ("int", "one_hot", "multi_hot", "count")


def encoded(name: str, indices: Any, mode: str, count: int, weights: Any = None, dtype: str | None = None) -> Any:
    """Indices as vectors of so many classes: one for each, or one for all along axis 1; by default floatx.

    Of three axes and more, too, it is axis 1 that is gathered, as in Keras.
    """
    if mode == "int":
        return indices
    rank = len(indices.shape)
    hot = ops.one_hot(indices, count, dtype=dtype or config.floatx())
    if mode == "one_hot":
        return ops.squeeze(hot, -2) if rank > 1 and indices.shape[-1] == 1 else hot
    if rank == 0:
        return hot
    if mode == "multi_hot":
        return ops.max(hot, min(rank - 1, 1))
    hot = hot if weights is None else ops.multiply(hot, ops.expand_dims(weights, -1))
    return ops.sum(hot, min(rank - 1, 1))


def check_mode(layer: str, mode: str, modes: Sequence[str] = MODES) -> str:
    """The mode; raises ValueError where it is none of these."""
    if mode not in modes:
        raise ValueError(f"{layer}: output_mode: expected one of {', '.join(modes)}, got {mode!r}")
    return mode


def _check_known(layer: Layer, inputs: Any, is_known: Callable[[Any], Any], expected: str) -> None:
    """Raises ValueError where an array has other values; those of tensors are not there yet."""
    if hasattr(inputs, "apply_op"):
        return
    values = np.asarray(inputs).astype("int64")
    unknown = values[~is_known(values)]
    if unknown.size:
        raise ValueError(f"{type(layer).__name__} {layer.name!r}: expected {expected}, got {unknown.min()}")


def _batches(data: Any) -> Iterable[np.ndarray]:
    if isinstance(data, (np.ndarray, list, tuple)):
        return [np.asarray(data)]
    return (np.asarray(batch[0] if isinstance(batch, tuple) else batch) for batch in data)


@builtin
class CategoryEncoding(Layer):
    """Classes from 0 to num_tokens - 1 as "one_hot", "multi_hot" or "count" vectors; count may take weights."""

    def __init__(
        self, num_tokens: int | None = None, output_mode: str = "multi_hot", sparse: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if sparse:
            raise ValueError("CategoryEncoding: sparse: expected False, got True")
        self.num_tokens = positive("CategoryEncoding", "num_tokens", num_tokens)
        self.output_mode = check_mode("CategoryEncoding", output_mode, MODES[1:])
        self.sparse = False
        self.autocast = False
        self._pydt_needs_no_build()

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        expected = f"classes from 0 to {self.num_tokens - 1}"
        _check_known(self, inputs, lambda values: (values >= 0) & (values < self.num_tokens), expected)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any, count_weights: Any = None) -> Any:
        if count_weights is not None and self.output_mode != "count":
            raise ValueError(f"CategoryEncoding {self.name!r}: count_weights need output_mode='count'")
        indices = ops.cast(inputs, "int32")
        vectors = encoded(self.name, indices, self.output_mode, self.num_tokens, count_weights, self.dtype)
        return ops.cast(vectors, self.compute_dtype)


@builtin
class Discretization(Layer):
    """The bin of each number: of bin_boundaries, or of num_bins with equal shares of the data given to `adapt`.

    Boundaries are rounded to the numbers' type before they are compared.
    """

    def __init__(
        self,
        bin_boundaries: Sequence[float] | None = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        if (bin_boundaries is None) == (num_bins is None):
            raise ValueError(f"Discretization: expected bin_boundaries or num_bins, got {bin_boundaries}, {num_bins}")
        if sparse:
            raise ValueError("Discretization: sparse: expected False, got True")
        self.bin_boundaries = None if bin_boundaries is None else [float(edge) for edge in bin_boundaries]
        self.num_bins = num_bins
        self.epsilon = epsilon
        self.output_mode = check_mode("Discretization", output_mode)
        self.sparse = False
        self._pydt_needs_no_build()

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Takes the boundaries from an array or batches."""
        if self.num_bins is None:
            raise ValueError(f"Discretization {self.name!r}: adapt: bin_boundaries were given already")
        values = np.concatenate([batch.reshape(-1) for _, batch in zip(range(steps or 1 << 60), _batches(data))])  # noqa: B905
        if not values.size:
            raise ValueError(f"Discretization {self.name!r}: adapt: expected data, got none")
        shares = np.arange(1, self.num_bins) / self.num_bins
        self.bin_boundaries = np.quantile(values.astype("float64"), shares).tolist()

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("trainable")
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The layer of a config, which has both num_bins and bin_boundaries after `adapt`."""
        adapted = config.get("num_bins") is not None and config.get("bin_boundaries") is not None
        layer = super().from_config({**config, "bin_boundaries": None} if adapted else config)
        if adapted:
            layer.bin_boundaries = [float(edge) for edge in config["bin_boundaries"]]
        return layer

    def call(self, inputs: Any) -> Any:
        if self.bin_boundaries is None:
            raise ValueError(f"Discretization {self.name!r}: call adapt(data) first: it has no boundaries yet")
        kind = real(str(inputs.dtype))
        edges = np.asarray(self.bin_boundaries, kind if kind.startswith("float") else "float64")
        indices = ops.digitize(inputs, tuple(edges.tolist()))
        found = encoded(self.name, indices, self.output_mode, len(self.bin_boundaries) + 1, dtype=self.dtype)
        return found if self.output_mode == "int" else ops.cast(found, self.compute_dtype)


class _Lookup(Layer):
    """Index 0 is the mask's where there is one, then those of unknown values, then the vocabulary's.

    In vectors of classes the mask has no place: it counts as nothing.
    """

    def _start(
        self, max_tokens: int | None, unknown: int, mask: Any, vocabulary: Any, invert: bool, mode: str, **refused: Any
    ) -> None:
        name = type(self).__name__
        for argument, value in refused.items():
            if value:
                raise ValueError(f"{name}: {argument}: is not supported, got {value!r}")
        if unknown < 0:
            raise ValueError(f"{name}: num_oov_indices: expected 0 or more, got {unknown}")
        check(f"{name}: num_oov_indices", unknown)
        self.max_tokens, self.num_oov_indices, self.mask_token = max_tokens, unknown, mask
        self.invert, self.output_mode = invert, check_mode(name, mode)
        if invert and mode != "int":
            raise ValueError(f"{name}: output_mode: expected 'int' with invert=True, got {mode!r}")
        self.sparse = self.pad_to_max_tokens = False
        self.idf_weights = None
        self.vocabulary: list[Any] | None = None
        self.autocast = False
        self._pydt_needs_no_build()
        if vocabulary is not None:
            self.set_vocabulary(vocabulary)

    def _head(self) -> list[Any]:
        """The tokens before the vocabulary's first word."""
        mask = [self.mask_token] * (self._first - self.num_oov_indices)
        return [*mask, *[self.oov_token] * self.num_oov_indices]  # type: ignore[attr-defined]

    @property
    def _first(self) -> int:
        """The index of the vocabulary's first word."""
        return self.num_oov_indices + (self.mask_token is not None and self.output_mode == "int")

    @property
    def _masked(self) -> int:
        """The index of the mask; in vectors of classes, one that is none of them."""
        return 0 if self.output_mode == "int" else -1

    def _tokens(self, values: Any) -> list[Any]:
        raise NotImplementedError

    def set_vocabulary(self, vocabulary: Any, idf_weights: Any = None) -> None:
        """The words in the order of their indices; a path of a text file has one a line."""
        if idf_weights is not None:
            raise ValueError(f"{type(self).__name__} {self.name!r}: idf_weights are not supported")
        if isinstance(vocabulary, str):
            refuse_path(f"{type(self).__name__} {self.name!r}: vocabulary", vocabulary)
            with open_regular(vocabulary) as file:
                vocabulary = file.read().decode().splitlines()
        words = self._tokens(np.asarray(vocabulary).reshape(-1))
        if 0 < self._first <= len(words) and words[: self._first] == self._head():
            words = words[self._first :]
        if len(set(words)) != len(words):
            raise ValueError(f"{type(self).__name__} {self.name!r}: vocabulary: expected each word once")
        self.vocabulary = words

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Takes the vocabulary from an array or batches: the most frequent words first."""
        counts: Counter[Any] = Counter()
        for i, batch in enumerate(_batches(data)):
            if steps is not None and i >= steps:
                break
            counts.update(self._tokens(batch.reshape(-1)))
        counts.pop(self.mask_token, None)
        counts.pop(self.oov_token, None)  # type: ignore[attr-defined]
        words = [word for word, _ in sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)]
        room = None if self.max_tokens is None else self.max_tokens - self._first
        self.vocabulary = words[:room]

    def get_vocabulary(self, include_special_tokens: bool = True) -> list[Any]:
        """The words by index."""
        words = list(self.vocabulary or [])
        return [*self._head(), *words] if include_special_tokens else words

    def vocabulary_size(self) -> int:
        """The number of indices."""
        return self._first + len(self.vocabulary or [])

    def _known(self) -> list[Any]:
        if self.vocabulary is None:
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected a vocabulary: give one, or call adapt(data)"
            )
        return self.vocabulary

    def _pydt_own_config(self) -> dict[str, Any]:
        return {**super()._pydt_own_config(), "vocabulary": None if self.vocabulary is None else list(self.vocabulary)}


@builtin
class IntegerLookup(_Lookup):
    """Integers of a vocabulary as indices (invert: the other way)."""

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: int | None = None,
        oov_token: int = -1,
        vocabulary: Any = None,
        vocabulary_dtype: str = "int64",
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        sparse: bool = False,
        pad_to_max_tokens: bool = False,
        oov_method: str = "floormod",
        salt: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.oov_token, self.vocabulary_dtype, self.oov_method, self.salt = (
            oov_token,
            vocabulary_dtype,
            oov_method,
            salt,
        )
        other = None if oov_method == "floormod" else oov_method
        self._start(
            max_tokens, num_oov_indices, mask_token, vocabulary, invert, output_mode,
            idf_weights=idf_weights, sparse=sparse, pad_to_max_tokens=pad_to_max_tokens, oov_method=other, salt=salt,
        )  # fmt: skip

    def _tokens(self, values: Any) -> list[int]:
        try:
            return [int(value) for value in np.asarray(values).astype("int64")]
        except OverflowError:
            raise ValueError(f"IntegerLookup {self.name!r}: expected integers of 64 bits, got {values!r}") from None

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.num_oov_indices == 0 and not self.invert:
            known = [*self._known(), *([] if self.mask_token is None else [self.mask_token])]
            expected = "values of the vocabulary, with num_oov_indices=0"
            _check_known(self, inputs, lambda values: np.isin(values, known), expected)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: Any) -> Any:
        words = np.array(self._known(), "int64")
        values = ops.cast(inputs, "int64")
        if self.invert:
            place = ops.subtract(values, self._first)
            inside = ops.logical_and(ops.greater_equal(place, 0), ops.less(place, len(words)))
            known = ops.take(words, ops.mod(place, len(words))) if len(words) else values
            result = ops.where(inside, known, np.int64(self.oov_token))
            if self._first == self.num_oov_indices:
                return result
            return ops.where(ops.equal(values, 0), np.int64(self.mask_token), result)
        order = np.argsort(words)
        place = ops.mod(ops.searchsorted(words[order], values), max(len(words), 1))
        found = ops.take(words[order], place) if len(words) else values
        known = ops.equal(found, values) if len(words) else ops.not_equal(values, values)
        index = ops.take(order + self._first, place) if len(words) else values
        if self.num_oov_indices == 0:
            unknown: Any = np.int64(-1)
        else:
            unknown = ops.add(ops.mod(values, self.num_oov_indices), self._first - self.num_oov_indices)
        result = ops.where(known, index, unknown)
        if self.mask_token is not None:
            result = ops.where(ops.equal(values, self.mask_token), np.int64(self._masked), result)
        return encoded(self.name, result, self.output_mode, self.vocabulary_size())


@builtin
class StringLookup(_Lookup):
    """Strings of a vocabulary as indices (invert: the other way); of arrays only, before a model."""

    def __init__(
        self,
        max_tokens: int | None = None,
        num_oov_indices: int = 1,
        mask_token: str | None = None,
        oov_token: str = "[UNK]",
        vocabulary: Any = None,
        idf_weights: Any = None,
        invert: bool = False,
        output_mode: str = "int",
        pad_to_max_tokens: bool = False,
        sparse: bool = False,
        encoding: str = "utf-8",
        name: str | None = None,
        salt: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.oov_token, self.encoding, self.salt = oov_token, encoding, salt
        many = num_oov_indices if num_oov_indices > 1 else None
        self._start(
            max_tokens, num_oov_indices, mask_token, vocabulary, invert, output_mode,
            idf_weights=idf_weights, sparse=sparse, pad_to_max_tokens=pad_to_max_tokens, more_oov_indices=many,
            salt=salt,
        )  # fmt: skip

    def _tokens(self, values: Any) -> list[str]:
        return [value.decode(self.encoding) if isinstance(value, bytes) else str(value) for value in values]

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(inputs, "apply_op"):
            raise ValueError(f"StringLookup {self.name!r}: expected an array of strings, got a symbolic tensor")
        values = np.asarray(inputs)
        words = self._known()
        if self.invert:
            table, at = np.array([*self.get_vocabulary(), self.oov_token]), values.astype("int64")
            return table[np.where((at >= 0) & (at < len(table)), at, -1)]
        places = {word: i + self._first for i, word in enumerate(words)}
        unknown = self._first - 1 if self.num_oov_indices else None
        if self.mask_token is not None:
            places[self.mask_token] = self._masked
        indices = [places.get(token, unknown) for token in self._tokens(values.reshape(-1))]
        if None in indices:
            raise ValueError(f"StringLookup {self.name!r}: num_oov_indices=0, got words beside the vocabulary")
        return encoded(
            self.name, np.array(indices, "int64").reshape(values.shape), self.output_mode, self.vocabulary_size()
        )
