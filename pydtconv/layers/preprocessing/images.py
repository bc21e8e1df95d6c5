"""Numbers of images scaled inside a model: Rescaling, Normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.dtypes import real_array
from pydtconv.layers.base.layer import Layer
from pydtconv.ops.functions.operands import in_reals
from pydtconv.serialization.configurable import builtin


@builtin
class Rescaling(Layer):
    """x * scale + offset; numbers, or one of each per channel."""

    carries_masks = True
    reads_integers = False
    computes_integers = True

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset
        self._pydt_needs_no_build()

    def _factor(self, value: Any) -> Any:
        array = np.asarray(value, self.dtype)
        if array.ndim == 1 and config.image_data_format() == "channels_first":
            array = array.reshape(-1, 1, 1)
        return array.item() if array.ndim == 0 else array

    def call(self, inputs: Any) -> Any:
        return _rescaled(inputs, self._factor(self.scale), self._factor(self.offset))


@in_reals
def _rescaled(x: Any, scale: Any, offset: Any) -> Any:
    y = x if np.ndim(scale) == 0 and scale == 1 else ops.multiply(x, scale)
    return y if np.ndim(offset) == 0 and offset == 0 else ops.add(y, offset)


@in_reals
def _normalized(x: Any, mean: Any, deviation: Any) -> Any:
    return ops.divide(ops.subtract(x, mean), deviation)


@in_reals
def _restored(x: Any, mean: Any, deviation: Any) -> Any:
    return ops.add(ops.multiply(x, deviation), mean)


@builtin
class Normalization(Layer):
    """(x - mean) / sqrt(variance) along axis, with statistics that are given or that `adapt` takes from data.

    axis: the axes that have statistics of their own; None for one mean and variance of everything.
    """

    carries_masks = True
    computes_integers = False

    def __init__(
        self,
        axis: int | Sequence[int] | None = -1,
        mean: Any = None,
        variance: Any = None,
        invert: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (variance is None) or np.shape(mean) != np.shape(variance):
            raise ValueError(
                f"Normalization: expected mean and variance of one shape or neither, got {mean!r}, {variance!r}"
            )
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        self.input_mean = mean
        self.input_variance = variance
        self.invert = invert

    @property
    def mean(self) -> np.ndarray | None:
        """The mean that is subtracted, of a shape that goes with inputs; None before their shape is known."""
        return self._statistic("mean")

    @property
    def variance(self) -> np.ndarray | None:
        """The variance, as `mean`."""
        return self._statistic("variance")

    def _statistic(self, name: str) -> np.ndarray | None:
        if not self.built:
            return None
        given = getattr(self, f"input_{name}")
        return np.reshape(getattr(self, f"adapt_{name}"), self._broadcast) if given is None else self._given(given)

    def build(self, input_shape: Any) -> None:
        input_shape = () if input_shape is None else input_shape  # of a number
        rank = len(input_shape)
        if any(not -rank <= axis < rank for axis in self.axis):
            raise ValueError(f"Normalization {self.name!r}: axis {self.axis} is not in an input of {rank} dimensions")
        self._kept = tuple(sorted(axis % rank for axis in self.axis))
        self._shape = tuple(input_shape[axis] for axis in self._kept)
        self._broadcast = tuple(input_shape[i] if i in self._kept else 1 for i in range(rank))
        if None in self._shape and self.input_mean is None:
            raise ValueError(f"Normalization {self.name!r}: axes {self._kept} must be known, got {tuple(input_shape)}")
        if self.input_mean is None:
            self.adapt_mean = self.add_weight(self._shape, "zeros", trainable=False, name="mean")
            self.adapt_variance = self.add_weight(self._shape, "ones", trainable=False, name="variance")
            self.count = self.add_weight((), "zeros", dtype="int32", trainable=False, name="count")

    def adapt(self, data: Any) -> None:
        """Takes mean and variance from an array or batches (an iterable of arrays, or of tuples with one first)."""
        batches = [data] if isinstance(data, np.ndarray) else data
        count, mean, spread = 0, np.zeros(()), np.zeros(())
        for batch in batches:
            batch = batch[0] if isinstance(batch, tuple) else batch
            if not hasattr(batch, "shape"):
                raise TypeError(f"Normalization {self.name!r}: adapt: expected arrays, got {batch!r}")
            x = real_array("Normalization", batch)
            if not self.built:
                self.build(x.shape)
            axes = tuple(i for i in range(x.ndim) if i not in self._kept)
            n = int(np.prod([x.shape[i] for i in axes]))
            # Chan, Golub, LeVeque (1983): statistics of parts joined
            part_mean, part_spread = x.mean(axes, dtype="float64"), x.var(axes, dtype="float64") * n
            shift = part_mean - mean
            spread = spread + part_spread + shift**2 * (count * n / (count + n))
            mean = mean + shift * (n / (count + n))
            count += n
        if not count:
            raise ValueError(f"Normalization {self.name!r}: adapt: expected data, got none")
        if self.input_mean is not None:
            raise ValueError(f"Normalization {self.name!r}: adapt: mean and variance were given already")
        self.adapt_mean.assign(mean)
        self.adapt_variance.assign(spread / count)

    def call(self, inputs: Any) -> Any:
        if self.input_mean is None:
            mean = ops.reshape(self.adapt_mean, self._broadcast)
            deviation = ops.maximum(ops.sqrt(ops.reshape(self.adapt_variance, self._broadcast)), config.epsilon())
        else:
            mean = self._given(self.input_mean)
            deviation = np.maximum(np.sqrt(self._given(self.input_variance)), config.epsilon())
        return (_restored if self.invert else _normalized)(inputs, mean, deviation)

    def _given(self, value: Any) -> np.ndarray:
        array = np.asarray(value, self.dtype)
        shape = [1] * len(self._broadcast)
        for axis, extent in zip(reversed(self._kept), reversed(array.shape), strict=False):
            shape[axis] = extent
        array = array.reshape(shape)
        whole = array if None in self._broadcast else np.broadcast_to(array, self._broadcast)
        return np.ascontiguousarray(whole)

    def _pydt_own_config(self) -> dict[str, Any]:
        values = {"axis": self.axis, "mean": self.input_mean, "variance": self.input_variance, "invert": self.invert}
        return {
            name: np.asarray(value).tolist() if name in ("mean", "variance") and value is not None else value
            for name, value in values.items()
        }
