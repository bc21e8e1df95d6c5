"""Numbers as classes: CategoryEncoding and Discretization."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.dtypes import real
from pydtconv.layers.base.arguments import positive
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor, infer_outputs
from pydtconv.serialization.configurable import builtin

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


def looked_up(keys: Any, words: np.ndarray, values: np.ndarray, usual: Any) -> Any:
    """Of a tensor of int64 the values of keys, which are those of equal words; usual: of keys that are no words."""
    if not len(words):
        return ops.where(ops.equal(keys, keys), usual, keys)
    order = np.argsort(words)
    place = ops.mod(ops.searchsorted(words[order], keys), len(words))
    return ops.where(ops.equal(ops.take(words[order], place), keys), ops.take(values[order], place), usual)


def remainders(fingerprints: Any, count: int) -> Any:
    """What is left of fingerprints, as numbers without a sign, when they are divided by a number."""
    unsigned = ops.where(ops.less(fingerprints, 0), np.int64((1 << 64) % count), np.int64(0))
    return ops.mod(ops.add(ops.mod(fingerprints, count), unsigned), count)


def check_mode(layer: str, mode: str, modes: Sequence[str] = MODES) -> str:
    """The mode, under its name of now; raises ValueError where it is none of these."""
    mode = {"binary": "multi_hot", "tf-idf": "tf_idf"}.get(mode, mode)
    if mode not in modes:
        raise ValueError(f"{layer}: output_mode: expected one of {', '.join(modes)}, got {mode!r}")
    return mode


def check_known(layer: Layer, inputs: Any, is_known: Callable[[Any], Any], expected: str) -> None:
    """Raises ValueError where an array has other values; those of tensors are not there yet."""
    if hasattr(inputs, "apply_op"):
        return
    values = np.asarray(inputs).astype("int64")
    unknown = values[~is_known(values)]
    if unknown.size:
        raise ValueError(f"{type(layer).__name__} {layer.name!r}: expected {expected}, got {unknown.min()}")


def batches_of(data: Any) -> Iterable[np.ndarray]:
    if isinstance(data, (np.ndarray, list, tuple)):
        array = np.asarray(data)
        return [array[:, None] if array.ndim == 1 else array]
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
        check_known(self, inputs, lambda values: (values >= 0) & (values < self.num_tokens), expected)
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
        values = np.concatenate([batch.reshape(-1) for _, batch in zip(range(steps or 1 << 60), batches_of(data))])  # noqa: B905
        if not values.size:
            raise ValueError(f"Discretization {self.name!r}: adapt: expected data, got none")
        shares = np.arange(1, self.num_bins) / self.num_bins
        self.bin_boundaries = np.quantile(values.astype("float64"), shares).tolist()

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"dtype": self.dtype_policy.name}  # as Keras has it, here
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

    def compute_output_spec(self, inputs: Any) -> Any:
        """The symbolic outputs, before `adapt`, too."""
        return infer_outputs(self._binned, (inputs, self.bin_boundaries or range((self.num_bins or 1) - 1)), {})

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The output's shape, before `adapt`, too."""
        return self.compute_output_spec(KerasTensor(input_shape, self.dtype)).shape

    def call(self, inputs: Any) -> Any:
        if self.bin_boundaries is None:
            raise ValueError(f"Discretization {self.name!r}: call adapt(data) first: it has no boundaries yet")
        return self._binned(inputs, self.bin_boundaries)

    def _binned(self, inputs: Any, boundaries: Sequence[float]) -> Any:
        kind = real(str(inputs.dtype))
        edges = np.asarray(boundaries, kind if kind.startswith("float") else "float64")
        indices = ops.digitize(inputs, tuple(edges.tolist()))
        found = encoded(self.name, indices, self.output_mode, len(boundaries) + 1, dtype=self.dtype)
        return found if self.output_mode == "int" else ops.cast(found, self.compute_dtype)
