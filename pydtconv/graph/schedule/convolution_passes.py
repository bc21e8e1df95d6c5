"""The passes of convolutions that a plan runs: what tuning times."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydtconv.conv.problem import ConvProblem
from pydtconv.graph.ir.graph import Node
from pydtconv.graph.schedule.halos import BlocksStep, RimsBackwardStep, RimsStep
from pydtconv.graph.schedule.steps import BackwardStep, PassStep, Step


def passes_of(steps: Sequence[Step], directions: Mapping[Node, Collection[str]]) -> list[tuple[ConvProblem, str]]:
    """The passes of convolutions that steps run, as often as they do, of these directions: problem and direction."""
    passes: list[tuple[ConvProblem, str]] = []
    for step in steps:
        if step.node not in directions or not isinstance(step, PassStep):
            continue
        op: Any = step.node.op
        p = op.problem(*(tensor.spec for tensor in step.node.inputs[:2]))
        y, dx, dw = op.passes
        if isinstance(step, BlocksStep):
            passes += [(problem, y) for problem in step.problems() if y in directions[step.node]]
            continue
        if isinstance(step, (RimsStep, RimsBackwardStep)):
            name = y if isinstance(step, RimsStep) else dx
            rims = step.node.window_kernel.rims.problems(*(tensor.spec for tensor in step.node.inputs))
            passes += [(problem, name) for problem, _ in rims if name in directions[step.node]]
            continue
        if isinstance(step, BackwardStep):
            names = [name for name, view in ((dx, step.dx[0]), (dw, step.dx[1])) if view is not None]
        else:
            names = [y]
        passes += [(p, name) for name in names if name in directions[step.node]]
    return passes
