"""The convolutions of a graph: the algorithms that they take."""

from __future__ import annotations

import dataclasses
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.ops.normalization import is_read_through


def choose_algorithms(graph: Graph) -> None:
    """Fixes the algorithms of all convolutions, so that what has been planned is what runs.

    `workspace_bytes` bounds them where neither the layer nor the variant says which to take.  One that reads through
    the normalization before it is taken for one that does not and is hardly faster: that saves passes over the image;
    and of backward_data one that sums for the normalization's backward what it writes, where that takes less than
    reading the image anew.  It may run again, with other options or after tuning, and then chooses anew.
    """
    options, chosen = graph.options, graph.algorithms
    chosen.clear()
    for node in graph.nodes:
        if not node.op.passes:
            continue
        op: Any = graph.before_choice.setdefault(node, node.op)
        node.op = dataclasses.replace(op, variant=options.variant)
        specs = [tensor.spec for tensor in node.inputs]
        chosen[node] = node.algorithm_kernel.algorithms_for(*specs, within=options.workspace_bytes)
        source = node.inputs[0].node
        backward = graph.has_backward
        if options.workspace_bytes is None and source is not None and is_read_through(source.op, backward):
            names = node.algorithm_kernel.that_normalize(chosen[node], source.op.activation, backward, *specs)
            chosen[node] = node.algorithm_kernel.that_gather(names, *specs) if backward else names
        node.op = dataclasses.replace(op, variant=options.variant, algorithm=chosen[node])


def left_open(graph: Graph) -> dict[Node, list[str]]:
    """The directions of each convolution for which its operator, as it was traced, names no algorithm."""
    found = {}
    ops: dict[Node, Any] = dict(graph.before_choice)
    for node, op in ops.items():
        named = dict(op.algorithm) if isinstance(op.algorithm, tuple) else dict.fromkeys(op.passes, op.algorithm)
        found[node] = [direction for direction in op.passes if named.get(direction) in (None, "auto")]
    return found
