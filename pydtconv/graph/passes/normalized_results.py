"""Convolution + batch normalization by statistics that are there before -> a convolution that normalizes its results.

In prediction the moving statistics scale and shift each channel of what the convolution computes.  The convolution does
that on the way out, while a block of results is in cache, and takes in the addition and the activation that follow.
Filters are not folded: the coefficients are found anew in each run, so what is assigned or trained in between counts.
"""

from __future__ import annotations

import dataclasses

from pydtconv import config
from pydtconv.conv.activations import OF_NORMALIZED
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer, updated_state
from pydtconv.ops import Activation
from pydtconv.ops.convolution import MeasuredConv
from pydtconv.ops.normalization import BatchNorm

#: activations that cost more on the way out than in who reads the normalized image through them
READ_THROUGH = {*OF_NORMALIZED} - {None, "linear", "relu"}


def normalize_results(graph: Graph) -> None:
    """batchnorm(conv(x, w)) -> conv(x, w, ..., normalization=batchnorm), but in "strict" precision, which rounds in
    between, and where convolutions may multiply in bfloat16.
    """
    if graph.device != "cpu" or graph.partition is not None or graph.options.variant != "AUTO":
        return
    if config.conv_precision() == "strict" or config.float32_matmul_precision() != "highest":
        return
    readers, updated = consumers(graph), updated_state(graph)
    for node in list(graph.nodes):
        if not isinstance(node.op, MeasuredConv) or not _is_plain(node.op, node.outputs[0]):
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not _is_known(consumer) or consumer.inputs[0] is not node.outputs[0]:
            continue
        if not updated.isdisjoint(consumer.inputs[1:]):  # another call of the layer may change them in between
            continue
        follows = sole_consumer(graph, consumer, readers)
        if follows is not None and isinstance(follows.op, Activation) and follows.op.kind in READ_THROUGH:
            continue
        assert isinstance(consumer.op, BatchNorm)
        op = dataclasses.replace(node.op, normalization=consumer.op)
        absorb(graph, node, consumer, op, (*node.inputs, *consumer.inputs[1:]))


def _is_plain(op: MeasuredConv, y: Tensor) -> bool:
    """Whether it has an algorithm of its own choice, and nothing behind its bias."""
    behind = op.activation or op.halo or op.moments or op.residual or op.normalization
    return not behind and op.algorithm in (None, "auto") and y.dtype in ("float32", "float64")


def _is_known(node: Node) -> bool:
    """Whether the node normalizes by statistics that are there before."""
    op = node.op
    frozen = isinstance(op, BatchNorm) and op.frozen and op.activation is None
    return frozen and all(tensor.node is None for tensor in node.inputs[1:])
