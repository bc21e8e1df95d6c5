"""From a stage of a recording to graphs that can be planned: one for the stage, one for each further derivative.

The first derivative that stays within the stage is computed with it.  Each other one runs its operators once more, with
the same random numbers and without changing moving averages.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import BFLOAT16, from_bits
from pydtconv.engine import Bound, Workspace, limits
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.runtime.kept import key_of, variables_of
from pydtconv.loops.actions import Values, read
from pydtconv.loops.derivatives import Derivative, reached, within
from pydtconv.ops.base import Op
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.table_op import RULES, Rule, TableOp

RULES["watched"] = Rule(lambda x: x.copy(), lambda b: (b.dy[0],), dtype="first", reads_x=False)
#: between what is differentiated by and what reads it, so that no pass joins them
_WATCHED = TableOp("watched")
_STOPPED = TableOp("stop_gradient")


@dataclass
class Part:
    """A graph of a stage.  inputs, outputs: the recording's tensors by their names in the graph.

    trained: of the variables that the derivative is by, the gradients, in the store's order of the graph.
    """

    graph: Graph
    again: bool
    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    trained: dict[Tensor, Tensor] = field(default_factory=dict)

    def bind(self, workspace: Workspace, optimizer: Any = None) -> Bound:
        """Its plan in a workspace.  optimizer: that which takes the gradients of all its sources, as they come."""
        variables = [tensor.variable for tensor in self.trained if tensor.variable is not None]
        if workspace.prepare is not None:
            workspace.prepare(self.graph)
        return workspace.bind(self.graph, workspace.memory_of(variables), optimizer, variables)

    def run(self, bound: Bound, values: Values, workspace: Workspace, step: int) -> Mapping[str, np.ndarray]:
        """The results by name: views that are valid until the arena is used again; of bfloat16 the numbers.

        bound: of this part, or of another one with the same key.
        """
        found = workspace.run(bound, {name: read(x, values) for name, x in self.inputs.items()}, step)
        if not self._bits:
            return found
        return {name: from_bits(array) if name in self._bits else array for name, array in found.items()}

    @functools.cached_property
    def _bits(self) -> set[str]:
        return {name for name, tensor in self.outputs.items() if tensor.dtype == BFLOAT16}


class _Copy:
    """Copies nodes of a recording into a graph."""

    def __init__(self, recording: Any, nodes: Sequence[Node], training: bool, derivative: Derivative | None) -> None:
        self.recording = recording
        self.graph = Graph(training=training, device=recording.workspace.host.device.name)
        self.part = Part(self.graph, again=False)
        self.derivative = derivative
        self.copies: dict[Tensor, Tensor] = {}
        self.behind: dict[Tensor, Tensor] = {}  # what nodes of the derivative read instead
        self.read: dict[Tensor, Tensor] = {}  # sources as these nodes read them
        self.nodes = nodes

    def of(self, tensor: Tensor) -> Tensor:
        """The copy of a tensor; an input where no node of the copy gives it."""
        found = self.copies.get(tensor)
        if found is None:
            if tensor.variable is not None:
                found = self.graph.parameter(tensor.variable)
            elif tensor.constant is not None:
                found = Tensor(self.graph, tensor.spec, tensor.name)
                found.constant = tensor.constant
            else:
                name = f"x{len(self.part.inputs)}"
                found = self.graph.input(name, tensor.spec)
                self.part.inputs[name] = tensor
            self.copies[tensor] = found
        return found

    def run(self, first: int) -> None:
        """first: the place from which nodes run for the first time."""
        recording, derivative = self.recording, self.derivative
        sources: set[Tensor] = set()
        stopped: set[Tensor] = set()
        if derivative is not None:
            sources = set(derivative.given)
            inside = reached(recording.nodes, list(sources), derivative.spans)
            stopped = reached(recording.nodes, list(sources), None) - inside
        for node in self.nodes:
            place = recording.place(node)
            differentiated = derivative is not None and within(place, derivative.spans)
            read = [recording.former.as_read(x, recording.stage_of_place(place)) for x in node.inputs]
            for x, then in zip(node.inputs, read, strict=True):
                if x in sources and differentiated:
                    self.read[x] = then
                    sources.add(then)
            inputs = [self._read(x, sources, stopped) if differentiated else self.of(x) for x in read]
            op = _without_effects(node.op) if place < first else node.op
            copy = Node(self.graph, op, tuple(inputs), node.scope)
            copy.stream = node.stream
            self.graph.nodes.append(copy)
            self.copies.update(zip(node.outputs, copy.outputs, strict=True))

    def _read(self, tensor: Tensor, sources: set[Tensor], stopped: set[Tensor]) -> Tensor:
        barrier = _WATCHED if tensor in sources and tensor.variable is None else _STOPPED if tensor in stopped else None
        if barrier is None:
            return self.of(tensor)
        if tensor not in self.behind:
            node = Node(self.graph, barrier, (self.of(tensor),), "")
            self.graph.nodes.append(node)
            self.behind[tensor] = node.outputs[0]
        return self.behind[tensor]

    def differentiate(self, wanted: set[Tensor]) -> None:
        """Gives the graph its loss, its sources, and the gradients among its results."""
        derivative, graph = self.derivative, self.graph
        assert derivative is not None
        with graph:
            parts = [self.behind.get(end) if end in derivative.given else self.copies[end] for end in derivative.ends]
            sums = [part if part is None or part.shape == () else ops.sum(part) for part in parts]
            sums = [part for part in sums if part is not None]
            graph.loss = sums[0] if len(sums) == 1 else ops.WeightedSum()(*sums)
            if self.recording.workspace.sharing is not None:  # gradients are to be summed over processes
                graph.loss = ops.Portion("samples")(graph.loss)
        read = {source: self.read.get(source, source) for source in derivative.given}
        by = {source: self.behind.get(then, self.of(then)) for source, then in read.items()}
        graph.sources = tuple(by.values())
        for source, given in derivative.given.items():
            if by[source].variable is not None:
                self.part.trained[by[source]] = given
            if given in wanted:
                name = f"g{len(graph.gradients)}"
                graph.gradients[name] = by[source]
                self.part.outputs[name] = given


def _without_effects(op: Op) -> Op:
    """The op, which leaves moving averages as they are."""
    if isinstance(op, BatchNorm) and op.updates:
        return dataclasses.replace(op, momentum=1.0)
    if op.updates:
        raise NotImplementedError(f"gradient: {op.name} cannot run twice in a step")
    return op


def parts_of(recording: Any, stage: int, wanted: Sequence[Tensor]) -> list[Part]:
    """The graphs of a stage, in the order in which they run; wanted: results of the stage, gradients among them."""
    derivatives = recording.derivatives[stage]
    first = next((each for each in derivatives if not each.again), None)
    # where a tape may still ask for gradients, random numbers are those that its pass backward draws again
    training = any(recording.derivatives) or any(not tape.is_spent for tape in recording.tapes)
    gradients = {given for each in derivatives for given in each.given.values()}
    results = [tensor for tensor in wanted if tensor not in gradients and tensor.node is not None]
    results += _effects(recording, stage, [*results, *(first.ends if first else ())])
    parts = []
    if results or first is not None:
        parts.append(_part(recording, stage, stage, results, first, set(wanted), training, again=False))
    for each in derivatives:
        if each is not first:
            parts.append(_part(recording, each.first, stage, [], each, set(wanted), training, again=True))
    return parts


def _effects(recording: Any, stage: int, ends: Sequence[Tensor]) -> list[Tensor]:
    """Results of the stage's nodes that change variables, such as moving averages, where nothing else reads them."""
    stop = recording.starts[stage + 1] if stage + 1 < len(recording.starts) else len(recording.nodes)
    alive, found = set(ends), []
    for node in reversed(recording.nodes[recording.starts[stage] : stop]):
        if node.op.updates and alive.isdisjoint(node.outputs):
            found.append(node.outputs[0])
            alive.add(node.outputs[0])
        if not alive.isdisjoint(node.outputs):
            alive.update(node.inputs)
    return found


