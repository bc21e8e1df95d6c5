"""Models as ONNX files: the operators of an inference step, each by its row of a table.

A model is traced as for `predict`, for two batch sizes: what differs between the two follows the batch.  What depends
on no input is computed here and becomes a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import ops, tree
from pydtconv._version import __version__
from pydtconv.dtypes import BFLOAT16, real
from pydtconv.files.whole_file import write_whole
from pydtconv.graph import Graph, Node, Tensor, unrolled
from pydtconv.interchange.onnx import export_operators, export_rearranging
from pydtconv.interchange.onnx.export_functions import TYPES
from pydtconv.interchange.onnx.export_table import follows, row_of
from pydtconv.interchange.onnx.package import import_onnx
from pydtconv.interchange.onnx.writer import Multiple, Writer
from pydtconv.kernels.array_calls import compute
from pydtconv.layers.base.locks import turn_of
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.tracing import Traced, trace

#: what enters rows into the table
TABLES = (export_operators, export_rearranging)
#: versions of ONNX's operators whose nodes are as they are written here
OPSETS = range(18, 24)
#: batch sizes of the two traces: no extent of a network is likely to have them as a factor
_BATCHES = (331, 467)
#: bytes that a protobuf message may have
_LIMIT = 2**31 - 1


def export_onnx(
    model: Any, filepath: str | Path, input_signature: Any = None, opset_version: int | None = None
) -> None:
    """Writes the inference step of a built model to an ONNX file, whole or not at all.

    Inputs and outputs have our layout and the names of the model's; the batch is free.  input_signature: specs with
    `shape`, for models whose inputs have further extents that are not known.

    Raises ImportError without the package onnx, and ValueError, which names operator and layer, for what ONNX has not.
    """
    onnx = import_onnx("export")
    opset = OPSETS[0] if opset_version is None else opset_version
    if opset not in OPSETS:
        raise ValueError(f"export: opset_version: expected {OPSETS[0]} to {OPSETS[-1]}, got {opset_version!r}")
    data = _model_of(onnx, model, input_signature, opset).SerializeToString()
    write_whole(Path(filepath), lambda file: file.write(data), len(data))


def _model_of(onnx: Any, model: Any, input_signature: Any, opset: int) -> Any:
    with turn_of(model).taken():
        shapes = _shapes(model, input_signature)
        first, second = (_traced(model, shapes, size) for size in _BATCHES)
        graph = first.graph
        writer = Writer(_extents(graph, second.graph), _readers(graph))
        inputs = _inputs(onnx, model, first, writer)
        tensors = list(graph.outputs.values())
        names = [writer.new_name(name) for name in _names(model, "output_names", len(tensors), "output")]
        for node in _needed(graph):
            _write(writer, node)
        outputs = _outputs(onnx, names, tensors, writer)
        size = sum(array.nbytes for array in writer.constants.values())
        if size > _LIMIT - (1 << 24):
            raise ValueError(f"export: {model.name}: expected less than {_LIMIT} bytes of weights, got {size}")
        constants = [onnx.numpy_helper.from_array(array, name) for name, array in writer.constants.items()]
        made = onnx.helper.make_graph(writer.nodes, model.name, inputs, outputs, constants)
        return onnx.helper.make_model(
            made,
            producer_name="pydtconv",
            producer_version=__version__,
            opset_imports=[onnx.helper.make_opsetid("", opset)],
            ir_version=8 if opset == OPSETS[0] else 10,
        )


# -- the traces --------------------------------------------------------------------------------------------------------


def _shapes(model: Any, input_signature: Any) -> Any:
    """The shapes of the inputs, in their structure.  Raises ValueError where extents besides the batch are unknown."""
    if input_signature is not None:
        specs = input_signature if isinstance(input_signature, (list, tuple, dict)) else [input_signature]
        shapes = tree.map_structure(lambda spec: tuple(spec.shape), specs)
        shapes = shapes[0] if isinstance(shapes, (list, tuple)) and len(specs) == 1 else shapes
    else:
        shapes = getattr(model, "input_shape", None) if getattr(model, "_pydt_network", None) is not None else None
        shapes = getattr(model, "_pydt_build_shapes", None) if shapes is None else shapes
    if shapes is None:
        raise ValueError(f"export: the input shape of model {model.name!r} is not known: call it on data first")

    def check(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        if None in shape[1:]:
            raise ValueError(
                f"export: model {model.name!r}: expected input shapes that are known but for the batch, got {shape}: "
                "pass input_signature=[keras.InputSpec(shape=...)]"
            )
        return shape

    return tree.map_shape_structure(check, shapes)


def _traced(model: Any, shapes: Any, batch: int) -> Traced:
    def zeros(shape: tuple[int | None, ...]) -> np.ndarray:
        size = batch if shape[0] is None else shape[0]
        return np.broadcast_to(np.zeros((), "float32"), (size, *shape[1:]))  # type: ignore[arg-type]

    with unrolled(keeps=export_operators.has_operator):
        traced = trace(model, "predict", Batch(tree.map_shape_structure(zeros, shapes), None, None, batch), None)
    outputs, kept = traced.graph.outputs, set(tree.flatten(traced.predictions))
    traced.graph.outputs = {name: tensor for name, tensor in outputs.items() if name in kept}  # without penalties
    return traced


def _extents(first: Graph, second: Graph) -> dict[Tensor, Any]:
    """Of each tensor of the first graph its extents, as multiples of the batch where they differ in the second one."""
    pairs = [*zip(first.inputs.values(), second.inputs.values(), strict=True)]
    for node, other in zip(first.nodes, second.nodes, strict=True):
        pairs += [*zip(node.inputs, other.inputs, strict=True), *zip(node.outputs, other.outputs, strict=True)]
    return {a: tuple(map(_extent, a.shape, b.shape)) for a, b in pairs}


def _extent(a: int | None, b: int | None) -> int | Multiple:
    assert a is not None
    assert b is not None
    if a == b:
        return a
    if a % _BATCHES[0] or b % _BATCHES[1] or a // _BATCHES[0] != b // _BATCHES[1]:
        raise ValueError(f"export: an extent is {a} for a batch of {_BATCHES[0]}, {b} for one of {_BATCHES[1]}")
    return Multiple(a // _BATCHES[0])


def _needed(graph: Graph) -> list[Node]:
    """The nodes that outputs depend on, in their order."""
    needed: set[Node] = set()
    waiting = [tensor.node for tensor in graph.outputs.values()]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in needed:
            needed.add(node)
            waiting.extend(tensor.node for tensor in node.inputs)
    return [node for node in graph.nodes if node in needed]


def _readers(graph: Graph) -> dict[Tensor, int]:
    counts: dict[Tensor, int] = {}
    for tensor in [*(t for node in graph.nodes for t in node.inputs), *graph.outputs.values()]:
        counts[tensor] = counts.get(tensor, 0) + 1
    return counts


def _names(model: Any, attribute: str, count: int, kind: str) -> list[str]:
    try:
        return list(getattr(model, attribute))
    except AttributeError:
        return [kind if count == 1 else f"{kind}_{i}" for i in range(count)]


def _value_info(onnx: Any, name: str, tensor: Tensor, extents: Sequence[Any]) -> Any:
    shape = [
        extent if isinstance(extent, int) else "batch" if extent.times == 1 else f"batch*{extent.times}"
        for extent in extents
    ]
    return onnx.helper.make_tensor_value_info(name, TYPES[real(tensor.dtype)], shape)


def _inputs(onnx: Any, model: Any, traced: Traced, writer: Writer) -> list[Any]:
    tensors = list(traced.graph.inputs.values())
    made = []
    for tensor, name in zip(tensors, _names(model, "input_names", len(tensors), "input"), strict=True):
        name = writer.new_name(name)
        writer.set(tensor, name)
        if writer.batch_source is None:
            writer.batch_source = tensor
        made.append(_value_info(onnx, name, tensor, writer.extents[tensor]))
    return made


def _outputs(onnx: Any, names: Sequence[str], tensors: Sequence[Tensor], writer: Writer) -> list[Any]:
    made = []
    for tensor, name in zip(tensors, names, strict=True):
        value = writer.value(tensor)
        writer.nodes.append(onnx.helper.make_node("Identity", [value], [name], name=name))
        made.append(_value_info(onnx, name, tensor, writer.extents[tensor]))
    return made


# -- nodes -------------------------------------------------------------------------------------------------------------


def _write(w: Writer, node: Node) -> None:
    if _folded(w, node):
        return
    row = row_of(node.op)
    if row is None:
        raise ValueError(f"export: {node.op.name} (of layer {node.scope!r}) has no ONNX operator here")
    try:
        row(w, node)
    except ValueError as error:
        raise ValueError(f"{error} (layer {node.scope!r})" if node.scope not in str(error) else str(error)) from None


def _folded(w: Writer, node: Node) -> bool:
    """Whether the node depends on no input: what it gives is computed and becomes a constant."""
    arrays = [w.array_of(tensor) for tensor in node.inputs]
    batch = [tensor for tensor in (*node.inputs, *node.outputs) if any(map(follows, w.extents[tensor]))]
    if not arrays or batch or node.op.draws or any(array is None for array in arrays):
        return False
    op = ops.Cast(real(BFLOAT16)) if node.op == ops.Cast(BFLOAT16) else node.op  # files have no bfloat16
    results = compute(op, *arrays)
    for tensor, array in zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True):
        tensor.constant = np.asarray(array)
    return True
