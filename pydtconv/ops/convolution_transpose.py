"""Transposed convolution: the passes of a convolution, each in another's place.

y is what the convolution calls dx: forward is its backward_data, dx its forward, dw its backward_weights with the
images exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from pydtconv.conv.problem import ConvProblem, pair
from pydtconv.ops.base import Spec, Window
from pydtconv.ops.convolution import ConvBase, no_fit, sizes_of


@dataclass(frozen=True)
class ConvTranspose(ConvBase):
    """The adjoint of a convolution from y to x, Keras's Conv2DTranspose; x (n, h, w, ci), w (kh, kw, filters, ci).

    padding "valid": y has (h - 1) * stride + max(kernel, stride) + output_padding pixels, the middle term being the
    kernel alone where output_padding is given.  "same": h * stride, or (h - 1) * stride + kernel % 2 + output_padding.
    kernel counts its dilation.  Explicit padding is that of the convolution from y to x.
    """

    output_padding: tuple[int, int] | None = None

    accumulates: ClassVar[tuple[int, ...]] = ()
    passes: ClassVar[tuple[str, ...]] = ("backward_data", "forward", "backward_weights")

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

    def window(self, axis: int, *inputs: Spec) -> Window | None:
        window = super().window(axis, *inputs)
        return None if window is None else replace(window, transposed=True)

    def _output_shape(self, p: ConvProblem) -> tuple[int, int, int, int]:
        return p.x_shape
