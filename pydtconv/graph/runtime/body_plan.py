"""The plan of a loop's body: its steps forward and backward, and where all lies that they read and write.

What lives from forward to backward lies together in one piece of memory.  The loop copies the piece away after each
step forward, and back before the step backward: so passes are bound once, and their number does not depend on that of
steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from pydtconv import dtypes
from pydtconv.devices import get as get_device
from pydtconv.dtypes import FLOATING
from pydtconv.graph.compiler import build_plan
from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.graph.memory.buffer_assignment import assign_offsets
from pydtconv.graph.memory.storage import Storage, View, fresh
from pydtconv.graph.schedule.steps import AddStep, BackwardStep, LossGradient, Step
from pydtconv.kernels.base import Call, RunState
from pydtconv.ops.body_loop import VectorProduct

#: by buffer, the first and the last step that uses it
Spans = dict[Any, tuple[int, int]]


class Region:
    """Memory of some buffers.  offsets: bytes from its start."""

    def __init__(self, spans: Mapping[Any, tuple[int, int]]) -> None:
        places = {
            buffer: Storage(buffer.name, buffer.kind, buffer.nbytes, [span], alignment=buffer.alignment)
            for buffer, span in spans.items()
        }
        self.nbytes = assign_offsets(list(places.values()))
        self.offsets = {buffer: place.offset for buffer, place in places.items()}


class BodyPlan:
    """The plan of a body for given gradients.

    forward, backward: steps.  kept: memory of what backward reads of forward.  forward_memory, backward_memory: of what
    else they use.  xs, states, shared: where the inputs lie; next_states, results: the outputs; seeds: by the number of
    an output, where its gradient comes in; gradients: by the number of an input, where its gradient goes.
    direct: of those, inputs to whose gradient the steps add where it lies outside.
    read_by_backward: the numbers of inputs that backward reads, as the loop has them.
    """

    def __init__(self, body: Any, needs: tuple[bool, ...], training: bool) -> None:
        graph = body.copy(training)
        states, inputs = len(body.states), list(graph.inputs.values())
        first = len(body.sequences)
        zeros = len(inputs) - len(needs) if needs else 0  # states that are no inputs of the loop
        given = first + states - zeros
        wanted = [*needs[:given], *[False] * zeros, *needs[given:]]
        seeds = _differentiated(graph, wanted, range(first, first + states)) if any(needs) else {}
        plan = build_plan(graph)
        self.graph, self.training = graph, training
        start = plan.backward_start if graph.loss is not None else len(plan.steps)
        self.forward = [step for step in plan.steps[:start] if not isinstance(step.node.op, VectorProduct)]
        self.backward = plan.steps[start:]
        places = [plan.views[tensor] for tensor in graph.inputs.values()]
        self.xs, self.states, self.shared = (
            places[:first], places[first : first + states], places[first + states : len(inputs)],
        )  # fmt: skip
        outputs = [plan.views[tensor] for tensor in graph.outputs.values()]
        self.next_states, self.results = outputs[:states], outputs[states:]
        self.seeds = {number: plan.views[graph.inputs[name]] for number, name in seeds.items()}
        self.gradients = {int(name): view for name, view in plan.gradient_views.items()}
        self.direct = {
            self.gradients[i].buffer: i
            for i in self.gradients
            if i >= first + states and _adds_alone(self.gradients[i], self.backward, self.gradients.values())
        }
        self._lay_out()
        in_backward = _spans(self.backward)
        self.read_by_backward = {
            i - zeros * (i >= first + states)
            for i, view in enumerate(places[: len(inputs)])
            if view.buffer in in_backward and not first <= i < first + states
        }

    def _lay_out(self) -> None:
        forward, backward = _spans(self.forward), _spans(self.backward)
        outside = {view.buffer for view in self.shared}
        once_more = {view.buffer for view in (*self.xs, *self.seeds.values())}
        states = {view.buffer for view in self.states}
        kept = [b for b in backward if b not in outside | once_more and (b in forward or b in states)]
        self.kept = Region(dict.fromkeys(kept, (0, 0)))
        #: states that are another one before the step
        self.stashed = {
            i: fresh("stash", "workspace", view.spec)
            for i, view in enumerate(self.next_states)
            if view.buffer in states and view.buffer is not self.states[i].buffer
        }
        end = len(self.forward)
        spans = {b: span for b, span in forward.items() if b not in outside}
        spans |= {v.buffer: (0, spans.get(v.buffer, (0, 0))[1]) for v in self.xs}
        spans |= {v.buffer: (spans.get(v.buffer, (end, end))[0], end) for v in self.next_states + self.results}
        spans |= {v.buffer: (0, end) for v in self.states}
        spans |= {v.buffer: (end, end) for v in self.stashed.values()}
        self.forward_memory = self._region(spans, outside.union(kept))
        end = len(self.backward)
        spans = {b: span for b, span in backward.items() if b not in outside}
        spans |= {v.buffer: (0, spans[v.buffer][1]) for v in self.xs if v.buffer in spans}
        spans |= {v.buffer: (spans.get(v.buffer, (0, 0))[0], end) for v in self.gradients.values()}
        spans |= {v.buffer: (0, end) for v in self.seeds.values()}
        self.backward_memory = self._region(spans, outside.union(kept, self.direct))

    def _region(self, spans: Spans, without: Collection[Any]) -> Region:
        return Region({b: span for b, span in spans.items() if isinstance(b, Storage) and b not in without})

    @property
    def kept_bytes(self) -> int:
        """Bytes that a step forward leaves for its step backward."""
        return self.kept.nbytes

    @property
    def state_bytes(self) -> int:
        """Bytes of the states before a step."""
        return sum(-(-view.spec.nbytes // 64) * 64 for view in self.states)

    def workspace(self, direction: str, again: int) -> int:
        """Bytes that a pass of the loop needs.  again: steps that backward runs forward at a time."""
        if direction == "forward":
            return self.kept_bytes + self.forward_memory.nbytes
        more = self.forward_memory.nbytes + again * self.kept_bytes if again else 0
        return self.kept_bytes + self.backward_memory.nbytes + more


def _differentiated(graph: Graph, wanted: list[bool], states: range) -> dict[int, str]:
    """Gives a body's graph its gradients; returns, by the number of an output, the input that is its gradient."""
    inputs, seeds, pairs = list(graph.inputs.values()), {}, []
    for number, output in enumerate(list(graph.outputs.values())):
        if output.dtype in FLOATING:
            seeds[number] = f"d{number}"
            pairs += [output, graph.input(seeds[number], output.spec)]
    if not pairs:
        return {}
    loss = graph.add(VectorProduct(), pairs)
    graph.loss = loss  # type: ignore[assignment]
    numbers = [i for i, x in enumerate(inputs) if x.dtype in FLOATING and (wanted[i] or i in states)]
    graph.sources = tuple(inputs[i] for i in numbers)
    required = RequiredGradients(graph)
    graph.gradients = {str(i): inputs[i] for i in numbers if inputs[i] in required}
    if not graph.gradients:
        graph.loss = graph.sources = None
        graph.nodes.pop()
        return {}
    return seeds


