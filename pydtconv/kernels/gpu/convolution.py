"""Convolutions: each pass by an algorithm of `table`, bias, residual and activation behind it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydtconv.conv.problem import DIRECTIONS, ConvProblem
from pydtconv.kernels.base import AlgorithmKernel, Call, Keepable, Pass, in_parts, sequence
from pydtconv.kernels.gpu.arrays import register, rows_of
from pydtconv.kernels.gpu.columns import bind_column_sums, bind_statistics, sums_bytes
from pydtconv.kernels.gpu.convolutions import TABLE, choose
from pydtconv.kernels.gpu.convolutions import kept as shared
from pydtconv.kernels.gpu.linear import bind_finish
from pydtconv.kernels.gpu.moments import moments_in
from pydtconv.kernels.gpu.slopes import bind_slope
from pydtconv.ops.base import Spec, spec_of
from pydtconv.ops.convolution import Conv, ConvBase, DepthwiseConv
from pydtconv.ops.convolution_transpose import ConvTranspose

ConvType = TypeVar("ConvType", bound=ConvBase)


class ConvBaseKernel(AlgorithmKernel[ConvType]):
    """What the convolutions share; the arrays are those of the convolution behind the operator (`ConvBase.problem`)."""

    @property
    def _asked_for(self) -> Mapping[str, str] | str | None:
        return dict(self.op.algorithm) if isinstance(self.op.algorithm, tuple) else self.op.algorithm

    def algorithms_for(self, *inputs: Spec, within: int | None = None) -> dict[str, str]:
        p = self.op.problem(*inputs[:2])
        found = {
            direction: choose(p, direction, self._asked_for, within, self.device, self.op.variant)
            for direction in self.op.passes
        }
        return {direction: choice.algorithm for direction, choice in found.items()}

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return self.workspace_besides((), direction, *inputs)

    def workspace_besides(self, kept: Collection[str], direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        p, names = self.op.problem(x, w), self.algorithms_for(x, w)
        directions = self.op.passes[:1] if direction == "forward" else self.op.passes[1:]
        need = max(TABLE[names[which]].workspace(p, which, kept) for which in directions)
        bias = self.op.bias_of(inputs)
        if (direction == "forward" and self.op.auxiliary) or (direction == "backward" and bias is not None):
            need = max(need, sums_bytes(Spec(self._written(p), p.dtype)))
        return need

    @staticmethod
    def _written(p: ConvProblem) -> tuple[int, ...]:
        """The shape of y."""
        return p.y_shape

    def keeps(self, is_open: Collection[str], *inputs: Spec) -> list[Keepable]:
        """Spectra of x, w and dy, where passes have one strategy."""
        names = self.algorithms_for(*inputs)
        return list(shared(self.op.problem(*inputs[:2]), names)) if set(names) == set(DIRECTIONS) else []

    def forward(self, p: Pass) -> Call:
        y, bias, residual = p.y[0], self.op.bias_of(p.x), p.x[-1] if self.op.residual else None
        adds = residual is not None and residual.data.ptr == y.data.ptr  # the products add to what lies in y's place
        parts = {"forward": self._forward(p, adds)}
        residual = None if adds else residual
        if bias is not None or residual is not None or self.op.activation not in (None, "linear"):
            rest = None if residual is None else rows_of(residual)
            finish = bind_finish(p.launcher, rows_of(y), bias, rest, self.op.activation, self.op.alpha)
            parts["forward_bias"] = finish
        if len(p.y) > 1:
            parts["forward_moments"] = bind_statistics(p.launcher, y, *moments_in(p.y[1]), p.workspace)
        return in_parts(parts, p.run)

    def backward(self, p: Pass) -> Call:
        dy, dx, dw, launcher = p.dy[0], p.dx[0], p.dx[1], p.launcher
        parts: dict[str, Call] = {}
        db, finish = self.op.bias_of(p.dx), []
        if self.op.activation not in (None, "linear"):
            finish.append(bind_slope(launcher, self.op.activation, self.op.alpha, p.y[0], dy))
        if db is not None:
            finish.append(bind_column_sums(launcher, dy, db, p.workspace))
        if finish:
            parts["backward_bias"] = sequence(finish)
        if dw is not None:
            parts["backward_weights"] = self._backward_weights(p, dw)
        if dx is not None:
            parts["backward_data"] = self._backward_data(p, dx)
        return in_parts(parts, p.run)

    # -- the three passes, which a transposed convolution exchanges

    def _forward(self, p: Pass, adds: bool) -> Call:
        """y (+)= x * w."""
        problem = self._problem_of(p.x[0], p.x[1])
        algorithm, filters = TABLE[self._algorithm(problem, "forward")], self._filters(problem, p.x[1])
        return algorithm.forward(p.launcher, problem, p.x[0], filters, p.y[0], p.workspace, adds, p.saved)

    def _backward_weights(self, p: Pass, dw: Any) -> Call:
        problem = self._problem_of(p.x[0], dw)
        algorithm, filters = TABLE[self._algorithm(problem, "backward_weights")], self._filters(problem, dw)
        return algorithm.backward_weights(p.launcher, problem, p.x[0], p.dy[0], filters, p.workspace, p.saved)

    def _backward_data(self, p: Pass, dx: Any) -> Call:
        problem = self._problem_of(dx, p.x[1])
        algorithm, filters = TABLE[self._algorithm(problem, "backward_data")], self._filters(problem, p.x[1])
        arguments = (p.dy[0], filters, dx, p.workspace, p.adds(0), p.saved)
        return algorithm.backward_data(p.launcher, problem, *arguments)

    def _filters(self, p: ConvProblem, w: Any) -> Any:
        """w or dw in the convolution's shape, as a view."""
        return w

    def _problem_of(self, x: Any, w: Any) -> ConvProblem:
        return self.op.problem(spec_of(x), spec_of(w))

    def _algorithm(self, problem: ConvProblem, direction: str) -> str:
        return choose(problem, direction, self._asked_for, None, self.device, self.op.variant).algorithm


