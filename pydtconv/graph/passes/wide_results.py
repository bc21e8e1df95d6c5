"""Dense operators on bfloat16 whose result is read as float32, as the scores of a loss are, write float32."""

from __future__ import annotations

import dataclasses

from pydtconv.dtypes import BFLOAT16
from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.ops.linear import Dense
from pydtconv.ops.shape import Cast


def widen_results(graph: Graph) -> None:
    """cast(dense(...), float32) -> dense(..., wide=True): one step, and no rounding."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not isinstance(node.op, Dense) or node.inputs[0].dtype != BFLOAT16:
            continue
        if node.op.wide or node.op.residual or node.op.smooth:
            continue
        cast = sole_consumer(graph, node, readers)
        if cast is not None and cast.op == Cast("float32"):
            absorb(graph, node, cast, dataclasses.replace(node.op, wide=True), node.inputs)
