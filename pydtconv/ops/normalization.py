"""Batch normalization over the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from pydtconv.conv.activations import OF_NORMALIZED
from pydtconv.dtypes import real
from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import check_float
from pydtconv.ops.gradients import normalized, of_parameters
from pydtconv.ops.kinds import FUSABLE
from pydtconv.ops.moments import moments_spec

__all__ = ["BatchNorm"]

#: activations whose derivative is found from x again, so that y need not be kept
FROM_INPUT = (*OF_NORMALIZED, "leaky_relu")
#: all that it has
ACTIVATIONS = (None, *FUSABLE, "silu", "hard_silu")


_T = TypeVar("_T")


class Synchronizer(Protocol):
    """Makes the statistics of one process those of all processes; called between the passes, in place.

    Both return the number of rows behind the result.
    """

    def moments(self, mean: np.ndarray, variance: np.ndarray, rows: int) -> int:
        """Replaces mean and biased variance of this process's rows by those of all rows."""

    def sums(self, sum_dy: np.ndarray, sum_dy_xhat: np.ndarray, rows: int) -> int:
        """Replaces the sums over this process's rows by those over all rows."""


@dataclass(frozen=True)
class BatchNorm(Op):
    """y = act(gamma * (x - mean) / sqrt(variance + epsilon) + beta) over the last axis (Ioffe and Szegedy 2015).

    Inputs: x (..., c), gamma (c) if `scale`, beta (c) if `center`, moving_mean (c), moving_variance (c), and if `given`
    the moments of x (2, 1, 1, c) (see ops/moments.py).
    In a training pass, unless `frozen`, mean and biased variance are those of x and the moving ones are updated:
    moving = moving * momentum + batch * (1 - momentum).  Otherwise the moving ones are used.
    always: outside of training passes, too.
    exact: the statistics are of sums in float64, on their way between processes, too: rounded, they do not depend on
    how images are cut.
    synchronized: the statistics are those of the global batch, by the run's Synchronizer, where there is one.

    Passes over memory: training forward reads x twice (for statistics that are not given, to apply them) and writes y,
    otherwise x is read once and y may take x's place.  Backward reads x and dy twice (once where the sums that it
    begins with are given, see kernels.base.BackwardReductions) and writes dx, which may take dy's place; "sigmoid" and
    "tanh" read y as well.
    """

    epsilon: float = 1e-3
    momentum: float = 0.99
    activation: str | None = None
    alpha: float = 0.0
    scale: bool = True
    center: bool = True
    frozen: bool = False
    synchronized: bool = False
    given: bool = False
    always: bool = False
    exact: bool = False

    inplace = (0,)
    inplace_backward = (0,)
    takes_activation: ClassVar[bool] = True
    smooth_activations: ClassVar[tuple[str, ...]] = ("silu", "hard_silu")
    replay_keeps_state: ClassVar[bool] = True
    mesh: ClassVar[str] = "normalization"

    @property
    def state(self) -> tuple[int, int]:
        first = 1 + self.scale + self.center
        return first, first + 1

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(self.state[0]))

    @property
    def updates(self) -> tuple[int, ...]:  # type: ignore[override]
        return () if self.frozen else self.state

    @property
    def nondifferentiable(self) -> tuple[int, ...]:  # type: ignore[override]
        return (*self.state, *[self.state[1] + 1] * self.given)

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(1, count))

    def infer(self, *inputs: Spec) -> Spec:
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"BatchNorm: expected an activation of {', '.join(map(str, ACTIVATIONS))}, got {self.activation!r}"
            )
        wanted = ["x", *["gamma"] * self.scale, *["beta"] * self.center, "moving_mean", "moving_variance"]
        wanted += ["moments"] * self.given
        if len(inputs) != len(wanted):
            raise ValueError(f"BatchNorm: expected the inputs {', '.join(wanted)}, got {len(inputs)} inputs")
        x = inputs[0]
        if not x.shape:
            raise ValueError("BatchNorm: x must have at least one dimension, got a scalar")
        check_float("BatchNorm", "x", x.dtype)
        if self.given and inputs[-1] != moments_spec(x):
            raise ValueError(f"BatchNorm: expected moments of {moments_spec(x)}, got {inputs[-1]}")
        for name, spec in list(zip(wanted, inputs, strict=True))[1 : self.state[1] + 1]:
            if spec.shape != x.shape[-1:] or spec.dtype != real(x.dtype):
                raise ValueError(
                    f"BatchNorm: {name} must have shape {x.shape[-1:]} and dtype {real(x.dtype)} because x has "
                    f"{x.shape} and {x.dtype}, got shape {spec.shape} and dtype {spec.dtype}"
                )
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        parameters = tuple(range(1, self.state[0]))
        return Retained(x=(0, *parameters), y=() if self.activation in FROM_INPUT else (0,))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        """mean and inverse: of the statistics in use; scale: gamma * inverse."""
        spec = Spec(inputs[0].shape[-1:], real(inputs[0].dtype))
        return {"mean": spec, "inverse": spec, "scale": spec}

    def beta_of(self, inputs: Sequence[_T]) -> _T | None:
        """The one of the inputs that is beta, if there is one."""
        return inputs[1 + self.scale] if self.center else None

    @property
    def replay_inputs(self) -> tuple[int, ...]:  # type: ignore[override]
        return (0, 1 + self.scale) if self.center else (0,)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        gamma = x[1] if self.scale else None
        if not self.frozen:
            dx, dgamma, dbeta = normalized(x[0], dy, gamma, tuple(range(len(x[0].shape) - 1)), self.epsilon)
        else:
            mean, variance = (x[i] for i in self.state)
            inverse = functions.rsqrt(variance + self.epsilon)
            dx = dy * inverse if gamma is None else dy * (gamma * inverse)
            dgamma, dbeta = dy * ((x[0] - mean) * inverse), dy
        return [dx, *of_parameters(self, dgamma, dbeta), None, None]


def is_read_through(op: Op, backward: bool) -> bool:
    """Whether what reads its result may normalize x on the way instead; where backward follows, not if it is frozen."""
    return isinstance(op, BatchNorm) and not (op.frozen and backward) and op.activation in OF_NORMALIZED