@register(Conv)
class ConvKernel(ConvBaseKernel[Conv]):
    """Convolutions of all channels, or of groups of them."""


@register(DepthwiseConv)
class DepthwiseConvKernel(ConvBaseKernel[DepthwiseConv]):
    """Filters are a view in the shape of a grouped convolution's."""

    def _filters(self, p: ConvProblem, w: Any) -> Any:
        assert math.prod(w.shape) == math.prod(p.w_shape)
        return w.reshape(p.w_shape)


@register(ConvTranspose)
class ConvTransposeKernel(ConvBaseKernel[ConvTranspose]):
    """The passes of the convolution from y to x, each in another's place; passes leave no spectra for one another."""

    @staticmethod
    def _written(p: ConvProblem) -> tuple[int, ...]:
        return p.x_shape

    def keeps(self, is_open: Collection[str], *inputs: Spec) -> list[Keepable]:
        return []

    def _forward(self, p: Pass, adds: bool) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        algorithm = TABLE[self._algorithm(problem, "backward_data")]
        return algorithm.backward_data(p.launcher, problem, p.x[0], p.x[1], p.y[0], p.workspace, adds)

    def _backward_weights(self, p: Pass, dw: Any) -> Call:
        problem = self._problem_of(p.x[0], dw)
        algorithm = TABLE[self._algorithm(problem, "backward_weights")]
        return algorithm.backward_weights(p.launcher, problem, p.dy[0], p.x[0], dw, p.workspace)

    def _backward_data(self, p: Pass, dx: Any) -> Call:
        problem = self._problem_of(dx, p.x[1])
        algorithm = TABLE[self._algorithm(problem, "forward")]
        return algorithm.forward(p.launcher, problem, p.dy[0], p.x[1], dx, p.workspace, p.adds(0))
