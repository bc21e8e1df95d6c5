"""Pooling: maxima and means over windows or over whole images."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.layers import arguments
from pydtconv.layers.input_spec import InputSpec
from pydtconv.layers.layer import Layer
from pydtconv.serialization.configurable import builtin


class BasePooling2D(Layer):
    """(n, ih, iw, c) -> (n, oh, ow, c); strides default to pool_size."""

    def __init__(
        self, pool_size: Any, strides: Any, padding: str, data_format: str | None, name: str | None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        kind = type(self).__name__
        self.pool_size = arguments.integers(kind, "pool_size", pool_size, 2)
        self.strides = self.pool_size if strides is None else arguments.integers(kind, "strides", strides, 2)
        self.padding = arguments.choice(kind, "padding", padding, ("valid", "same"))
        self.data_format = arguments.format_of(kind, data_format)
        self.input_spec = InputSpec(ndim=4)
        self.built = True

    def _pool(self, x: Any) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        return arguments.from_channels_last(self._pool(x), self.data_format)


@builtin
class MaxPooling2D(BasePooling2D):
    """The maximum of each window; padding does not count."""

    def __init__(
        self,
        pool_size: Any = (2, 2),
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)

    def _pool(self, x: Any) -> Any:
        return ops.MaxPool(self.pool_size, self.strides, self.padding)(x)


@builtin
class AveragePooling2D(BasePooling2D):
    """The mean of each window over the pixels that are not padding."""

    def __init__(
        self,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)

    def _pool(self, x: Any) -> Any:
        return ops.AveragePool(self.pool_size, self.strides, self.padding)(x)


class BaseGlobalPooling2D(Layer):
    """(n, h, w, c) -> (n, c), or (n, 1, 1, c) with keepdims."""

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = arguments.format_of(type(self).__name__, data_format)
        self.keepdims = bool(keepdims)
        self.input_spec = InputSpec(ndim=4)
        self.built = True

    def _reduce(self, x: Any) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        y = self._reduce(x)
        if not self.keepdims:
            return y
        n, c = y.shape
        return ops.reshape(y, (n, 1, 1, c) if self.data_format == "channels_last" else (n, c, 1, 1))


@builtin
class GlobalAveragePooling2D(BaseGlobalPooling2D):
    """The mean of each channel."""

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(data_format, keepdims, **kwargs)

    def _reduce(self, x: Any) -> Any:
        return ops.GlobalAveragePool()(x)


@builtin
class GlobalMaxPooling2D(BaseGlobalPooling2D):
    """The maximum of each channel."""

    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None:
        super().__init__(data_format, keepdims, **kwargs)

    def _reduce(self, x: Any) -> Any:
        return ops.GlobalMaxPool()(x)


MaxPool2D = MaxPooling2D
AvgPool2D = AveragePooling2D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalMaxPool2D = GlobalMaxPooling2D
