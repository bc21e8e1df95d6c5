"""Functions of `pydtconv.ops` that are rows of a table (`ops.TableOp`) as ONNX nodes, one row each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv.dtypes import FLOATING
from pydtconv.graph import Node, Tensor
from pydtconv.interchange.onnx.writer import Writer
from pydtconv.ops.table_op import TableOp

#: from a writer, the node and its settings to the name of the output, or the names where there are several
Row = Callable[[Writer, Node, Mapping[str, Any]], Any]

#: ONNX's numbers of element types
TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "bfloat16": 1,  # networks of mixed precision are written in float32
}


def cast(w: Writer, name: str, was: str, dtype: str) -> str:
    """The value in another dtype."""
    return name if TYPES[was] == TYPES[dtype] else w.emit("Cast", name, to=TYPES[dtype])


def read(w: Writer, tensor: Tensor, dtype: str) -> str:
    return cast(w, w.value(tensor), tensor.dtype, dtype)


def simple(kind: str, dtype: str = "output", **attributes: Any) -> Row:
    """One ONNX operator on inputs that are cast; dtype: to which, "output" for the result's."""

    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        wanted = node.outputs[0].dtype if dtype == "output" else dtype
        return w.emit(kind, *(read(w, tensor, wanted) for tensor in node.inputs), **attributes)

    return row


def _scaled(kind: str, before: float = 1.0, after: float = 1.0) -> Row:
    """after * f(before * x)."""

    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        y = node.outputs[0]
        x = read(w, node.inputs[0], y.dtype)
        x = x if before == 1 else w.emit("Mul", x, w.scalar(before, y))
        x = w.emit(kind, x) if kind else x
        return x if after == 1 else w.emit("Mul", x, w.scalar(after, y))

    return row


