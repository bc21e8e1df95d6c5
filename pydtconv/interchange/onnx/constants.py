"""Nodes of an ONNX file that depend on no input: computed by NumPy while the file is read, within a limit of bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.files.reading import BadFileError
from pydtconv.interchange.onnx.call import BATCH, Call, check_size
from pydtconv.interchange.onnx.export_functions import TYPES

_DTYPES = {number: name for name, number in TYPES.items() if name != "bfloat16"} | {10: "float32", 16: "float32"}


def compute(call: Call) -> Any:
    """The output of a node whose inputs are all known, or a list.  Raises an error that names the operator."""
    row = ROWS.get(call.kind)
    if row is None:
        raise call.error("this operator is not supported on constants")
    try:
        with np.errstate(all="ignore"):
            result = row(call, *call.x)
    except BadFileError:
        raise
    except (TypeError, IndexError, ValueError) as error:
        raise call.error(str(error)) from error
    call.check_attributes()
    return np.asarray(result) if isinstance(result, np.generic) else result


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """An element-wise function of arrays that broadcast; the dtype stays."""

    def row(call: Call, *x: Any) -> np.ndarray:
        check_size(call, np.broadcast_shapes(*(array.shape for array in x)))
        return np.asarray(function(*x))

    return row


def _copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that may copy its first input."""

    def row(call: Call, x: np.ndarray, *rest: Any) -> Any:
        check_size(call, x.shape)
        return function(call, x, *rest)

    return row


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, *x: np.asarray(_each(function)(call, *x)).astype(x[0].dtype)


