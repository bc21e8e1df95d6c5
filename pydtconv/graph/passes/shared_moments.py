"""Statistics of batch normalization without a pass over memory: convolutions compute them, readers share them.

In a training step the statistics of an image depend on the image alone, and those of a concatenation along the channels
are those of its parts.  So they become tensors (ops/moments.py): a convolution gathers them from its output while that
is in cache, and where several layers normalize the same channels (a dense block) they are found once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.ops.base import is_image
from pydtconv.ops.convolution import MeasuredConv
from pydtconv.ops.moments import Moments, moments_spec
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.shape import Concatenate


def share_moments(graph: Graph) -> None:
    """Gives batch normalizations the moments of their input, where that saves a pass over it."""
    readers = [node for node in graph.nodes if _wants_moments(node)]
    uses = Counter(part for node in readers for part in _parts(node.inputs[0]))
    found: dict[Tensor, Tensor] = {}
    for node in readers:
        x = node.inputs[0]
        if any(_gathers(part) or uses[part] > 1 for part in _parts(x)):
            node.inputs = (*node.inputs, _moments_of(graph, x, found))
            node.op = dataclasses.replace(node.op, given=True)  # type: ignore[type-var]


def _wants_moments(node: Node) -> bool:
    op = node.op
    return isinstance(op, BatchNorm) and not (op.frozen or op.given or op.exact) and is_image(node.inputs[0].shape)


def _gathers(tensor: Tensor) -> bool:
    return tensor.node is not None and isinstance(tensor.node.op, MeasuredConv) and tensor is tensor.node.outputs[0]


def _parts(tensor: Tensor) -> Iterator[Tensor]:
    """The tensors of which this one is a concatenation; the tensor itself where it is none."""
    if tensor.node is not None and joins_channels(tensor.node):
        for part in tensor.node.inputs:
            yield from _parts(part)
    else:
        yield tensor


def _moments_of(graph: Graph, tensor: Tensor, found: dict[Tensor, Tensor]) -> Tensor:
    """The moments of a tensor, computed right behind it."""
    if tensor not in found:
        node = tensor.node
        if _gathers(tensor):
            assert node is not None
            node.op = dataclasses.replace(node.op, moments=True)  # type: ignore[type-var]
            moments = Tensor(graph, moments_spec(tensor.spec), f"{node.name}:1", node, 1)
            node.outputs = (tensor, moments)
            found[tensor] = moments
            return moments
        if node is not None and joins_channels(node):
            parts = tuple(_moments_of(graph, part, found) for part in node.inputs)
            made = Node(graph, Concatenate(-1), parts, node.scope)
        else:
            made = Node(graph, Moments(), (tensor,), node.scope if node is not None else "")
        graph.nodes.insert(graph.nodes.index(node) + 1 if node is not None else 0, made)
        found[tensor] = made.outputs[0]
    return found[tensor]
