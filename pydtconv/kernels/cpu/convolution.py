"""Convolutions: each pass by an algorithm of `pydtconv.conv`, bias and activation in the same sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import numpy as np

from pydtconv._ext import conv as ext
from pydtconv.conv.functional import ACTIVATIONS, Normalization, bind, pixel_stride, run, scratch
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import Choice, algorithms, choose, variant_of, workspace_bytes
from pydtconv.conv.table import TABLE
from pydtconv.kernels.base import Call, Kernel, Pass, Prologue, in_parts
from pydtconv.kernels.cpu.moments import moments_in, statistics, statistics_workspace
from pydtconv.kernels.registry import register
from pydtconv.ops.base import Spec, spec_of
from pydtconv.ops.convolution import Conv, ConvBase, DepthwiseConv

ConvType = TypeVar("ConvType", bound=ConvBase)


class ConvBaseKernel(Kernel[ConvType]):
    """What the convolutions share; the arrays are those of the convolution behind the operator (`ConvBase.problem`)."""

    @property
    def persistent(self) -> bool:
        return variant_of(self.op.variant).persistent

    def choices(self, x: Spec, w: Spec, *rest: Spec) -> dict[str, Choice]:
        """The algorithm of each direction of the convolution, and why it was taken."""
        p = self.op.problem(x, w)
        return {direction: choose(p, direction, self._asked_for, self.op.variant) for direction in self.op.passes}

    def algorithms_for(self, *inputs: Spec, smallest: bool = False) -> dict[str, str]:
        if smallest and self.op.algorithm is None and variant_of(self.op.variant).name == "AUTO":
            p = self.op.problem(*inputs[:2])
            return {direction: _smallest(p, direction) for direction in self.op.passes}
        return {direction: choice.algorithm for direction, choice in self.choices(*inputs[:2]).items()}

    @property
    def _asked_for(self) -> Mapping[str, str] | str | None:
        """What the operator itself says of algorithms."""
        return dict(self.op.algorithm) if isinstance(self.op.algorithm, tuple) else self.op.algorithm

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        p = self.op.problem(x, w)
        names = self.algorithms_for(x, w)
        directions = self.op.passes[:1] if direction == "forward" else self.op.passes[1:]
        need = max(workspace_bytes(p, which, names[which]) for which in directions)
        if direction == "forward" and self.op.auxiliary and not TABLE[names["forward"]].gathers:
            need = max(need, statistics_workspace(Spec(p.y_shape, p.dtype)))
        bias = self.op.bias_of(inputs)
        if direction == "backward" and bias is not None:
            need = max(need, ext.bias_backward_workspace(bias.size, x.dtype))
        return need

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        """w or dw in the convolution's shape, as a view."""
        return w

    def forward(self, p: Pass) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "forward")
        wanted = moments_in(p.y[1]) if len(p.y) > 1 else None
        gathers = wanted is not None and TABLE[name].gathers
        calls: dict[str, Callable[..., int]] = {
            "forward": bind(
                problem,
                "forward",
                name,
                p.x[0],
                self._filters(problem, p.x[1]),
                p.y[0],
                bias=self.op.bias_of(p.x),
                activation=self.op.activation,
                alpha=self.op.alpha,
                moments=wanted if gathers else None,
                prologue=None if p.prologue is None else _through(p.prologue),
                residual=p.x[-1] if self.op.residual else None,
            )
        }
        need = workspace_bytes(problem, "forward", name)
        if wanted is not None and not gathers:
            calls["forward_moments"] = statistics(p.y[0], *wanted)
            need = max(need, statistics_workspace(spec_of(p.y[0])))
        return in_order(calls, p, need)

    def backward(self, p: Pass) -> Call:
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            problem = self._problem_of(p.x[0], dw)
            name = self._algorithm(problem, "backward_weights")
            filters = self._filters(problem, dw)
            prologue = None if p.prologue is None else _through(p.prologue)
            calls["backward_weights"] = bind(problem, "backward_weights", name, p.x[0], filters, dy, prologue=prologue)
            need = max(need, workspace_bytes(problem, "backward_weights", name))
        if dx is not None:
            problem = self._problem_of(dx, p.x[1])
            name = self._algorithm(problem, "backward_data")
            calls["backward_data"] = bind(
                problem,
                "backward_data",
                name,
                dx,
                self._filters(problem, p.x[1]),
                dy,
                accumulate=p.adds(0),
                reductions=None
                if p.reductions is None
                else (p.reductions.x, _through(p.reductions.prologue), *moments_in(p.reductions.sums)),
            )
            need = max(need, workspace_bytes(problem, "backward_data", name))
        return in_order(calls, p, need)

    def _problem_of(self, x: np.ndarray, w: np.ndarray) -> ConvProblem:
        return self.op.problem(Spec(x.shape, x.dtype.name), Spec(w.shape, w.dtype.name))

    def _algorithm(self, problem: ConvProblem, direction: str) -> str:
        return choose(problem, direction, self._asked_for, self.op.variant).algorithm

    def _finish_backward(self, p: Pass, dy: np.ndarray) -> tuple[dict[str, Callable[..., int]], int]:
        """What turns dy into that of the bare convolution and writes db, and the workspace it needs."""
        db = self.op.bias_of(p.dx)
        code, alpha = ACTIVATIONS[self.op.activation], self.op.alpha
        if not code and db is None:
            return {}, 0
        y = p.y[0] if code else None
        ldy, lddy = 0 if y is None else pixel_stride(y, "y"), pixel_stride(dy, "dy")

        def finish(workspace: np.ndarray | None) -> int:
            status: int = ext.bias_backward(dy, lddy, y, ldy, code, alpha, db, workspace)
            return status

        need = 0 if db is None else ext.bias_backward_workspace(db.size, dy.dtype.name)
        return {"backward_bias": finish}, need


