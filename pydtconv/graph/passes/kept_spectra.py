"""Spectra that a convolution keeps for backward, or in it.

In the Fourier domain backward_weights transforms the same tiles of x as forward does, and perhaps the same tiles of dy
as backward_data.  Where both passes have one basis, forward leaves what it has transformed for backward_weights, and
this what it has for backward_data: kept where it pays and `kept_bytes` allows, else made again with the same bits.  The
spectra of x are saved arrays of their node like all others; those of dy live as long as its step of backward.  On a
device with memory of its own forward also leaves those of the filters, for backward_data.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node, joins_channels
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.passes.algorithms import left_open
from pydtconv.kernels.base import Keepable


def keep_spectra(graph: Graph) -> None:
    """Gives passes the same algorithm where that pays, and finds what is kept: the most gain for its bytes first.

    The algorithms do not depend on `kept_bytes`, so that no bit of a result does.
    """
    graph.kept.clear()
    opened, required = left_open(graph), RequiredGradients(graph)
    found: list[tuple[Node, Keepable]] = []
    for node in required.nodes:
        if node.op.passes and not node.op.is_view and not joins_channels(node) and required.of_inputs(node)[1]:
            keepable = node.algorithm_kernel.keeps(opened.get(node, ()), *(tensor.spec for tensor in node.inputs))
            wants_dx = required.of_inputs(node)[0]
            found += [(node, each) for each in keepable if wants_dx or not (each.within_backward or each.of_data)]
    for node, each in found:
        graph.algorithms[node] = graph.algorithms[node] | dict(each.algorithms)
        op: Any = node.op
        node.op = dataclasses.replace(op, algorithm=graph.algorithms[node])
    _keep(graph, found)


def _keep(graph: Graph, found: list[tuple[Node, Keepable]]) -> None:
    """Notes what fits: what lives from forward to backward all together, and one at a time what lives in backward."""
    budget = graph.options.kept_bytes
    for node, each in sorted(found, key=lambda pair: (pair[1].within_backward, -pair[1].seconds / pair[1].spec.nbytes)):
        if budget is None or each.spec.nbytes <= budget:
            graph.kept[node] = (*graph.kept.get(node, ()), each)
            budget = budget if budget is None or each.within_backward else budget - each.spec.nbytes
