"""Casts between bfloat16 and float32: where operators cannot do without, and nowhere else.

Layers cast what they read to the dtype of their policy.  An operator without a kernel for bfloat16 (softmax, losses,
extrema) gets its inputs in float32 and its result is rounded.  Casts that meet cancel; an input of the graph that is
read in bfloat16 alone is rounded when it is fed.
"""

from __future__ import annotations

from pydtconv.dtypes import BFLOAT16, FLOATING, real
from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.rewriting import consumers, replace_reads, results, updated_state
from pydtconv.graph.passes.dead_nodes import remove_dead_nodes
from pydtconv.kernels.lookup import supports
from pydtconv.ops.base import Spec
from pydtconv.ops.shape import Cast


def place_casts(graph: Graph) -> None:
    """Puts casts around operators that cannot compute in bfloat16, and drops those that are not needed.

    Raises NotImplementedError on other devices than the CPU.
    """
    if not any(tensor.dtype == BFLOAT16 for node in graph.nodes for tensor in node.outputs):
        return
    if graph.device != "cpu":
        raise NotImplementedError(f"device {graph.device}: expected float32 or float64, got {BFLOAT16}")
    made: set[Node] = set()
    for node in list(graph.nodes):
        if _cannot(node):
            made |= _widen(graph, node)
    _cancel(graph, made)
    _narrow_inputs(graph)
    remove_dead_nodes(graph)


def _cannot(node: Node) -> bool:
    """Whether a node reads or writes bfloat16 and has no kernel for it."""
    if isinstance(node.op, Cast) or node.op.is_view or joins_channels(node):
        return False
    some = any(tensor.dtype == BFLOAT16 for tensor in (*node.inputs, *node.outputs))
    return some and not supports(node.op, node.device, BFLOAT16)


def _widen(graph: Graph, node: Node) -> set[Node]:
    """Gives a node float32 in the place of bfloat16, with casts before and behind it."""
    before = [_cast(graph, tensor, real(tensor.dtype), node.scope) for tensor in node.inputs]
    inputs = tuple(
        tensor if cast is None else cast.outputs[0] for tensor, cast in zip(node.inputs, before, strict=True)
    )
    wide = Node(graph, node.op, inputs, node.scope)
    wide.name, wide.device = node.name, node.device
    behind, outputs = [], []
    for index, (old, new) in enumerate(zip(node.outputs, wide.outputs, strict=True)):
        if old.spec == new.spec:
            old.node, old.index = wide, index
            outputs.append(old)
            continue
        cast = Node(graph, Cast(old.dtype), (new,), node.scope)
        cast.outputs, old.node, old.index = (old,), cast, 0
        behind.append(cast)
        outputs.append(new)
    wide.outputs = tuple(outputs)
    around = [cast for cast in before if cast is not None]
    place = graph.nodes.index(node)
    graph.nodes[place : place + 1] = [*around, wide, *behind]
    return {*around, *behind}


def _cast(graph: Graph, tensor: Tensor, dtype: str, scope: str) -> Node | None:
    return None if tensor.dtype == dtype else Node(graph, Cast(dtype), (tensor,), scope)


def _cancel(graph: Graph, made: set[Node]) -> None:
    """Joins casts of one tensor, and drops those of casts that lead back.

    A cast to bfloat16 and back rounds: it is dropped where one of the two was put there by this pass.  Other casts that
    lose something stay, and so do those of state that changes between them, and what a gradient is asked by.  Of a
    trained variable each reader has a cast of its own: what they add to its gradient is added in float32.
    """
    known: dict[tuple[Tensor, str], Tensor] = {}
    asked = {tensor for tensor in (*graph.gradients.values(), *(graph.sources or ())) if tensor.variable is None}
    apart = asked | updated_state(graph)
    for node in list(graph.nodes):
        if not isinstance(node.op, Cast) or not apart.isdisjoint((*node.inputs, *node.outputs)):
            continue
        (source,), (out,) = node.inputs, node.outputs
        first = source.node
        back = first is not None and isinstance(first.op, Cast) and first.inputs[0].dtype == out.dtype
        ours = source.dtype == BFLOAT16 and (first in made or node in made)
        if back and first is not None and (ours or _holds(source.dtype, out.dtype)):
            replace_reads(graph, out, first.inputs[0])
        elif (source, out.dtype) in known and not narrows_trained(node):
            replace_reads(graph, out, known[source, out.dtype])
        else:
            known[source, out.dtype] = out


def narrows_trained(node: Node) -> bool:
    """Whether the node is a cast of a trained variable to bfloat16."""
    variable = node.inputs[0].variable if node.inputs else None
    return node.op == Cast(BFLOAT16) and variable is not None and variable.trainable


def _holds(wide: str, narrow: str) -> bool:
    """Whether each number of a dtype is one of another, wider one."""
    return wide in FLOATING and narrow in FLOATING and FLOATING.index(wide) > FLOATING.index(narrow)


def _narrow_inputs(graph: Graph) -> None:
    """Makes inputs of floats bfloat16 that are read as nothing else; integers are rounded as such.

    Those of a loop's body are arrays of the graph around.
    """
    if graph.outer is not None:
        return
    readers, ends = consumers(graph), results(graph)
    for name, tensor in graph.inputs.items():
        casts = readers.get(tensor, [])
        if (
            tensor.dtype not in FLOATING
            or tensor in ends
            or not casts
            or any(node.op != Cast(BFLOAT16) for node in casts)
        ):
            continue
        narrow = Tensor(graph, Spec(tensor.shape, BFLOAT16), tensor.name)
        graph.inputs[name] = narrow
        for node in casts:
            replace_reads(graph, node.outputs[0], narrow)
            graph.nodes.remove(node)
