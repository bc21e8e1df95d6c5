"""Pooling over windows of an image (NHWC), and over whole images."""

from __future__ import annotations

from dataclasses import dataclass

from pydtconv.conv.problem import same_padding
from pydtconv.ops.base import Op, Spec, Window
from pydtconv.ops.checks import check_float

#: ((top, bottom), (left, right)), "valid" (none) or "same" (oh = ceil(ih / sh), the odd pixel below and right)
Padding = str | tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class WindowPool(Op):
    """What maximum and average pooling share: the window and its sizes.

    pool_size, strides: (height, width); strides None: pool_size.
    """

    pool_size: tuple[int, int]
    strides: tuple[int, int] | None = None
    padding: Padding = "valid"

    accumulates = (0,)

    def __post_init__(self) -> None:
        for name, pair in (("pool_size", self.pool_size), ("strides", self._strides)):
            if len(pair) != 2 or min(pair) < 1:
                raise ValueError(f"{self._kind}: expected {name} to be two positive integers, got {pair}")
        if isinstance(self.padding, str):
            if self.padding not in ("valid", "same"):
                raise ValueError(f"{self._kind}: expected padding 'valid', 'same' or four sizes, got {self.padding!r}")
            return
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
    def _strides(self) -> tuple[int, int]:
        return self.strides or self.pool_size

    def window(self, axis: int, *inputs: Spec) -> Window | None:
        if axis not in (1, 2):
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
        (x,) = inputs
        if len(x.shape) != 4:
            raise ValueError(f"{self._kind}: x must have shape (n, h, w, c), got {x.shape}")
        check_float(self._kind, "x", x.dtype)
        n, _, _, c = x.shape
        oh, ow = (self._outputs(axis, x) for axis in (1, 2))
        if oh < 1 or ow < 1:
            raise ValueError(f"{self._kind}: a window of {self.pool_size} does not fit in x of shape {x.shape}")
        return Spec((n, oh, ow, c), x.dtype)


@dataclass(frozen=True)
class MaxPool(WindowPool):
    """y = maximum over each window; padding never counts.

    x (n, ih, iw, c) -> y (n, oh, ow, c).  Training keeps the place of each maximum in its window, one byte per output
    (four where a window has more than 256 pixels), and neither x nor y.  Of equal maxima the first gets the gradient.
    """

    replay_saves = ("argmax",)

    @property
    def argmax_bytes(self) -> int:
        return 1 if self.pool_size[0] * self.pool_size[1] <= 256 else 4

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        if not training:
            return {}
        y = self.infer(*inputs)
        return {"argmax": Spec(y.shape, "uint8" if self.argmax_bytes == 1 else "int32")}


@dataclass(frozen=True)
class AveragePool(WindowPool):
    """y = mean over each window.  x (n, ih, iw, c) -> y (n, oh, ow, c).

    count_include_pad: padding counts as zeros; otherwise, as in Keras, the mean is over the pixels inside x.
    """

    count_include_pad: bool = False


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


@dataclass(frozen=True)
class GlobalMaxPool(_GlobalPool):
    """y = maximum over everything between the batch and the channels; training keeps its place (int32), not x."""

    replay_saves = ("argmax",)

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        return {"argmax": Spec((inputs[0].shape[0], inputs[0].shape[-1]), "int32")} if training else {}
