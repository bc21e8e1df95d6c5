"""ONNX files from others: parsed, with every size looked at before anything of it is made.

Data outside of the file must lie in its folder, and be as long as its shape says.  No code is in an ONNX file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.files.reading import BadFileError, check_regular, elements_of, open_regular, parsing
from pydtconv.interchange.onnx.package import import_onnx

#: ONNX's element types that can be read, and bytes of an element
_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}
#: fields of a tensor that hold its data where it is not raw, and how many of their items an element takes
_FIELDS = {1: "float_data", 11: "double_data", 7: "int64_data", 12: "uint64_data", 13: "uint64_data"}


def read_model(path: Path) -> Any:
    """The message of an ONNX file.  Raises BadFileError for what is none, within `reading.parsing`."""
    onnx = import_onnx("load_onnx")
    with open_regular(path) as file:
        data = file.read()
    model = onnx.load_model_from_string(data)
    if not model.opset_import or not model.graph.output:
        raise BadFileError("expected an ONNX model, found no operator set or no outputs")
    return model


def opset_of(model: Any) -> int:
    """The version of ONNX's own operators.  Raises BadFileError where there is none."""
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions:
        raise BadFileError(f"expected operators of ONNX, got those of {[e.domain for e in model.opset_import]}")
    return int(versions[0])


def array_of(tensor: Any, folder: Path | None) -> np.ndarray:
    """The array of a tensor.  folder: where data outside of the file may lie; None: nowhere."""
    onnx = import_onnx("load_onnx")
    name, dims, kind = tensor.name, list(tensor.dims), tensor.data_type
    if kind not in _BYTES:
        raise BadFileError(f"tensor {name!r}: expected numbers, got element type {kind}")
    with parsing(f"tensor {name!r}", "a tensor"):
        size = elements_of(dims) * _BYTES[kind]
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raw = _outside(tensor, size, folder)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        array = np.frombuffer(raw, dtype.newbyteorder("<")).reshape(dims)
    else:
        held = len(tensor.raw_data) if tensor.HasField("raw_data") else _held(tensor, kind) * _BYTES[kind]
        if held != size:
            raise BadFileError(f"tensor {name!r}: expected {size} bytes for shape {dims}, got {held}")
        array = onnx.numpy_helper.to_array(tensor)
    if kind in (10, 16):  # half precision, of both kinds
        array = array.astype("float32")
    return np.array(array, order="C")


def _held(tensor: Any, kind: int) -> int:
    return len(getattr(tensor, _FIELDS.get(kind, "int32_data")))


def bytes_of(graph: Any, path: Path) -> int:
    """The size of an ONNX file and of the other files that its initializers lie in."""
    external = import_onnx("load_onnx").TensorProto.EXTERNAL
    others = {_place(t, path.parent)[0] for t in graph.initializer if t.data_location == external}
    return os.path.getsize(path) + sum(map(os.path.getsize, others))


def _place(tensor: Any, folder: Path | None) -> tuple[str, dict[str, str]]:
    """The file that data outside of the ONNX file lies in, and the entries that say where in it."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None or not location:
        raise BadFileError(f"tensor {tensor.name!r}: expected its data in the file, got it in {location!r}")
    root, path = os.path.realpath(folder), os.path.realpath(folder / location)
    if os.path.isabs(location) or os.path.commonpath([root, path]) != root or path == root:
        raise BadFileError(f"tensor {tensor.name!r}: expected its data in the model's folder, got {location!r}")
    check_regular(path)
    return path, entries


def _outside(tensor: Any, size: int, folder: Path | None) -> bytes:
    """The bytes of data in a file of its own."""
    path, entries = _place(tensor, folder)
    offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    if length != size or offset < 0:
        raise BadFileError(f"tensor {tensor.name!r}: expected {size} bytes of data, got {length} at {offset}")
    with open_regular(path) as file:
        left = max(os.fstat(file.fileno()).st_size - offset, 0)
        if left < size:
            location = entries["location"]
            raise BadFileError(f"tensor {tensor.name!r}: expected {size} bytes in {location!r}, it ends after {left}")
        file.seek(offset)
        return file.read(size)


def attributes_of(node: Any) -> dict[str, Any]:
    """A node's attributes by name.  Raises BadFileError for a graph, which control flow has."""
    onnx = import_onnx("load_onnx")
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            found[attribute.name] = array_of(attribute.t, None)
        elif attribute.type in (
            onnx.AttributeProto.FLOAT,
            onnx.AttributeProto.INT,
            onnx.AttributeProto.STRING,
            onnx.AttributeProto.FLOATS,
            onnx.AttributeProto.INTS,
            onnx.AttributeProto.STRINGS,
        ):
            found[attribute.name] = _plain(onnx.helper.get_attribute_value(attribute))
        else:
            raise BadFileError(f"{node.op_type} (node {node.name!r}): attribute {attribute.name} is not supported")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
