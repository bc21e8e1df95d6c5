"""The backward half of a schedule: the steps that compute gradients and, where that is wanted, apply them.

Nodes run in the reverse of forward's order.  The gradient of a concatenation is read in slices; where each gradient
lies is in gradients.py.
"""

from __future__ import annotations

from typing import Protocol

from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.memory.sharing import Sharing, parts_of
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.graph.schedule.gradients import Gradients
from pydtconv.graph.schedule.steps import BackwardStep, LossGradient, Step, Steps, Updates, UpdateStep
from pydtconv.ops.base import Spec

Views = list[View | None]


class MakesPass(Protocol):
    """Makes a step of backward, with all that it reads of forward's; dy: of outputs, dx: of inputs."""

    def __call__(self, node: Node, dy: Views, dx: Views, accumulate: tuple[bool, ...] = ()) -> BackwardStep: ...


class Backward:
    """Lays out the steps of backward.  After `run`: `order`, variables as their gradients become complete.

    sharing: of forward's tensors.  updates: given where steps of the optimizer are wanted; gradients of variables are
    then transient.
    """

    def __init__(
        self,
        graph: Graph,
        required: RequiredGradients,
        sharing: Sharing,
        steps: Steps,
        updates: Updates | None,
        make: MakesPass,
    ) -> None:
        self.graph = graph
        self.required = required
        self.sharing = sharing
        self.steps = steps
        self.updates = updates
        self.make = make
        results = set(graph.gradients.values())
        self.gradients = Gradients(required, steps, transient=updates is not None, results=results)
        self.bypassed: dict[Node, BackwardStep] = {}  # normalizations, and the steps that write what they would
        self.order: list[Tensor] = []

    def run(self) -> None:
        loss = self.graph.loss
        assert loss is not None
        self.gradients[loss] = View(LossGradient(), loss.spec)
        for node in reversed(self.required.nodes):
            if node in self.bypassed:
                self._normalization(node)
                self.gradients.mark_pending(node)
            elif any(tensor in self.gradients for tensor in node.outputs):
                if node.op.is_view or joins_channels(node):
                    self._alias(node)
                else:
                    self._node(node)
                self.gradients.mark_pending(node)
        self.gradients.terms.subtract()
        self._finish()

    def _alias(self, node: Node) -> None:
        """A view's gradient is its dy in another shape; a concatenation's are slices of its dy."""
        (dy,) = self.gradients.read(node)
        assert dy is not None
        if node.op.is_view:
            self.gradients.terms.subtract(dy)
            if dy.is_slice:
                dy = self.gradients.copied(node, dy, node.outputs[0])
            parts = [View(dy.buffer, node.inputs[0].spec, dy.offset)]
        else:
            parts = parts_of(node, dy)
        for tensor, part in zip(node.inputs, parts, strict=True):
            if tensor in self.required:
                self.gradients.pass_on(node, tensor, part, parts)

    def _node(self, node: Node) -> None:
        gradients = self.gradients
        dy = gradients.read(node)
        for view in dy:
            if view is not None:
                gradients.terms.subtract(view)
        if node.op.dense:  # a slice of the gradient of a concatenation is not
            for index, view in enumerate(dy):
                if view is not None and view.is_slice:
                    dy[index] = gradients.copied(node, view, node.outputs[index])
        if node.op.overwrites_dy:
            for index, view in enumerate(dy):
                if view is not None and (gradients.read_later(view, node) or not isinstance(view.buffer, Storage)):
                    dy[index] = gradients.copied(node, view, node.outputs[index])
        needs = self.required.of_inputs(node)
        dx: Views = [None] * len(node.inputs)
        accumulate = [False] * len(node.inputs)
        passed: list[int] = []
        by_rows: list[int] = []
        added: list[tuple[int, View]] = []
        for i, tensor in enumerate(node.inputs):
            if not needs[i]:
                continue
            if i == 0 and node in self.graph.bypassed:
                source = self.graph.bypassed[node]
                dx[i], accumulate[i] = gradients.contribute(node, source.inputs[0], dy)
            elif self.required.passes_dy(node, i):
                passed.append(i)
            elif self._goes_by_rows(node, i):
                by_rows.append(i)
            elif tensor not in gradients:
                gradients[tensor] = dx[i] = gradients.first_view(node, i, dy, dx, self._spare(node, i))
            elif self._accumulates(node, i):
                gradients.own(node, tensor, dy)
                dx[i], accumulate[i] = gradients[tensor], True
            else:
                part = fresh(f"d {tensor.name} part", "gradient", tensor.spec)
                dx[i] = part
                added.append((i, part))
        sums = node in self.graph.fused_reductions and node not in self.graph.bypassed
        if sums and dx[0] is not None and accumulate[0]:
            gradients.terms.subtract(dx[0])  # the sums are those of the whole of it
        if any(view is not None for view in dx) or node.op.overwrites_dy:
            step = self.make(node, dy, dx, tuple(accumulate))
            self.steps.run(step)
            if node in self.graph.bypassed:
                self.bypassed[self.graph.bypassed[node]] = step
        for i in by_rows:
            self._by_rows(node, i, dy)
        for i in passed:
            assert dy[0] is not None
            gradients.pass_on(node, node.inputs[i], dy[0], [dy[0]])
        for i, part in added:
            gradients.add(node, node.inputs[i], part, [part])

    def _accumulates(self, node: Node, i: int) -> bool:
        """Whether the operator can add to the gradient that there is of an input."""
        dense = node.op.dense or i in node.op.dense_inputs
        if dense and self.gradients[node.inputs[i]].is_slice:
            return False
        return i in node.op.accumulates and node.inputs[i] not in node.inputs[:i]

    def _normalization(self, node: Node) -> None:
        """Of a batch normalization the gradient of whose input another node has written: the rest of it."""
        gradients, reductions = self.gradients, self.bypassed[node].reductions
        assert reductions is not None
        needs = self.required.of_inputs(node)
        dx: Views = [None] * len(node.inputs)
        accumulate = [False] * len(node.inputs)
        for i, tensor in enumerate(node.inputs):
            if i and needs[i]:
                dx[i], accumulate[i] = gradients.contribute(node, tensor)
        step = self.make(node, [None], dx, tuple(accumulate))
        step.x = (None, *step.x[1:])
        x = node.inputs[0]
        step.mean_terms = gradients.terms.note(node, gradients[x], reductions.x, reductions.prologue.mean)
        self.steps.run(step)

    def _spare(self, node: Node, i: int) -> View | None:
        """Where the output of a node lies, if its backward is the last reader and input i's gradient may go there."""
        reads = i in node.op.replaces_y and node.op.retains(self.required.of_inputs(node)).y
        return self.sharing.unshared(node.outputs[0]) if reads else None

    def _goes_by_rows(self, node: Node, i: int) -> bool:
        """Whether the gradient of an input is so large that it is computed and applied some rows at a time."""
        tensor = node.inputs[i]
        least = 2 * self.graph.thresholds.gradient_rows
        large = i == node.op.splits and tensor.variable is not None and tensor.spec.nbytes >= least
        by_rows = self.updates is not None and self.updates.by_rows
        return large and by_rows and self.sharing.consumers[tensor] == [node]

    def _by_rows(self, node: Node, i: int, dy: Views) -> None:
        """Rows of a gradient, and the update with them, one part after the other."""
        tensor = node.inputs[i]
        extent, rest = tensor.spec.shape[0] or 0, tensor.spec.shape[1:]
        count = max(extent * self.graph.thresholds.gradient_rows // tensor.spec.nbytes, 1)
        for start in range(0, extent, count):
            rows = slice(start, min(start + count, extent))
            part = fresh(f"d {tensor.name} rows", "gradient", Spec((rows.stop - rows.start, *rest), tensor.dtype))
            dx: Views = [None] * len(node.inputs)
            dx[i] = part
            step = self.make(node, dy, dx)
            step.rows = rows
            self.steps.run(step)
            ready = (tensor,) if rows.stop == extent else ()
            self.steps.append(UpdateStep(node, part, tensor, rows, ready=ready))

    def _finish(self) -> None:
        """Notes after which step the gradient of each variable is complete, and lays out the updates."""
        of_variables = self.gradients.of_variables
        complete: dict[Tensor, int] = {}
        for index, step in enumerate(self.steps):
            for view in step.gradients():
                if view is not None and view.buffer in of_variables:
                    complete[of_variables[view.buffer]] = index
            complete.update(dict.fromkeys(step.ready, index))  # updated by rows already
        self.order = sorted(complete, key=complete.__getitem__)
        if self.updates is None:
            for tensor in self.order:
                self.steps[complete[tensor]].ready += (tensor,)
            return
        last_read = {view.buffer: index for index, step in enumerate(self.steps) for view in step.reads()}
        by_rows = {tensor for step in self.steps for tensor in step.ready}
        following: dict[int, list[Step]] = {}
        for tensor, index in complete.items():
            if tensor not in by_rows:
                step = UpdateStep(self.steps[index].node, self.gradients[tensor], tensor, ready=(tensor,))
                following.setdefault(max(index, last_read.get(tensor, 0)), []).append(step)
        self.steps[:] = [each for index, step in enumerate(self.steps) for each in (step, *following.get(index, ()))]
