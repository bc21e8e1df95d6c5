"""Layer normalization over the last axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pydtconv._ext import norm
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.rows import adds, check_axis, check_float, flat_of, rows_of


@dataclass(frozen=True)
class LayerNorm(Op):
    """y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, by each sample's own moments (Ba, Kiros, Hinton 2016).

    Inputs: x, gamma if `scale`, beta if `center`, both shaped like the axes.  axis: the last axis, or several that
    are the last ones together.  Backward keeps x and, for each sample, mean and 1 / sqrt(variance + epsilon).
    """

    axis: int | tuple[int, ...] = -1
    epsilon: float = 1e-3
    scale: bool = True
    center: bool = True

    inplace = (0,)
    inplace_backward = (0,)

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(1 + self.scale + self.center))

    @property
    def dense(self) -> bool:  # type: ignore[override]
        return self.axis not in (-1, (-1,))

    def _lead(self, rank: int) -> int:
        """Number of axes in front of the normalized ones."""
        given = (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
        axes = sorted({check_axis("LayerNorm", axis, rank) for axis in given})
        if not axes or axes != list(range(axes[0], rank)):
            raise ValueError(f"LayerNorm: expected the last axis or axes of {rank} dimensions, got axis={self.axis}")
        return axes[0]

    def infer(self, *inputs: Spec) -> Spec:
        wanted = ["x", *["gamma"] * self.scale, *["beta"] * self.center]
        if len(inputs) != len(wanted):
            raise ValueError(f"LayerNorm: expected the inputs {', '.join(wanted)}, got {len(inputs)} inputs")
        x = inputs[0]
        check_float("LayerNorm", "x", x.dtype)
        shape = x.shape[self._lead(len(x.shape)) :]
        for name, spec in zip(wanted[1:], inputs[1:], strict=True):
            if spec.shape != shape or spec.dtype != x.dtype:
                raise ValueError(
                    f"LayerNorm: {name} must have shape {shape} and dtype {x.dtype}, got {spec.shape} and {spec.dtype}"
                )
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0, 1) if self.scale else (0,))

    def _sizes(self, x: Spec) -> tuple[int, int]:
        """(rows, k)."""
        k = Spec(x.shape[self._lead(len(x.shape)) :]).size
        return x.size // k, k

    def saves(self, *inputs: Spec, training: bool) -> dict[str, Spec]:
        rows = Spec(inputs[0].shape[: self._lead(len(inputs[0].shape))], inputs[0].dtype)
        return {"mean": rows, "inverse": rows}

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward":
            return 0
        return norm.layernorm_workspace(*self._sizes(inputs[0]), inputs[0].dtype == "float64")

    def _matrix(self, array: np.ndarray | None) -> np.ndarray | None:
        """(rows, k)."""
        if array is None:
            return None
        lead = self._lead(array.ndim)
        if lead == array.ndim - 1:
            return rows_of(array)
        return flat_of(array).reshape(-1, int(np.prod(array.shape[lead:])))

    def forward(self, p: Pass) -> Call:
        x, y = self._matrix(p.x[0]), self._matrix(p.y[0])
        gamma = flat_of(p.x[1]) if self.scale else None
        beta = flat_of(p.x[1 + self.scale]) if self.center else None
        mean, inverse = flat_of(p.saved["mean"]), flat_of(p.saved["inverse"])

        def run() -> None:
            norm.layernorm_forward(x, gamma, beta, self.epsilon, mean, inverse, y)

        return run

    def backward(self, p: Pass) -> Call:
        x, dy, dx = self._matrix(p.x[0]), self._matrix(p.dy[0]), self._matrix(p.dx[0])
        gamma, dgamma = (flat_of(p.x[1]), flat_of(p.dx[1])) if self.scale else (None, None)
        dbeta = flat_of(p.dx[1 + self.scale]) if self.center else None
        mean, inverse, workspace = flat_of(p.saved["mean"]), flat_of(p.saved["inverse"]), p.workspace
        add = adds(p.accumulate, 0)
        add_gamma = self.scale and adds(p.accumulate, 1)
        add_beta = self.center and adds(p.accumulate, 1 + self.scale)

        def run() -> None:
            norm.layernorm_backward(x, gamma, mean, inverse, dy, add, dx, add_gamma, dgamma, add_beta, dbeta, workspace)

        return run
