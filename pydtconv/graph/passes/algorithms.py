"""The convolutions of a graph: the algorithms that they take, and the passes that a plan runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydtconv.conv.problem import ConvProblem
from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.schedule.steps import Step


def choose_algorithms(graph: Graph, variant: str, smallest: bool) -> dict[Node, dict[str, str]]:
    """Fixes the algorithms of all convolutions, so that what has been planned is what runs; returns them by node.

    smallest: take those with the smallest workspaces where neither the layer nor the variant says which to take.
    """
    chosen: dict[Node, dict[str, str]] = {}
    for node in graph.nodes:
        if not node.op.passes:
            continue
        node.op = dataclasses.replace(node.op, variant=variant)  # type: ignore[type-var]
        chosen[node] = node.kernel.algorithms_for(*(tensor.spec for tensor in node.inputs), smallest=smallest)
        node.op = dataclasses.replace(node.op, algorithm=chosen[node])  # type: ignore[type-var]
    return chosen


def left_open(ops: Mapping[Node, Any]) -> dict[Node, list[str]]:
    """The directions of each convolution for which its operator, as it was traced, names no algorithm."""
    found = {}
    for node, op in ops.items():
        if op.passes:
            named = dict(op.algorithm) if isinstance(op.algorithm, tuple) else dict.fromkeys(op.passes, op.algorithm)
            found[node] = [direction for direction in op.passes if named.get(direction) in (None, "auto")]
    return found


def passes_of(steps: Sequence[Step], directions: Mapping[Node, Collection[str]]) -> list[tuple[ConvProblem, str]]:
    """The passes of convolutions that steps run, as often as they do, of these directions: problem and direction."""
    passes: list[tuple[ConvProblem, str]] = []
    for step in steps:
        if step.node not in directions or step.direction not in ("forward", "recompute", "backward"):
            continue
        op: Any = step.node.op
        p = op.problem(*(tensor.spec for tensor in step.node.inputs[:2]))
        y, dx, dw = op.passes
        if step.direction == "backward":
            names = [name for name, view in ((dx, step.dx[0]), (dw, step.dx[1])) if view is not None]
        else:
            names = [y]
        passes += [(p, name) for name in names if name in directions[step.node]]
    return passes
