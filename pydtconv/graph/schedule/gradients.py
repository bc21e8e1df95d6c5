"""Which gradients backward computes, and where they lie.

An operator that passes its dy on aliases it, one that works in place takes it over, and later contributions to a
gradient are added to the first.  Before memory that another living gradient shares would be changed, it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.graph.schedule.steps import ParameterGradient, Steps


class Needed:
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


class Gradients(dict[Tensor, View]):
    """The places of the gradients that have a contribution already.

    transient: whether the gradients of variables lie in the arena, and not in the store's flat array.
    """

    def __init__(self, needed: Needed, steps: Steps, transient: bool) -> None:
        super().__init__()
        self.needed = needed
        self.steps = steps
        self.transient = transient
        self.of_variables: dict[object, Tensor] = {}  # homes of the gradients of variables
        self.pending: dict[Tensor, View] = {}  # gradients that a backward step has still to read

    def first_place(self, node: Node, i: int, dy: list[View | None], dx: list[View | None], spare: View | None) -> View:
        """Where the first contribution to an input's gradient goes.

        Over dy where the op allows it, to memory that is spare and has its size, else to new memory.
        """
        tensor = node.inputs[i]
        passes = any(self.needed.passes_dy(node, j) for j in range(len(node.inputs)))
        alone = len(dy) == 1 and not passes and tensor.variable is None
        if alone and i in node.op.inplace_backward and dy[0] is not None:
            view = dy[0]
            taken = any(other is not None and other.overlaps(view) for other in dx)
            if (
                isinstance(view.home, Storage)
                and view.spec == tensor.spec
                and not taken
                and not self.shared(view, node.outputs)
            ):
                return view
        if spare is not None and spare.spec == tensor.spec and tensor.variable is None:
            return spare
        return self._home(tensor)

    def _home(self, tensor: Tensor) -> View:
        if tensor.variable is None or self.transient:
            view = fresh(f"d {tensor.name}", "gradient", tensor.spec)
        else:
            view = View(ParameterGradient(tensor), tensor.spec)
        if tensor.variable is not None:
            self.of_variables[view.home] = tensor
        return view

    def pass_on(self, node: Node, tensor: Tensor, part: View, reading: Sequence[View]) -> None:
        """Makes `part` of a dy a contribution to the gradient of `tensor`; `reading`: what may not change meanwhile."""
        if tensor in self:
            self.add(node, tensor, part, reading)
        elif tensor.variable is not None:
            self[tensor] = self._home(tensor)
            self.steps.copy_view(node, part, self[tensor])
        else:
            self[tensor] = part
            self.pending[tensor] = part

    def add(self, node: Node, tensor: Tensor, part: View, reading: Sequence[View]) -> None:
        """Adds `part` to the gradient of a tensor."""
        self.own(node, tensor, reading)
        self.steps.add_view(node, part, self[tensor])

    def own(self, node: Node, tensor: Tensor, reading: Sequence[View | None]) -> None:
        """Copies the gradient of a tensor if adding to it would change memory that somebody else reads."""
        view = self[tensor]
        if self.shared(view, (tensor,)) or any(other is not None and other.overlaps(view) for other in reading):
            self[tensor] = self.copied(node, view, tensor)

    def shared(self, view: View, excluding: tuple[Tensor, ...]) -> bool:
        """Whether a gradient that is still to be read, other than those of `excluding`, lies in the same memory."""
        return any(view.overlaps(other) for tensor, other in self.pending.items() if tensor not in excluding)

    def copied(self, node: Node, view: View, tensor: Tensor) -> View:
        copy = fresh(f"d {tensor.name} copy", "gradient", tensor.spec)
        self.steps.copy_view(node, view, copy)
        return copy

    def read(self, node: Node) -> list[View | None]:
        """The gradients of a node's outputs, which its step of backward reads."""
        for tensor in node.outputs:
            self.pending.pop(tensor, None)
        return [self.get(tensor) for tensor in node.outputs]

    def mark_pending(self, node: Node) -> None:
        """Notes that the gradients of a node's inputs are still to be read."""
        for tensor in node.inputs:
            if tensor in self and tensor.node is not None:
                self.pending[tensor] = self[tensor]
