"""Depthwise convolution + pointwise convolution -> one operator, whose depthwise result is never in memory.

Forward neither writes nor reads it, and training does not keep it: it is made again while the gradient of the pointwise
filters is computed.  That takes about as long as reading it; where it takes longer by more than a few percent of both
convolutions, as with large filters and few results, they stay apart.
"""

from __future__ import annotations

from pydtconv import config
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import HARDLY_LONGER, seconds_to_read
from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.kernels.cpu.separable_convolution import can_be_made
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.separable_convolution import SeparableConv

#: times that the depthwise result goes through memory where it is stored: written, which reads it first, and read twice
TIMES = 4


def join_separable(graph: Graph) -> None:
    """conv1x1(depthwise(x, d), w, ...) -> separable(x, d, w, ...), where nothing else reads the depthwise result."""
    if graph.device != "cpu" or graph.partition is not None or graph.options.variant != "AUTO":
        return
    if config.float32_matmul_precision() != "highest":  # the pointwise convolution may multiply in bfloat16
        return
    if config.conv_workspace_limit() is not None:  # the workspace has the gradient of the depthwise result
        return
    readers = consumers(graph)
    for node in list(graph.nodes):
        op = node.op
        if not isinstance(op, DepthwiseConv) or len(node.inputs) != 2 or not _is_plain(op):
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or consumer.inputs[0] is not node.outputs[0] or not _is_pointwise(consumer):
            continue
        if not _pays(graph, node, consumer):
            continue
        point = consumer.op
        assert isinstance(point, Conv)
        joined = SeparableConv(
            op.strides,
            op.padding,
            op.dilation,
            point.activation,
            point.alpha,
            normalization=point.normalization,
            residual=point.residual,
        )
        place = graph.nodes.index(consumer)
        absorb(graph, node, consumer, joined, (*node.inputs, *consumer.inputs[1:]))
        graph.nodes.remove(node)
        graph.nodes.insert(place - 1, node)  # behind all that the pointwise convolution reads


def _is_plain(op: DepthwiseConv) -> bool:
    """Whether nothing follows its sums, and its algorithm is open."""
    behind = op.activation not in (None, "linear") or op.moments or op.normalization or op.halo
    return not behind and op.algorithm in (None, "auto")


def _is_pointwise(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Conv) or op.halo or op.moments or op.groups != 1 or op.algorithm not in (None, "auto"):
        return False
    return op.problem(*(tensor.spec for tensor in node.inputs[:2])).is_pointwise


def _pays(graph: Graph, node: Node, consumer: Node) -> bool:
    """Whether it can be done, and takes hardly longer; a batch that is not known counts as one image."""
    deep = node.op.problem(*(tensor.spec for tensor in node.inputs))  # type: ignore[attr-defined]
    point = consumer.op.problem(*(tensor.spec for tensor in consumer.inputs[:2]))  # type: ignore[attr-defined]
    if not can_be_made(deep, point.co):
        return False
    if not graph.has_backward:
        return True
    again = TABLE["depthwise"].seconds(deep, "forward") - seconds_to_read(point, TIMES)
    products = sum(TABLE["direct"].seconds(point, direction) for direction in DIRECTIONS)
    return again <= (HARDLY_LONGER - 1) * products
