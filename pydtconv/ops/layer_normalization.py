"""Layer normalization over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.dtypes import real
from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import check_axis, check_float
from pydtconv.ops.gradients import normalized, of_parameters

__all__ = ["LayerNorm"]


@dataclass(frozen=True)
class LayerNorm(Op):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, by each sample's own moments (Ba, Kiros, Hinton 2016).

    Inputs: x, gamma if `scale`, beta if `center`, both shaped like the axes.  axis: the last axis, or several that
    are the last ones together.  Backward keeps x and, for each sample, mean and 1 / sqrt(variance + epsilon).
    rms: the mean is taken as 0, and the variance is the mean square (Zhang, Sennrich 2019).
    """

    axis: int | tuple[int, ...] = -1
    epsilon: float = 1e-3
    scale: bool = True
    center: bool = True
    rms: bool = False

    inplace = (0,)
    inplace_backward = (0,)
    mesh: ClassVar[str] = "layer_normalization"

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1 + self.scale + self.center))

    @property
    def dense(self) -> bool:  # type: ignore[override]
        return self.axis not in (-1, (-1,))

    def lead(self, rank: int) -> int:
        """Number of axes in front of the normalized ones."""
        given = (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
        axes = sorted({check_axis("LayerNorm", axis, rank) for axis in given})
        if not axes or axes != list(range(axes[0], rank)):
            raise ValueError(f"LayerNorm: expected the last axis or axes of {rank} dimensions, got axis={self.axis}")
        return axes[0]

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(1, count))

    def infer(self, *inputs: Spec) -> Spec:
        wanted = ["x", *["gamma"] * self.scale, *["beta"] * self.center]
        if len(inputs) != len(wanted):
            raise ValueError(f"LayerNorm: expected the inputs {', '.join(wanted)}, got {len(inputs)} inputs")
        x = inputs[0]
        check_float("LayerNorm", "x", x.dtype)
        shape = x.shape[self.lead(len(x.shape)) :]
        for name, spec in zip(wanted[1:], inputs[1:], strict=True):
            if spec.shape != shape or spec.dtype != real(x.dtype):
                raise ValueError(
                    f"LayerNorm: {name} must have shape {shape} and dtype {real(x.dtype)}, got {spec.shape} and "
                    f"{spec.dtype}"
                )
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0, 1) if self.scale else (0,))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        rows = Spec(inputs[0].shape[: self.lead(len(inputs[0].shape))], real(inputs[0].dtype))
        return {"mean": rows, "inverse": rows}

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Any:
        last = len(x[0].shape) - 1
        if self.rms or self.lead(last + 1) != last:
            return NotImplemented
        dx, dgamma, dbeta = normalized(x[0], dy, x[1] if self.scale else None, (last,), self.epsilon)
        return [dx, *of_parameters(self, dgamma, dbeta)]

    def formula(self, x: Any, *parameters: Any) -> Any:
        axes = tuple(range(self.lead(len(x.shape)), len(x.shape)))
        moved = x if self.rms else x - functions.mean(x, axis=axes, keepdims=True)
        squares = functions.mean(functions.square(moved), axis=axes, keepdims=True)
        y = moved * functions.rsqrt(squares + self.epsilon)
        given = iter(parameters)
        y = y * next(given) if self.scale else y
        return y + next(given) if self.center else y
