"""Two recurrences of opposite directions, such as those of Bidirectional -> one operator, each on half of the cores.

A thread that has few samples waits for the weights; half of the threads have twice as many.  Larger batches gain
nothing: their products run at the same speed, and what is computed of the inputs would leave the caches before it is
read.
"""

from __future__ import annotations

from pydtconv import config
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.ops.recurrence import BothDirections, Recurrence

#: samples of a thread
FEW = 8


def join_directions(graph: Graph) -> None:
    """Joins each recurrence with the next one of its cell and sizes that goes the other way, if that is independent."""
    threads = config.num_threads()
    for first in list(graph.nodes):
        if not isinstance(first.op, Recurrence) or threads == 1 or (first.inputs[0].shape[0] or 0) >= FEW * threads:
            continue
        dependent: list[Node] = []
        read: set[Tensor] = set(first.outputs)
        for second in graph.nodes[graph.nodes.index(first) + 1 :]:
            if not read.isdisjoint(second.inputs):
                dependent.append(second)
                read.update(second.outputs)
            elif _fits(first, second):
                if not any(node.op.draws or node.op.updates for node in dependent):
                    _join(graph, first, second, dependent)
                break


def _fits(first: Node, second: Node) -> bool:
    a, b = first.op, second.op
    if not (isinstance(a, Recurrence) and isinstance(b, Recurrence)):
        return False
    sizes = zip(first.inputs[:2], second.inputs[:2], strict=True)
    return a.cell == b.cell and a.backwards != b.backwards and all(x.spec == y.spec for x, y in sizes)


def _join(graph: Graph, first: Node, second: Node, dependent: list[Node]) -> None:
    """The second one becomes both, before what depends on the first."""
    after = graph.nodes.index(second) + 1
    moved = set(dependent)
    before = [node for node in graph.nodes[:after] if node is not first and node not in moved]
    graph.nodes[:after] = [*before, *dependent]
    second.op = BothDirections(first.op, second.op)  # type: ignore[arg-type]
    second.inputs = (*first.inputs, *second.inputs)
    second.outputs = (*first.outputs, *second.outputs)
    for index, tensor in enumerate(second.outputs):
        tensor.node, tensor.index = second, index
