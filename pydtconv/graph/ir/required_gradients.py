"""Which gradients backward computes."""

from __future__ import annotations

from collections.abc import Sequence

from pydtconv.dtypes import FLOATING
from pydtconv.graph.ir.graph import Graph, Node, Tensor


class RequiredGradients:
    """The gradients that are wanted: of tensors on a path from a source (a trainable variable) to the loss.

    nodes: those whose backward runs, in forward's order.
    """

    def __init__(self, graph: Graph) -> None:
        trained = [tensor for tensor in graph.parameters if tensor.variable is not None and tensor.variable.trainable]
        down: set[Tensor] = set(trained if graph.sources is None else graph.sources)
        inputs = [(node, _differentiable(node)) for node in graph.nodes]
        for node, read in inputs:
            if not down.isdisjoint(read):
                down.update(tensor for tensor in node.outputs if tensor.dtype in FLOATING)
        up: set[Tensor] = {graph.loss} if graph.loss is not None else set()
        for node, read in reversed(inputs):
            if not up.isdisjoint(node.outputs):
                up.update(read)
        self.tensors = tensors = down & up
        self.nodes = [
            node for node, read in inputs if not (tensors.isdisjoint(node.outputs) or tensors.isdisjoint(read))
        ]

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self.tensors

    def of_inputs(self, node: Node) -> tuple[bool, ...]:
        """For each input of a node, whether its gradient is wanted from this node."""
        excluded = (*node.op.updates, *node.op.nondifferentiable)
        return tuple(i not in excluded and tensor in self.tensors for i, tensor in enumerate(node.inputs))

    def passes_dy(self, node: Node, i: int) -> bool:
        """Whether the gradient of input i is dy itself; not where the input is broadcast."""
        tensor = node.inputs[i]
        return i in node.op.passes_dy and tensor in self.tensors and tensor.spec == node.outputs[0].spec


def _differentiable(node: Node) -> Sequence[Tensor]:
    excluded = (*node.op.updates, *node.op.nondifferentiable)
    if not excluded:
        return node.inputs
    return [tensor for i, tensor in enumerate(node.inputs) if i not in excluded]
