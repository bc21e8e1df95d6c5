"""Equal operators on the same tensors -> the first of them, whose result all read.

NASNet's cells put a ReLU of its own before each convolution of one image, and pool one image twice.
"""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.rewriting import replace_results, updated_state
from pydtconv.graph.passes.casts import narrows_trained


def merge_equal_nodes(graph: Graph) -> None:
    """Drops nodes that compute what one before them computes.

    Those stay that draw numbers, update state, read state that is updated, or may have effects of their own, those
    whose own gradient somebody asks for: each has a part of it, and casts of trained variables to bfloat16, whose
    gradients are to be added in float32.
    """
    apart = {*graph.gradients.values(), *(graph.sources or ())}
    state = updated_state(graph)
    first: dict[tuple[object, ...], Node] = {}
    instead: dict[Tensor, Tensor] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        node.inputs = tuple(instead.get(tensor, tensor) for tensor in node.inputs)
        key = (node.op.exactly, node.device, *node.inputs, *(tensor.spec for tensor in node.outputs))
        same = first.setdefault(key, node) if _is_pure(node) and state.isdisjoint(node.inputs) else node
        if same is node or not apart.isdisjoint((*same.outputs, *node.outputs)):
            kept.append(node)
        else:
            instead.update(zip(node.outputs, same.outputs, strict=True))
    graph.nodes = kept
    replace_results(graph, instead)


def _is_pure(node: Node) -> bool:
    """Whether equal inputs give equal outputs, and nothing else happens."""
    return not (node.op.draws or node.op.updates or not node.op.replayable or narrows_trained(node))
