"""Rows of the table from ONNX to ours: functions of elements, reductions and products without weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.interchange.onnx.call import ROWS, Call, check_size, is_symbolic, row
from pydtconv.interchange.onnx.constants import _DTYPES
from pydtconv.ops.table_op import RULES

#: operators that are functions of ours, without attributes; rows of the table of functions name their own
_SAME: dict[str, Callable[..., Any]] = {
    **{rule.onnx: getattr(ops, name) for name, rule in RULES.items() if rule.onnx},
    "Abs": ops.abs,
    "Add": ops.add,
    "Exp": ops.exp,
    "HardSwish": ops.hard_silu,
    "Identity": lambda x: x,
    "IsNaN": ops.isnan,
    "Log": ops.log,
    "Mish": ops.mish,
    "Mul": ops.multiply,
    "Neg": ops.negative,
    "Pow": ops.power,
    "Reciprocal": ops.reciprocal,
    "Relu": ops.relu,
    "Round": ops.round,
    "Sigmoid": ops.sigmoid,
    "Sign": ops.sign,
    "Softplus": ops.softplus,
    "Softsign": ops.softsign,
    "Sqrt": ops.sqrt,
    "Sub": ops.subtract,
    "Tanh": ops.tanh,
}


def _operands(call: Call) -> list[Any]:
    """Inputs as functions take them: constants of one element as numbers.

    Before version 7 the axes of the second one stand at `axis` of the first; by default they are the last ones.
    """
    if call.attribute("broadcast", 0) and call.attribute("axis") is not None:
        x, y = call.x
        behind = len(x.shape) - call.attribute("axis") % len(x.shape) - len(y.shape)
        call.x[1] = ops.reshape(y, (*y.shape, *(1,) * behind))
    return [value if is_symbolic(value) or value.size != 1 or value.ndim else value.item() for value in call.x]


def _same(function: Callable[..., Any]) -> Callable[[Call], Any]:
    return lambda call: function(*(_operands(call) if len(call.x) > 1 else call.x))


ROWS.update({name: _same(function) for name, function in _SAME.items()})


@row("Div")
def _divide(call: Call) -> Any:
    """Of whole numbers towards zero."""
    y = ops.divide(*_operands(call))
    return ops.trunc(y) if call.is_integer else y


@row("Cast")
def _cast(call: Call) -> Any:
    """Between floats nothing; to integers the fraction is cut off."""
    dtype = _DTYPES.get(call.attribute("to"))
    call.attribute("saturate")
    if dtype is None:
        raise call.error(f"to: expected a number type, got {call.attribute('to')}")
    x = call.x[0]
    if dtype.startswith("float"):
        return x if str(x.dtype).startswith("float") else ops.cast(x, "float32")
    return ops.cast(x, dtype)


@row("Sum", "Max", "Min", "Mean")
def _several(call: Call) -> Any:
    function = {"Sum": ops.add, "Max": ops.maximum, "Min": ops.minimum, "Mean": ops.add}[call.kind]
    total, *rest = _operands(call)
    for value in rest:
        total = function(total, value)
    return ops.divide(total, len(call.x)) if call.kind == "Mean" else total


@row("LeakyRelu")
def _leaky_relu(call: Call) -> Any:
    return ops.leaky_relu(call.x[0], call.attribute("alpha", 0.01))


@row("Elu")
def _elu(call: Call) -> Any:
    return ops.elu(call.x[0], call.attribute("alpha", 1.0))


@row("Celu")
def _celu(call: Call) -> Any:
    return ops.celu(call.x[0], call.attribute("alpha", 1.0))


@row("Selu")
def _selu(call: Call) -> Any:
    alpha, gamma = call.attribute("alpha", 1.6732632423543772), call.attribute("gamma", 1.0507009873554805)
    return ops.multiply(ops.elu(call.x[0], alpha), gamma)


@row("HardSigmoid")
def _hard_sigmoid(call: Call) -> Any:
    alpha, beta = call.attribute("alpha", 0.2), call.attribute("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return ops.hard_sigmoid(call.x[0])
    return ops.clip(ops.affine(call.x[0], alpha, beta), 0.0, 1.0)


@row("ThresholdedRelu")
def _thresholded(call: Call) -> Any:
    return ops.threshold(call.x[0], call.attribute("alpha", 1.0), 0.0)


@row("Shrink")
def _shrink(call: Call) -> Any:
    x, least, bias = call.x[0], call.attribute("lambd", 0.5), call.attribute("bias", 0.0)
    if bias == 0:
        return ops.hard_shrink(x, least)
    above, below = ops.greater(x, least), ops.less(x, -least)
    return ops.where(above, x - bias, ops.where(below, x + bias, 0.0))


@row("Gelu")
def _gelu(call: Call) -> Any:
    return ops.gelu(call.x[0], call.attribute("approximate", "none") == "tanh")


@row("Swish")
def _swish(call: Call) -> Any:
    alpha = call.attribute("alpha", 1.0)
    return ops.silu(call.x[0]) if alpha == 1 else ops.multiply(call.x[0], ops.sigmoid(ops.multiply(call.x[0], alpha)))


@row("Clip")
def _clip(call: Call) -> Any:
    low, high = call.attribute("min"), call.attribute("max")
    ends = [call.constant(1, "min") if low is None else low, call.constant(2, "max") if high is None else high]
    low = -math.inf if ends[0] is None else float(ends[0])
    high = math.inf if ends[1] is None else float(ends[1])
    if low > high:  # the upper one holds
        return ops.clip(call.x[0], high, high)
    return ops.relu6(call.x[0]) if (low, high) == (0, 6) else ops.clip(call.x[0], low, high)


@row("IsInf")
def _isinf(call: Call) -> Any:
    below, above = call.attribute("detect_negative", 1), call.attribute("detect_positive", 1)
    if below and above:
        return ops.isinf(call.x[0])
    if not below and not above:
        return ops.logical_and(ops.isinf(call.x[0]), False)
    return ops.isneginf(call.x[0]) if below else ops.isposinf(call.x[0])


@row("Mod")
def _mod(call: Call) -> Any:
    return (ops.fmod if call.attribute("fmod", 0) else ops.mod)(*_operands(call))


@row("Where")
def _where(call: Call) -> Any:
    return ops.where(*_operands(call))


def _axis_of(call: Call, default: int) -> int:
    rank = len(call.x[0].shape)
    axis = call.attribute("axis", default)
    if not -rank <= axis < rank:
        raise call.error(f"axis: expected {-rank} to {rank - 1}, got {axis}")
    return axis % rank


@row("Softmax", "LogSoftmax", "Hardmax")
def _softmax(call: Call) -> Any:
    """Before version 13 over all axes from `axis` on."""
    old = call.opset < 13
    axis, x = _axis_of(call, 1 if old else -1), call.x[0]
    function = {"Softmax": ops.softmax, "LogSoftmax": ops.log_softmax, "Hardmax": _hardmax}[call.kind]
    if not old or axis == len(x.shape) - 1:
        return function(x, axis)
    shape = tuple(-1 if extent is None else extent for extent in x.shape)
    return ops.reshape(function(ops.reshape(x, (*shape[:axis], math.prod(shape[axis:]))), -1), shape)


def _hardmax(x: Any, axis: int) -> Any:
    return ops.moveaxis(ops.one_hot(ops.argmax(x, axis), x.shape[axis]), -1, axis)


@row("MeanVarianceNormalization")
def _standardized(call: Call) -> Any:
    axes = tuple(call.attribute("axes", [0, 2, 3]))
    x = ops.subtract(call.x[0], ops.mean(call.x[0], axes, keepdims=True))
    return ops.divide(x, ops.add(ops.sqrt(ops.mean(ops.square(x), axes, keepdims=True)), 1e-9))


@row("LpNormalization")
def _lp_normalization(call: Call) -> Any:
    axis, p, x = call.attribute("axis", -1), call.attribute("p", 2), call.x[0]
    size = ops.sum(ops.abs(x) if p == 1 else ops.square(x), axis, keepdims=True)
    return ops.divide_no_nan(x, size if p == 1 else ops.sqrt(size))


#: neighbours that are added up one by one
_LONGEST_SUM = 1024


@row("LRN")
def _lrn(call: Call) -> Any:
    """x / (bias + alpha / size * the sum of squares over neighbouring channels) ** beta."""
    x, size = call.x[0], call.attribute("size")
    alpha, beta, bias = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75), call.attribute("bias", 1.0)
    channels = x.shape[1]
    before, after = (min(reach, channels - 1) for reach in ((size - 1) // 2, size // 2))
    if size < 1 or before + after > _LONGEST_SUM:
        raise call.error(f"size: expected 1 to {_LONGEST_SUM}, got {size}")
    widths = [(0, 0)] * len(x.shape)
    widths[1] = (before, after)
    squares = ops.pad(ops.square(x), widths)
    total = ops.slice_along(squares, 1, 0, channels)
    for shift in range(1, before + after + 1):
        total = ops.add(total, ops.slice_along(squares, 1, shift, shift + channels))
    return ops.divide(x, ops.power(ops.affine(total, alpha / size, bias), beta))


# -- reductions --------------------------------------------------------------------------------------------------------


def _sum_of(before: Callable[..., Any] | None, after: Callable[..., Any] | None) -> Callable[..., Any]:
    def function(x: Any, axis: Any, keepdims: bool) -> Any:
        y = ops.sum(x if before is None else before(x), axis, keepdims)
        return y if after is None else after(y)

    return function


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceL1": _sum_of(ops.abs, None),
    "ReduceL2": _sum_of(ops.square, ops.sqrt),
    "ReduceLogSum": _sum_of(None, ops.log),
    "ReduceLogSumExp": ops.logsumexp,
    "ReduceMax": ops.max,
    "ReduceMean": ops.mean,
    "ReduceMin": ops.min,
    "ReduceProd": ops.prod,
    "ReduceSum": ops.sum,
    "ReduceSumSquare": _sum_of(ops.square, None),
}


@row(*_REDUCTIONS)
def _reduce(call: Call) -> Any:
    axes, keepdims = call.integers(1, "axes"), bool(call.attribute("keepdims", 1))
    empty = call.attribute("noop_with_empty_axes", 0)
    if not axes and empty:
        return call.x[0]
    return _REDUCTIONS[call.kind](call.x[0], tuple(axes) if axes else None, keepdims)


@row("ArgMax", "ArgMin")
def _argument(call: Call) -> Any:
    axis, keepdims = _axis_of(call, 0), bool(call.attribute("keepdims", 1))
    call.expect("select_last_index", 0)
    return (ops.argmax if call.kind == "ArgMax" else ops.argmin)(call.x[0], axis, keepdims)


@row("CumSum", "CumProd")
def _cumulated(call: Call) -> Any:
    axis = call.constant(1, "axis")
    call.expect("exclusive", 0)
    function = ops.cumsum if call.kind == "CumSum" else ops.cumprod
    assert axis is not None
    if call.attribute("reverse", 0):
        return ops.flip(function(ops.flip(call.x[0], int(axis)), int(axis)), int(axis))
    return function(call.x[0], int(axis))


@row("TopK")
def _top_k(call: Call) -> Any:
    x, axis = call.x[0], _axis_of(call, -1)
    call.attribute("sorted", 1)
    k = call.attribute("k") if call.opset < 10 else (call.integers(1, "K") or [1])[0]
    last, largest = axis == len(x.shape) - 1, call.attribute("largest", 1)
    x = x if last else ops.moveaxis(x, axis, -1)
    values, indices = ops.top_k(x if largest else ops.negative(x), k)
    values = values if largest else ops.negative(values)
    if last:
        return [values, indices]
    return [ops.moveaxis(values, -1, axis), ops.moveaxis(ops.cast(indices, "float32"), -1, axis)]


@row("Einsum")
def _einsum(call: Call) -> Any:
    return ops.einsum(call.attribute("equation").replace(" ", ""), *call.x)


@row("Det")
def _det(call: Call) -> Any:
    return ops.det(call.x[0])


@row("OneHot")
def _one_hot(call: Call) -> Any:
    depth, values = call.constant(1, "depth"), call.constant(2, "values")
    assert depth is not None
    assert values is not None
    count, (off, on) = int(np.ravel(depth)[0]), values.tolist()
    x, axis = call.x[0], call.attribute("axis", -1)
    axis = axis + len(x.shape) + 1 if axis < 0 else axis
    x = ops.expand_dims(ops.where(ops.less(x, 0), ops.add(x, count), x), axis)
    check_size(call, [count])
    places = np.arange(count).reshape([-1 if d == axis else 1 for d in range(len(x.shape))])
    hot = ops.cast(ops.equal(x, places.astype("float32")), "float32")
    return hot if (off, on) == (0, 1) else ops.affine(hot, on - off, off)


@row("Attention")
def _attention(call: Call) -> Any:
    """Of four axes (n, heads, tokens, features), or of three with the heads side by side."""
    call.expect("qk_matmul_output_mode", 0)
    call.expect("softmax_precision", None, 1)
    q, k, v = call.x[:3]
    if any(value is not None for value in call.x[4:]):
        raise call.error("past_key: expected none")
    flat = len(q.shape) == 3
    if flat:
        heads = (call.attribute("q_num_heads"), call.attribute("kv_num_heads"), call.attribute("kv_num_heads"))
        q, k, v = (
            ops.transpose(ops.reshape(x, (-1, x.shape[1], n, x.shape[2] // n)), (0, 2, 1, 3))
            for x, n in zip((q, k, v), heads, strict=True)
        )
    scale = call.attribute("scale") or 1 / math.sqrt(q.shape[-1])
    repeats = q.shape[1] // k.shape[1]
    if repeats > 1:
        k, v = (ops.repeat(x, repeats, axis=1) for x in (k, v))
    scores = ops.multiply(ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))), scale)
    mask = call.input(3)
    seen: Any = True
    if mask is not None and is_symbolic(mask) and call.node.input[3] in call.builder.integers:
        raise call.error("attn_mask: expected floats, or a constant, got whole numbers that depend on the inputs")
    if mask is not None and not is_symbolic(mask) and mask.dtype == bool:
        seen, mask = mask, None
    cap = call.attribute("softcap", 0.0)
    if cap:
        scores = ops.multiply(ops.tanh(ops.divide(scores, cap)), cap)
    if mask is not None:
        scores = ops.add(scores, mask)
    if call.attribute("is_causal", 0):
        check_size(call, [q.shape[2], k.shape[2]])
        seen = np.logical_and(seen, np.tril(np.ones((q.shape[2], k.shape[2]), "bool")))
    if seen is not True:
        scores = ops.add(scores, np.where(seen, 0, -1e30).astype("float32"))
    y = ops.matmul(ops.softmax(scores, -1), v)
    if seen is not True and not seen.any(-1).all():  # queries that see nothing get 0
        y = ops.multiply(y, seen.any(-1, keepdims=True).astype("float32"))
    return ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, y.shape[2], y.shape[1] * y.shape[3])) if flat else y
