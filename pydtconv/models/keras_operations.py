"""Single operators of functional models as operations of `keras.ops`, so that Keras opens the files that hold them.

A row turns an operator into Keras's class, its config and the arguments of the call.  What Keras has no operation for
stays an operator of ours in the file, which Keras refuses by its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pydtconv import ops
from pydtconv.layers.symbolic import Node


class Described(NamedTuple):
    """An operation: its class as "module.Class", its config, and the arguments of a call made of the operator's.

    padding: pairs for each axis where the input is padded first, with minus infinity.
    """

    path: str
    config: dict[str, Any]
    arguments: Callable[[tuple[Any, ...]], tuple[list[Any], dict[str, Any]]]
    padding: tuple[tuple[int, int], ...] | None = None


def _plain(args: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
    return list(args), {}


def described(op: Any, node: Node) -> Described | None:
    """The operation of Keras that does what the operator does; None where there is none."""
    row = _ROWS.get(type(op))
    return None if row is None else row(op, node)


def _simple(path: str, *fields: str) -> Callable[[Any, Node], Described]:
    """An operation whose config has some of the operator's fields."""
    return lambda op, node: Described(path, {field: getattr(op, field) for field in fields}, _plain)


def _binary(op: Any, node: Node) -> Described:
    return Described(f"numpy.{type(op).__name__}", {}, _plain)


def _add(op: Any, node: Node) -> Described | None:
    if op.activation or op.average or len(node.args) != 2:
        return None
    return Described("numpy.Add", {}, _plain)


