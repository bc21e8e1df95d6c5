"""Transposed convolution: the passes of a convolution, each in another's place.

y is what the convolution calls dx: forward is its backward_data, dx its forward, dw its backward_weights with the
images exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from pydtconv.conv.problem import ConvProblem, by_axis, several
from pydtconv.ops.base import Spec, Window
from pydtconv.ops.convolution import Conv, ConvBase, no_fit, sizes_of, taps
from pydtconv.ops.convolution_gradients import of_filters, sides
from pydtconv.ops.gradients import by_last_axis

__all__ = ["ConvTranspose"]


@dataclass(frozen=True)
class ConvTranspose(ConvBase):
    """The adjoint of a convolution from y to x, Keras's Conv2DTranspose; x (n, *spatial, ci), w (*kernel, filters, ci).

    padding "valid": where x has h pixels along an axis, y has (h - 1) * stride + max(kernel, stride) + output_padding,
    the middle term being the kernel alone where output_padding is given.  "same": h * stride, or
    (h - 1) * stride + kernel % 2 + output_padding.  kernel counts its dilation.  Explicit padding is that of the
    convolution from y to x.
    """

    output_padding: int | tuple[int, ...] | None = None

    accumulates: ClassVar[tuple[int, ...]] = ()
    passes: ClassVar[tuple[str, ...]] = ("backward_data", "forward", "backward_weights")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_padding is not None:
            object.__setattr__(self, "output_padding", by_axis(self.output_padding, "output_padding", 0))

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        (n, *spatial, ci), (*kernel, filters, inputs) = sizes_of(self, x, w)
        if inputs != ci:
            raise no_fit(self, f"({taps(len(kernel))}, filters, {ci}) for x of shape {x.shape}", w.shape)
        rank = len(spatial)
        strides, dilation = several(self.strides, "strides", rank), several(self.dilation, "dilation", rank)
        extra: tuple[int | None, ...] = (None,) * rank
        if self.output_padding is not None:
            extra = several(self.output_padding, "output_padding", rank, 0)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        crops = [self._crop(axis, *sizes) for axis, sizes in enumerate(zip(strides, reach, extra, strict=True))]
        written = (
            (extent - 1) * stride + r - left - right
            for extent, stride, r, (left, right) in zip(spatial, strides, reach, crops, strict=True)
        )
        sides = tuple((left, max(right, 0)) for left, right in crops)
        p = ConvProblem.of((n, *written, filters), w.shape, strides, sides, dilation, 1, x.dtype)  # type: ignore[arg-type]
        if list(p.out) != spatial:
            raise ValueError(
                f"{self.name}: output_padding: expected less than the strides {self.strides}, got {self.output_padding}"
            )
        return p

    def _crop(self, axis: int, stride: int, reach: int, extra: int | None) -> tuple[int, int]:
        """Pixels that are cut off before and after (h - 1) * stride + reach; fewer than none are added."""
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

    def _output_shape(self, p: ConvProblem) -> tuple[int, ...]:
        return p.x_shape

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        p = self.problem(x[0].spec, x[1].spec)
        dx = Conv(self.strides, sides(p), self.dilation)(dy, x[1])
        dw = of_filters(Conv(self.dilation, sides(p), self.strides), x[1].shape[:-2], dy, x[0])
        return [dx, dw, *[by_last_axis(dy)] * (len(x) - 2)]
