"""Normalized images that never lie in memory: the convolutions that read them normalize what they read.

In a training step, where all readers of a batch normalization (and its ReLU) are convolutions that can take their input
through it, normalization only finds its coefficients.  Forward then neither writes nor reads the normalized image, and
backward does not compute it again.  (Pleiss et al., "Memory-Efficient Implementation of DenseNets", 2017, share it.)
"""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.layout import joins_channels
from pydtconv.ops.normalization import BatchNorm


def find_virtual(graph: Graph) -> dict[Tensor, Tensor]:
    """Tensors that need not lie in memory, and what is read in their stead."""
    if not graph.training:
        return {}
    readers: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            readers.setdefault(tensor, []).append(node)
    ends = {*graph.outputs.values(), graph.loss}
    found: dict[Tensor, Tensor] = {}
    for node in graph.nodes:
        op, out = node.op, node.outputs[0]
        fits = isinstance(op, BatchNorm) and not op.frozen and op.activation in (None, "linear", "relu")
        if fits and out not in ends and all(_reads_through(reader, out) for reader in readers.get(out, ())):
            found[out] = node.inputs[0]
    return found


def _reads_through(reader: Node, tensor: Tensor) -> bool:
    if joins_channels(reader) or reader.op.is_view or reader.inputs.count(tensor) > 1 or reader.inputs[0] is not tensor:
        return False
    return reader.kernel.takes_prologue(*(each.spec for each in reader.inputs))