def _smallest(p: ConvProblem, direction: str) -> str:
    """The algorithm with the smallest workspace."""
    return min(algorithms(p, direction), key=lambda name: workspace_bytes(p, direction, name))


def _through(prologue: Prologue) -> Normalization:
    return prologue.mean, prologue.scale, prologue.beta, prologue.relu


def in_order(calls: Mapping[str, Callable[..., int]], p: Pass, need: int) -> Call:
    """One call of several parts that share p's workspace; where none was placed, each call has its own."""
    if need == 0 or (p.workspace is not None and p.workspace.size >= need):
        return in_parts({name: partial(run, call, p.workspace) for name, call in calls.items()}, p.run)

    def transient() -> None:
        mine = scratch(need)
        in_parts({name: partial(run, call, mine) for name, call in calls.items()}, p.run)()

    return transient


@register(Conv)
class ConvKernel(ConvBaseKernel[Conv]):
    """Where the algorithms can, x is normalized as it is read, and sums are gathered as dx is written."""

    def takes_prologue(self, *inputs: Spec) -> bool:
        p, names = self.op.problem(*inputs[:2]), self.algorithms_for(*inputs)
        return all(TABLE[names[role]].normalizes_in(p) for role in ("forward", "backward_weights"))

    def gathers_reductions(self, *inputs: Spec) -> bool:
        return TABLE[self.algorithms_for(*inputs)["backward_data"]].gathers


@register(DepthwiseConv)
class DepthwiseConvKernel(ConvBaseKernel[DepthwiseConv]):
    """Filters are a view in the shape of a grouped convolution's."""

    def _filters(self, p: ConvProblem, w: np.ndarray) -> np.ndarray:
        if not w.flags.c_contiguous:
            raise ValueError(
                f"{self.op.name}: w: expected an array in C order, got strides {w.strides} for shape {w.shape}"
            )
        return w.reshape(p.w_shape)
