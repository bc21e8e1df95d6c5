"""Depthwise convolution + pointwise convolution -> one operator, whose depthwise result is never in memory.

Forward neither writes nor reads it, and training does not keep it: it is made again while the gradient of the pointwise
filters is computed.  That takes about as long as reading it; where it takes longer by more than a few percent of both
convolutions, as with large filters and few results, they stay apart.

In prediction a batch normalization with its activation may stand between them, as in MobileNets.  In training its
statistics need the whole depthwise result before the first of it is multiplied: it would be made four times.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from pydtconv import config
from pydtconv.conv.activations import OF_NORMALIZED
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import HARDLY_LONGER, seconds_to_read
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer, updated_state
from pydtconv.kernels.cpu.separable_convolution import can_be_made
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.normalization import BatchNorm
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
    readers, updated = consumers(graph), updated_state(graph)
    for node in list(graph.nodes):
        found = _pair(graph, node, readers, updated)
        if found is None or not _pays(graph, node, found):
            continue
        op, point = node.op, found.point.op
        assert isinstance(op, DepthwiseConv)
        assert isinstance(point, Conv)
        joined = SeparableConv(
            op.strides,
            op.padding,
            op.dilation,
            point.activation,
            point.alpha,
            normalization=point.normalization,
            residual=point.residual,
            between=found.between,
        )
        place = graph.nodes.index(found.point)
        graph.nodes.insert(place, node)  # behind all that the pointwise convolution reads
        graph.nodes.remove(node)
        absorb(
            graph,
            node,
            found.point,
            joined,
            (*node.inputs[:2], found.point.inputs[1], *found.coefficients, *found.point.inputs[2:]),
        )
        if found.normalization is not None:
            graph.nodes.remove(found.normalization)


class Pair(NamedTuple):
    """The pointwise convolution behind a depthwise one, and what stands between: the normalization, its inputs but the
    first, and its node, where that is one.
    """

    point: Node
    between: BatchNorm | None = None
    coefficients: tuple[Tensor, ...] = ()
    normalization: Node | None = None


def _pair(graph: Graph, node: Node, readers: dict[Tensor, list[Node]], updated: set[Tensor]) -> Pair | None:
    op = node.op
    if not isinstance(op, DepthwiseConv) or op.moments or op.halo or op.algorithm not in (None, "auto"):
        return None
    consumer = sole_consumer(graph, node, readers)
    if consumer is None or consumer.inputs[0] is not node.outputs[0]:
        return None
    plain = op.activation in (None, "linear") and op.normalization is None and len(node.inputs) == 2
    if plain and _is_pointwise(consumer):
        return Pair(consumer)
    if graph.has_backward or graph.training:
        return None
    if op.normalization is not None and op.activation in OF_NORMALIZED and op.bias_of(node.inputs) is None:
        between = dataclasses.replace(op.normalization, activation=op.activation)
        return Pair(consumer, between, node.inputs[2:]) if _is_pointwise(consumer) else None
    if not plain or not _is_known(consumer) or not updated.isdisjoint(consumer.inputs[1:]):
        return None
    point = sole_consumer(graph, consumer, readers)
    if point is None or point.inputs[0] is not consumer.outputs[0] or not _is_pointwise(point):
        return None
    assert isinstance(consumer.op, BatchNorm)
    return Pair(point, consumer.op, consumer.inputs[1:], consumer)


def _is_known(node: Node) -> bool:
    """Whether the node normalizes by statistics that are there before."""
    op = node.op
    frozen = isinstance(op, BatchNorm) and op.frozen and op.activation in OF_NORMALIZED
    return frozen and all(tensor.node is None for tensor in node.inputs[1:])


def _is_pointwise(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Conv) or op.halo or op.moments or op.groups != 1 or op.algorithm not in (None, "auto"):
        return False
    return op.problem(*(tensor.spec for tensor in node.inputs[:2])).is_pointwise


def _pays(graph: Graph, node: Node, found: Pair) -> bool:
    """Whether it can be done, and takes hardly longer; a batch that is not known counts as one image."""
    deep = node.op.problem(*(tensor.spec for tensor in node.inputs[:2]))  # type: ignore[attr-defined]
    point = found.point.op.problem(*(tensor.spec for tensor in found.point.inputs[:2]))  # type: ignore[attr-defined]
    if not can_be_made(deep, point.co):
        return False
    if not graph.has_backward:
        return True
    again = TABLE["depthwise"].seconds(deep, "forward") - seconds_to_read(point, TIMES)
    products = sum(TABLE["direct"].seconds(point, direction) for direction in DIRECTIONS)
    return again <= (HARDLY_LONGER - 1) * products
