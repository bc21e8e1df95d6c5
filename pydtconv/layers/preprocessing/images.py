"""Preparation of images inside a model: Rescaling, Normalization, RandomFlip, RandomCrop, CenterCrop."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.dtypes import real_array
from pydtconv.layers import arguments
from pydtconv.layers.input_spec import InputSpec
from pydtconv.layers.layer import Layer
from pydtconv.layers.preprocessing import image_data
from pydtconv.layers.regularization import RandomLayer
from pydtconv.ops.functions.operands import in_reals
from pydtconv.serialization.configurable import builtin


@builtin
class Rescaling(Layer):
    """x * scale + offset; numbers, or one of each per channel."""

    carries_masks = True
    reads_integers = False

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset
        self._pydt_needs_no_build()

    def _factor(self, value: Any) -> Any:
        array = np.asarray(value, self.dtype)
        if array.ndim == 1 and config.image_data_format() == "channels_first":
            array = array.reshape(-1, 1, 1)
        return float(array) if array.ndim == 0 else array

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
            x = real_array("Normalization", batch[0] if isinstance(batch, tuple) else batch)
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


def _of_images(call: Callable[..., Any]) -> Callable[..., Any]:
    """call for images (n, h, w, c), which takes a single one, too, and a dict with what belongs to images."""

    @functools.wraps(call)
    def wrapper(self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(inputs, Mapping):
            if isinstance(self, RandomFlip) and not kwargs.get("training", args[0] if args else True):
                image_data.check_data(self, inputs)
                return dict(inputs)
            if isinstance(self, (CenterCrop, RandomCrop)) and inputs.get("bounding_boxes") and "images" in inputs:
                shape = inputs["images"].shape  # boxes do not follow what is resized
                _check_window(self, (None, *(shape[-3:-1] if self.data_format == "channels_last" else shape[-2:])))
            return image_data.moved(self, inputs, lambda images: wrapper(self, images, *args, **kwargs))
        if len(inputs.shape) == 4:
            return call(self, inputs, *args, **kwargs)
        return ops.squeeze(call(self, ops.expand_dims(inputs, 0), *args, **kwargs), 0)

    return wrapper


@builtin
class RandomFlip(image_data.ImageLayer, RandomLayer):
    """In training, mirrors each image with probability 1/2: "horizontal", "vertical" or "horizontal_and_vertical"."""

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: int | None = None,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed=seed, data_format=data_format, **kwargs)
        self.mode = arguments.choice("RandomFlip", "mode", mode, ("horizontal", "vertical", "horizontal_and_vertical"))
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    @_of_images
    def call(self, inputs: Any, training: bool = True) -> Any:
        if not training:
            return inputs
        x = arguments.to_channels_last(inputs, self.data_format)
        y = ops.RandomFlip(mode=self.mode, seed=self._seed_of_call(), always=True)(x)
        return arguments.from_channels_last(y, self.data_format)


@builtin
class RandomCrop(image_data.ImageLayer, RandomLayer):
    """In training, a window of height x width at a random place; else the window in the middle.

    Images that are smaller are resized, of which the middle is kept.
    """

    def __init__(
        self,
        height: int,
        width: int,
        seed: int | None = None,
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(seed=seed, data_format=data_format, name=name, **kwargs)
        self.height = arguments.positive("RandomCrop", "height", height)
        self.width = arguments.positive("RandomCrop", "width", width)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)

    @_of_images
    def call(self, inputs: Any, training: bool = True) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        if training and not _is_smaller(self, x.shape):
            y = ops.RandomCrop(height=self.height, width=self.width, seed=self._seed_of_call(), always=True)(x)
        else:
            y = _middle(self, x)
        return arguments.from_channels_last(y, self.data_format)


@builtin
class CenterCrop(image_data.ImageLayer):
    """The window of height x width in the middle of images; smaller ones are resized, of which the middle is kept."""

    reads_integers = False

    def __init__(self, height: int, width: int, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(data_format=data_format, **kwargs)
        self.height = arguments.positive("CenterCrop", "height", height)
        self.width = arguments.positive("CenterCrop", "width", width)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)
        self._pydt_needs_no_build()

    @_of_images
    def call(self, inputs: Any) -> Any:
        y = _middle(self, arguments.to_channels_last(inputs, self.data_format))
        return arguments.from_channels_last(y, self.data_format)


def _is_smaller(layer: Any, shape: Any) -> bool:
    return shape[1] < layer.height or shape[2] < layer.width


def _check_window(layer: Any, shape: Any) -> None:
    if _is_smaller(layer, shape):
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: expected images of at least {layer.height} rows and {layer.width} "
            f"columns, got {shape[1]} and {shape[2]}"
        )


def _middle(layer: Any, x: Any) -> Any:
    if _is_smaller(layer, x.shape):
        size = (layer.height, layer.width)
        return ops.image.resize(x, size, crop_to_aspect_ratio=True, data_format="channels_last")
    rows, columns = x.shape[1] - layer.height, x.shape[2] - layer.width
    if not rows and not columns:
        return x
    return ops.Crop(((rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2)))(x)
