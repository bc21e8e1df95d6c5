"""Operators that move elements: reshape, transpose, concatenate, slice, crop, pad, upsample, cast.

Most are copies between strided views, bound once; permutations whose innermost dimension changes go through tiles
(cext/nn/permute.c), bilinear upsampling through cext/nn/resize.c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv._ext import elem
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.strided import (
    FLOATS,
    adds,
    bind_copy,
    bind_reduce,
    flat,
    kernel,
    merge,
    normalize_axes,
    nothing,
    reduction_workspace,
    same_float,
    sequence,
    strides_of,
)


def bind_fill(y: np.ndarray, value: float) -> Call:
    """Sets all elements of a view to a value."""
    return bind_copy(np.full((1,) * y.ndim, value, y.dtype), y) if y.size else nothing


def bind_permute(x: np.ndarray, y: np.ndarray, accumulate: bool = False) -> Call:
    """y (+)= x for a view x of y's shape whose innermost dimension need not be contiguous."""
    if x.size == 0:
        return nothing
    shape, (xs, ys) = merge(x.shape, [strides_of(x, x.shape), strides_of(y, x.shape)])
    if not shape or xs[-1] == 1 or ys[-1] != 1:
        return bind_copy(x, y, accumulate=accumulate)
    if len(shape) == 1:
        shape, xs, ys = [1, *shape], [0, *xs], [0, *ys]
    plan = np.array([len(shape), 2, *shape, *xs, *ys], np.int64)
    return partial(kernel(elem.permute, x.dtype), accumulate, plan, flat(x), flat(y))


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in another shape; -1 stands for what is left, None (only the batch) for what is not known."""

    shape: tuple[int | None, ...]

    is_view: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        if self.shape.count(-1) > 1 or any(n is not None and n < -1 for n in self.shape):
            raise ValueError(f"reshape: expected extents of 0 or more and at most one -1, got {self.shape}")

    def infer(self, *inputs: Spec) -> Spec:
        old = inputs[0].shape
        if None in old:
            return Spec(self._with_unknown_batch(old), inputs[0].dtype)
        size = inputs[0].size
        new: tuple[int, ...] = tuple(-1 if n is None else n for n in self.shape)
        known = math.prod(n for n in new if n != -1)
        if new.count(-1) == 1 and known and size % known == 0:
            new = tuple(size // known if n == -1 else n for n in new)
        if -1 in new or math.prod(new) != size:
            raise ValueError(f"reshape: expected a shape of {size} elements as {old} has, got {self.shape}")
        return Spec(new, inputs[0].dtype)

    def _with_unknown_batch(self, old: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The new shape when the old batch is None: the batch must stay, or be what -1 stands for."""
        known = math.prod(n for n in old if n is not None)
        rest = math.prod(n for n in self.shape if n is not None and n != -1)
        if None in self.shape:
            if rest and known % rest == 0 and (-1 in self.shape or known == rest):
                return tuple(known // rest if n == -1 else n for n in self.shape)
        elif -1 in self.shape and rest == known:
            return tuple(None if n == -1 else n for n in self.shape)
        elif -1 in self.shape and self.shape[0] == -1:
            return (None, *self.shape[1:])
        raise ValueError(f"reshape: expected a shape that keeps the batch of {old}, got {self.shape}")


@dataclass(frozen=True)
class Transpose(Op):
    """The axes in another order; axes None reverses them."""

    axes: tuple[int, ...] | None = None

    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        if self.axes is not None:
            object.__setattr__(self, "axes", tuple(self.axes))

    def order(self, rank: int) -> tuple[int, ...]:
        order = tuple(range(rank))[::-1] if self.axes is None else tuple(a % rank if rank else a for a in self.axes)
        if sorted(order) != list(range(rank)):
            raise ValueError(f"transpose: expected a permutation of {rank} axes, got {self.axes}")
        return order

    def infer(self, *inputs: Spec) -> Spec:
        same_float("transpose", *inputs)
        return Spec(tuple(inputs[0].shape[a] for a in self.order(len(inputs[0].shape))), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        return bind_permute(p.x[0].transpose(self.order(p.x[0].ndim)), p.y[0])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        return bind_permute(p.dy[0].transpose(np.argsort(self.order(p.dy[0].ndim))), p.dx[0], adds(p, 0))


@dataclass(frozen=True)
class Concatenate(Op):
    """Inputs one behind the other along `axis`.  The plan lets them lie in the output where it can."""

    axis: int = -1

    concatenates: ClassVar[bool] = True
    accumulates: ClassVar[tuple[int, ...]] = tuple(range(256))

    def infer(self, *inputs: Spec) -> Spec:
        if not inputs:
            raise ValueError("concatenate: expected at least one input, got none")
        dtype = same_float("concatenate", *inputs)
        first = inputs[0].shape
        (axis,) = normalize_axes("concatenate", self.axis, len(first))
        for spec in inputs[1:]:
            if len(spec.shape) != len(first) or any(
                d != axis and None not in (a, b) and a != b
                for d, (a, b) in enumerate(zip(first, spec.shape, strict=True))
            ):
                raise ValueError(
                    f"concatenate: expected shapes that differ along axis {self.axis} alone, got {first} and "
                    f"{spec.shape}"
                )
        extents = [spec.shape[axis] for spec in inputs]
        total = None if None in extents else sum(extents)  # type: ignore[arg-type]
        return Spec((*first[:axis], total, *first[axis + 1 :]), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        """The inputs without a gradient, for their extents alone."""
        return Retained(x=tuple(i for i, need in enumerate(needs) if not need))

    def _extents(self, p: Pass) -> list[int]:
        """Extents of the inputs along the axis in backward; one that nothing shows is what the others leave."""
        shown = [x if dx is None else dx for x, dx in zip(p.x, p.dx, strict=True)]
        known = [None if array is None else array.shape[self.axis] for array in shown]
        if known.count(None) > 1:
            raise ValueError("concatenate: expected a gradient or the input for all inputs but one")
        left = p.dy[0].shape[self.axis] - sum(n for n in known if n is not None)
        return [left if n is None else n for n in known]

    def parts(self, whole: np.ndarray, extents: Sequence[int]) -> list[np.ndarray]:
        """The views of the output (or its gradient) that belong to inputs of these extents."""
        before = (slice(None),) * (self.axis % whole.ndim)
        ends = np.cumsum(extents).tolist()
        return [whole[(*before, slice(end - n, end))] for end, n in zip(ends, extents, strict=True)]

    def forward(self, p: Pass) -> Call:
        parts = self.parts(p.y[0], [x.shape[self.axis] for x in p.x])
        return sequence([bind_copy(x, part) for x, part in zip(p.x, parts, strict=True)])

    def backward(self, p: Pass) -> Call:
        parts = self.parts(p.dy[0], self._extents(p))
        return sequence(
            [
                bind_copy(part, dx, accumulate=adds(p, i))
                for i, (dx, part) in enumerate(zip(p.dx, parts, strict=True))
                if dx is not None
            ]
        )


@dataclass(frozen=True)
class Slice(Op):
    """x[start:stop] along each axis; None as the stop is the end, negative numbers count from it."""

    start: tuple[int, ...]
    stop: tuple[int | None, ...]

    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(self.start))
        object.__setattr__(self, "stop", tuple(self.stop))

    def window(self, shape: Sequence[int | None]) -> tuple[slice, ...]:
        if len(self.start) != len(shape) or len(self.stop) != len(shape):
            raise ValueError(
                f"{self.name}: expected {len(shape)} starts and stops for shape {tuple(shape)}, got {self.start} "
                f"and {self.stop}"
            )
        return tuple(
            slice(None) if n is None else slice(*slice(a, b).indices(n)[:2])
            for n, a, b in zip(shape, self.start, self.stop, strict=True)
        )

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.name, *inputs)
        shape = inputs[0].shape
        extents = tuple(n if n is None else w.stop - w.start for n, w in zip(shape, self.window(shape), strict=True))
        if any(n is not None and n <= 0 for n in extents):
            raise ValueError(f"{self.name}: nothing is left of shape {shape} between {self.start} and {self.stop}")
        return Spec(extents, inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        return bind_copy(p.x[0][self.window(p.x[0].shape)], p.y[0])

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        window = self.window(dx.shape)
        calls = [] if adds(p, 0) else [bind_fill(part, 0) for part in outside(dx, window)]
        return sequence([*calls, bind_copy(p.dy[0], dx[window], accumulate=adds(p, 0))])


def outside(array: np.ndarray, window: Sequence[slice]) -> list[np.ndarray]:
    """Views that together are what of `array` does not lie in `window`, without overlap."""
    parts = []
    for axis, w in enumerate(window):
        before, after = (slice(None),) * axis, array
        start, stop, _ = w.indices(after.shape[axis])
        parts += [array[(*before, slice(0, start))], array[(*before, slice(stop, None))]]
        array = array[(*before, slice(start, stop))]
    return [part for part in parts if part.size]


def Crop(cropping: Sequence[Sequence[int]]) -> Slice:
    """Images without `cropping` = ((top, bottom), (left, right)) rows and columns."""
    (top, bottom), (left, right) = cropping
    if min(top, bottom, left, right) < 0:
        raise ValueError(f"Crop: expected numbers of 0 or more, got {cropping}")
    return Slice((0, top, left, 0), (None, -bottom or None, -right or None, None))


@dataclass(frozen=True)
class Pad(Op):
    """x with `padding` = ((before, after), ...) elements per axis: a constant, or mirrored ("reflect", "symmetric")."""

    padding: tuple[tuple[int, int], ...]
    mode: str = "constant"
    value: float = 0.0

    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "padding", tuple((int(a), int(b)) for a, b in self.padding))
        object.__setattr__(self, "overwrites_dy", self.mode != "constant")
        if self.mode not in ("constant", "reflect", "symmetric"):
            raise ValueError(f"pad: expected mode 'constant', 'reflect' or 'symmetric', got {self.mode!r}")
        if any(n < 0 for pair in self.padding for n in pair):
            raise ValueError(f"pad: expected paddings of 0 or more, got {self.padding}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("pad", *inputs)
        shape = inputs[0].shape
        if len(self.padding) != len(shape):
            raise ValueError(f"pad: expected {len(shape)} pairs for shape {shape}, got {self.padding}")
        for n, pair in zip(shape, self.padding, strict=True):
            limit = math.inf if n is None or self.mode == "constant" else n - (self.mode == "reflect")
            if max(pair) > limit:
                raise ValueError(
                    f"pad: mode {self.mode!r} expects paddings of at most {limit} for shape {shape}, got {self.padding}"
                )
        return Spec(
            tuple(n if n is None else n + a + b for n, (a, b) in zip(shape, self.padding, strict=True)), inputs[0].dtype
        )

    def window(self, y: np.ndarray) -> tuple[slice, ...]:
        return tuple(slice(a, n - b) for n, (a, b) in zip(y.shape, self.padding, strict=True))

    def mirrored(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """(source, copy) of each mirrored line, axis by axis: the later axes copy what the earlier have filled."""
        pairs = []
        skip = 1 if self.mode == "reflect" else 0
        window = list(self.window(y))
        for axis, (before, after) in enumerate(self.padding):
            first, last = window[axis].start, window[axis].stop - 1
            lines = [(first + skip + i, first - 1 - i) for i in range(before)]
            lines += [(last - skip - i, last + 1 + i) for i in range(after)]
            rest = (*[slice(None)] * axis, slice(None), *window[axis + 1 :])
            for source, target in lines:
                place = [(*rest[:axis], slice(k, k + 1), *rest[axis + 1 :]) for k in (source, target)]
                pairs.append((y[place[0]], y[place[1]]))
        return pairs

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        window = self.window(y)
        inner = bind_copy(p.x[0], y[window])
        if self.mode == "constant":
            return sequence([*(bind_fill(part, self.value) for part in outside(y, window)), inner])
        return sequence([inner, *(bind_copy(source, copy) for source, copy in self.mirrored(y))])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        dy = p.dy[0]
        calls = (
            []
            if self.mode == "constant"
            else [bind_copy(copy, source, accumulate=True) for source, copy in reversed(self.mirrored(dy))]
        )
        return sequence([*calls, bind_copy(dy[self.window(dy)], p.dx[0], accumulate=adds(p, 0))])


@dataclass(frozen=True)
class Upsample(Op):
    """Images (n, h, w, c) with each pixel repeated size times, or interpolated between pixels ("bilinear")."""

    size: tuple[int, int] = (2, 2)
    interpolation: str = "nearest"

    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(self.size))
        if self.interpolation not in ("nearest", "bilinear"):
            raise ValueError(f"Upsample: expected interpolation 'nearest' or 'bilinear', got {self.interpolation!r}")
        if len(self.size) != 2 or min(self.size) < 1:
            raise ValueError(f"Upsample: expected a size of two integers of 1 or more, got {self.size}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("Upsample", *inputs)
        if len(inputs[0].shape) != 4:
            raise ValueError(f"Upsample: expected images (n, h, w, c), got shape {inputs[0].shape}")
        n, h, w, c = inputs[0].shape
        return Spec((n, h and h * self.size[0], w and w * self.size[1], c), inputs[0].dtype)

    def _repeated(self, y: np.ndarray) -> np.ndarray:
        """y (or dy) as (n, h, size, w, size, c)."""
        (n, oh, ow, c), (fh, fw) = y.shape, self.size
        s = y.strides
        return as_strided(y, (n, oh // fh, fh, ow // fw, fw, c), (s[0], s[1] * fh, s[1], s[2] * fw, s[2], s[3]))

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward" or self.interpolation != "nearest" or None in inputs[0].shape:
            return 0
        n, h, w, c = inputs[0].shape
        return reduction_workspace((n, h, self.size[0], w, self.size[1], c), (2, 4), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if x.size == 0:
            return nothing
        if self.interpolation == "nearest":
            return bind_copy(x[:, :, None, :, None, :], self._repeated(y))
        return partial(kernel(elem.bilinear_forward, x.dtype), x, y, pixel_distance(x), pixel_distance(y))

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None or dx.size == 0:
            return nothing
        if self.interpolation == "nearest":
            return bind_reduce(
                "sum", (2, 4), self._repeated(dy), dx[:, :, None, :, None, :], p.workspace, accumulate=adds(p, 0)
            )
        return partial(
            kernel(elem.bilinear_backward, dx.dtype), adds(p, 0), dy, dx, pixel_distance(dy), pixel_distance(dx)
        )


def pixel_distance(x: np.ndarray) -> int:
    """Elements between neighbouring pixels of images, which may be a channel slice."""
    n, h, w, c = x.shape
    for extent, stride, pixels in ((w, x.strides[2], 1), (h, x.strides[1], w), (n, x.strides[0], h * w)):
        if extent > 1:
            return stride // x.itemsize // pixels
    return c


@dataclass(frozen=True)
class Cast(Op):
    """x in another dtype; between float types the gradient is cast back."""

    dtype: str

    def infer(self, *inputs: Spec) -> Spec:
        return Spec(inputs[0].shape, np.dtype(self.dtype).name)

    def forward(self, p: Pass) -> Call:
        return partial(np.copyto, p.y[0], p.x[0], casting="unsafe")

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        if p.dx[0].dtype.name not in FLOATS or np.dtype(self.dtype).name not in FLOATS:
            return partial(p.dx[0].fill, 0)
        return partial(np.copyto, p.dx[0], p.dy[0], casting="unsafe")
