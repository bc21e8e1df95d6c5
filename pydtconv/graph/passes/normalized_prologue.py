"""Normalized images that are never materialized: the operators that read them normalize what they read.

Where all readers of a batch normalization (and its activation) can take their input through it, as can convolutions,
global pooling and squeeze-and-excitation, normalization only finds its coefficients. Forward then neither writes nor
reads the normalized image, and backward does not compute it again.  (Pleiss et al., "Memory-Efficient Implementation of
DenseNets", 2017, share it.)  In prediction that replaces folded filters: coefficients are found anew in each run.
"""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.rewriting import consumers, results
from pydtconv.ops.normalization import is_read_through


def elide_normalization(graph: Graph) -> None:
    """Finds the tensors that need not lie in memory, and what is read instead of them."""
    graph.elided.clear()
    if not graph.options.elides:
        return
    readers, ends = consumers(graph), results(graph)
    for node in graph.nodes:
        op, out = node.op, node.outputs[0]
        if not is_read_through(op, graph.has_backward) or out in ends:
            continue
        if all(_normalizes(graph, reader, out, op.activation) for reader in readers.get(out, ())):
            graph.elided[out] = node.inputs[0]


def _normalizes(graph: Graph, reader: Node, tensor: Tensor, activation: str | None) -> bool:
    if joins_channels(reader) or reader.op.is_view or reader.inputs.count(tensor) > 1 or reader.inputs[0] is not tensor:
        return False
    return reader.kernel.takes_prologue(activation, graph.has_backward, *(each.spec for each in reader.inputs))
