"""Where gradients lie.

An operator that passes its dy on aliases it, one that works in place takes it over, and later contributions to a
gradient are added to the first.  Before memory that another living gradient shares would be changed, it is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.graph.schedule.mean_terms import NotedTerms
from pydtconv.graph.schedule.steps import LossGradient, ParameterGradient, Steps


class Gradients(dict[Tensor, View]):
    """The views of the gradients that have a contribution already.

    transient: whether the gradients of variables lie in the arena, and not in the store's flat array.
    results: tensors whose gradients are read after the last step.
    """

    def __init__(
        self, required: RequiredGradients, steps: Steps, transient: bool, results: Collection[Tensor] = ()
    ) -> None:
        super().__init__()
        self.required = required
        self.steps = steps
        self.transient = transient
        self.results = results
        self.of_variables: dict[object, Tensor] = {}  # by the buffers of their gradients
        self.terms = NotedTerms(steps)
        self.pending: dict[Tensor, View] = {}  # gradients that a backward step has still to read

    def first_view(self, node: Node, i: int, dy: list[View | None], dx: list[View | None], spare: View | None) -> View:
        """Where the first contribution to an input's gradient goes.

        Over dy where the op allows it, to memory that is spare and has its size, else to new memory.
        """
        tensor = node.inputs[i]
        passes = any(self.required.passes_dy(node, j) for j in range(len(node.inputs)))
        alone = len(dy) == 1 and not passes and tensor.variable is None
        if alone and i in node.op.inplace_backward and dy[0] is not None:
            view = dy[0]
            taken = any(other is not None and other.overlaps(view) for other in dx)
            if (
                isinstance(view.buffer, Storage)
                and view.spec == tensor.spec
                and not taken
                and not self.read_later(view, node)
            ):
                return view
        place = node.op.place_of_input(tensor.spec) if alone else None
        if place is not None and dy[0] is not None and not dy[0].is_slice:
            view = dy[0]
            if isinstance(view.buffer, Storage) and not self.read_later(view, node):
                return View(view.buffer, tensor.spec, view.offset + place)
        if spare is not None and spare.spec == tensor.spec and tensor.variable is None:
            return spare
        return self._new(tensor)

    def _new(self, tensor: Tensor) -> View:
        if tensor.variable is None or self.transient:
            view = fresh(f"d {tensor.name}", "gradient", tensor.spec)
        else:
            view = View(ParameterGradient(tensor), tensor.spec)
        if tensor.variable is not None:
            self.of_variables[view.buffer] = tensor
        return view

    def pass_on(self, node: Node, tensor: Tensor, part: View, in_use: Sequence[View]) -> None:
        """Makes `part` of a dy a contribution to the gradient of `tensor`; `in_use`: what may not change meanwhile."""
        if tensor in self:
            self.add(node, tensor, part, in_use)
        elif tensor.variable is not None:
            self[tensor] = self._new(tensor)
            self.terms.subtract(part)
            self.steps.copy_view(node, part, self[tensor])
        else:
            self[tensor] = part
            self.pending[tensor] = part

    def add(self, node: Node, tensor: Tensor, part: View, in_use: Sequence[View]) -> None:
        """Adds `part` to the gradient of a tensor."""
        self.own(node, tensor, in_use)
        self.terms.subtract(part)
        self.steps.add_view(node, part, self[tensor])

    def own(self, node: Node, tensor: Tensor, in_use: Sequence[View | None]) -> None:
        """Copies the gradient of a tensor if adding to it would change memory that somebody else reads."""
        view = self[tensor]
        constant = isinstance(view.buffer, LossGradient)  # which no step may change
        if (
            constant
            or self.shared(view, (tensor,))
            or any(other is not None and other.overlaps(view) for other in in_use)
        ):
            self[tensor] = self.copied(node, view, tensor)

    def shared(self, view: View, excluding: tuple[Tensor, ...]) -> bool:
        """Whether a gradient that is still to be read, other than those of `excluding`, lies in the same memory."""
        return any(view.overlaps(other) for tensor, other in self.pending.items() if tensor not in excluding)

    def read_later(self, view: View, node: Node) -> bool:
        """Whether a gradient that is read after the node's step of backward lies in the same memory."""
        return self.shared(view, tuple(tensor for tensor in node.outputs if tensor not in self.results))

    def copied(self, node: Node, view: View, tensor: Tensor) -> View:
        copy = fresh(f"d {tensor.name} copy", "gradient", tensor.spec)
        self.terms.subtract(view)
        self.steps.copy_view(node, view, copy)
        return copy

    def read(self, node: Node) -> list[View | None]:
        """The gradients of a node's outputs, which its step of backward reads."""
        for tensor in node.outputs:
            if tensor not in self.results:
                self.pending.pop(tensor, None)
        return [self.get(tensor) for tensor in node.outputs]

    def contribute(self, node: Node, tensor: Tensor, in_use: Sequence[View | None] = ()) -> tuple[View, bool]:
        """Where a step of backward puts a contribution to the gradient of a tensor, and whether it adds to others.

        in_use: what the step reads meanwhile.
        """
        adds = tensor in self
        if adds:
            self.own(node, tensor, in_use)
        else:
            self[tensor] = self._new(tensor)
        if tensor.node is not None:
            self.pending[tensor] = self[tensor]
        return self[tensor], adds

    def mark_pending(self, node: Node) -> None:
        """Notes that the gradients of a node's inputs are still to be read."""
        for tensor in node.inputs:
            if tensor in self and tensor.node is not None:
                self.pending[tensor] = self[tensor]
