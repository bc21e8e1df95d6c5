"""The description of one convolution: sizes, strides, padding, dilation, groups, dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from pydtconv.extents import LARGEST, MOST_ELEMENTS, MOST_PRODUCTS, check

DIRECTIONS = ("forward", "backward_data", "backward_weights")
DTYPES = ("float32", "float64", "bfloat16")
#: names of the sizes of an image along its axes, and of the sides of its padding, by the number of axes
EXTENTS = {1: ("iw",), 2: ("ih", "iw"), 3: ("id", "ih", "iw")}
SIDES = {1: "(left, right),", 2: "(top, bottom), (left, right)", 3: "(front, back), (top, bottom), (left, right)"}
_WAYS = ("in depth", "vertically", "horizontally")
_WANTED = {1: "an integer", 2: "an integer or a pair of integers", 3: "an integer or three integers"}
Padding = tuple[tuple[int, int], ...]
#: rows times columns from the first tap of a depthwise window to its last
MOST_PIXELS = 1 << 22


def several(value: Any, name: str, count: int, minimum: int = 1) -> tuple[int, ...]:
    """An integer or `count` of them as a tuple, at most LARGEST.  Raises ValueError naming the argument."""
    values = (value,) * count if isinstance(value, int) else value
    try:
        found = tuple(int(v) for v in values if int(v) == v)
    except (TypeError, ValueError, OverflowError):
        found = ()
    if len(found) != count:
        raise ValueError(f"{name}: expected {_WANTED[count]}, got {value!r}")
    if min(found) < minimum:
        raise ValueError(f"{name}: expected integers of {minimum} or more, got {value!r}")
    check(name, found)
    return found


def pair(value: Any, name: str, minimum: int = 1) -> tuple[int, int]:
    """An integer or a pair of them as a pair, at most LARGEST.  Raises ValueError naming the argument."""
    first, second = several(value, name, 2, minimum)
    return first, second


def by_axis(value: Any, name: str, minimum: int = 1) -> int | tuple[int, ...]:
    """An integer, which stands for all axes, or one to three of them, as a tuple.  Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return several(value, name, 1, minimum)[0]
    count = len(value) if isinstance(value, (tuple, list)) else 2
    return several(value, name, count if count in EXTENTS else 2, minimum)


