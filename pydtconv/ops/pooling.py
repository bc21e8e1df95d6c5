"""Pooling over windows of an image (NHWC), and over whole images."""

from __future__ import annotations

from dataclasses import dataclass

from pydtconv._ext import pooling as kernels
from pydtconv.ops.base import Call, Op, Pass, Spec
from pydtconv.ops.rows import adds, bytes_of, check_float, rows_of

#: ((top, bottom), (left, right)), "valid" (none) or "same" (oh = ceil(ih / sh), the odd pixel below and right)
Padding = str | tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class _WindowPool(Op):
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

    def _extent(self, extent: int, dim: int) -> tuple[int, int]:
        """(output extent, padding before) of one image dimension."""
        size, stride = self.pool_size[dim], self._strides[dim]
        if self.padding == "same":
            out = -(-extent // stride)
            return out, max((out - 1) * stride + size - extent, 0) // 2
        before, after = (0, 0) if isinstance(self.padding, str) else self.padding[dim]
        return (extent + before + after - size) // stride + 1, before

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        if len(x.shape) != 4:
            raise ValueError(f"{self._kind}: x must have shape (n, h, w, c), got {x.shape}")
        check_float(self._kind, "x", x.dtype)
        n, ih, iw, c = x.shape
        assert ih is not None
        assert iw is not None
        (oh, _), (ow, _) = self._extent(ih, 0), self._extent(iw, 1)
        if oh < 1 or ow < 1:
            raise ValueError(f"{self._kind}: a window of {self.pool_size} does not fit in x of shape {x.shape}")
        return Spec((n, oh, ow, c), x.dtype)

    def _window(self, x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> kernels.PoolWindow:
        n, ih, iw, c = x_shape
        (oh, top), (ow, left) = self._extent(ih, 0), self._extent(iw, 1)
        return kernels.PoolWindow(n, ih, iw, c, oh, ow, *self.pool_size, *self._strides, top, left)


@dataclass(frozen=True)
class MaxPool(_WindowPool):
    """y = maximum over each window; padding never counts.

    x (n, ih, iw, c) -> y (n, oh, ow, c).  Training keeps the place of each maximum in its window, one byte per output
    (four where a window has more than 256 pixels), and neither x nor y.  Of equal maxima the first gets the gradient.
    """

    replay_saves = ("argmax",)

    @property
    def _argmax_bytes(self) -> int:
        return 1 if self.pool_size[0] * self.pool_size[1] <= 256 else 4

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        if not training:
            return {}
        y = self.infer(*inputs)
        return {"argmax": Spec(y.shape, "uint8" if self._argmax_bytes == 1 else "int32")}

    def forward(self, p: Pass) -> Call:
        x, y, argmax = rows_of(p.x[0]), rows_of(p.y[0]), bytes_of(p.saved.get("argmax"))
        window, width = self._window(p.x[0].shape, p.y[0].shape), self._argmax_bytes

        def run() -> None:
            kernels.max_pool_forward(window, x, y, argmax, width)

        return run

    def backward(self, p: Pass) -> Call:
        dy, dx, argmax = rows_of(p.dy[0]), rows_of(p.dx[0]), bytes_of(p.saved["argmax"])
        window, width = self._window(p.dx[0].shape, p.dy[0].shape), self._argmax_bytes
        accumulate = adds(p.accumulate, 0)

        def run() -> None:
            kernels.max_pool_backward(window, dy, argmax, width, accumulate, dx)

        return run


@dataclass(frozen=True)
class AveragePool(_WindowPool):
    """y = mean over each window.  x (n, ih, iw, c) -> y (n, oh, ow, c).

    count_include_pad: padding counts as zeros; otherwise, as in Keras, the mean is over the pixels inside x.
    """

    count_include_pad: bool = False

    def forward(self, p: Pass) -> Call:
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        window = self._window(p.x[0].shape, p.y[0].shape)

        def run() -> None:
            kernels.average_pool_forward(window, x, self.count_include_pad, y)

        return run

    def backward(self, p: Pass) -> Call:
        dy, dx = rows_of(p.dy[0]), rows_of(p.dx[0])
        window = self._window(p.dx[0].shape, p.dy[0].shape)
        accumulate = adds(p.accumulate, 0)

        def run() -> None:
            kernels.average_pool_backward(window, dy, self.count_include_pad, accumulate, dx)

        return run


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

    def forward(self, p: Pass) -> Call:
        n, x, y = p.x[0].shape[0], rows_of(p.x[0]), rows_of(p.y[0])

        def run() -> None:
            kernels.global_average_pool_forward(n, x, y)

        return run

    def backward(self, p: Pass) -> Call:
        n, dy, dx, accumulate = p.dx[0].shape[0], rows_of(p.dy[0]), rows_of(p.dx[0]), adds(p.accumulate, 0)

        def run() -> None:
            kernels.global_average_pool_backward(n, dy, accumulate, dx)

        return run


@dataclass(frozen=True)
class GlobalMaxPool(_GlobalPool):
    """y = maximum over everything between the batch and the channels; training keeps its place (int32), not x."""

    replay_saves = ("argmax",)

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        return {"argmax": Spec((inputs[0].shape[0], inputs[0].shape[-1]), "int32")} if training else {}

    def forward(self, p: Pass) -> Call:
        n, x, y, argmax = p.x[0].shape[0], rows_of(p.x[0]), rows_of(p.y[0]), p.saved.get("argmax")

        def run() -> None:
            kernels.global_max_pool_forward(n, x, y, argmax)

        return run

    def backward(self, p: Pass) -> Call:
        n, dy, dx, argmax = p.dx[0].shape[0], rows_of(p.dy[0]), rows_of(p.dx[0]), p.saved["argmax"]
        accumulate = adds(p.accumulate, 0)

        def run() -> None:
            kernels.global_max_pool_backward(n, dy, argmax, accumulate, dx)

        return run
