"""Activations and other functions of one argument, and the bias addition.

y = f(x), element by element.  The derivative of `FROM_OUTPUT`'s kinds is computed from y, so that x need not be kept
and y may take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import same_float, same_real
from pydtconv.ops.gradients import by_last_axis
from pydtconv.ops.kinds import FROM_OUTPUT, FUSABLE, KINDS, ROWS, given

__all__ = ["Activation", "Bias"]


def parameters(kind: str, alpha: float | None, beta: float | None, gamma: float | None) -> tuple[float, float, float]:
    """What kernels take: the parameters of a kind with defaults filled in, and 0 for those that it does not have."""
    first, second, third = (*given(kind, alpha, beta, gamma), 0.0, 0.0, 0.0)[:3]
    return first, second, third


def check_fusable(activation: str | None, kinds: tuple[str, ...] = FUSABLE) -> None:
    """Raises ValueError for a kind that cannot be fused; None is linear."""
    if activation is not None and activation not in kinds:
        raise ValueError(f"activation: expected one of {', '.join(kinds)}, got {activation!r}")


@dataclass(frozen=True)
class Activation(Op):
    """y = f(x); kind is a key of `KINDS`, alpha, beta, gamma its parameters (None: Keras's defaults)."""

    kind: str
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)
    mesh: ClassVar[str] = "elementwise"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Activation: expected kind to be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.kind in ("elu", "leaky_relu") and self.parameters[0] < 0:
            raise ValueError(f"{self.kind}: expected a slope of 0 or more, got {self.parameters[0]}")

    @property
    def name(self) -> str:
        return self.kind

    @property
    def parameters(self) -> tuple[float, float, float]:
        return parameters(self.kind, self.alpha, self.beta, self.gamma)

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.kind, *inputs)
        return inputs[0]

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        if self.kind in ("linear", "affine", "sign"):
            return Retained()
        return Retained(y=(0,)) if self.kind in FROM_OUTPUT else Retained(x=(0,))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [ROWS[self.kind].gradient(functions, x[0], y, dy, *given(self.kind, *self.parameters))]


@dataclass(frozen=True)
class Bias(Op):
    """y = x + b over the last axis: x (..., c), b (c,).  db is the sum of dy over all other axes."""

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    passes_dy: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0, 1)
    mesh: ClassVar[str] = "elementwise"

    def reals(self, count: int) -> tuple[int, ...]:
        return (1,)

    def infer(self, *inputs: Spec) -> Spec:
        same_real("bias", *inputs)
        x, b = inputs
        if len(b.shape) != 1 or not x.shape or x.shape[-1] != b.shape[0]:
            raise ValueError(f"Bias: expected b of shape ({x.shape[-1] if x.shape else '?'},), got {b.shape}")
        return x

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [dy, by_last_axis(dy)]
