"""Statistics of batch normalization that do not depend on how images are cut, in "strict" precision.

An activation with a bend, such as ReLU, turns the rounding of a mean into a change of gradients that is thousands of
times as large.  So that several processes compute what one does, means and variances are those of sums in float64,
which are rounded once; the convolutions do their part by choosing their forward algorithms by the filters alone
(conv/selection.py).
"""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph
from pydtconv.ops.normalization import BatchNorm


def sum_exactly(graph: Graph) -> None:
    """Lets batch normalizations find their statistics in float64."""
    for node in graph.nodes:
        op = node.op
        if isinstance(op, BatchNorm) and not op.frozen and not op.given:
            node.op = dataclasses.replace(op, exact=True)
