"""Zeros around an image + convolution without padding -> a convolution with padding."""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.rewriting import consumers, sole_consumer
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.resize import Pad


def fuse_padding(graph: Graph) -> None:
    """conv(pad(x), w) -> conv(x, w, padding=...) where zeros are added along the axes of the image."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not isinstance(node.op, Pad) or node.op.mode != "constant" or node.op.value != 0:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, (Conv, DepthwiseConv)) or consumer.op.padding != "valid":
            continue
        batch, *sides, channels = node.op.padding
        if not 1 <= len(sides) <= 3 or any(batch + channels) or consumer.inputs[0] is not node.outputs[0]:
            continue
        consumer.op = dataclasses.replace(consumer.op, padding=tuple(sides))
        consumer.inputs = (node.inputs[0], *consumer.inputs[1:])
        graph.nodes.remove(node)
