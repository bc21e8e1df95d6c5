"""Batch normalization over the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from pydtconv._ext import norm
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.moments import moments_in, moments_spec
from pydtconv.ops.rows import adds, carve, carved_bytes, check_float, rows_of

#: codes of `dtconv_activation`
ACTIVATION_CODES = {None: 0, "linear": 0, "relu": 1, "relu6": 2, "leaky_relu": 3, "sigmoid": 4, "tanh": 5}
#: activations whose derivative is found from x again, so that y need not be kept
_FROM_INPUT = (None, "linear", "relu", "relu6", "leaky_relu")


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
    synchronized: the statistics are those of the global batch, by the run's Synchronizer, where there is one.

    Passes over memory: training forward reads x twice (for statistics that are not given, to apply them) and writes y,
    otherwise x is read once and y may take x's place.  Backward reads x and dy twice (once where the sums that it
    begins with are given, see ops.base.Slopes) and writes dx, which may take dy's place; "sigmoid" and "tanh" read y as
    well.
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

    inplace = (0,)
    inplace_backward = (0,)

    @property
    def _state(self) -> tuple[int, int]:
        first = 1 + self.scale + self.center
        return first, first + 1

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(self._state[0]))

    @property
    def updates(self) -> tuple[int, ...]:  # type: ignore[override]
        return () if self.frozen else self._state

    @property
    def nondifferentiable(self) -> tuple[int, ...]:  # type: ignore[override]
        return (*self._state, *[self._state[1] + 1] * self.given)

    def infer(self, *inputs: Spec) -> Spec:
        if self.activation not in ACTIVATION_CODES:
            raise ValueError(
                f"BatchNorm: expected an activation of {', '.join(map(str, ACTIVATION_CODES))}, got {self.activation!r}"
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
        for name, spec in list(zip(wanted, inputs, strict=True))[1 : self._state[1] + 1]:
            if spec.shape != x.shape[-1:] or spec.dtype != x.dtype:
                raise ValueError(
                    f"BatchNorm: {name} must have shape {x.shape[-1:]} and dtype {x.dtype} because x has {x.shape}, "
                    f"got shape {spec.shape} and dtype {spec.dtype}"
                )
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        parameters = tuple(range(1, self._state[0]))
        return Retained(x=(0, *parameters), y=() if self.activation in _FROM_INPUT else (0,))

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        """mean and inverse: of the statistics in use; scale: gamma * inverse."""
        spec = Spec(inputs[0].shape[-1:], inputs[0].dtype)
        return {"mean": spec, "inverse": spec, "scale": spec}

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x = inputs[0]
        c = x.shape[-1] or 1
        vectors = carved_bytes(1 if direction == "forward" else 2, c, x.dtype)
        return vectors + norm.batchnorm_workspace(x.size // c, c, x.dtype == "float64")

    def forward(self, p: Pass) -> Call:
        """Where p.y[0] is None, only what `saves` names is written: readers compute y by themselves."""
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        gamma = p.x[1] if self.scale else None
        beta = self.beta_of(p.x)
        moving_mean, moving_variance = (p.x[i] for i in self._state)
        mean, inverse, scale = p.saved["mean"], p.saved["inverse"], p.saved["scale"]
        code = ACTIVATION_CODES[self.activation]
        assert p.workspace is not None
        run_state = p.run
        (variance,), rest = carve(p.workspace, 1, x.shape[1], x.dtype)
        moments = moments_in(p.x[-1]) if self.given else None
        application = (x, mean, scale, beta, code, self.alpha, y)

        def infer() -> None:
            mean[...] = moving_mean
            norm.batchnorm_scale(moving_variance, gamma, self.epsilon, inverse, scale)
            norm.batchnorm_apply(*application)

        def train() -> None:
            if moments is None:
                norm.batchnorm_statistics(x, mean, variance, rest)
            else:
                mean[...], variance[...] = moments
            if self.synchronized and run_state.synchronizer is not None:
                run_state.synchronizer.moments(mean, variance, x.shape[0])
            norm.batchnorm_scale(variance, gamma, self.epsilon, inverse, scale)
            norm.batchnorm_moving(mean, variance, self.momentum, moving_mean, moving_variance)
            if y is not None:
                norm.batchnorm_apply(*application)

        return train if (p.training or self.always) and not self.frozen else infer

    def beta_of(self, inputs: Sequence[_T]) -> _T | None:
        """The one of the inputs that is beta, if there is one."""
        return inputs[1 + self.scale] if self.center else None

    @property
    def replay_inputs(self) -> tuple[int, ...]:  # type: ignore[override]
        return (0, 1 + self.scale) if self.center else (0,)

    def recompute(self, p: Pass) -> Call:
        """y once more, from the statistics that forward has saved; the moving ones stay as they are."""
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        beta = self.beta_of(p.x)
        mean, scale, code = p.saved["mean"], p.saved["scale"], ACTIVATION_CODES[self.activation]

        def run() -> None:
            norm.batchnorm_apply(x, mean, scale, beta, code, self.alpha, y)

        return run

    def backward(self, p: Pass) -> Call:
        x, y, dy, dx = rows_of(p.x[0]), rows_of(p.y[0]), rows_of(p.dy[0]), rows_of(p.dx[0])
        beta = self.beta_of(p.x)
        dgamma = p.dx[1] if self.scale else None
        dbeta = p.dx[1 + self.scale] if self.center else None
        accumulate, add_gamma, add_beta = (
            adds(p.accumulate, 0),
            adds(p.accumulate, 1),
            adds(p.accumulate, 1 + self.scale),
        )
        mean, inverse, scale = p.saved["mean"], p.saved["inverse"], p.saved["scale"]
        code = ACTIVATION_CODES[self.activation]
        assert p.workspace is not None
        (sum_dy, sum_dy_xhat), rest = carve(p.workspace, 2, x.shape[1], x.dtype)
        y = None if self.activation in _FROM_INPUT else y
        common = (x, y, dy, mean, inverse, scale, beta, code, self.alpha)
        rows, run_state = x.shape[0], p.run

        given = None if p.sums is None else moments_in(p.sums)

        def run() -> None:
            if given is not None:
                sum_dy[...] = given[0]
                np.multiply(given[1], inverse, out=sum_dy_xhat)
            elif dgamma is not None or dbeta is not None or not self.frozen:
                norm.batchnorm_backward_sums(*common, sum_dy, sum_dy_xhat, rest)
            _put(dgamma, sum_dy_xhat, add_gamma)
            _put(dbeta, sum_dy, add_beta)
            if dx is None:
                return
            if self.frozen:
                norm.batchnorm_backward_apply(*common, None, None, rows, accumulate, dx)
                return
            count = rows
            if self.synchronized and run_state.synchronizer is not None:
                count = run_state.synchronizer.sums(sum_dy, sum_dy_xhat, rows)
            norm.batchnorm_backward_apply(*common, sum_dy, sum_dy_xhat, count, accumulate, dx)

        return run


def _put(target: np.ndarray | None, value: np.ndarray, accumulate: bool) -> None:
    """Writes or adds a vector to a parameter's gradient."""
    if target is None:
        return
    if accumulate:
        np.add(target, value, out=target)
    else:
        target[...] = value
