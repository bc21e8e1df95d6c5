"""Pooling: maxima and means over windows or over whole images of one to three axes."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


class BasePooling(Layer):
    """(n, *spatial, c) -> (n, *out, c); strides default to pool_size."""

    reads_integers = False

    def __init__(
        self,
        rank: int,
        pool_size: Any,
        strides: Any,
        padding: str,
        data_format: str | None,
        name: str | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        kind = type(self).__name__
        self.pool_size = arguments.integers(kind, "pool_size", pool_size, rank)
        self.strides = self.pool_size if strides is None else arguments.integers(kind, "strides", strides, rank)
        self.padding = arguments.choice(kind, "padding", padding, ("valid", "same"))
        self.data_format = arguments.format_of(kind, data_format)
        self.input_spec = InputSpec(ndim=rank + 2)
        self._pydt_needs_no_build()

    def _pool(self, x: Any) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        return arguments.from_channels_last(self._pool(x), self.data_format)


class BaseMaxPooling(BasePooling):
    """The maximum of each window; padding does not count."""

    def _pool(self, x: Any) -> Any:
        return ops.MaxPool(self.pool_size, self.strides, self.padding)(x)


class BaseAveragePooling(BasePooling):
    """The mean of each window over the pixels that are not padding."""

    def _pool(self, x: Any) -> Any:
        return ops.AveragePool(self.pool_size, self.strides, self.padding)(x)


@builtin
class MaxPooling1D(BaseMaxPooling):
    """The maximum of each window of images of one axis; padding does not count."""

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, pool_size, strides, padding, data_format, name, **kwargs)


@builtin
class MaxPooling2D(BaseMaxPooling):
    """The maximum of each window of images of two axes; padding does not count."""

    def __init__(
        self,
        pool_size: Any = (2, 2),
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, pool_size, strides, padding, data_format, name, **kwargs)


@builtin
class MaxPooling3D(BaseMaxPooling):
    """The maximum of each window of images of three axes; padding does not count."""

    def __init__(
        self,
        pool_size: Any = (2, 2, 2),
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(3, pool_size, strides, padding, data_format, name, **kwargs)


@builtin
class AveragePooling1D(BaseAveragePooling):
    """The mean of each window of images of one axis over the pixels that are not padding."""

    def __init__(
        self,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(1, pool_size, strides, padding, data_format, name, **kwargs)


@builtin
class AveragePooling2D(BaseAveragePooling):
    """The mean of each window of images of two axes over the pixels that are not padding."""

    def __init__(
        self,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(2, pool_size, strides, padding, data_format, name, **kwargs)


@builtin
class AveragePooling3D(BaseAveragePooling):
    """The mean of each window of images of three axes over the pixels that are not padding."""

    def __init__(
        self,
        pool_size: Any,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(3, pool_size, strides, padding, data_format, name, **kwargs)


MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