def _with(path: str, before: Any = None, after: Any = None) -> Described:
    """An operation on a number and the tensor."""

    def arguments(args: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        return [*([] if before is None else [before]), args[0], *([] if after is None else [after])], {}

    return Described(path, {}, arguments)


def _affine(scale: float, offset: float) -> Described | None:
    if scale == 1:
        return _with("numpy.Add", after=offset)
    if scale == 0:
        return _with("numpy.FullLike", after=offset)
    if offset == 0:
        return Described("numpy.Negative", {}, _plain) if scale == -1 else _with("numpy.Multiply", after=scale)
    return _with("numpy.Subtract", before=offset) if scale == -1 else None


def _clip(low: float, high: float) -> Described:
    if math.isinf(high):
        return _with("numpy.Maximum", after=low)
    if math.isinf(low):
        return _with("numpy.Minimum", after=high)
    return Described("numpy.Clip", {"x_min": low, "x_max": high}, _plain)


def _elu(alpha: float, scale: float, width: float) -> Described | None:
    if scale == width == 1:
        return Described("nn.Elu", {"alpha": alpha}, _plain)
    if scale == 1 and width == alpha:
        return Described("nn.Celu", {"alpha": alpha}, _plain)
    selu = abs(alpha - 1.6732632423543772) < 1e-12 and abs(scale - 1.0507009873554805) < 1e-12
    return Described("nn.Selu", {}, _plain) if selu else None


def _hard_sigmoid(slope: float) -> Described | None:
    if abs(slope - 1 / 6) < 1e-12:
        return Described("nn.HardSigmoid", {}, _plain)
    return Described("nn.SparseSigmoid", {}, _plain) if slope == 0.5 else None


#: kinds of activations without parameters
_KINDS = {
    "relu": "nn.Relu",
    "relu6": "nn.Relu6",
    "sigmoid": "nn.Sigmoid",
    "tanh": "numpy.Tanh",
    "exponential": "numpy.Exp",
    "softplus": "nn.Softplus",
    "sqrt": "numpy.Sqrt",
    "reciprocal": "numpy.Reciprocal",
    "silu": "nn.Silu",
    "softsign": "nn.Softsign",
    "hard_silu": "nn.HardSilu",
    "log_sigmoid": "nn.LogSigmoid",
    "tanh_shrink": "nn.TanhShrink",
    "sparse_plus": "nn.SparsePlus",
    "abs": "numpy.Abs",
    "square": "numpy.Square",
    "log": "numpy.Log",
    "sign": "numpy.Sign",
}
#: kinds with parameters: from these to the operation
_PARAMETRIC: dict[str, Callable[..., Described | None]] = {
    "affine": _affine,
    "clip": _clip,
    "elu": _elu,
    "hard_sigmoid": _hard_sigmoid,
    "gelu": lambda: Described("nn.Gelu", {"approximate": False}, _plain),
    "gelu_tanh": lambda: Described("nn.Gelu", {"approximate": True}, _plain),
    "leaky_relu": lambda slope: Described("nn.LeakyRelu", {"negative_slope": slope}, _plain),
    "threshold": lambda least, value: Described("nn.Threshold", {"threshold": least, "default_value": value}, _plain),
    "hard_shrink": lambda least: Described("nn.HardShrink", {"threshold": least}, _plain),
    "soft_shrink": lambda least: Described("nn.SoftShrink", {"threshold": least}, _plain),
    "squareplus": lambda b: Described("nn.Squareplus", {"b": b}, _plain),
    "power": lambda exponent: _with("numpy.Power", after=exponent),
}
_COUNTS = {"affine": 2, "clip": 2, "elu": 3, "gelu": 0, "gelu_tanh": 0, "threshold": 2}


def _activation(op: Any, node: Node) -> Described | None:
    if op.kind in _KINDS:
        return Described(_KINDS[op.kind], {}, _plain)
    made = _PARAMETRIC.get(op.kind)
    return None if made is None else made(*op.parameters[: _COUNTS.get(op.kind, 1)])


def _reduction(name: str) -> Callable[[Any, Node], Described]:
    def row(op: Any, node: Node) -> Described:
        more = {"initial": None} if name in ("Max", "Min") else {}
        axis = list(op.axis) if isinstance(op.axis, tuple) else op.axis
        return Described(f"numpy.{name}", {"axis": axis, "keepdims": op.keepdims, **more}, _plain)

    return row


def _pad(op: Any, node: Node) -> Described:
    def arguments(args: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        return list(args), {"constant_values": op.value if op.value and op.mode == "constant" else None}

    return Described("numpy.Pad", {"pad_width": [list(pair) for pair in op.padding], "mode": op.mode}, arguments)


def _reshape(op: Any, node: Node) -> Described | None:
    shape = node.outputs.shape
    if shape.count(None) > 1:
        return None
    return Described("numpy.Reshape", {"newshape": [-1 if extent is None else extent for extent in shape]}, _plain)


def _concatenate(op: Any, node: Node) -> Described:
    return Described("numpy.Concatenate", {"axis": op.axis}, lambda args: ([list(args)], {}))


def _slice(op: Any, node: Node) -> Described:
    parts = [slice(a or None, b) for a, b in zip(op.start, op.stop, strict=True)]
    return Described("numpy.GetItem", {}, lambda args: ([args[0], parts], {}))


def _pool(op: Any, node: Node) -> Described | None:
    largest = isinstance(op, ops.MaxPool)
    padded = not isinstance(op.padding, str)
    if not largest and (padded or op.count_include_pad):
        return None
    config = {
        "pool_size": list(op.pool_size),
        "strides": list(op.strides or op.pool_size),
        "padding": "valid" if padded else op.padding,
        "data_format": "channels_last",
    }
    sides = ((0, 0), *op.padding, (0, 0)) if padded and any(map(any, op.padding)) else None
    return Described("nn.MaxPool" if largest else "nn.AveragePool", config, _plain, sides)


def _dense(op: Any, node: Node) -> Described | None:
    plain = op.activation is None and not op.residual and not op.wide and len(node.args) == 2
    return Described("numpy.Matmul", {}, _plain) if plain else None


def _layer_norm(op: Any, node: Node) -> Described | None:
    config = {"axis": op.axis, "epsilon": op.epsilon}
    return None if op.rms or not (op.center and op.scale) else Described("nn.LayerNorm", config, _plain)


def _resized(static: Mapping[str, Any], rank: int) -> Described | None:
    """Filters along rows and columns."""
    axes, filters = static["axes"], static["filters"]
    layouts = {(rank - 3, rank - 2): "channels_last", (rank - 2, rank - 1): "channels_first"}
    if axes not in layouts or {each[0] for each in filters} != {"resize"} or len({each[2:] for each in filters}) > 1:
        return None
    kind, antialias = filters[0][2:]
    config = {"size": [each[1] for each in filters], "antialias": antialias}
    config["interpolation"] = "bilinear" if kind == "linear" else kind
    return Described("image.Resize", {**config, "data_format": layouts[axes]}, _plain)


def _patches(static: Mapping[str, Any]) -> Described | None:
    if len(static["size"]) != 2 or len(set(static["dilation"])) > 1:
        return None
    config = {"size": list(static["size"]), "strides": list(static["strides"]), "dilation_rate": static["dilation"][0]}
    return Described("image.ExtractPatches", {**config, "padding": "valid", "data_format": "channels_last"}, _plain)


def _numpy_op(op: Any, node: Node) -> Described | None:
    return Described("nn.Sparsemax", {"axis": -1}, _plain) if op.label == "sparsemax" else None


#: functions of the table that are in other modules of Keras than numpy
_MODULES = {
    **dict.fromkeys(("one_hot", "depth_to_space", "space_to_depth"), "nn"),
    **dict.fromkeys(("erf", "erfc", "erfinv", "top_k", "in_top_k", "logdet"), "math"),
    **dict.fromkeys(("segment_sum", "segment_max", "segment_min", "segment_prod"), "math"),
    **dict.fromkeys(("stop_gradient", "scatter", "scatter_update", "slice_update"), "core"),
    **dict.fromkeys(("det", "inv", "cholesky", "cholesky_inverse", "solve", "qr", "eigh", "lstsq"), "linalg"),
    **dict.fromkeys(("lu_factor", "matrix_rank", "pinv", "solve_triangular"), "linalg"),
}
#: functions of the table that Keras has as operations with the same settings
# fmt: off
_SAME = frozenset([
    "all", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmin", "argsort",
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "broadcast_to", "cbrt", "ceil", "cholesky", "cholesky_inverse", "corrcoef", "cos", "cosh",
    "count_nonzero", "cumprod", "cumsum", "deg2rad", "depth_to_space", "det", "diag", "diagflat", "diagonal",
    "digitize", "divide_no_nan", "equal", "erf", "erfc", "erfinv", "exp2", "expm1", "fabs", "flip", "fliplr",
    "flipud", "floor", "floor_divide", "fmax", "fmin", "fmod", "gcd", "greater", "greater_equal", "heaviside",
    "hypot", "i0", "in_top_k", "inv", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "lcm",
    "ldexp", "left_shift", "less", "less_equal", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logdet",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lstsq", "lu_factor", "matrix_rank", "median", "mod",
    "nan_to_num", "nanargmax", "nanargmin", "nanmedian", "nextafter", "not_equal", "one_hot", "pinv", "prod",
    "rad2deg", "repeat", "right_shift", "roll", "rot90", "round", "segment_max", "segment_min", "segment_prod",
    "segment_sum", "signbit", "sin", "sinc", "sinh", "slogdet", "solve", "solve_triangular", "sort",
    "space_to_depth", "stop_gradient", "take", "take_along_axis", "tan", "tile", "top_k", "tril", "triu", "trunc",
    "where",
])
# fmt: on

#: functions of the table whose operations have names of their own
_OTHERS = {
    **{name: f"math.{name.upper()}" for name in ("fft", "fft2", "ifft2", "rfft", "irfft", "stft", "istft")},
    "ctc_loss": "nn.CTCLoss",
    "ctc_decode": "nn.CTCDecode",
}


def _table(op: Any, node: Node) -> Described | None:
    static = dict(op.static)
    if op.function == "_index":
        key = [_part(part) for part in static["key"]]
        if any(isinstance(part, list) for part in key):
            return None
        return Described("numpy.GetItem", {}, lambda args: ([args[0], key], {}))
    if op.function == "_along":
        return _resized(static, len(node.outputs.shape))
    if op.function == "_patches":
        return _patches(static)
    if "op" in static:  # elements of integers that are moved
        return described(static["op"], node)
    if op.function.endswith(" of integers"):
        name = op.function.removesuffix(" of integers")
        if name == "clip":
            low, high = (np.asarray(limit).tolist() for limit in node.args[1:])
            return Described("numpy.Clip", {"x_min": low, "x_max": high}, lambda args: ([args[0]], {}))
        config = {key: value for key, value in static.items() if key == "subscripts"}
        return Described("numpy." + {"abs": "Absolute"}.get(name, name.capitalize()), config, _plain)
    if op.function in _OTHERS:
        pairs = op.function in ("fft", "fft2", "ifft2", "irfft", "istft")
        return Described(_OTHERS[op.function], static, (lambda args: ([list(args)], {})) if pairs else _plain)
    if op.function not in _SAME:
        return None
    name = "".join(part.capitalize() for part in op.function.split("_"))
    config = {key: list(value) if isinstance(value, tuple) else value for key, value in static.items()}
    config = {key: value for key, value in config.items() if not (key == "dtype" and value is None)}
    if op.function == "one_hot":
        config.setdefault("dtype", node.outputs.dtype)
    return Described(f"{_MODULES.get(op.function, 'numpy')}.{name}", config, _plain)


def _part(part: Any) -> Any:
    if isinstance(part, tuple):
        return slice(*part[1:]) if part[0] == "slice" else list(part[1:])
    return part


_ROWS: Mapping[type, Callable[[Any, Node], Described | None]] = {
    ops.Activation: _activation,
    ops.Add: _add,
    **dict.fromkeys((ops.Subtract, ops.Multiply, ops.Divide, ops.Maximum, ops.Minimum, ops.Power), _binary),
    ops.MatMul: _simple("numpy.Matmul"),
    ops.Dense: _dense,
    ops.Contract: lambda op, node: Described("numpy.Einsum", {"subscripts": f"{op.a},{op.b}->{op.c}"}, _plain),
    ops.Softmax: _simple("nn.Softmax", "axis"),
    ops.LogSoftmax: _simple("nn.LogSoftmax", "axis"),
    ops.Sum: _reduction("Sum"),
    ops.Mean: _reduction("Mean"),
    ops.Max: _reduction("Max"),
    ops.Min: _reduction("Min"),
    ops.LayerNorm: _layer_norm,
    ops.NumpyOp: _numpy_op,
    ops.ArgMax: _simple("numpy.Argmax", "axis", "keepdims"),
    ops.Pad: _pad,
    ops.Reshape: _reshape,
    ops.Transpose: _simple("numpy.Transpose", "axes"),
    ops.Concatenate: _concatenate,
    ops.Slice: _slice,
    ops.Cast: _simple("core.Cast", "dtype"),
    ops.MaxPool: _pool,
    ops.AveragePool: _pool,
    ops.TableOp: _table,
}
