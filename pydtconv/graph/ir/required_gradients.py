"""Which gradients backward computes."""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, Tensor


class RequiredGradients:
    """The gradients that are wanted: of tensors on a path from a trainable variable to the loss.

    nodes: those whose backward runs, in forward's order.
    """

    def __init__(self, graph: Graph) -> None:
        down: set[Tensor] = {tensor for tensor in graph.parameters if tensor.variable and tensor.variable.trainable}
        for node in graph.nodes:
            if any(tensor in down for tensor in _differentiable(node)):
                down.update(tensor for tensor in node.outputs if tensor.dtype.startswith("float"))
        up: set[Tensor] = {graph.loss} if graph.loss is not None else set()
        for node in reversed(graph.nodes):
            if any(tensor in up for tensor in node.outputs):
                up.update(_differentiable(node))
        self.tensors = down & up
        self.nodes = [node for node in graph.nodes if self._runs_backward(node)]

    def _runs_backward(self, node: Node) -> bool:
        return any(tensor in self.tensors for tensor in node.outputs) and any(
            tensor in self.tensors for tensor in _differentiable(node)
        )

    def __contains__(self, tensor: Tensor) -> bool:
        return tensor in self.tensors

    def of_inputs(self, node: Node) -> tuple[bool, ...]:
        """For each input of a node, whether its gradient is wanted from this node."""
        excluded = {*node.op.updates, *node.op.nondifferentiable}
        return tuple(i not in excluded and tensor in self.tensors for i, tensor in enumerate(node.inputs))

    def passes_dy(self, node: Node, i: int) -> bool:
        """Whether the gradient of input i is dy itself; not where the input is broadcast."""
        tensor = node.inputs[i]
        return i in node.op.passes_dy and tensor in self.tensors and tensor.spec == node.outputs[0].spec


def _differentiable(node: Node) -> list[Tensor]:
    excluded = {*node.op.updates, *node.op.nondifferentiable}
    return [tensor for i, tensor in enumerate(node.inputs) if i not in excluded]
