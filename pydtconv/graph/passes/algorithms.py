"""The convolutions of a graph: the algorithms that they take."""

from __future__ import annotations

import dataclasses
from typing import Any

from pydtconv.conv.selection import algorithms, workspace_bytes
from pydtconv.graph.ir.graph import Graph, Node


def choose_algorithms(graph: Graph) -> None:
    """Fixes the algorithms of all convolutions, so that what has been planned is what runs.

    With `smallest_workspaces` it takes those where neither the layer nor the variant says which to take.  It may run
    again, with other options or after tuning, and then chooses anew.
    """
    options, chosen = graph.options, graph.algorithms
    chosen.clear()
    for node in graph.nodes:
        if not hasattr(node.op, "algorithms_for"):
            continue
        op: Any = dataclasses.replace(graph.before_choice.setdefault(node, node.op), variant=options.variant)  # type: ignore[type-var]
        specs = [tensor.spec for tensor in node.inputs]
        chosen[node] = op.algorithms_for(*specs)
        if options.smallest_workspaces and options.variant == "AUTO" and op.algorithm is None:
            p = op.problem(*specs[:2])
            for direction in chosen[node]:
                names = algorithms(p, direction)
                chosen[node][direction] = min(names, key=lambda name: workspace_bytes(p, direction, name))
        node.op = dataclasses.replace(op, algorithm=chosen[node])


def left_open(graph: Graph) -> dict[Node, list[str]]:
    """The directions of each convolution for which its operator, as it was traced, names no algorithm."""
    found = {}
    ops: dict[Node, Any] = dict(graph.before_choice)
    for node, op in ops.items():
        named = dict(op.algorithm) if isinstance(op.algorithm, tuple) else dict.fromkeys(op.passes, op.algorithm)
        found[node] = [direction for direction in op.passes if named.get(direction) in (None, "auto")]
    return found
