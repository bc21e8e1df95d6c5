"""What a pass of the table is, and the run of all of them in order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydtconv import config
from pydtconv.graph.ir.graph import Graph, Node


@dataclass(frozen=True)
class Condition:
    """When a pass runs: in words, and as a test of the graph."""

    words: str
    holds: Callable[[Graph], bool]


ALWAYS = Condition("always", lambda graph: True)
TRAINING = Condition("in training", lambda graph: graph.training)
ON_MESH = Condition(
    "on a mesh of several processes", lambda graph: graph.partition is not None and math.prod(graph.partition.shape) > 1
)
ON_NETWORK = Condition(
    "on a mesh, with a network that is known",
    lambda graph: ON_MESH.holds(graph) and graph.partition is not None and graph.partition.network is not None,
)
SPLIT = Condition("in training, where asked for", lambda graph: graph.training and graph.split is not None)
STRICT = Condition('in "strict" precision', lambda graph: config.conv_precision() == "strict")
FREE_TO_ROUND = Condition(
    'in training, not in "strict" precision', lambda graph: graph.training and not STRICT.holds(graph)
)
PREDICTION = Condition("in prediction", lambda graph: not graph.training and not graph.has_backward)
HAS_LOSS = Condition("with a loss", lambda graph: graph.has_backward)


@dataclass(frozen=True)
class GraphPass:
    """A row of the table of passes.

    run: changes the graph in place.  takes: what it takes for granted; leaves: what it leaves behind, a line each.
    after: names of the passes that must have come before it.  when: the graphs on which it runs.
    """

    name: str
    run: Callable[[Graph], None]
    takes: str
    leaves: str
    after: tuple[str, ...] = ()
    when: Condition = field(default=ALWAYS)


@dataclass(frozen=True)
class PassReport:
    """What a pass did: nodes before and after it, and how many of those after it are new or changed."""

    name: str
    before: int
    after: int
    changed: int

    def __str__(self) -> str:
        """As in `dead-nodes -3 *0`: by how many the nodes are more or fewer, and how many are new or changed."""
        return f"{self.name} {self.after - self.before:+d} *{self.changed}"


#: called after each pass with its place in the table, from 1 on, its name and the nodes that it has changed; before the
#: first with 0, "traced" and none
Watch = Callable[[int, str, Collection[Node]], None]


def check_table(table: Sequence[GraphPass]) -> None:
    """Raises ValueError where two passes have a name, or one comes before a pass that it needs."""
    seen: set[str] = set()
    for each in table:
        missing = [name for name in each.after if name not in seen]
        if missing:
            before = ", ".join(seen) or "none"
            raise ValueError(f"pass {each.name!r}: expected {', '.join(missing)} before it, got {before}")
        if each.name in seen:
            raise ValueError(f"pass {each.name!r}: expected a name of its own, got one of the table")
        seen.add(each.name)


def run_passes(
    graph: Graph, table: Sequence[GraphPass], start: str | None = None, watch: Watch | None = None
) -> list[PassReport]:
    """Runs the passes whose condition holds, from the one called `start` on; tells what each did.

    Raises ValueError for a table that `check_table` refuses.
    """
    check_table(table)
    names = [each.name for each in table]
    if start is not None and start not in names:
        raise ValueError(f"passes: expected one called {start!r}, got {', '.join(names)}")
    first = 0 if start is None else names.index(start)
    if watch is not None and first == 0:
        watch(0, "traced", ())
    reports = []
    state = _state(graph)
    for place, each in enumerate(table[first:], first + 1):
        if not each.when.holds(graph):
            continue
        each.run(graph)
        before, state = state, _state(graph)
        changed = _changed(before, state)
        reports.append(PassReport(each.name, len(before[0]), len(state[0]), len(changed)))
        if watch is not None:
            watch(place, each.name, changed)
    return reports


#: what passes can change: the nodes, their operators, inputs and outputs; then what is noted of them
_State = tuple[list[Node], list[Any], list[Any], list[Any], tuple[dict[Node, Any], ...]]


def _state(graph: Graph) -> _State:
    nodes = list(graph.nodes)
    ops, inputs = [node.op for node in nodes], [node.inputs for node in nodes]
    outputs = [node.outputs for node in nodes]
    elided = {tensor.node: source for tensor, source in graph.elided.items() if tensor.node is not None}
    notes = (elided, dict(graph.fused_reductions), dict(graph.bypassed), dict(graph.kept))
    return nodes, ops, inputs, outputs, notes


def _changed(before: _State, now: _State) -> set[Node]:
    """The nodes that are new, have another operator, input or output, or of which something else is noted."""
    found: set[Node] = set()
    lists = zip(before[:4], now[:4], strict=True)
    if len(before[0]) != len(now[0]) or not all(all(map(operator.is_, old, new)) for old, new in lists):
        known = {node: parts for node, *parts in zip(*before[:4], strict=True)}
        for node, *parts in zip(*now[:4], strict=True):
            if node not in known or not all(map(operator.is_, known[node], parts)):
                found.add(node)
    for noted, notes in zip(before[4], now[4], strict=True):
        found.update(node for node, value in notes.items() if noted.get(node) is not value)
        found.update(node for node in noted if node not in notes)
    return found
