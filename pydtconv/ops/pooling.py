"""Pooling over windows of an image of one to three axes, (n, *spatial, c), and over whole images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

import numpy as np

from pydtconv.conv.problem import same_padding
from pydtconv.extents import LARGEST, check_products
from pydtconv.ops.base import Op, Spec, Window, functions
from pydtconv.ops.checks import check_float
from pydtconv.ops.gradients import first_largest, largest_of_images, pixels_of_windows, spread
from pydtconv.ops.halo import Halo

__all__ = ["AdaptiveAveragePool", "AdaptiveMaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool"]

#: (before, after) of each axis, "valid" (none) or "same" (oh = ceil(ih / sh), the odd pixel at the end)
Padding = str | tuple[tuple[int, int], ...]
_COUNTS = {1: "one positive integer", 2: "two positive integers", 3: "three positive integers"}
_SHAPES = {1: "(n, w, c)", 2: "(n, h, w, c)", 3: "(n, d, h, w, c)"}


@dataclass(frozen=True)
class WindowPool(Op):
    """What maximum and average pooling share: the window and its sizes.

    pool_size, strides: an integer for each axis; strides None: pool_size.  halo: what a second input has of x beyond
    its borders, where x is a part of an image; padding is then what the part is seen in.
    """

    pool_size: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    padding: Padding = "valid"
    halo: Halo | None = field(default=None, kw_only=True, repr=False)

    accumulates = (0,)
    extent_fields = ("pool_size", "strides", "padding")
    mesh: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        count = len(self.pool_size)
        if count not in _COUNTS:
            raise ValueError(
                f"{self._kind}: expected pool_size to be one to three positive integers, got {self.pool_size}"
            )
        for name, sizes in (("pool_size", self.pool_size), ("strides", self._strides)):
            if len(sizes) != count or min(sizes) < 1:
                raise ValueError(f"{self._kind}: expected {name} to be {_COUNTS[count]}, got {sizes}")
        if isinstance(self.padding, str):
            if self.padding not in ("valid", "same"):
                raise ValueError(f"{self._kind}: expected padding 'valid', 'same' or sizes, got {self.padding!r}")
            return
        if len(self.padding) != count:
            raise ValueError(f"{self._kind}: expected padding of {count} axes, got {self.padding}")
        for sides, size in zip(self.padding, self.pool_size, strict=True):
            if len(sides) != 2 or min(sides) < 0 or max(sides) >= size:
                raise ValueError(
                    f"{self._kind}: expected padding on each side of 0 up to less than the pool_size {self.pool_size}, "
                    f"got {self.padding}"
                )

    @property
    def _kind(self) -> str:
        return type(self).__name__

    @property
    def _strides(self) -> tuple[int, ...]:
        return self.strides or self.pool_size

    def window(self, axis: int, *inputs: Spec) -> Window | None:
        if axis not in range(1, len(self.pool_size) + 1):
            return None
        size, stride, extent = self.pool_size[axis - 1], self._strides[axis - 1], inputs[0].shape[axis]
        before, after = (0, 0) if isinstance(self.padding, str) else self.padding[axis - 1]
        if self.padding == "same":
            assert extent is not None
            before, after = same_padding(extent, size, stride, 1)
        return Window(size, stride, 1, before, after)

    def _outputs(self, axis: int, x: Spec) -> int:
        window, extent = self.window(axis, x), x.shape[axis]
        assert window is not None
        assert extent is not None
        return window.outputs(extent)

    def infer(self, *inputs: Spec) -> Spec:
        if self.halo is not None:
            self.halo.check(self._kind, inputs)
            inputs = inputs[:1]
        (x,) = inputs
        if len(x.shape) != len(self.pool_size) + 2:
            raise ValueError(f"{self._kind}: x must have shape {_SHAPES[len(self.pool_size)]}, got {x.shape}")
        check_float(self._kind, "x", x.dtype)
        out = [self._outputs(axis, x) for axis in range(1, len(x.shape) - 1)]
        if min(out) < 1:
            raise ValueError(f"{self._kind}: a window of {self.pool_size} does not fit in x of shape {x.shape}")
        taps = prod(self.pool_size)
        if taps > LARGEST:
            raise ValueError(f"{self._kind}: expected windows of at most {LARGEST} pixels, got {self.pool_size}")
        y = Spec((x.shape[0], *out, x.shape[-1]), x.dtype)
        check_products(self._kind, prod(extent or 1 for extent in y.shape) * taps)
        return y


@dataclass(frozen=True)
class MaxPool(WindowPool):
    """y = maximum over each window; padding never counts.

    x (n, *spatial, c) -> y (n, *out, c).  Training keeps the place of each maximum in its window, one byte per output
    (four where a window has more than 256 pixels), and neither x nor y.  Of equal maxima the first gets the gradient.
    """

    replay_saves = ("argmax",)

    @property
    def argmax_bytes(self) -> int:
        return 1 if prod(self.pool_size) <= 256 else 4

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        if not training:
            return {}
        y = self.infer(*inputs)
        return {"argmax": Spec(y.shape, "uint8" if self.argmax_bytes == 1 else "int32")}

    def formula(self, x: Any) -> Any:
        found, inside = pixels_of_windows(self, x)
        return first_largest(functions.stack(found, axis=-1), inside)


@dataclass(frozen=True)
class AveragePool(WindowPool):
    """y = mean over each window.  x (n, *spatial, c) -> y (n, *out, c).

    count_include_pad: padding counts as zeros; otherwise, as in Keras, the mean is over the pixels inside x.
    """

    count_include_pad: bool = False

    def formula(self, x: Any) -> Any:
        found, inside = pixels_of_windows(self, x)
        count = float(len(found)) if self.count_include_pad else inside.sum(-1).astype(float)
        return functions.sum(functions.stack(found, axis=-1), axis=-1) / count


def _bounds(extent: int, out: int) -> list[tuple[int, int]]:
    """Where each of `out` windows starts and ends."""
    return [(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)]


@dataclass(frozen=True)
class AdaptivePool(Op):
    """What adaptive pooling shares: as many windows along each axis as there are outputs.

    output_size: an integer for each axis.  Output i of `out` is made of the pixels from floor(i * extent / out) up to
    ceil((i + 1) * extent / out): windows of neighbours overlap by a pixel where the extents do not divide.
    """

    output_size: tuple[int, ...]

    accumulates = (0,)
    extent_fields = ("output_size",)

    def __post_init__(self) -> None:
        kind, count = type(self).__name__, len(self.output_size)
        if count not in _COUNTS or min(self.output_size) < 1:
            raise ValueError(
                f"{kind}: expected output_size to be one to three positive integers, got {self.output_size}"
            )

    def windows(self, *inputs: Spec) -> tuple[int, ...]:
        """Pixels of the longest window along each axis."""
        return tuple(
            max(-(-(i + 1) * extent // out) - i * extent // out for i in range(out))
            for extent, out in zip(inputs[0].shape[1:-1], self.output_size, strict=True)
            if extent is not None
        )

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        kind, count = type(self).__name__, len(self.output_size)
        if len(x.shape) != count + 2:
            raise ValueError(f"{kind}: x must have shape {_SHAPES[count]}, got {x.shape}")
        if None in x.shape[1:] or 0 in x.shape[1:-1]:
            raise ValueError(f"{kind}: expected known sizes of 1 or more, got x of shape {x.shape}")
        check_float(kind, "x", x.dtype)
        return Spec((x.shape[0], *self.output_size, x.shape[-1]), x.dtype)


@dataclass(frozen=True)
class AdaptiveMaxPool(AdaptivePool):
    """y = maximum over each window; keeps places as MaxPool does."""

    replay_saves = ("argmax",)

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        if not training:
            return {}
        return {"argmax": Spec(self.infer(*inputs).shape, "uint8" if prod(self.windows(*inputs)) <= 256 else "int32")}

    def formula(self, x: Any) -> Any:
        bounds = [_bounds(extent, out) for extent, out in zip(x.shape[1:-1], self.output_size, strict=True)]
        cells = []
        for window in itertools.product(*bounds):
            part = x[(slice(None), *(slice(start, stop) for start, stop in window), slice(None))]
            cells.append(largest_of_images(part))
        return functions.reshape(functions.stack(cells, axis=1), (-1, *self.output_size, x.shape[-1]))


@dataclass(frozen=True)
class AdaptiveAveragePool(AdaptivePool):
    """y = mean over each window."""

    def formula(self, x: Any) -> Any:
        for axis, out in enumerate(self.output_size, 1):
            shares = np.zeros((out, x.shape[axis]))
            for i, (start, stop) in enumerate(_bounds(x.shape[axis], out)):
                shares[i, start:stop] = 1 / (stop - start)
            part = functions.tensordot(x, functions.convert_to_tensor(shares, x.dtype), axes=([axis], [1]))
            x = functions.moveaxis(part, -1, axis)
        return x


@dataclass(frozen=True)
class _GlobalPool(Op):
    """What global pooling shares: x (n, ..., c) -> y (n, c), or (n, 1, ..., c) with keepdims."""

    keepdims: bool = False

    accumulates = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        if len(x.shape) < 3:
            raise ValueError(
                f"{type(self).__name__}: x must have shape (n, ..., c) with three or more dimensions, got {x.shape}"
            )
        check_float(type(self).__name__, "x", x.dtype)
        middle = (1,) * (len(x.shape) - 2) if self.keepdims else ()
        return Spec((x.shape[0], *middle, x.shape[-1]), x.dtype)


@dataclass(frozen=True)
class GlobalAveragePool(_GlobalPool):
    """y = mean over everything between the batch and the channels."""

    mesh: ClassVar[str] = "global_average"

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        shape = x[0].shape
        return [spread(dy / float(math.prod(shape[1:-1])), shape, tuple(range(1, len(shape) - 1)))]


@dataclass(frozen=True)
class GlobalMaxPool(_GlobalPool):
    """y = maximum over everything between the batch and the channels; training keeps its place (int32), not x."""

    replay_saves = ("argmax",)
    mesh: ClassVar[str] = "global_maximum"

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        return {"argmax": Spec((inputs[0].shape[0], inputs[0].shape[-1]), "int32")} if training else {}

    def formula(self, x: Any) -> Any:
        y = largest_of_images(x)
        return functions.reshape(y, (y.shape[0], *(1,) * (len(x.shape) - 2), y.shape[-1])) if self.keepdims else y
