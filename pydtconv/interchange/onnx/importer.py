"""ONNX files as models: each node by its row of a table, as layers where it has weights and as functions elsewhere.

The layout is the file's: images have their channels first.  What depends on no input is computed while the file is
read.  A batch that the file leaves open is `BATCH` in shapes that the file computes with.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.files.reading import BadFileError, unpacked_limit
from pydtconv.interchange.onnx import import_functions, import_layers, import_rearranging, import_recurrent
from pydtconv.interchange.onnx.call import ROWS, Builder, Call, check_size, is_symbolic
from pydtconv.interchange.onnx.constants import compute
from pydtconv.interchange.onnx.export_functions import TYPES
from pydtconv.interchange.onnx.reader import array_of, attributes_of, bytes_of, opset_of, read_model
from pydtconv.layers.base.symbolic import FunctionCall, OpCall
from pydtconv.layers.input_layer import Input
from pydtconv.serialization.budget import limited_memory

#: what enters rows into the table
TABLES = (import_functions, import_layers, import_rearranging, import_recurrent)
#: operators that take shapes and places: these may follow the batch
_SHAPED = ("Expand", "Pad", "Reshape", "Resize", "Slice", "Split", "Tile", "Upsample")
#: element types of whole numbers
_INTEGERS = {number for name, number in TYPES.items() if "int" in name or name == "bool"}


def read_onnx(path: Path, free_batch: bool) -> tuple[list[Any], list[Any], str]:
    """The symbolic inputs and outputs of an ONNX file, and the graph's name.

    free_batch: whether the first extent of the inputs is the batch although the file says how much it is.
    Raises BadFileError, naming operator and attribute, within `reading.parsing`.
    """
    model = read_model(path)
    graph = model.graph
    if graph.sparse_initializer:
        raise BadFileError("expected dense initializers, got sparse ones")
    limit = unpacked_limit(bytes_of(graph, path))
    builder = Builder(opset_of(model), limit)
    for tensor in graph.initializer:
        builder.values[tensor.name] = array = array_of(tensor, path.parent)
        builder.limit -= array.nbytes
        if builder.limit < 0:
            raise BadFileError(f"tensor {tensor.name!r}: expected {limit} bytes of initializers at most")
    inputs = []
    for info in graph.input:
        if info.name not in builder.values:
            inputs.append(_input(builder, info, free_batch))
    for node in graph.node:
        for name in node.input:
            builder.readers.setdefault(name, []).append(node)
    for info in graph.output:
        builder.readers.setdefault(info.name, []).append(None)
    with limited_memory(limit):
        for node in graph.node:
            _add(builder, node)
    outputs = [_output(builder, info.name) for info in graph.output]
    _name_functions(builder, outputs)
    return inputs, outputs, graph.name


def _name_functions(builder: Builder, outputs: list[Any]) -> None:
    """Gives functions between layers, which have names of their own making, names that no layer of the file has."""
    known: set[int] = set()
    left = [output.node for output in outputs]
    while left:
        node = left.pop()
        if id(node) in known:
            continue
        known.add(id(node))
        left.extend(x.node for x in node.input_tensors)
        if isinstance(node.operation, (FunctionCall, OpCall)) and id(node.operation) not in known:
            known.add(id(node.operation))
            node.operation.name = builder.layer_name(node.operation.name)


def _input(builder: Builder, info: Any, free_batch: bool) -> Any:
    kind = info.type.tensor_type
    if not info.type.HasField("tensor_type") or not kind.HasField("shape") or not kind.shape.dim:
        raise BadFileError(f"input {info.name!r}: expected a tensor of one axis or more")
    shape = [dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None for dim in kind.shape.dim]
    if None in shape[1:]:
        raise BadFileError(f"input {info.name!r}: expected extents that are known but for the batch, got {shape}")
    if free_batch and shape[0] is not None:
        builder.freed = builder.freed or shape[0]
        shape[0] = None
    if kind.elem_type in _INTEGERS:
        builder.integers.add(info.name)
    tensor = Input(batch_shape=shape, name=builder.layer_name(info.name))
    builder.values[info.name] = tensor
    return tensor


def _output(builder: Builder, name: str) -> Any:
    if name not in builder.values:
        raise BadFileError(f"output {name!r}: no node makes it")
    value = builder.values[name]
    if not is_symbolic(value):
        raise BadFileError(f"output {name!r}: expected it to depend on the inputs, it is constant")
    return value


def _add(builder: Builder, node: Any) -> None:
    if node.output and node.output[0] in builder.fused:
        return
    missing = [name for name in node.input if name and name not in builder.values]
    call = Call(builder, node, attributes_of(node))
    twice = [name for name in node.output if name and name in builder.values]
    if twice:
        raise call.error(f"output {twice[0]!r} is made by a node before it, or a constant of the file")
    if missing:
        raise call.error(f"input {missing[0]!r} is made by no node before it")
    if node.domain not in ("", "ai.onnx"):
        raise call.error(f"operators of {node.domain!r} are not supported")
    if not any(is_symbolic(value) for value in call.x):
        results = compute(call)
    else:
        row = ROWS.get(node.op_type)
        if row is None:
            raise call.error("this operator is not supported")
        unknown = [name for name in node.input if name in builder.of_batch]
        if unknown and node.op_type not in _SHAPED:
            raise call.error(f"{unknown[0]!r}: expected numbers that are known, got ones that follow the batch")
        for value in call.x:
            if isinstance(value, np.ndarray) and value.dtype != np.float32:  # converted anew for each node
                check_size(call, value.shape, 4)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # numbers of float64 in float32
                results = row(call)
        except BadFileError:
            raise
        except (ValueError, TypeError, IndexError, KeyError, NotImplementedError) as error:
            raise call.error(str(error)) from error
        call.check_attributes()
    results = results if isinstance(results, (list, tuple)) else [results]
    for name, value in zip(node.output, results, strict=False):
        builder.enter(node, name, value)
        if call.is_integer if node.op_type != "Cast" else call.attribute("to") in _INTEGERS:
            builder.integers.add(name)
    lost = [name for name in list(node.output)[len(results) :] if name and builder.readers.get(name)]
    if lost:
        raise call.error(f"its output {lost[0]!r} is not supported")