def _divide(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind not in "iu":
        return a / b
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _constant(call: Call) -> np.ndarray:
    for name, dtype in (
        ("value", None),
        ("value_int", "int64"),
        ("value_ints", "int64"),
        ("value_float", "float32"),
        ("value_floats", "float32"),
    ):
        value = call.attribute(name)
        if value is not None:
            return np.asarray(value, dtype)
    raise call.error("expected numbers, got none")


def _constant_of_shape(call: Call, shape: np.ndarray) -> np.ndarray:
    value = call.attribute("value", np.zeros(1, "float32"))
    check_size(call, shape.tolist(), value.dtype.itemsize)
    return np.full(shape.tolist(), value.reshape(-1)[0])


def _range(call: Call, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    steps = (limit.item() - start.item()) / delta.item()
    check_size(call, [max(math.ceil(steps), 0)])
    return np.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def _expand(call: Call, x: np.ndarray, shape: np.ndarray) -> Any:
    whole = np.broadcast_shapes(x.shape, tuple(shape.tolist()))
    if BATCH in whole and whole[0] == BATCH and BATCH not in whole[1:]:
        ones = np.ones(whole[1:] if math.prod(whole[1:]) * 8 <= call.builder.limit else (), "float32")
        return ops.multiply(ops.multiply(call.builder.ones(len(whole)), ones), x)
    check_size(call, whole)
    return np.array(np.broadcast_to(x, whole))


def _tile(call: Call, x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    check_size(call, [extent * times for extent, times in zip(x.shape, repeats.tolist(), strict=True)])
    return np.tile(x, repeats.tolist())


def _reshape(call: Call, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    zero = call.attribute("allowzero", 0)
    wanted = [x.shape[i] if not extent and not zero else int(extent) for i, extent in enumerate(shape)]
    return x.reshape(wanted)


def _slice(call: Call, x: np.ndarray, *parts: Any) -> np.ndarray:
    starts, stops = call.integers(1, "starts"), call.integers(2, "ends")
    assert starts is not None
    assert stops is not None
    axes, steps = call.integers(3, "axes") or range(len(starts)), call.integers(4, "steps") or [1] * len(starts)
    index = [slice(None)] * x.ndim
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        end = None if step < 0 and stop < -x.shape[axis] else stop
        index[axis] = slice(start, end, step)
    return x[tuple(index)]


def _axes(call: Call, x: np.ndarray, *rest: Any) -> tuple[int, ...] | None:
    axes = call.integers(1, "axes")
    return None if axes is None else tuple(axes)


def _squeeze(call: Call, x: np.ndarray, *rest: Any) -> np.ndarray:
    return np.squeeze(x, _axes(call, x))


def _unsqueeze(call: Call, x: np.ndarray, *rest: Any) -> np.ndarray:
    return np.expand_dims(x, _axes(call, x) or ())


def _reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    def row(call: Call, x: np.ndarray, *rest: Any) -> np.ndarray:
        axes, keepdims = _axes(call, x), bool(call.attribute("keepdims", 1))
        if not axes and call.attribute("noop_with_empty_axes", 0):
            return x
        return np.asarray(function(x, axis=axes or None, keepdims=keepdims)).astype(x.dtype)

    return row


def _gather(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    axis = call.attribute("axis", 0)
    place = axis + x.ndim if axis < 0 else axis
    check_size(call, [*x.shape[:place], *indices.shape, *x.shape[place + 1 :]])
    return np.take(x, indices, axis=axis)


def _concat(call: Call, *x: np.ndarray) -> np.ndarray:
    check_size(call, [sum(part.size for part in x)])
    return np.concatenate(x, call.attribute("axis", 0))


def _split(call: Call, x: np.ndarray, *rest: Any) -> list[np.ndarray]:
    sizes, axis = call.integers(1, "split"), call.attribute("axis", 0)
    call.expect("num_outputs", count := len(call.node.output))
    each = -(-x.shape[axis] // count)
    cuts = np.cumsum(sizes)[:-1] if sizes else [each * i for i in range(1, count)]
    return list(np.split(x, cuts, axis))


def _triangle(call: Call, x: np.ndarray, k: np.ndarray | None = None) -> np.ndarray:
    diagonal = 0 if k is None else int(np.ravel(k)[0])
    return (np.triu if call.attribute("upper", 1) else np.tril)(x, diagonal)


#: by the operator's name: from the call and its inputs to its output
ROWS: dict[str, Callable[..., Any]] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Range": _range,
    "Expand": _expand,
    "Tile": _tile,
    "Reshape": _copied(_reshape),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Gather": _gather,
    "Split": _split,
    "Trilu": _copied(_triangle),
    "Identity": lambda call, x: x,
    "Shape": lambda call, x: np.array(x.shape, "int64")[call.attribute("start", 0) : call.attribute("end", x.ndim)],
    "Size": lambda call, x: np.array(x.size, "int64"),
    "Cast": _copied(lambda call, x: x.astype(_DTYPES[call.attribute("to")])),
    "Concat": _concat,
    "Transpose": lambda call, x: x.transpose(call.attribute("perm")),
    "Flatten": _copied(lambda call, x: x.reshape(math.prod(x.shape[: call.attribute("axis", 1)]), -1)),
    "Add": _each(np.add),
    "Sub": _each(np.subtract),
    "Mul": _each(np.multiply),
    "Div": _each(_divide),
    "Mod": _each(np.mod),
    "Pow": _kept(np.power),
    "Neg": _each(np.negative),
    "Abs": _each(np.abs),
    "Exp": _each(np.exp),
    "Log": _each(np.log),
    "Sqrt": _each(np.sqrt),
    "Reciprocal": _each(np.reciprocal),
    "Floor": _each(np.floor),
    "Ceil": _each(np.ceil),
    "Round": _each(np.round),
    "Sign": _each(np.sign),
    "Min": lambda call, *x: _each(lambda *a: np.minimum.reduce(np.broadcast_arrays(*a)))(call, *x),
    "Max": lambda call, *x: _each(lambda *a: np.maximum.reduce(np.broadcast_arrays(*a)))(call, *x),
    "Equal": _each(np.equal),
    "Less": _each(np.less),
    "Greater": _each(np.greater),
    "LessOrEqual": _each(np.less_equal),
    "GreaterOrEqual": _each(np.greater_equal),
    "And": _each(np.logical_and),
    "Or": _each(np.logical_or),
    "Not": _each(np.logical_not),
    "Where": _each(np.where),
    "ReduceProd": _copied(_reduce(np.prod)),
    "ReduceSum": _copied(_reduce(np.sum)),
    "ReduceMax": _copied(_reduce(np.max)),
    "ReduceMin": _copied(_reduce(np.min)),
    "ReduceMean": _copied(_reduce(np.mean)),
}
