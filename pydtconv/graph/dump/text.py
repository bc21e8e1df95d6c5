"""A graph, a schedule and the memory of a plan as text: one line a node, step or storage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.plot import Placed
from pydtconv.graph.memory.storage import Storage, View
from pydtconv.ops.base import Op, Spec

#: what is noted of a node that computes the sums of a normalization's backward
REDUCTIONS = "backward reductions"


def of_graph(graph: Graph) -> str:
    """Inputs, then each node as `outputs = operator(inputs)`, then results."""
    lines = [f"input {name}: {shape(tensor.spec)}" for name, tensor in graph.inputs.items()]
    lines += [of_node(graph, node) for node in graph.nodes]
    lines += [f"result {name}: {tensor.name}" for name, tensor in graph.outputs.items()]
    if graph.loss is not None:
        lines.append(f"loss: {graph.loss.name}")
    return "\n".join(lines) + "\n"


def of_node(graph: Graph, node: Node) -> str:
    """`name: shape = operator[attributes](inputs)`, and what passes have noted of the node."""
    inputs = ", ".join(_input(tensor) for tensor in node.inputs)
    outputs = ", ".join(shape(tensor.spec) for tensor in node.outputs)
    return f"{node.name}: {outputs} = {node.op.name}{attributes(node.op)}({inputs})" + "".join(
        f"  # {note}" for note in notes(graph, node)
    )


def notes(graph: Graph, node: Node) -> Iterator[str]:
    """What passes have noted of a node."""
    if node.outputs[0] in graph.elided:
        yield "elided"
    if node.inputs and node.inputs[0] in graph.elided:
        yield "normalizes its input"
    for each in graph.kept.get(node, ()):
        yield f"keeps {each.name}"
    if node in graph.fused_reductions:
        bypass = ", whose input's gradient it writes" if node in graph.bypassed else ""
        yield f"{REDUCTIONS} of {graph.fused_reductions[node].scope.rpartition('/')[2]}{bypass}"


def attributes(op: Op) -> str:
    """The fields of an operator that differ from their defaults."""
    if not dataclasses.is_dataclass(op):
        return ""
    found = []
    for field in dataclasses.fields(op):
        value = getattr(op, field.name)
        if not _is_default(field, value):
            found.append(f"{field.name}={value!r}" if not callable(value) else f"{field.name}=...")
    return f"[{', '.join(found)}]" if found else ""


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    return field.default is not dataclasses.MISSING and repr(field.default) == repr(value)


def _input(tensor: Tensor) -> str:
    if tensor.constant is not None:
        return f"constant {shape(tensor.spec)}"
    if tensor.node is not None and tensor.index == 0:
        return tensor.node.name
    return tensor.name


def shape(spec: Spec) -> str:
    """As in `64x32x32x3`; another type than float32 is named."""
    text = "x".join("?" if extent is None else str(extent) for extent in spec.shape) or "scalar"
    return text if spec.dtype == "float32" else f"{text} {spec.dtype}"


def of_schedule(plan: Placed) -> str:
    """Each step with what it reads and writes, by offsets into the arena."""
    lines = ["step kind      node                                      reads -> writes (bytes from the arena's start)"]
    for index, step in enumerate(plan.steps):
        if index == plan.backward_start and index:
            lines.append("backward:")
        reads, writes = ([where(view) for view in views] for views in (step.reads(), step.writes()))
        ready = f"  ready: {', '.join(tensor.name for tensor in step.ready)}" if step.ready else ""
        lines.append(f"{index:4} {step.kind:9} {step.node.name:40}  {' '.join(reads)} -> {' '.join(writes)}{ready}")
    return "\n".join(lines) + "\n"


def where(view: View) -> str:
    """`@offset+bytes`, the name of a parameter, or what else the buffer is."""
    buffer = view.buffer
    if isinstance(buffer, Storage):
        return f"@{buffer.offset + view.offset}+{view.spec.nbytes}{'/strided' if view.is_slice else ''}"
    if isinstance(buffer, Tensor):
        return buffer.name
    tensor = getattr(buffer, "tensor", None)
    return f"d({tensor.name})" if tensor is not None else "1"


def of_memory(plan: Placed) -> str:
    """Each storage with its place in the arena and the steps in which it lives, in the order of the offsets."""
    lines = [f"arena: {plan.arena_bytes} bytes; most in use at step {plan.peak_step()}"]
    lines.append(f"{'offset':>12} {'bytes':>12} {'steps':>12}  kind        name")
    for storage in sorted(plan.storages, key=lambda each: (each.offset, each.first)):
        steps = " ".join(f"{first}-{last}" for first, last in storage.lives)
        lines.append(f"{storage.offset:12} {storage.nbytes:12} {steps:>12}  {storage.kind:10}  {storage.name}")
    return "\n".join(lines) + "\n"
