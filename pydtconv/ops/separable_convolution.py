"""`SeparableConv`: a depthwise convolution and the pointwise one that reads its result, which is never in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydtconv.conv.problem import ConvProblem
from pydtconv.ops.base import Cost, Reasons, Retained, Spec
from pydtconv.ops.checks import check_float
from pydtconv.ops.convolution import Conv, DepthwiseConv, MeasuredConv, no_fit
from pydtconv.ops.moments import moments_spec
from pydtconv.ops.normalization import BatchNorm


@dataclass(frozen=True)
class SeparableConv(MeasuredConv):
    """y = act(z w + b + r), z = t = depthwise convolution of x with d; x (n, *spatial, ci), d (*kernel, ci, mult),
    w (1, ..., ci * mult, co), b (co,).

    strides, padding, dilation: of the depthwise convolution; all else is the pointwise one's.  Inputs are x, d, w,
    those of `between` behind its first one, perhaps b, coefficients of a normalization and, with `residual`, r.
    between: z is t as a frozen batch normalization has it, with its activation.  Without a gradient.
    """

    residual: bool = False
    between: BatchNorm | None = field(default=None, kw_only=True)

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
        return "separableconv" + "+norm" * (self.between is not None) + "+add" * self.residual

    @property
    def _behind(self) -> int:
        """The first input behind those of `between`."""
        return 3 + (0 if self.between is None else self.between.state[1])

    def between_of(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The inputs of `between` behind its first one."""
        return inputs[3 : self._behind]

    @property
    def inplace(self) -> tuple[int, ...]:  # type: ignore[override]
        if not self.residual or self.normalization is not None:
            return ()
        return self._behind, self._behind + 1  # of these, what has y's shape

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
        return inputs[self._behind] if len(inputs) - self._more > self._behind else None

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        if len(inputs) - self._more not in (self._behind, self._behind + 1):
            between = "" if self.between is None else f", {self._behind - 3} of the normalization between"
            last = " and a residual" * self.residual
            raise ValueError(
                f"{self.name}: expected inputs x, d, w{between} and perhaps b{last}, got {len(inputs)} inputs"
            )
        x, d, w = inputs[:3]
        check_float(self.name, "x", x.dtype)
        p = self.pointwise_problem(x, d, w)
        if self.between is not None:
            self.between.infer(Spec(p.x_shape, x.dtype), *self.between_of(inputs))
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

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        """Also what t is multiplied by, as of BatchNorm."""
        saved = super().saves(*inputs, training=training)
        if self.between is None:
            return saved
        vector = self.between_of(inputs)[0]
        return {**saved, "between_inverse": vector, "between_scale": vector}

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        deep, point = self.problem(*inputs[:2]), self.pointwise_problem(*inputs[:3])
        both = deep.flops + point.flops
        if direction == "forward":
            return {"forward": Cost(both, both // 2)}
        again = both + deep.flops
        return {"backward_data": Cost(again, again // 2), "backward_weights": Cost(both, both // 2)}

    def formula(self, x: Any, d: Any, w: Any, *rest: Any) -> Any:
        t, count = self.depthwise(x, d), self._behind - 3
        if self.between is not None:
            t = self.between(t, *rest[:count])
        y = Conv()(t, w, *rest[count : len(rest) - self.residual])
        return y + rest[-1] if self.residual else y
