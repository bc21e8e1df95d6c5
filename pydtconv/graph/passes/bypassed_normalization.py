"""Convolutions whose backward writes the gradient of what a batch normalization before them has read.

Of dx = scale * g - offset - (x - mean) * slope, the gradient of batch normalization's input, the first term needs no
sums over the batch: a convolution's backward_data adds it to dx while it gathers the sums, and the gradient of the
normalized image is never in memory.  The other terms are the same function of x for all normalizations that read x, so
their coefficients are summed, and they are subtracted once, before somebody reads dx (schedule/mean_terms.py).  In a
DenseNet, where every layer normalizes all channels before it, that replaces a pass over all of them by one over a
layer's own.
"""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.ir.rewriting import consumers, results
from pydtconv.kernels.base import AlgorithmKernel
from pydtconv.ops.normalization import BatchNorm


def bypass_normalization(graph: Graph) -> None:
    """Finds nodes whose backward writes the gradient of a batch normalization's input, and that normalization.

    They are among those that compute its sums.  Where the gradient of x has one contribution only and is read as a
    whole, nothing would be gained.
    """
    graph.bypassed.clear()
    readers, ends = consumers(graph), results(graph)
    required = RequiredGradients(graph)
    for reader, node in graph.fused_reductions.items():
        x, out = node.inputs[0], node.outputs[0]
        alone = len(readers[out]) == 1 and out not in ends and out not in graph.gradients.values()
        if alone and x in required and _is_shared(x, readers[x]) and _can(reader, node):
            graph.bypassed[reader] = node


def _is_shared(x: Tensor, readers: list[Node]) -> bool:
    return len(readers) > 1 or (x.node is not None and joins_channels(x.node))


def _can(reader: Node, node: Node) -> bool:
    exact = isinstance(node.op, BatchNorm) and node.op.exact
    kernel, specs = reader.kernel, (tensor.spec for tensor in reader.inputs)
    return not exact and isinstance(kernel, AlgorithmKernel) and kernel.bypasses_normalization(*specs)
