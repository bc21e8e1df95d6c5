"""From a stage of a recording to graphs that can be planned: one for the stage, one for each further derivative.

The first derivative that stays within the stage is computed with it.  Each other one runs its operators once more, with
the same random numbers and without changing moving averages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydtconv import ops
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.loops.derivatives import Derivative, reached, within
from pydtconv.ops.base import Op
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.table import RULES, Rule, TableOp

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


class _Copy:
    """Copies nodes of a recording into a graph."""

    def __init__(self, recording: Any, nodes: Sequence[Node], training: bool, derivative: Derivative | None) -> None:
        self.recording = recording
        self.graph = Graph(training=training, device=recording.workspace.host.device.name)
        self.part = Part(self.graph, again=False)
        self.derivative = derivative
        self.copies: dict[Tensor, Tensor] = {}
        self.behind: dict[Tensor, Tensor] = {}  # what nodes of the derivative read instead
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

    def run(self, again: bool) -> None:
        recording, derivative = self.recording, self.derivative
        sources: set[Tensor] = set()
        stopped: set[Tensor] = set()
        if derivative is not None:
            sources = set(derivative.given)
            inside = reached(recording.nodes, list(sources), derivative.spans)
            stopped = reached(recording.nodes, list(sources), None) - inside
        for node in self.nodes:
            differentiated = derivative is not None and within(recording.place(node), derivative.spans)
            inputs = [self._read(x, sources, stopped) if differentiated else self.of(x) for x in node.inputs]
            op = _without_effects(node.op) if again else node.op
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
        by = {source: self.behind.get(source, self.of(source)) for source in derivative.given}
        graph.sources = tuple(by.values())
        for source, given in derivative.given.items():
            if source.variable is not None:
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
    training = any(recording.derivatives)
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
    nodes = recording.nodes[recording.starts[max(start, 0)] : stop]
    alive = {*results, *(derivative.ends if derivative else ())}
    kept: list[Node] = []
    for node in reversed(nodes):
        if not alive.isdisjoint(node.outputs):
            alive.update(node.inputs)
            kept.append(node)
    copy = _Copy(recording, kept[::-1], training, derivative)
    copy.run(again)
    copy.part.again = again
    for tensor in results:
        name = f"y{len(copy.graph.outputs)}"
        copy.graph.outputs[name] = copy.of(tensor)
        copy.part.outputs[name] = tensor
    if derivative is not None:
        copy.differentiate(wanted)
    return copy.part


def key_of(part: Part, extra: Hashable) -> Hashable:
    """What two graphs share that are the same but for the values of what they are fed."""
    numbers: dict[Tensor, int] = {}

    def number(tensor: Tensor) -> Hashable:
        if tensor.variable is not None:
            return "v", id(tensor.variable)
        if tensor.constant is not None:
            return "c", tensor.spec, tensor.constant.tobytes()
        return numbers.setdefault(tensor, len(numbers))

    graph = part.graph
    fed = tuple((name, tensor.spec, number(tensor)) for name, tensor in graph.inputs.items())
    nodes = tuple(
        (node.op, node.stream, tuple(map(number, node.inputs)), tuple(map(number, node.outputs)))
        for node in graph.nodes
    )
    ends = tuple((name, number(tensor)) for name, tensor in (*graph.outputs.items(), *graph.gradients.items()))
    loss = None if graph.loss is None else number(graph.loss)
    return fed, nodes, ends, loss, tuple(map(number, graph.sources or ())), graph.training, extra
