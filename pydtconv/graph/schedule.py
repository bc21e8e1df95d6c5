"""The steps of a plan: every pass of every node in the order in which it runs, bound to views.

Forward steps run in the order of the trace, backward steps in the reverse of it.  While the backward steps are laid
out, gradients are placed: an operator that passes its dy on aliases it, one that works in place takes it over, the
gradient of a concatenation is read in slices, and later contributions to a gradient are added to the first.  Before
memory that another living gradient shares would be changed, it is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pydtconv.graph.graph import Graph, Node, Tensor
from pydtconv.graph.layout import Layout, joins_channels
from pydtconv.graph.recompute import Replays, cheap_marks
from pydtconv.graph.storage import Storage, View
from pydtconv.ops.base import Retained, Spec


@dataclass(eq=False)
class Step:
    """One call of the executor.

    direction: "forward", "backward" or "recompute" (a pass of the node), "copy" (y = x), "add" (y += x) or "update"
    (the optimizer's, of the variable y by its gradient x).
    rows: of backward, where it computes only these rows of the one gradient in dx; of update, those of the variable.
    transient_bytes: workspace that is allocated when the step runs, for operators whose workspace is not placed.
    ready: variables whose gradient is complete after this step, or with "update" before it.
    """

    direction: str
    node: Node
    x: tuple[View | None, ...] = ()
    y: tuple[View | None, ...] = ()
    dy: tuple[View | None, ...] = ()
    dx: tuple[View | None, ...] = ()
    accumulate: tuple[bool, ...] = ()
    saved: dict[str, View] = field(default_factory=dict)
    workspace: View | None = None
    transient_bytes: int = 0
    ready: tuple[Tensor, ...] = ()
    rows: slice | None = None

    def views(self) -> list[View]:
        every = [*self.x, *self.y, *self.dy, *self.dx, *self.saved.values(), self.workspace]
        return [view for view in every if view is not None]


@dataclass(frozen=True, eq=False)
class ParameterGradient:
    """Home of the gradient of a variable: its slice of the store's flat array."""

    tensor: Tensor


@dataclass(frozen=True)
class Updates:
    """What an optimizer can do while backward runs: update each variable, and parts of large ones.

    by_rows: whether it may be given the rows of a gradient one after the other.
    """

    by_rows: bool = True


#: bytes of the gradient of a variable that are computed and applied at a time
ROWS_BYTES = 8 << 20


class LossGradient:
    """Home of d loss / d loss = 1."""


def needs_gradient(graph: Graph) -> set[Tensor]:
    """Tensors on a path from a trainable variable to the loss."""
    down: set[Tensor] = {tensor for tensor in graph.parameters if tensor.variable and tensor.variable.trainable}
    for node in graph.nodes:
        if any(tensor in down for tensor in _differentiable(node)):
            down.update(tensor for tensor in node.outputs if tensor.dtype.startswith("float"))
    up: set[Tensor] = {graph.loss} if graph.loss is not None else set()
    for node in reversed(graph.nodes):
        if any(tensor in up for tensor in node.outputs):
            up.update(_differentiable(node))
    return down & up


def _differentiable(node: Node) -> list[Tensor]:
    excluded = {*node.op.updates, *node.op.nondifferentiable}
    return [tensor for i, tensor in enumerate(node.inputs) if i not in excluded]


class Scheduler:
    """Lays out the steps of a graph.  After `run`: steps, storages, gradient_order."""

    def __init__(self, graph: Graph, marks: Collection[Tensor] | None = None, updates: Updates | None = None) -> None:
        """marks: tensors that backward recomputes if it can, None for those that are cheap to.

        updates: given where "update" steps are wanted; gradients of variables are then transient.
        """
        self.graph = graph
        self.updates = updates
        self.needed = needs_gradient(graph)
        self.differentiated = [node for node in graph.nodes if self._runs_backward(node)]
        self.retained = {node: self._retained(node) for node in self.differentiated}
        self.readers = Counter(
            tensor
            for node, retained in self.retained.items()
            for tensor in {*(node.inputs[i] for i in retained.x), *(node.outputs[i] for i in retained.y)}
        )
        if marks is None:
            marks = cheap_marks(graph, self.readers)
        self.replays = Replays(graph, marks, self.readers)
        self.layout = Layout(graph, self.replays.kept)
        self.steps: list[Step] = []
        self.storages: dict[Storage, None] = {}
        self.saved: dict[Node, dict[str, View]] = {}
        self.gradients: dict[Tensor, View] = {}
        self.pending: dict[Tensor, View] = {}  # gradients that a backward step has still to read
        self.of_variables: dict[object, Tensor] = {}  # homes of the gradients of variables
        self.gradient_order: list[Tensor] = []
        self.backward_start = 0

    def run(self) -> None:
        for node in self.graph.nodes:
            self._forward(node)
        if self.graph.loss is not None:
            self._backward_all()
            self._finish_gradients()
        for index, step in enumerate(self.steps):
            for view in step.views():
                if isinstance(view.home, Storage):
                    view.home.touch(index)
                    self.storages[view.home] = None
        end = len(self.steps)
        for tensor in [*self.graph.inputs.values(), *self.graph.outputs.values()]:
            home = self.layout.view(tensor).home
            if isinstance(home, Storage):
                self.storages[home] = None
                home.touch(0 if tensor.node is None else end)
                if tensor in self.graph.outputs.values():
                    home.touch(end)

    # -- forward ---------------------------------------------------------------------------------------------------

    def _runs_backward(self, node: Node) -> bool:
        return any(tensor in self.needed for tensor in node.outputs) and any(
            tensor in self.needed for tensor in _differentiable(node)
        )

    def _needs(self, node: Node) -> tuple[bool, ...]:
        excluded = {*node.op.updates, *node.op.nondifferentiable}
        return tuple(i not in excluded and tensor in self.needed for i, tensor in enumerate(node.inputs))

    def _passes_dy(self, node: Node, i: int) -> bool:
        """Whether the gradient of input i is dy itself; not where the input is broadcast."""
        tensor = node.inputs[i]
        return i in node.op.passes_dy and tensor in self.needed and tensor.spec == node.outputs[0].spec

    def _retained(self, node: Node) -> Retained:
        if node.op.is_view or joins_channels(node):
            return Retained()
        return node.op.retains(self._needs(node))

    def _forward(self, node: Node) -> None:
        if node.op.is_view:
            return
        if joins_channels(node):
            self._forward_concatenation(node)
            return
        x = tuple(self.layout.view(tensor) for tensor in node.inputs)
        y = tuple(self.layout.view(tensor) for tensor in node.outputs)
        specs = [tensor.spec for tensor in node.inputs]
        saves = node.op.saves(*specs, training=self.graph.training)
        late = self.replays.late_saves(node)
        saved = {key: self._saved(node, key, spec) for key, spec in saves.items() if key not in late}
        self.saved[node] = saved
        self._append(self._with_workspace(Step("forward", node, x=x, y=y, saved=dict(saved))))

    def _forward_concatenation(self, node: Node) -> None:
        """Copies the inputs that do not lie in the output already."""
        parts = self.slices(node, self.layout.view(node.outputs[0]))
        for tensor, part in zip(node.inputs, parts, strict=True):
            view = self.layout.view(tensor)
            if not view.same_place(part):
                self._append(Step("copy", node, x=(view,), y=(part,)))

    def slices(self, node: Node, whole: View) -> list[View]:
        """The parts of a concatenation's output (or of its gradient) that belong to its inputs."""
        ld = whole.ld or whole.channels
        parts, channel = [], whole.channel
        for tensor in node.inputs:
            parts.append(View(whole.home, tensor.spec, channel, ld))
            channel += tensor.shape[-1] or 0
        return parts

    # -- backward --------------------------------------------------------------------------------------------------

    def _backward_all(self) -> None:
        loss = self.graph.loss
        assert loss is not None
        self.backward_start = len(self.steps)
        self.gradients[loss] = View(LossGradient(), loss.spec)
        for node in reversed(self.differentiated):
            if any(tensor in self.gradients for tensor in node.outputs):
                self._backward(node)

    def _finish_gradients(self) -> None:
        """Notes after which step the gradient of each variable is complete, and lays out the updates."""
        complete: dict[Tensor, int] = {}
        last_read: dict[object, int] = {}
        for index, step in enumerate(self.steps):
            for view in [*step.dx, *(step.y if step.direction in ("add", "copy") else ())]:
                if view is not None and view.home in self.of_variables:
                    complete[self.of_variables[view.home]] = index
            complete.update(dict.fromkeys(step.ready, index))  # updated by rows already
            last_read.update({view.home: index for view in step.x if view is not None})
        self.gradient_order = sorted(complete, key=complete.__getitem__)
        if self.updates is None:
            for tensor in self.gradient_order:
                self.steps[complete[tensor]].ready += (tensor,)
            return
        following: dict[int, list[Tensor]] = {}
        by_rows = {tensor for step in self.steps for tensor in step.ready}
        for tensor, index in complete.items():
            if tensor in by_rows:
                continue
            following.setdefault(max(index, last_read.get(tensor, 0)), []).append(tensor)
        steps = self.steps
        self.steps = []
        for index, step in enumerate(steps):
            self.steps.append(step)
            self.steps += [self._update(step.node, tensor) for tensor in following.get(index, ())]

    def _update(self, node: Node, tensor: Tensor) -> Step:
        return Step("update", node, x=(self.gradients[tensor],), y=(View(tensor, tensor.spec),), ready=(tensor,))

    def _backward(self, node: Node) -> None:
        if node.op.is_view or joins_channels(node):
            self._backward_alias(node)
            return
        dy = [self.gradients.get(tensor) for tensor in node.outputs]
        if node.op.overwrites_dy:
            for index, view in enumerate(dy):
                if view is not None and (self._shared(view, node.outputs) or not isinstance(view.home, Storage)):
                    dy[index] = self._copied(node, view, node.outputs[index])
        for tensor in node.outputs:
            self.pending.pop(tensor, None)
        needs = self._needs(node)
        dx: list[View | None] = [None] * len(node.inputs)
        accumulate = [False] * len(node.inputs)
        passed: list[int] = []
        by_rows: list[int] = []
        added: list[tuple[int, View]] = []
        for i, tensor in enumerate(node.inputs):
            if not needs[i]:
                continue
            if self._passes_dy(node, i):
                passed.append(i)
            elif self._goes_by_rows(node, i):
                by_rows.append(i)
            elif tensor not in self.gradients:
                self.gradients[tensor] = dx[i] = self._first_place(node, i, dy, dx)
            elif i in node.op.accumulates and tensor not in node.inputs[:i]:
                self._own(node, tensor, dy)
                dx[i], accumulate[i] = self.gradients[tensor], True
            else:
                part = self._new(f"d {tensor.name} part", "gradient", tensor.spec)
                dx[i] = part
                added.append((i, part))
        if any(view is not None for view in dx) or node.op.overwrites_dy:
            self._append(self._pass(node, dy, dx, tuple(accumulate)))
        for i in by_rows:
            self._backward_by_rows(node, i, dy)
        for i in passed:
            assert dy[0] is not None
            self._pass_on(node, node.inputs[i], dy[0], [dy[0]])
        for i, part in added:
            self._own(node, node.inputs[i], [part])
            self._append(Step("add", node, x=(part,), y=(self.gradients[node.inputs[i]],)))
        self._mark_pending(node)

    def _pass(
        self, node: Node, dy: list[View | None], dx: list[View | None], accumulate: tuple[bool, ...] = ()
    ) -> Step:
        """A step of backward with all that it reads."""
        retained = self.retained[node]
        x = tuple(self._kept(t) if i in retained.x else None for i, t in enumerate(node.inputs))
        y = tuple(self._kept(t) if i in retained.y else None for i, t in enumerate(node.outputs))
        if self.replays.late_saves(node):
            self._kept(node.outputs[0])
        step = Step("backward", node, x=x, y=y, dy=tuple(dy), dx=tuple(dx), accumulate=accumulate)
        step.saved = dict(self.saved[node])
        return self._with_workspace(step)

    def _goes_by_rows(self, node: Node, i: int) -> bool:
        """Whether the gradient of an input is so large that it is computed and applied some rows at a time."""
        tensor = node.inputs[i]
        large = i == node.op.splits and tensor.variable is not None and tensor.spec.nbytes >= 2 * ROWS_BYTES
        by_rows = self.updates is not None and self.updates.by_rows
        return large and by_rows and self.layout.consumers[tensor] == [node]

    def _backward_by_rows(self, node: Node, i: int, dy: list[View | None]) -> None:
        """Rows of a gradient, and the update with them, one part after the other."""
        tensor = node.inputs[i]
        extent, rest = tensor.spec.shape[0] or 0, tensor.spec.shape[1:]
        count = max(extent * ROWS_BYTES // tensor.spec.nbytes, 1)
        for start in range(0, extent, count):
            rows = slice(start, min(start + count, extent))
            spec = Spec((rows.stop - rows.start, *rest), tensor.dtype)
            part = self._new(f"d {tensor.name} rows", "gradient", spec)
            dx: list[View | None] = [None] * len(node.inputs)
            dx[i] = part
            step = self._pass(node, dy, dx)
            step.rows = rows
            self._append(step)
            ready = (tensor,) if rows.stop == extent else ()
            target = View(tensor, tensor.spec)
            self._append(Step("update", node, x=(part,), y=(target,), ready=ready, rows=rows))

    def _backward_alias(self, node: Node) -> None:
        """A view's gradient is its dy in another shape; a concatenation's are slices of its dy."""
        out = node.outputs[0]
        dy = self.gradients[out]
        self.pending.pop(out, None)
        if node.op.is_view:
            tensor = node.inputs[0]
            if dy.is_slice:
                dy = self._copied(node, dy, out)
            parts = [View(dy.home, tensor.spec)]
        else:
            parts = self.slices(node, dy)
        for tensor, part in zip(node.inputs, parts, strict=True):
            if tensor in self.needed:
                self._pass_on(node, tensor, part, parts)
        self._mark_pending(node)

    def _pass_on(self, node: Node, tensor: Tensor, part: View, reading: Sequence[View]) -> None:
        """Makes `part` of a dy a contribution to the gradient of `tensor`; `reading`: what may not change meanwhile."""
        if tensor in self.gradients:
            self._own(node, tensor, reading)
            self._append(Step("add", node, x=(part,), y=(self.gradients[tensor],)))
        elif tensor.variable is not None:
            self.gradients[tensor] = self._home_of_gradient(tensor)
            self._append(Step("copy", node, x=(part,), y=(self.gradients[tensor],)))
        else:
            self.gradients[tensor] = part
            self.pending[tensor] = part

    def _mark_pending(self, node: Node) -> None:
        for tensor in node.inputs:
            if tensor in self.gradients and tensor.node is not None:
                self.pending[tensor] = self.gradients[tensor]

    def _first_place(self, node: Node, i: int, dy: list[View | None], dx: list[View | None]) -> View:
        """Where the first contribution to an input's gradient goes: over dy where the op allows it, else new memory."""
        tensor = node.inputs[i]
        passes = any(self._passes_dy(node, j) for j in range(len(node.inputs)))
        alone = len(dy) == 1 and not passes and tensor.variable is None
        if alone and i in node.op.inplace_backward and dy[0] is not None:
            view = dy[0]
            taken = any(other is not None and other.overlaps(view) for other in dx)
            if (
                isinstance(view.home, Storage)
                and view.spec == tensor.spec
                and not taken
                and not self._shared(view, node.outputs)
            ):
                return view
        return self._home_of_gradient(tensor)

    def _home_of_gradient(self, tensor: Tensor) -> View:
        if tensor.variable is None or self.updates is not None:
            view = self._new(f"d {tensor.name}", "gradient", tensor.spec)
        else:
            view = View(ParameterGradient(tensor), tensor.spec)
        if tensor.variable is not None:
            self.of_variables[view.home] = tensor
        return view

    def _shared(self, view: View, excluding: tuple[Tensor, ...]) -> bool:
        """Whether a gradient that is still to be read, other than those of `excluding`, lies in the same memory."""
        return any(view.overlaps(other) for tensor, other in self.pending.items() if tensor not in excluding)

    def _own(self, node: Node, tensor: Tensor, reading: Sequence[View | None]) -> None:
        """Copies the gradient of a tensor if adding to it would change memory that somebody else reads."""
        view = self.gradients[tensor]
        if self._shared(view, (tensor,)) or any(other is not None and other.overlaps(view) for other in reading):
            self.gradients[tensor] = self._copied(node, view, tensor)

    def _copied(self, node: Node, view: View, tensor: Tensor) -> View:
        copy = self._new(f"d {tensor.name} copy", "gradient", tensor.spec)
        self._append(Step("copy", node, x=(view,), y=(copy,)))
        return copy

    # -- recomputation ---------------------------------------------------------------------------------------------

    def _kept(self, tensor: Tensor) -> View:
        """The place in which backward finds a tensor of forward."""
        return self.replays.view(tensor, self)

    def transient(self, tensor: Tensor) -> View:
        """Memory for a tensor that is computed again."""
        return self._new(f"{tensor.name} again", "recomputed", tensor.spec)

    def replay(self, node: Node, x: tuple[View | None, ...], y: View) -> None:
        """Lays out the step that computes the output of a node again."""
        specs = [tensor.spec for tensor in node.inputs]
        late = self.replays.late_saves(node)
        saves = node.op.saves(*specs, training=self.graph.training)
        self.saved[node].update({key: self._saved(node, key, saves[key]) for key in late if key in saves})
        step = Step("recompute", node, x=x, y=(y,), saved=dict(self.saved[node]))
        self._append(self._with_workspace(step))

    def copy(self, node: Node, x: View, y: View) -> None:
        self._append(Step("copy", node, x=(x,), y=(y,)))

    # -- memory ----------------------------------------------------------------------------------------------------

    def _saved(self, node: Node, key: str, spec: Spec) -> View:
        return self._new(f"{node.name}.{key}", "saved", spec)

    def _new(self, name: str, kind: str, spec: Spec) -> View:
        return View(Storage(name, kind, spec.nbytes), spec)

    def _with_workspace(self, step: Step) -> Step:
        """Places the workspace of a step, or notes its size where the operator wants it at call time."""
        node = step.node
        direction = "backward" if step.direction == "backward" else "forward"
        nbytes = node.op.workspace(direction, *(tensor.spec for tensor in node.inputs))
        if nbytes and not getattr(node.op, "persistent", True):
            step.transient_bytes = nbytes
        elif nbytes:
            step.workspace = self._new(f"{node.name}.{step.direction}", "workspace", Spec((nbytes,), "uint8"))
        return step

    def _append(self, step: Step) -> None:
        self.steps.append(step)