def same_padding(extent: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Keras's "same": the output has ceil(extent / stride) pixels; an odd rest goes to the end."""
    total = max((-(-extent // stride) - 1) * stride + (kernel - 1) * dilation + 1 - extent, 0)
    return total // 2, total - total // 2


def resolve_padding(
    padding: Any, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Padding:
    """Padding by side, (before, after) for each axis, from "valid", "same", or sides.  Raises ValueError."""
    if padding == "valid":
        return ((0, 0),) * len(extents)
    if padding == "same":
        return tuple(same_padding(*sizes) for sizes in zip(extents, kernel, strides, dilation, strict=True))
    try:
        sides = tuple(padding)
        if len(sides) != len(extents):
            raise ValueError("another number of axes")
        return tuple(pair(side, "padding", 0) for side in sides)
    except (TypeError, ValueError):
        raise ValueError(
            f"padding: expected 'valid', 'same' or ({SIDES[len(extents)]}) of integers of 0 or more, got {padding!r}"
        ) from None


class Axis(NamedTuple):
    """One axis of a convolution, of images that have it or not."""

    extent: int
    out: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int


_NO_AXIS = Axis(1, 1, 1, 1, 1, 0, 0)


class _Size:
    """A size of a problem along an axis, counted from the last one; 1 where an image does not have that axis."""

    def __init__(self, values: str, axis: int) -> None:
        self.values, self.axis = values, axis

    def __get__(self, p: ConvProblem, owner: type) -> int:
        found: tuple[int, ...] = getattr(p, self.values)
        return found[self.axis] if -self.axis <= len(found) else 1


@dataclass(frozen=True, init=False, repr=False)
class ConvProblem:
    """A convolution of n images of one to three axes, of ci channels, with co filters, as hashable sizes.

    Channels come last: x_shape (n, *spatial, ci), w_shape (*kernel, ci // groups, co), y_shape (n, *out, co).  Sizes by
    axis are tuples of the length `rank`; padding has (before, after) of each axis.  The last axis is also w (iw, ow,
    kw, sw, dil_w), the one before h, the one before that d (id, od, ...): what an image does not have is of size 1.
    flops counts multiplications and additions of the direct algorithm.
    """

    n: int
    spatial: tuple[int, ...]
    ci: int
    co: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Padding
    dilation: tuple[int, ...]
    groups: int
    dtype: str

    id, ih, iw = (_Size("spatial", axis) for axis in (-3, -2, -1))
    od, oh, ow = (_Size("out", axis) for axis in (-3, -2, -1))
    kd, kh, kw = (_Size("kernel", axis) for axis in (-3, -2, -1))
    sd, sh, sw = (_Size("strides", axis) for axis in (-3, -2, -1))
    dil_d, dil_h, dil_w = (_Size("dilation", axis) for axis in (-3, -2, -1))

    def __init__(
        self,
        n: int,
        ih: int,
        iw: int,
        ci: int,
        co: int,
        kernel: Any,
        strides: Any = (1, 1),
        padding: Any = "valid",
        dilation: Any = (1, 1),
        groups: int = 1,
        dtype: str = "float32",
    ) -> None:
        """Of two axes; padding: "valid", "same" (Keras's) or ((top, bottom), (left, right)).

        Raises ValueError for sizes below 1, groups that do not divide the channels, an unknown dtype, an empty output,
        and sizes beyond LARGEST, MOST_ELEMENTS and MOST_PRODUCTS.
        """
        self._set(n, (ih, iw), ci, co, kernel, strides, padding, dilation, groups, dtype)

    @classmethod
    def of(
        cls,
        x_shape: Sequence[int],
        w_shape: Sequence[int],
        strides: Any = 1,
        padding: Any = "valid",
        dilation: Any = 1,
        groups: int = 1,
        dtype: str = "float32",
    ) -> ConvProblem:
        """Images of x_shape (n, *spatial, ci), one to three axes, and filters of w_shape (*kernel, ci // groups, co).

        strides, dilation: an integer or one for each axis.  padding: "valid", "same" or (before, after) for each axis.
        Raises ValueError as the constructor does, and where the shapes do not fit each other.
        """
        x_shape, w_shape = tuple(x_shape), tuple(w_shape)
        if len(x_shape) - 2 not in EXTENTS:
            raise ValueError(f"x_shape: expected (n, *spatial, ci) with one to three axes, got {x_shape}")
        if len(w_shape) != len(x_shape):
            raise ValueError(
                f"w_shape: expected (*kernel, ci // groups, co) with {len(x_shape)} sizes, as {x_shape} has, "
                f"got {w_shape}"
            )
        p = cls.__new__(cls)
        p._set(
            x_shape[0], x_shape[1:-1], x_shape[-1], w_shape[-1], w_shape[:-2], strides, padding, dilation, groups, dtype
        )
        if w_shape[-2] * p.groups != p.ci:
            raise ValueError(f"w_shape: expected {p.w_shape} for x_shape {x_shape} and groups={groups}, got {w_shape}")
        return p

    def _set(
        self,
        n: int,
        spatial: tuple[int, ...],
        ci: int,
        co: int,
        kernel: Any,
        strides: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        dtype: str,
    ) -> None:
        rank = len(spatial)
        counts = {"n": n, **dict(zip(EXTENTS[rank], spatial, strict=True)), "ci": ci, "co": co, "groups": groups}
        for name, value in counts.items():
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
                raise ValueError(f"{name}: expected an integer of 1 or more, got {value!r}")
            check(name, int(value))
        kernel = several(kernel, "kernel", rank)
        strides = several(strides, "strides", rank)
        dilation = several(dilation, "dilation", rank)
        for name, channels in (("ci", ci), ("co", co)):
            if channels % groups:
                raise ValueError(f"groups: expected a divisor of {name}={channels}, got {groups}")
        if dtype not in DTYPES:
            raise ValueError(f"dtype: expected one of {', '.join(DTYPES)}, got {dtype!r}")
        values = {
            "n": int(n),
            "spatial": tuple(int(extent) for extent in spatial),
            "ci": int(ci),
            "co": int(co),
            "kernel": kernel,
            "strides": strides,
            "padding": resolve_padding(padding, spatial, kernel, strides, dilation),
            "dilation": dilation,
            "groups": int(groups),
            "dtype": str(dtype),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if min(self.out) < 1:
            raise ValueError(
                f"kernel: the output would be empty ({_by(self.out)}): kernel {_by(kernel)} with dilation "
                f"{_by(dilation)} does not fit into an image of {_by(spatial)} with padding {self.padding}"
            )
        self._check_products()

    def _check_products(self) -> None:
        """Raises ValueError where C would multiply sizes to more than it can hold."""
        extents = [
            extent + sum(sides) + stride
            for extent, sides, stride in zip(self.spatial, self.padding, self.strides, strict=True)
        ]
        for name, extent in zip(_WAYS[-self.rank :], extents, strict=True):
            if extent > LARGEST:
                raise ValueError(
                    f"padding: expected at most {LARGEST} pixels {name}, with a stride beyond them, got {extent}"
                )
        window = prod((taps - 1) * step + 1 for taps, step in zip(self.kernel[-2:], self.dilation[-2:], strict=True))
        if self.groups == self.ci > 1 and window > MOST_PIXELS:  # which lie in a thread's memory
            raise ValueError(f"dilation: expected at most {MOST_PIXELS} pixels of depthwise windows, got {window}")
        pixels, taps, inputs = self.n * prod(self.out), prod(self.kernel), self.ci // self.groups
        for what, count in (
            ("x with its padding", self.n * prod(extents) * self.ci),
            ("the kernel", taps * inputs * self.co),
            ("the output", pixels * self.co),
            ("the matrix of im2col", pixels * taps * self.ci),
        ):
            if count > MOST_ELEMENTS:
                raise ValueError(f"sizes: expected at most {MOST_ELEMENTS} elements of {what}, got {count}: {self}")
        products = pixels * taps * inputs * self.co
        if products > MOST_PRODUCTS:
            raise ValueError(f"sizes: expected at most {MOST_PRODUCTS} products of a pass, got {products}: {self}")

    @property
    def real(self) -> str:
        """The dtype of the arithmetic, and of filters, bias, statistics: float32 where images are bfloat16."""
        return "float32" if self.dtype == "bfloat16" else self.dtype

    @property
    def rank(self) -> int:
        """How many axes an image has."""
        return len(self.spatial)

    @cached_property
    def out(self) -> tuple[int, ...]:
        """Sizes of an image of y."""
        return tuple(
            (extent + sum(sides) - (kernel - 1) * dilation - 1) // stride + 1
            for extent, kernel, stride, dilation, sides in zip(
                self.spatial, self.kernel, self.strides, self.dilation, self.padding, strict=True
            )
        )

    @property
    def axes(self) -> tuple[Axis, Axis, Axis]:
        """Depth, height and width, of size 1 where an image does not have them."""
        sizes = (self.spatial, self.out, self.kernel, self.strides, self.dilation)
        found = [Axis(*of, *sides) for *of, sides in zip(*sizes, self.padding, strict=True)]
        depth, height, width = [_NO_AXIS] * (3 - self.rank) + found
        return depth, height, width

    @property
    def is_pointwise(self) -> bool:
        """A filter of one tap, stride 1, no padding: the image is the matrix."""
        return {*self.kernel, *self.strides} == {1} and not any(map(any, self.padding))

    @property
    def x_shape(self) -> tuple[int, ...]:
        return self.n, *self.spatial, self.ci

    @property
    def w_shape(self) -> tuple[int, ...]:
        return *self.kernel, self.ci // self.groups, self.co

    @property
    def y_shape(self) -> tuple[int, ...]:
        return self.n, *self.out, self.co

    def __repr__(self) -> str:
        shapes = ("x".join(map(str, shape)) for shape in (self.x_shape, self.w_shape, self.y_shape))
        text = "ConvProblem {} * {} -> {}".format(*shapes)
        ones, none = (1,) * self.rank, ((0, 0),) * self.rank
        for name, usual in (("strides", ones), ("padding", none), ("dilation", ones), ("groups", 1)):
            text += "" if getattr(self, name) == usual else f", {name} {getattr(self, name)}"
        return f"<{text}, {self.dtype}>"

    @property
    def flops(self) -> int:
        return 2 * self.n * prod(self.out) * prod(self.kernel) * (self.ci // self.groups) * self.co

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """What the C library's problem holds, in its order, but for the distances between pixels."""
        d, h, w = self.axes
        return (
            *(self.n, h.extent, w.extent, self.ci, h.out, w.out, self.co, h.kernel, w.kernel, h.stride, w.stride),
            *(h.dilation, w.dilation, h.before, w.before, self.groups),
            *(d.extent, d.out, d.kernel, d.stride, d.dilation, d.before),
        )


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))
