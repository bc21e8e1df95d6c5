"""Layers that change the extents of images of one to three axes: ZeroPadding, Cropping, UpSampling."""

from __future__ import annotations

from typing import Any

from pydtconv import ops
from pydtconv.dtypes import FLOATING
from pydtconv.layers.base import arguments
from pydtconv.layers.base.input_spec import InputSpec
from pydtconv.layers.base.layer import Layer
from pydtconv.serialization.configurable import builtin


class _Spatial(Layer):
    """A layer of images that works in channels_last."""

    def __init__(self, rank: int, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = arguments.format_of(type(self).__name__, data_format)
        self.input_spec = InputSpec(ndim=rank + 2)
        self._pydt_needs_no_build()

    def _apply(self, x: Any) -> Any:
        raise NotImplementedError

    def call(self, inputs: Any) -> Any:
        x = arguments.to_channels_last(inputs, self.data_format)
        return arguments.from_channels_last(self._apply(x), self.data_format)


class _ZeroPadding(_Spatial):
    def __init__(self, rank: int, padding: Any, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(rank, data_format, **kwargs)
        self.padding: Any = arguments.sides(type(self).__name__, "padding", padding, rank)

    def _apply(self, x: Any) -> Any:
        return ops.pad(x, ((0, 0), *self.padding, (0, 0)))


class _Cropping(_Spatial):
    def __init__(self, rank: int, cropping: Any, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(rank, data_format, **kwargs)
        self.cropping: Any = arguments.sides(type(self).__name__, "cropping", cropping, rank)

    def _apply(self, x: Any) -> Any:
        spatial = x.shape[1:-1]
        if any(sum(sides) >= extent for sides, extent in zip(self.cropping, spatial, strict=True)):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: cropping={self.cropping} leaves nothing of an image of "
                f"{' x '.join(map(str, spatial))} pixels"
            )
        return _cropped(x, self.cropping)


def _cropped(x: Any, cropping: Any) -> Any:
    """x (n, spatial..., c) without (before, after) of each spatial axis."""
    if x.dtype in FLOATING:
        return ops.Crop(cropping)(x)
    kept = (slice(a, extent - b) for (a, b), extent in zip(cropping, x.shape[1:-1], strict=True))
    return x[(slice(None), *kept)]


def _repeated(x: Any, size: Any, interpolation: str = "nearest") -> Any:
    """x (n, spatial..., c) with so many times the extents of its spatial axes."""
    if x.dtype in FLOATING:
        return ops.Upsample(size, interpolation)(x)
    for axis, n in enumerate(size, 1):
        x = ops.repeat(x, n, axis)
    return x


class _UpSampling(_Spatial):
    interpolation: str = "nearest"

    def __init__(self, rank: int, size: Any, data_format: str | None, **kwargs: Any) -> None:
        super().__init__(rank, data_format, **kwargs)
        self.size: Any = arguments.integers(type(self).__name__, "size", size, rank)

    def _apply(self, x: Any) -> Any:
        if self.interpolation not in ("nearest", "bilinear"):
            size = tuple(n * extent for n, extent in zip(self.size, x.shape[1:-1], strict=True))
            return ops.image.resize(x, size, self.interpolation, data_format="channels_last")
        return _repeated(x, self.size, self.interpolation)


class _OneAxis(_Spatial):
    """What has no data_format, as in Keras: the steps are axis 1."""

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("data_format", None)
        return config


@builtin
class ZeroPadding1D(_ZeroPadding):
    """Zeros around signals; padding: p, or (before, after)."""

    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(1, padding, data_format, **kwargs)
        (self.padding,) = self.padding

    def _apply(self, x: Any) -> Any:
        return ops.pad(x, ((0, 0), self.padding, (0, 0)))


@builtin
class ZeroPadding2D(_ZeroPadding):
    """Rows and columns of zeros around images; padding: p, (rows, columns) or ((top, bottom), (left, right))."""

    def __init__(self, padding: Any = (1, 1), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(2, padding, data_format, **kwargs)


@builtin
class ZeroPadding3D(_ZeroPadding):
    """Planes, rows and columns of zeros around volumes; padding: p, one for each axis, or (before, after) of each."""

    def __init__(self, padding: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(3, padding, data_format, **kwargs)


@builtin
class Cropping1D(_Cropping, _OneAxis):
    """Signals without their ends; cropping: as ZeroPadding1D's padding."""

    def __init__(self, cropping: Any = (1, 1), **kwargs: Any) -> None:
        super().__init__(1, cropping, "channels_last", **kwargs)
        (self.cropping,) = self.cropping

    def _apply(self, x: Any) -> Any:
        if sum(self.cropping) >= x.shape[1]:
            raise ValueError(
                f"Cropping1D {self.name!r}: cropping={self.cropping} leaves nothing of a signal of {x.shape[1]} steps"
            )
        return _cropped(x, (self.cropping,))


@builtin
class Cropping2D(_Cropping):
    """Images without their outer rows and columns; cropping: as ZeroPadding2D's padding."""

    def __init__(self, cropping: Any = ((0, 0), (0, 0)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(2, cropping, data_format, **kwargs)


@builtin
class Cropping3D(_Cropping):
    """Volumes without their outer planes, rows and columns; cropping: as ZeroPadding3D's padding."""

    def __init__(self, cropping: Any = ((1, 1), (1, 1), (1, 1)), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(3, cropping, data_format, **kwargs)


@builtin
class UpSampling1D(_UpSampling, _OneAxis):
    """Signals with each step repeated size times."""

    def __init__(self, size: Any = 2, **kwargs: Any) -> None:
        super().__init__(1, size, "channels_last", **kwargs)
        (self.size,) = self.size

    def _apply(self, x: Any) -> Any:
        return _repeated(x, (self.size,))


@builtin
class UpSampling2D(_UpSampling):
    """Images with size times the rows and columns.

    interpolation: "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5".
    """

    def __init__(
        self, size: Any = (2, 2), data_format: str | None = None, interpolation: str = "nearest", **kwargs: Any
    ) -> None:
        super().__init__(2, size, data_format, **kwargs)
        known = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")
        self.interpolation = arguments.choice("UpSampling2D", "interpolation", interpolation, known)
        self.reads_integers = interpolation == "nearest"


@builtin
class UpSampling3D(_UpSampling):
    """Volumes with each pixel repeated size times along each axis."""

    def __init__(self, size: Any = (2, 2, 2), data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(3, size, data_format, **kwargs)