def _expm1(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    return w.emit("Sub", w.emit("Exp", read(w, node.inputs[0], node.outputs[0].dtype)), w.scalar(1, node.outputs[0]))


def _log1p(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    return w.emit("Log", w.emit("Add", read(w, node.inputs[0], node.outputs[0].dtype), w.scalar(1, node.outputs[0])))


def _not_equal(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    return w.emit("Not", w.emit("Equal", *_common(w, node)))


def _common(w: Writer, node: Node) -> list[str]:
    """The inputs in the widest of their dtypes."""
    wanted = str(np.result_type(*(np.dtype(tensor.dtype) for tensor in node.inputs)))
    return [read(w, tensor, wanted) for tensor in node.inputs]


#: operators of ONNX that take truth values and give them
_LOGICAL = ("And", "Or", "Xor", "Not")


def row_of(op: TableOp) -> Row | None:
    """What writes a function of the table; None where ONNX has nothing like it."""
    kind = op.rule.onnx
    if kind and op.rule.dtype == "bool" and kind not in _LOGICAL:
        return lambda w, node, static: w.emit(kind, *_common(w, node))
    return simple(kind) if kind else ROWS.get(op.function)


def _where(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    condition, a, b = node.inputs
    dtype = node.outputs[0].dtype
    return w.emit("Where", read(w, condition, "bool"), read(w, a, dtype), read(w, b, dtype))


def _reshaped_to_output(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    return w.emit("Expand", w.value(node.inputs[0]), w.shape(w.extents[node.outputs[0]]))


def _flip(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    rank, axis = len(node.inputs[0].shape), static.get("axis")
    axes = list(range(rank)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    far = [-(2**31)] * len(axes)
    return w.emit(
        "Slice",
        w.value(node.inputs[0]),
        w.integers([-1] * len(axes)),
        w.integers(far),
        w.integers(axes),
        w.integers([-1] * len(axes)),
    )


def _tile(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    repeats = static["repeats"]
    repeats = [repeats] if isinstance(repeats, int) else list(repeats)
    x, rank = w.value(node.inputs[0]), len(node.inputs[0].shape)
    if len(repeats) > rank:
        axes = w.integers(range(len(repeats) - rank))
        x = w.emit("Unsqueeze", x, axes)
    return w.emit("Tile", x, w.integers([1] * (rank - len(repeats)) + repeats))


def _depth_to_space(w: Writer, node: Node, static: Mapping[str, Any]) -> str | None:
    return _blocks("DepthToSpace", w, node, static)


def _space_to_depth(w: Writer, node: Node, static: Mapping[str, Any]) -> str | None:
    if static["data_format"] == "channels_first":
        raise ValueError("export: space_to_depth with data_format='channels_first' has no ONNX operator")
    return _blocks("SpaceToDepth", w, node, static)


def _blocks(kind: str, w: Writer, node: Node, static: Mapping[str, Any]) -> str | None:
    """The blocks of Keras are ONNX's with the channels first (DCR) and with them last."""
    last = static["data_format"] == "channels_last"
    x = w.first(node.inputs[0]) if last else w.value(node.inputs[0])
    mode = None if kind == "SpaceToDepth" else "DCR" if last else "CRD"
    y = w.emit(kind, x, blocksize=static["block_size"], mode=mode)
    if not last:
        return y
    w.set(node.outputs[0], y, first=True)
    return None


def _cumsum(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    axis, x = static.get("axis"), read(w, node.inputs[0], node.outputs[0].dtype)
    if axis is None:
        x, axis = w.emit("Reshape", x, w.integers([-1])), 0
    return w.emit("CumSum", x, w.constant(np.array(axis, "int64")))


def _reducing(kind: str, dtype: str) -> Row:
    """A reduction over axes of what is cast to a dtype first."""

    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        axis, wanted = static.get("axis"), node.outputs[0].dtype if dtype == "output" else dtype
        x = read(w, node.inputs[0], "bool") if dtype == "uint8" else w.value(node.inputs[0])
        x = cast(w, x, "bool" if dtype == "uint8" else node.inputs[0].dtype, wanted if dtype != "uint8" else "int32")
        axes = range(len(node.inputs[0].shape)) if axis is None else [axis] if isinstance(axis, int) else axis
        y = w.emit(kind, x, w.integers(axes), keepdims=int(bool(static.get("keepdims", False))))
        return cast(w, y, "int32", "bool") if dtype == "uint8" else y

    return row


def _take(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    x, axis = w.value(node.inputs[0]), static.get("axis")
    if axis is None:
        x, axis = w.emit("Reshape", x, w.integers([-1])), 0
    return w.emit("Gather", x, read(w, node.inputs[1], "int64"), axis=axis)


def _take_along(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    if static.get("axis") is None:
        raise ValueError("export: take_along_axis: expected an axis, got None")
    return w.emit("GatherElements", w.value(node.inputs[0]), read(w, node.inputs[1], "int64"), axis=static["axis"])


def _top_k(w: Writer, node: Node, static: Mapping[str, Any]) -> list[str]:
    values, indices = w.emit("TopK", w.value(node.inputs[0]), w.integers([static["k"]]), outputs=2)
    return [values, w.emit("Cast", indices, to=TYPES["int32"])]


def _arg(kind: str) -> Row:
    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        x, axis = w.value(node.inputs[0]), static.get("axis")
        if axis is None:
            x, axis = w.emit("Reshape", x, w.integers([-1])), 0
        y = w.emit(kind, x, axis=axis, keepdims=int(bool(static.get("keepdims", False))))
        return w.emit("Cast", y, to=TYPES["int32"])

    return row


def _one_hot(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    """Compares with each class: ONNX's operator counts negative indices from the end."""
    output, count = node.outputs[0], static["num_classes"]
    axis = static.get("axis", -1) % len(output.shape)
    x = w.emit("Unsqueeze", read(w, node.inputs[0], "int64"), w.integers([axis]))
    classes = np.arange(count, dtype="int64").reshape([count if d == axis else 1 for d in range(len(output.shape))])
    return w.emit("Cast", w.emit("Equal", x, w.constant(classes)), to=TYPES[output.dtype])


def _triangle(upper: int) -> Row:
    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        return w.emit("Trilu", w.value(node.inputs[0]), w.constant(np.array(static["k"], "int64")), upper=upper)

    return row


def _logaddexp(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    a, b = (read(w, tensor, node.outputs[0].dtype) for tensor in node.inputs)
    gap = w.emit("Neg", w.emit("Abs", w.emit("Sub", a, b)))
    tail = w.emit("Log", w.emit("Add", w.emit("Exp", gap), w.scalar(1, node.outputs[0])))
    return w.emit("Add", w.emit("Max", a, b), tail)


def _mod(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    """Has the divisor's sign, which ONNX's operator has for integers alone."""
    dtype = node.outputs[0].dtype
    a, b = (read(w, tensor, dtype) for tensor in node.inputs)
    if dtype not in FLOATING:
        return w.emit("Mod", a, b)
    return w.emit("Sub", a, w.emit("Mul", w.emit("Floor", w.emit("Div", a, b)), b))


def _hypot(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    a, b = (read(w, tensor, node.outputs[0].dtype) for tensor in node.inputs)
    return w.emit("Sqrt", w.emit("Add", w.emit("Mul", a, a), w.emit("Mul", b, b)))


def _round(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    if static.get("decimals"):
        raise ValueError(f"export: round: expected decimals=0, got {static['decimals']}")
    x = w.value(node.inputs[0])
    return w.emit("Round", x) if node.inputs[0].dtype in FLOATING else x


def _is(kind: str, **attributes: Any) -> Row:
    """What is asked of floats."""

    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        x = node.inputs[0]
        return w.emit(kind, read(w, x, x.dtype if x.dtype in FLOATING else "float32"), **attributes)

    return row


#: operators of truth values in the place of those of numbers, which ONNX has for numbers alone
_OF_BOOLEANS = {"Add": "Or", "Max": "Or", "Mul": "And", "Min": "And", "Abs": "Identity"}


def _of_integers(kind: str) -> Row:
    """One operator on inputs of the result's dtype."""

    def row(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
        truth = node.outputs[0].dtype == "bool"
        return simple(_OF_BOOLEANS[kind] if truth else kind)(w, node, static)

    return row


def _largest(kind: str) -> Row:
    return lambda w, node, static: _reducing(kind, "uint8" if node.outputs[0].dtype == "bool" else "output")(
        w, node, static
    )


def _square(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    x = read(w, node.inputs[0], node.outputs[0].dtype)
    return w.emit("Mul", x, x)


def _between(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    x, low, high = (read(w, tensor, node.outputs[0].dtype) for tensor in node.inputs)
    return w.emit("Min", w.emit("Max", x, low), high)


def _einsum(w: Writer, node: Node, static: Mapping[str, Any]) -> str:
    inputs = (read(w, tensor, node.outputs[0].dtype) for tensor in node.inputs)
    return w.emit("Einsum", *inputs, equation=static["subscripts"])


#: by the name of the function
ROWS: dict[str, Row] = {
    "not_equal": _not_equal,
    "isnan": _is("IsNaN"),
    "isinf": _is("IsInf"),
    "isposinf": _is("IsInf", detect_negative=0),
    "isneginf": _is("IsInf", detect_positive=0),
    "exp2": _scaled("Exp", math.log(2)),
    "expm1": _expm1,
    "log1p": _log1p,
    "log2": _scaled("Log", after=1 / math.log(2)),
    "log10": _scaled("Log", after=1 / math.log(10)),
    "deg2rad": _scaled("", math.pi / 180),
    "rad2deg": _scaled("", 180 / math.pi),
    "round": _round,
    "mod": _mod,
    "fmod": simple("Mod", fmod=1),
    "hypot": _hypot,
    "logaddexp": _logaddexp,
    "where": _where,
    "broadcast_to": _reshaped_to_output,
    "flip": _flip,
    "tile": _tile,
    "tril": _triangle(0),
    "triu": _triangle(1),
    "depth_to_space": _depth_to_space,
    "space_to_depth": _space_to_depth,
    "cumsum": _cumsum,
    "prod": _reducing("ReduceProd", "output"),
    "all": _reducing("ReduceMin", "uint8"),
    "any": _reducing("ReduceMax", "uint8"),
    "take": _take,
    "take_along_axis": _take_along,
    "top_k": _top_k,
    "argmin": _arg("ArgMin"),
    "one_hot": _one_hot,
    **{
        f"{name} of integers": _of_integers(kind)
        for name, kind in {
            "add": "Add",
            "subtract": "Sub",
            "multiply": "Mul",
            "maximum": "Max",
            "minimum": "Min",
            "negative": "Neg",
            "abs": "Abs",
            "sign": "Sign",
            "matmul": "MatMul",
        }.items()
    },
    "square of integers": _square,
    "clip of integers": _between,
    "einsum of integers": _einsum,
    "sum of integers": _reducing("ReduceSum", "output"),
    "max of integers": _largest("ReduceMax"),
    "min of integers": _largest("ReduceMin"),
}
