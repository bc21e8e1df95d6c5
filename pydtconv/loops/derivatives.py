"""Derivatives of a recording: which sources a result depends on, and through which nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydtconv.dtypes import FLOATING
from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.ir.variable import Variable

#: nodes from the first to before the second
Spans = Sequence[tuple[int, int]]


@dataclass(eq=False)
class Derivative:
    """Gradients of the sum of all elements of `ends`, through the nodes of `spans`.

    given: for each source the tensor that is its gradient.  first: the first stage on the way.
    """

    stage: int
    ends: list[Tensor]
    given: dict[Tensor, Tensor]
    first: int
    spans: tuple[tuple[int, int], ...]

    @property
    def again(self) -> bool:
        """Whether operators of an earlier stage must run once more."""
        return self.first < self.stage


@dataclass
class Connected:
    """The sources that ends depend on, these ends, the first stage on the way, and the variables read from there on.

    places: of the nodes on the way.
    variables: each with the place of a node that reads it, for each of these nodes.
    """

    sources: list[Tensor]
    ends: list[Tensor]
    first: int
    places: set[int]
    variables: list[tuple[Variable, int]]


def within(place: int, spans: Spans) -> bool:
    """Whether a node of this place is in the spans."""
    return any(start <= place < stop for start, stop in spans)


def differentiable_inputs(node: Node) -> list[Tensor]:
    """The inputs by which a node can be differentiated."""
    excluded = (*node.op.updates, *node.op.nondifferentiable)
    return [x for i, x in enumerate(node.inputs) if i not in excluded and x.dtype in FLOATING]


def reached(nodes: Sequence[Node], sources: Sequence[Tensor], spans: Spans | None) -> set[Tensor]:
    """What depends on sources, through the nodes of spans alone; None: through all."""
    found = set(sources)
    for place, node in enumerate(nodes):
        if (spans is None or within(place, spans)) and not found.isdisjoint(differentiable_inputs(node)):
            found.update(tensor for tensor in node.outputs if tensor.dtype in FLOATING)
    return found


def connected(recording: Any, ends: Sequence[Tensor], sources: Sequence[Tensor], spans: Spans) -> Connected:
    """Which of the ends depend on which of the sources.  Raises NotImplementedError where no gradient is on the way."""
    sources = [source for source in sources if source.dtype in FLOATING]
    down = reached(recording.nodes, sources, spans)
    up = {end for end in ends if isinstance(end, Tensor) and end in down}
    alive, places = set(up), set()
    for place in range(len(recording.nodes) - 1, -1, -1):
        node = recording.nodes[place]
        if not alive.isdisjoint(node.outputs) and within(place, spans):
            inputs = [x for x in differentiable_inputs(node) if x in down]
            if inputs:
                node.op.check_differentiable()
                alive.update(inputs)
                places.add(place)
    first = recording.stage_of_place(min(places)) if places else max(map(recording.stage_of, up), default=0)
    wanted = [source for source in dict.fromkeys(sources) if source in alive]
    kept = [end for end in ends if isinstance(end, Tensor) and end in up]
    read = _read_by(recording.nodes, recording.starts[max(first, 0)], kept)
    return Connected(wanted, kept, first, places, read)


def _read_by(nodes: Sequence[Node], start: int, ends: Sequence[Tensor]) -> list[tuple[Variable, int]]:
    """The variables that nodes read on the way to ends, whether or not they are differentiated."""
    alive, found = set(ends), []
    for place in range(len(nodes) - 1, start - 1, -1):
        node = nodes[place]
        if not alive.isdisjoint(node.outputs):
            alive.update(node.inputs)
            found += [(x.variable, place) for x in node.inputs if x.variable is not None]
    return found