def _spans(steps: Iterable[Step]) -> Spans:
    found: Spans = {}
    for at, step in enumerate(steps):
        for view in step.views():
            if isinstance(view.buffer, Storage):
                found[view.buffer] = found.get(view.buffer, (at, at))[0], at
    return found


def _adds_alone(gradient: View, steps: Iterable[Step], every: Iterable[View]) -> bool:
    """Whether all that steps do with a gradient is to add to it; the first one is made to add, too."""
    buffer, firsts = gradient.buffer, []
    alone = sum(view.buffer is buffer for view in every) == 1
    if not alone or gradient.offset or gradient.is_slice or buffer.nbytes != gradient.spec.nbytes:
        return False
    for step in steps:
        uses = [view for view in step.views() if view.buffer is buffer]
        if not uses or (isinstance(step, AddStep) and step.source.buffer is not buffer):
            continue
        if not isinstance(step, BackwardStep) or len(uses) > 1:
            return False
        places = [i for i, view in enumerate(step.dx) if view is not None and view.buffer is buffer]
        if not places or places[0] not in step.node.op.accumulates:
            return False
        firsts.append((step, places[0]))
    for step, place in firsts:
        flags = list(step.accumulate or [False] * len(step.dx))
        flags[place] = True
        step.accumulate = tuple(flags)
    return True


class Places:
    """What the steps of a body are bound to.

    memory: pieces of the workspace, with their regions.  arrays: of buffers that lie elsewhere.
    stream: of the loop, from which those of its nodes follow.
    """

    launcher = None

    def __init__(
        self,
        plan: BodyPlan,
        memory: Iterable[tuple[Region, np.ndarray]],
        arrays: Mapping[Any, np.ndarray],
        stream: int,
    ) -> None:
        self.training = plan.training
        self.state = RunState()
        self.device = get_device("cpu")
        self.waits: dict[Step, Call] = {}
        self._memory = list(memory)
        self._arrays = arrays
        in_order = sorted(plan.graph.nodes, key=lambda node: not node.op.draws)
        self._streams = {node: ((stream + 1) << 12) + i for i, node in enumerate(in_order)}

    def stream(self, node: Node) -> int:
        """A number of its own for every node."""
        return self._streams[node]

    def array(self, view: View) -> np.ndarray:
        """The array of a view."""
        buffer, shape, dtype = view.buffer, view.spec.shape, dtypes.in_memory(view.spec.dtype)
        if buffer in self._arrays:
            return np.ndarray(shape, dtype, self._arrays[buffer], view.offset, view.strides)  # type: ignore[arg-type]
        for region, memory in self._memory:
            if buffer in region.offsets:
                return np.ndarray(shape, dtype, memory, region.offsets[buffer] + view.offset, view.strides)  # type: ignore[arg-type]
        if isinstance(buffer, LossGradient):
            return np.ones((), dtype)
        assert buffer.constant is not None
        return buffer.constant.reshape(shape)
