"""Transposed convolution: the passes of a convolution, each in another's place.

y is what the convolution calls dx: forward is its backward_data, dx its forward, dw its backward_weights with the
images exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pydtconv._ext import conv as ext
from pydtconv.conv.functional import ACTIVATIONS, bind, pixel_stride
from pydtconv.conv.problem import ConvProblem, pair
from pydtconv.conv.selection import workspace_bytes
from pydtconv.ops.base import Call, Pass, Spec
from pydtconv.ops.convolution import ConvBase, in_order, no_fit, sizes_of


@dataclass(frozen=True)
class ConvTranspose(ConvBase):
    """The adjoint of a convolution from y to x, Keras's Conv2DTranspose; x (n, h, w, ci), w (kh, kw, filters, ci).

    padding "valid": y has (h - 1) * stride + max(kernel, stride) + output_padding pixels, the middle term being the
    kernel alone where output_padding is given.  "same": h * stride, or (h - 1) * stride + kernel % 2 + output_padding.
    kernel counts its dilation.  Explicit padding is that of the convolution from y to x.
    """

    output_padding: tuple[int, int] | None = None

    accumulates: ClassVar[tuple[int, ...]] = ()
    passes: ClassVar[tuple[str, str, str]] = ("backward_data", "forward", "backward_weights")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_padding is not None:
            object.__setattr__(self, "output_padding", pair(self.output_padding, "output_padding", 0))

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        n, h, width, ci = sizes_of(self, x, "x")
        kh, kw, filters, inputs = sizes_of(self, w, "w")
        if inputs != ci:
            raise no_fit(self, f"(kh, kw, filters, {ci}) for x of shape {x.shape}", w.shape)
        crops = [self._crop(axis, kernel) for axis, kernel in enumerate((kh, kw))]
        oh, ow = (
            (extent - 1) * stride + (kernel - 1) * dilation + 1 - left - right
            for extent, stride, kernel, dilation, (left, right) in zip(
                (h, width), self.strides, (kh, kw), self.dilation, crops, strict=True
            )
        )
        sides = tuple((left, max(right, 0)) for left, right in crops)
        p = ConvProblem(n, oh, ow, filters, ci, (kh, kw), self.strides, sides, self.dilation, 1, x.dtype)
        if (p.oh, p.ow) != (h, width):
            raise ValueError(
                f"{self.name}: output_padding: expected less than the strides {self.strides}, got {self.output_padding}"
            )
        return p

    def _crop(self, axis: int, kernel: int) -> tuple[int, int]:
        """Pixels that are cut off before and after (h - 1) * stride + kernel; fewer than none are added."""
        stride, reach = self.strides[axis], (kernel - 1) * self.dilation[axis] + 1
        extra = None if self.output_padding is None else self.output_padding[axis]
        if self.padding == "valid":
            return 0, -(max(reach, stride) - reach if extra is None else extra)
        if self.padding == "same":
            total = stride + reach - 2 if extra is None else reach + reach % 2 - 2 + extra
            left = min(total // 2 + total % 2, reach - 1)
            return reach - 1 - left, reach - 1 - (total - left)
        before, after = self.padding[axis]
        return before, after - (extra or 0)

    def _output_shape(self, p: ConvProblem) -> tuple[int, int, int, int]:
        return p.x_shape

    def forward(self, p: Pass) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "backward_data")
        y, bias = p.y[0], p.x[2] if len(p.x) > 2 else None
        calls: dict[str, Callable[..., int]] = {"forward": bind(problem, "backward_data", name, y, p.x[1], p.x[0])}
        code, alpha, ldy = ACTIVATIONS[self.activation], self.alpha, pixel_stride(y, "y")
        if code or bias is not None:
            calls["forward_bias"] = lambda workspace: ext.bias_forward(y, ldy, bias, code, alpha)
        return in_order(calls, p, workspace_bytes(problem, "backward_data", name))

    def backward(self, p: Pass) -> Call:
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            problem = self._problem_of(p.x[0], dw)
            name = self._algorithm(problem, "backward_weights")
            calls["backward_weights"] = bind(problem, "backward_weights", name, dy, dw, p.x[0])
            need = max(need, workspace_bytes(problem, "backward_weights", name))
        if dx is not None:
            problem = self._problem_of(dx, p.x[1])
            name = self._algorithm(problem, "forward")
            calls["backward_data"] = bind(problem, "forward", name, dy, p.x[1], dx)
            need = max(need, workspace_bytes(problem, "forward", name))
        return in_order(calls, p, need)
