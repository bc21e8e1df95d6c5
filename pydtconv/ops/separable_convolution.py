"""`SeparableConv`: a depthwise convolution and the pointwise one that reads its result, which is never in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.conv.problem import ConvProblem
from pydtconv.ops.base import Cost, Reasons, Retained, Spec
from pydtconv.ops.checks import check_float
from pydtconv.ops.convolution import Conv, DepthwiseConv, MeasuredConv, no_fit
from pydtconv.ops.moments import moments_spec


@dataclass(frozen=True)
class SeparableConv(MeasuredConv):
    """y = act(t w + b + r), t = depthwise convolution of x with d; x (n, *spatial, ci), d (*kernel, ci, mult),
    w (1, ..., ci * mult, co), b (co,).

    strides, padding, dilation: of the depthwise convolution; all else is the pointwise one's.  Inputs are x, d, w,
    perhaps b, coefficients of a normalization and, with `residual`, r.
    """

    residual: bool = False

    dense_inputs: ClassVar[tuple[int, ...]] = (1, 2)
    passes: ClassVar[tuple[str, ...]] = ()
    takes_bias: ClassVar[bool] = False
    takes_activation: ClassVar[bool] = False
    mesh: ClassVar[str] = "whole_inputs"
    lacks: ClassVar[Reasons] = {
        "gpu": "plans for CPUs alone make it",
        "onnx": "files have the operators of the trace: both convolutions",
    }

    @property
    def name(self) -> str:
        return "separableconv+add" if self.residual else "separableconv"

    @property
    def inplace(self) -> tuple[int, ...]:  # type: ignore[override]
        return (3, 4) if self.residual and self.normalization is None else ()  # of these, what has y's shape

    @property
    def passes_dy(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.inplace

    @property
    def depthwise(self) -> DepthwiseConv:
        return DepthwiseConv(self.strides, self.padding, self.dilation)

    def problem(self, x: Spec, w: Spec) -> ConvProblem:
        """The depthwise convolution; w: its filters."""
        return self.depthwise.problem(x, w)

    def pointwise_problem(self, x: Spec, d: Spec, w: Spec) -> ConvProblem:
        """The convolution that reads the depthwise one's result.  Raises ValueError where shapes do not fit."""
        deep = self.problem(x, d)
        if len(w.shape) != len(d.shape) or tuple(w.shape[:-1]) != (*(1,) * deep.rank, deep.co):
            wanted = f"({'1, ' * deep.rank}{deep.co}, filters)"
            raise no_fit(self, f"{wanted} for x of shape {x.shape} and depthwise filters of {d.shape}", w.shape)
        return ConvProblem.of(deep.y_shape, tuple(extent or 0 for extent in w.shape), dtype=x.dtype)

    def bias_of(self, inputs: Sequence[Any]) -> Any:
        return inputs[3] if len(inputs) - self._more > 3 else None

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        if len(inputs) - self._more not in (3, 4):
            last = " and a residual" * self.residual
            raise ValueError(f"{self.name}: expected inputs x, d, w and perhaps b{last}, got {len(inputs)} inputs")
        x, d, w = inputs[:3]
        check_float(self.name, "x", x.dtype)
        p = self.pointwise_problem(x, d, w)
        y, vector = Spec((x.shape[0], *p.y_shape[1:]), x.dtype), Spec((p.co,), x.dtype)
        wanted = [("d", d, Spec(d.shape, x.dtype)), ("w", w, Spec(w.shape, x.dtype))]
        wanted += [("b", self.bias_of(inputs), vector), ("residual", self.residual_of(inputs), y)]
        wanted += [("normalization", given, vector) for given in self.coefficients_of(inputs)]
        for name, given, expected in wanted:
            if given is not None and given != expected:
                raise ValueError(
                    f"{self.name}: {name}: expected shape {expected.shape} of {expected.dtype}, got {given.shape} of "
                    f"{given.dtype}"
                )
        return (y, moments_spec(y)) if self.moments else y

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(1, count - self.residual))

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x, d, w = needs[:3]
        read = {0: d or w, 1: x or w, 2: x or d}  # t is made again for the gradient of w
        return Retained(x=tuple(i for i, wanted in read.items() if wanted), y=(0,) if self.overwrites_dy else ())

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        deep, point = self.problem(*inputs[:2]), self.pointwise_problem(*inputs[:3])
        both = deep.flops + point.flops
        if direction == "forward":
            return {"forward": Cost(both, both // 2)}
        again = both + deep.flops
        return {"backward_data": Cost(again, again // 2), "backward_weights": Cost(both, both // 2)}

    def formula(self, x: Any, d: Any, w: Any, *rest: Any) -> Any:
        bias = rest[: len(rest) - self.residual]
        y = Conv()(self.depthwise(x, d), w, *bias)
        return y + rest[-1] if self.residual else y
