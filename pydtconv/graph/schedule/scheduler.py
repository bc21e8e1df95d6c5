"""The steps of a plan: every pass of every node in the order in which it runs, bound to views.

Forward steps run in the order of the trace, backward steps (backward.py) in the reverse of it; what forward does not
keep is computed again before the first step that reads it (rematerialization.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.memory.sharing import Sharing, parts_of
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.graph.schedule.backward import Backward
from pydtconv.graph.schedule.halos import overlap
from pydtconv.graph.schedule.rematerialization import Rematerialization, cheap_tensors
from pydtconv.graph.schedule.steps import BackwardStep, ForwardStep, RecomputeStep, Steps, Updates
from pydtconv.kernels.base import BackwardReductions, Prologue
from pydtconv.ops.base import Retained, Spec
from pydtconv.ops.moments import moments_spec
from pydtconv.ops.normalization import BatchNorm


class Scheduler:
    """Lays out the steps of a graph.  After `run`: steps, storages, gradient_order."""

    def __init__(
        self,
        graph: Graph,
        recompute: Collection[Tensor] | None = None,
        updates: Updates | None = None,
        overlaps: bool = True,
    ) -> None:
        """recompute: tensors that backward recomputes if it can, None for those that are cheap to.

        updates: given where steps of the optimizer are wanted; gradients of variables are then transient.
        overlaps: whether exchanges between processes go on while convolutions run.
        """
        self.graph = graph
        self.updates = updates
        self.overlaps = overlaps and graph.partition is not None and graph.partition.overlaps
        self.required = RequiredGradients(graph)
        self.sums: dict[Node, View] = {}
        self.elided = graph.elided
        self.retained = {node: self._retained(node) for node in self.required.nodes}
        self.readers = Counter(
            self.elided.get(tensor, tensor)
            for node, retained in self.retained.items()
            for tensor in {*(node.inputs[i] for i in retained.x), *(node.outputs[i] for i in retained.y)}
        )
        if recompute is None:
            recompute = cheap_tensors(graph, self.readers)
        self.rematerialization = Rematerialization(graph, recompute, self.readers)
        self.sharing = Sharing(graph, self.rematerialization.kept, self.elided)
        self.steps = Steps()
        self.storages: dict[Storage, None] = {}
        self.saved: dict[Node, dict[str, View]] = {}
        self.gradient_order: list[Tensor] = []
        self.gradient_views: dict[str, View] = {}
        self.backward_start = 0

    def run(self) -> None:
        for node in self.graph.nodes:
            self._forward(node)
        if self.overlaps:
            overlap(self.steps)
        if self.graph.loss is not None:
            self.backward_start = len(self.steps)
            backward = Backward(self.graph, self.required, self.sharing, self.steps, self.updates, self._backward)
            backward.run()
            if self.overlaps:
                overlap(self.steps, self.backward_start)
            self.gradient_order = backward.order
            self.gradient_views = {name: backward.gradients[t] for name, t in self.graph.gradients.items()}
        self.note_life_times()

    def _retained(self, node: Node) -> Retained:
        if node.op.is_view or joins_channels(node):
            return Retained()
        return node.op.retains(self.required.of_inputs(node))

    def note_life_times(self) -> None:
        """Notes when each storage lives, from the steps as they are."""
        self.storages.clear()
        for index, step in enumerate(self.steps):
            for view in step.views():
                if isinstance(view.buffer, Storage):
                    if view.buffer not in self.storages:
                        view.buffer.lives.clear()
                        self.storages[view.buffer] = None
                    view.buffer.touch(index)
            for view in step.releases():
                view.buffer.release()
        end = len(self.steps)
        for tensor in [*self.graph.inputs.values(), *self.graph.outputs.values()]:
            storage = self.sharing.view(tensor).buffer
            if isinstance(storage, Storage):
                self.storages[storage] = None
                storage.touch(0 if tensor.node is None else end)
                if tensor in self.graph.outputs.values():
                    storage.touch(end)
        for view in self.gradient_views.values():
            if isinstance(view.buffer, Storage):
                view.buffer.touch(end)

    # -- passes ----------------------------------------------------------------------------------------------------

    def _forward(self, node: Node) -> None:
        if node.op.is_view:
            return
        if joins_channels(node):
            self._forward_concatenation(node)
            return
        x = tuple(self.sharing.view(self.elided.get(tensor, tensor)) for tensor in node.inputs)
        y = tuple(None if tensor in self.elided else self.sharing.view(tensor) for tensor in node.outputs)
        late = self.rematerialization.late_saves(node)
        self.saved[node] = {key: _saved(node, key, spec) for key, spec in self._saves(node).items() if key not in late}
        saved = dict(self.saved[node])
        self.steps.run(ForwardStep(node, x=x, y=y, saved=saved, prologue=self._prologue(node)))

    def _forward_concatenation(self, node: Node) -> None:
        """Copies the inputs that do not lie in the output already."""
        parts = parts_of(node, self.sharing.view(node.outputs[0]))
        for tensor, part in zip(node.inputs, parts, strict=True):
            view = self.sharing.view(tensor)
            if not view.same_place(part):
                self.steps.copy_view(node, view, part)

    def _backward(
        self, node: Node, dy: list[View | None], dx: list[View | None], accumulate: tuple[bool, ...] = ()
    ) -> BackwardStep:
        """A step of backward with all that it reads."""
        retained = self.retained[node]
        inputs = [self.elided.get(tensor, tensor) for tensor in node.inputs]
        x = tuple(self._kept(t) if i in retained.x else None for i, t in enumerate(inputs))
        y = tuple(self._kept(t) if i in retained.y else None for i, t in enumerate(node.outputs))
        self.rematerialization.bring_saves_back(node, self)
        saved = dict(self.saved[node])
        within = [each for each in self.graph.kept.get(node, ()) if each.within_backward]
        if within and dx[0] is not None and dx[1] is not None:
            saved |= {each.name: fresh(f"{node.name}.{each.name}", "workspace", each.spec) for each in within}
        step = BackwardStep(node, x=x, y=y, dy=tuple(dy), dx=tuple(dx), accumulate=accumulate, saved=saved)
        step.prologue = self._prologue(node) if 0 in retained.x else None
        step.reductions = self._reductions(node) if dx[0] is not None else None
        step.sums = self.sums.get(node)
        return step

    def _prologue(self, node: Node) -> Prologue | None:
        """How a node normalizes its input as it reads it; None where that lies in memory."""
        source = node.inputs[0].node if node.inputs and node.inputs[0] in self.elided else None
        return None if source is None else self._normalization(source)

    def _reductions(self, node: Node) -> BackwardReductions | None:
        """What a node reduces the gradient of its input to, for the batch normalization before it."""
        source = self.graph.fused_reductions.get(node)
        if source is None:
            return None
        x = source.inputs[0]
        self.sums[source] = fresh(f"{source.name}.sums", "saved", moments_spec(x.spec))
        bypass = node in self.graph.bypassed
        return BackwardReductions(self._kept(x), self._normalization(source), self.sums[source], bypass)

    def _normalization(self, source: Node) -> Prologue:
        assert isinstance(source.op, BatchNorm)
        saved, beta = self.saved[source], source.op.beta_of(source.inputs)
        where = None if beta is None else self.sharing.view(beta)
        return Prologue(saved["mean"], saved["scale"], where, source.op.activation)

    def _saves(self, node: Node) -> dict[str, Spec]:
        saves = dict(node.op.saves(*(tensor.spec for tensor in node.inputs), training=self.graph.training))
        kept = self.graph.kept.get(node, ())
        return saves | {each.name: each.spec for each in kept if not each.within_backward}

    # -- recomputation ---------------------------------------------------------------------------------------------

    def _kept(self, tensor: Tensor) -> View:
        """Where backward finds a tensor of forward."""
        return self.rematerialization.view(tensor, self)

    def transient(self, tensor: Tensor) -> View:
        """Memory for a tensor that is computed again."""
        return fresh(f"{tensor.name} again", "recomputed", tensor.spec)

    def recompute(self, node: Node, x: tuple[View | None, ...], y: View) -> None:
        """Lays out the step that computes the output of a node again."""
        late, saves = self.rematerialization.late_saves(node), self._saves(node)
        self.saved[node].update({key: _saved(node, key, saves[key]) for key in late if key in saves})
        prologue = self._prologue(node)
        self.steps.run(RecomputeStep(node, x=x, y=(y,), saved=dict(self.saved[node]), prologue=prologue))

    def copy(self, node: Node, x: View, y: View) -> None:
        self.steps.copy_view(node, x, y)


def _saved(node: Node, key: str, spec: Spec) -> View:
    return fresh(f"{node.name}.{key}", "saved", spec)
