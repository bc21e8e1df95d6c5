"""Pooling over whole images, and over as many windows as there are to be outputs; of one to three axes."""

from __future__ import annotations

from typing import Any, ClassVar

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


class BaseGlobalPooling(Layer):
    """(n, *spatial, c) -> (n, c), or (n, 1, ..., c) with keepdims."""

    reads_integers = False

    _op: ClassVar[Any]

    def __init__(self, rank: int, data_format: str | None, keepdims: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = arguments.format_of(type(self).__name__, data_format)
        self.keepdims = bool(keepdims)
        self.input_spec = InputSpec(ndim=rank + 2)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        y = self._op()(x)
        if not self.keepdims:
            return y
        n, c = y.shape
        ones = (1,) * (len(x.shape) - 2)
        return ops.reshape(y, (n, *ones, c) if self.data_format == "channels_last" else (n, c, *ones))


class BaseAdaptivePooling(Layer):
    """(n, *spatial, c) -> (n, *output_size, c), windows of about equal sizes that cover the image."""

    reads_integers = False

    _op: ClassVar[Any]

    def __init__(self, rank: int, output_size: Any, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        kind = type(self).__name__
        self.output_size = arguments.integers(kind, "output_size", output_size, rank)
        self.data_format = arguments.format_of(kind, data_format)
        self.input_spec = InputSpec(ndim=rank + 2)
        self._pydt_needs_no_build()

    def call(self, inputs: Any) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        return arguments.from_channels_last(self._op(self.output_size)(x), self.data_format)


@builtin
class GlobalAveragePooling1D(BaseGlobalPooling):
    """The mean of each channel of images of one axis: of the steps that count, where there is a mask (n, steps)."""

    _op = ops.GlobalAveragePool
    carries_masks = True

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(1, data_format, keepdims, **kwargs)

    def call(self, inputs: Any, mask: Any = None) -> Any:
        if mask is None:
            return super().call(inputs)
        steps = 1 if self.data_format == "channels_last" else 2
        mask = ops.expand_dims(mask, 3 - steps)
        wide = real(inputs.dtype)  # bfloat16 does not count beyond 256
        counted = ops.where(ops.cast(mask, "bool"), ops.cast(inputs, wide), 0.0)
        total = ops.sum(counted, axis=steps, keepdims=self.keepdims)
        mean = total / ops.sum(ops.cast(mask, wide), axis=steps, keepdims=self.keepdims)
        return ops.cast(mean, inputs.dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None


@builtin
class GlobalAveragePooling2D(BaseGlobalPooling):
    """The mean of each channel of images of two axes."""

    _op = ops.GlobalAveragePool

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(2, data_format, keepdims, **kwargs)


@builtin
class GlobalAveragePooling3D(BaseGlobalPooling):
    """The mean of each channel of images of three axes."""

    _op = ops.GlobalAveragePool

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(3, data_format, keepdims, **kwargs)


@builtin
class GlobalMaxPooling1D(BaseGlobalPooling):
    """The maximum of each channel of images of one axis."""

    _op = ops.GlobalMaxPool

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(1, data_format, keepdims, **kwargs)


@builtin
class GlobalMaxPooling2D(BaseGlobalPooling):
    """The maximum of each channel of images of two axes."""

    _op = ops.GlobalMaxPool

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(2, data_format, keepdims, **kwargs)


@builtin
class GlobalMaxPooling3D(BaseGlobalPooling):
    """The maximum of each channel of images of three axes."""

    _op = ops.GlobalMaxPool

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(3, data_format, keepdims, **kwargs)


@builtin
class AdaptiveAveragePooling1D(BaseAdaptivePooling):
    """The mean of each of output_size windows of images of one axis."""

    _op = ops.AdaptiveAveragePool

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(1, output_size, data_format, **kwargs)


@builtin
class AdaptiveAveragePooling2D(BaseAdaptivePooling):
    """The mean of each of output_size windows of images of two axes."""

    _op = ops.AdaptiveAveragePool

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(2, output_size, data_format, **kwargs)


@builtin
class AdaptiveAveragePooling3D(BaseAdaptivePooling):
    """The mean of each of output_size windows of images of three axes."""

    _op = ops.AdaptiveAveragePool

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(3, output_size, data_format, **kwargs)


@builtin
class AdaptiveMaxPooling1D(BaseAdaptivePooling):
    """The maximum of each of output_size windows of images of one axis."""

    _op = ops.AdaptiveMaxPool

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(1, output_size, data_format, **kwargs)


@builtin
class AdaptiveMaxPooling2D(BaseAdaptivePooling):
    """The maximum of each of output_size windows of images of two axes."""

    _op = ops.AdaptiveMaxPool

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(2, output_size, data_format, **kwargs)


@builtin
class AdaptiveMaxPooling3D(BaseAdaptivePooling):
    """The maximum of each of output_size windows of images of three axes."""

    _op = ops.AdaptiveMaxPool

    def __init__(self, output_size: Any, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(3, output_size, data_format, **kwargs)


GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
