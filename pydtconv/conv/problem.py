"""The description of one convolution: sizes, strides, padding, dilation, groups, dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DIRECTIONS = ("forward", "backward_data", "backward_weights")
DTYPES = ("float32", "float64")
#: the largest size, and the most elements of an image, the filters or the matrix of im2col: sums and products of sizes
#: then fit 64 bits in C, coordinates 32
LARGEST_SIZE, MOST_ELEMENTS = 2**31 - 1, 2**50
Padding = tuple[tuple[int, int], tuple[int, int]]


def pair(value: Any, name: str, minimum: int = 1) -> tuple[int, int]:
    """An integer or a pair of them as a pair, at most LARGEST_SIZE.  Raises ValueError naming the argument."""
    values = (value, value) if isinstance(value, int) else value
    try:
        first, second = (int(v) for v in values if int(v) == v)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}: expected an integer or a pair of integers, got {value!r}") from None
    if first < minimum or second < minimum:
        raise ValueError(f"{name}: expected integers of {minimum} or more, got {value!r}")
    if max(first, second) > LARGEST_SIZE:
        raise ValueError(f"{name}: expected integers of at most {LARGEST_SIZE}, got {value!r}")
    return first, second


def same_padding(extent: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """Keras's "same": the output has ceil(extent / stride) pixels; an odd rest goes to the end."""
    total = max((-(-extent // stride) - 1) * stride + (kernel - 1) * dilation + 1 - extent, 0)
    return total // 2, total - total // 2


def resolve_padding(
    padding: Any, extents: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int], dilation: tuple[int, int]
) -> Padding:
    """Padding by side, ((top, bottom), (left, right)), from "valid", "same", or sides.  Raises ValueError."""
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        h, w = (same_padding(*sizes) for sizes in zip(extents, kernel, strides, dilation, strict=True))
        return h, w
    try:
        vertical, horizontal = padding
        return pair(vertical, "padding", 0), pair(horizontal, "padding", 0)
    except (TypeError, ValueError):
        raise ValueError(
            "padding: expected 'valid', 'same' or ((top, bottom), (left, right)) of integers of 0 or more, "
            f"got {padding!r}"
        ) from None


@dataclass(frozen=True, init=False)
class ConvProblem:
    """A convolution of n images ih x iw x ci with co filters kh x kw, as hashable sizes.

    Images are NHWC, filters HWIO: x_shape (n, ih, iw, ci), w_shape (kh, kw, ci // groups, co), y_shape (n, oh, ow, co).
    flops counts multiplications and additions of the direct algorithm.
    """

    n: int
    ih: int
    iw: int
    ci: int
    co: int
    kh: int
    kw: int
    sh: int
    sw: int
    padding: Padding
    dil_h: int
    dil_w: int
    groups: int
    dtype: str

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
        """padding: "valid", "same" (Keras's) or ((top, bottom), (left, right)).

        Raises ValueError for sizes below 1, groups that do not divide the channels, an unknown dtype, an empty output,
        and sizes beyond LARGEST_SIZE and MOST_ELEMENTS.
        """
        for name, value in (("n", n), ("ih", ih), ("iw", iw), ("ci", ci), ("co", co), ("groups", groups)):
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
                raise ValueError(f"{name}: expected an integer of 1 or more, got {value!r}")
            if value > LARGEST_SIZE:
                raise ValueError(f"{name}: expected an integer of at most {LARGEST_SIZE}, got {value!r}")
        kh, kw = pair(kernel, "kernel")
        sh, sw = pair(strides, "strides")
        dil_h, dil_w = pair(dilation, "dilation")
        for name, channels in (("ci", ci), ("co", co)):
            if channels % groups:
                raise ValueError(f"groups: expected a divisor of {name}={channels}, got {groups}")
        if dtype not in DTYPES:
            raise ValueError(f"dtype: expected 'float32' or 'float64', got {dtype!r}")
        sides = resolve_padding(padding, (ih, iw), (kh, kw), (sh, sw), (dil_h, dil_w))
        counts = {"n": n, "ih": ih, "iw": iw, "ci": ci, "co": co, "groups": groups}
        pairs = {"kh": kh, "kw": kw, "sh": sh, "sw": sw, "dil_h": dil_h, "dil_w": dil_w}
        values: dict[str, Any] = {name: int(value) for name, value in (counts | pairs).items()}
        values |= {"padding": sides, "dtype": str(dtype)}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.oh < 1 or self.ow < 1:
            raise ValueError(
                f"kernel: the output would be empty ({self.oh} x {self.ow}): kernel {kh} x {kw} with dilation "
                f"{dil_h} x {dil_w} does not fit into an image of {ih} x {iw} with padding {sides}"
            )
        self._check_products()

    def _check_products(self) -> None:
        """Raises ValueError where C would multiply sizes to more than it can hold."""
        height, width = self.ih + sum(self.padding[0]) + self.sh, self.iw + sum(self.padding[1]) + self.sw
        for name, extent in (("vertically", height), ("horizontally", width)):
            if extent > LARGEST_SIZE:
                raise ValueError(
                    f"padding: expected at most {LARGEST_SIZE} pixels {name}, with a stride beyond them, got {extent}"
                )
        pixels, inputs = self.n * self.oh * self.ow, self.ci // self.groups
        for what, count in (
            ("x with its padding", self.n * height * width * self.ci),
            ("the kernel", self.kh * self.kw * inputs * self.co),
            ("the output", pixels * self.co),
            ("the matrix of im2col", pixels * self.kh * self.kw * self.ci),
        ):
            if count > MOST_ELEMENTS:
                raise ValueError(f"sizes: expected at most {MOST_ELEMENTS} elements of {what}, got {count}: {self}")

    @property
    def is_pointwise(self) -> bool:
        """1x1, stride 1, no padding: the image is the matrix."""
        return (self.kh, self.kw, self.sh, self.sw) == (1, 1, 1, 1) and self.padding == ((0, 0), (0, 0))

    @property
    def oh(self) -> int:
        return (self.ih + sum(self.padding[0]) - (self.kh - 1) * self.dil_h - 1) // self.sh + 1

    @property
    def ow(self) -> int:
        return (self.iw + sum(self.padding[1]) - (self.kw - 1) * self.dil_w - 1) // self.sw + 1

    @property
    def x_shape(self) -> tuple[int, int, int, int]:
        return self.n, self.ih, self.iw, self.ci

    @property
    def w_shape(self) -> tuple[int, int, int, int]:
        return self.kh, self.kw, self.ci // self.groups, self.co

    @property
    def y_shape(self) -> tuple[int, int, int, int]:
        return self.n, self.oh, self.ow, self.co

    @property
    def flops(self) -> int:
        return 2 * self.n * self.oh * self.ow * self.kh * self.kw * (self.ci // self.groups) * self.co

    @property
    def sizes(self) -> tuple[int, ...]:
        """What the C library's problem holds, in its order, but for the distances between pixels."""
        return (
            self.n,
            self.ih,
            self.iw,
            self.ci,
            self.oh,
            self.ow,
            self.co,
            self.kh,
            self.kw,
            self.sh,
            self.sw,
            self.dil_h,
            self.dil_w,
            self.padding[0][0],
            self.padding[1][0],
            self.groups,
        )