def _part(
    recording: Any,
    start: int,
    stage: int,
    results: Sequence[Tensor],
    derivative: Derivative | None,
    wanted: set[Tensor],
    training: bool,
    again: bool,
) -> Part:
    stop = recording.starts[stage + 1] if stage + 1 < len(recording.starts) else len(recording.nodes)
    begin = recording.starts[max(start, 0)]
    alive = {*results, *(derivative.ends if derivative else ())}
    kept: list[Node] = []
    for node in reversed(recording.nodes[begin:stop]):
        if not alive.isdisjoint(node.outputs):
            alive.update(node.inputs)
            kept.append(node)
    gone = set() if recording.traced or not begin else {x for x in alive if recording.is_gone(x, begin)}
    for node in reversed(recording.nodes[:begin] if gone else ()):  # what nobody has kept is found once more
        if not gone.isdisjoint(node.outputs):
            gone.update(x for x in node.inputs if recording.is_gone(x, begin))
            kept.append(node)
    copy = _Copy(recording, kept[::-1], training, derivative)
    copy.run(stop if again else recording.starts[stage])
    copy.part.again = again
    for tensor in results:
        name = f"y{len(copy.graph.outputs)}"
        copy.graph.outputs[name] = copy.of(tensor)
        copy.part.outputs[name] = tensor
    if derivative is not None:
        copy.differentiate(wanted)
    return copy.part


def run_stage(recording: Any, stage: int, wanted: list[Tensor], used: list[Tensor]) -> None:
    """Runs a stage of a recording and its actions; the values of what is wanted go to the recording."""
    workspace, values = recording.workspace, recording.values
    with workspace.lock:
        for part in parts_of(recording, stage, list(dict.fromkeys([*wanted, *used]))):
            bound = _bound(part, workspace)
            recording.carried.update(part.inputs.values())
            found = part.run(bound, values, workspace, recording.seed)
            for name, tensor in part.outputs.items():
                values[tensor] = found[name].copy()
        recording.keep_former(each for action in recording.actions[stage] for each in action.changes())
        for action in recording.actions[stage]:
            action.run(values, workspace)


def _bound(part: Part, workspace: Workspace) -> Bound:
    """The plan of a part, or that of an earlier one which is like it."""
    key = key_of(part.graph), limits.current()
    known = workspace.parts.get(key)
    if known is None:
        known = workspace.parts.put(key, (part.bind(workspace), part), variables_of(part.graph))
    return known[0]
