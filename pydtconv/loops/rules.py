"""Rules of `GradientTape` inside another tape's block: the gradient of an operator, as operators.

A rule takes the node, its inputs and outputs, the gradient dy of its output, and gives one for each input (None where
there is none).  What it computes can be differentiated again.  Operators without a rule are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import real
from pydtconv.graph.ir.graph import Node
from pydtconv.ops.convolution import Conv
from pydtconv.ops.convolution_transpose import ConvTranspose

Rule = Callable[[Node, Sequence[Any], Any, Any], Sequence[Any]]


def _unbroadcast(g: Any, shape: Sequence[int]) -> Any:
    """The sum over the axes along which an operand of this shape was repeated."""
    extra = len(g.shape) - len(shape)
    axes = (*range(extra), *(i + extra for i, e in enumerate(shape) if e == 1 and g.shape[i + extra] != 1))
    return ops.reshape(ops.sum(g, axis=axes), tuple(shape)) if axes else g


def _spread(g: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """g, of which axes were reduced, repeated along these."""
    kept = tuple(1 if i in axes else e for i, e in enumerate(shape))
    return ops.multiply(ops.reshape(g, kept), np.ones(tuple(shape), real(g.dtype)))


# --- element by element -----------------------------------------------------------------------------------------------


def _between(x: Any, low: float, high: float, dy: Any, otherwise: Any = 0.0) -> Any:
    return ops.where(ops.logical_and(x > low, x < high), dy, otherwise)


def _pieces(node: Node, x: Any, dy: Any) -> Any:
    """The gradient of an activation that is made of straight pieces; None for another one.

    Where a piece is constant, dy is left out, not multiplied by 0: it may be infinite.
    """
    op: Any = node.op
    a, b, c = op.parameters
    gradients: dict[str, Callable[[], Any]] = {
        "relu": lambda: ops.where(x > 0.0, dy, 0.0),
        "relu6": lambda: _between(x, 0.0, 6.0, dy),
        "clip": lambda: _between(x, a, b, dy, ops.where(ops.logical_or(ops.equal(x, a), ops.equal(x, b)), c * dy, 0.0)),
        "leaky_relu": lambda: ops.where(x > 0.0, dy, a * dy if a else 0.0),
        "abs": lambda: ops.where(ops.equal(x, 0.0), 0.0, dy * ops.sign(x)),
    }
    return gradients[op.kind]() if op.kind in gradients else None


def _slope(node: Node, x: Any, y: Any) -> Any:
    """The derivative of a smooth activation; None where it is 0, a number where it is the same everywhere."""
    op: Any = node.op
    a = op.parameters[0]
    slopes: dict[str, Callable[[], Any]] = {
        "linear": lambda: 1.0,
        "affine": lambda: a,
        "sign": lambda: None,
        "square": lambda: x * 2.0,
        "sqrt": lambda: 0.5 / y,
        "reciprocal": lambda: -ops.square(y),
        "exponential": lambda: y,
        "log": lambda: 1.0 / x,
        "power": lambda: 0.0 if a == 0 else a * ops.power(x, a - 1.0),
        "tanh": lambda: 1.0 - ops.square(y),
        "sigmoid": lambda: y * (1.0 - y),
        "softplus": lambda: ops.sigmoid(x),
        "silu": lambda: (s := ops.sigmoid(x)) * (1.0 + x * (1.0 - s)),
        "gelu": lambda: (
            0.5 * (1.0 + ops.erf(x * math.sqrt(0.5)))
            + x * ops.exp(ops.square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        ),
    }
    if op.kind not in slopes:
        raise _refused(op.kind)
    return slopes[op.kind]()


def _activation(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    found = _pieces(node, x[0], dy)
    if found is not None:
        return [found]
    slope = _slope(node, x[0], y)
    return [None if slope is None else dy * slope]


def _add(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    _plain(node)
    g = dy / float(len(x)) if op.average else dy
    return [_unbroadcast(g, each.shape) for each in x]


def _subtract(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [_unbroadcast(dy, x[0].shape), _unbroadcast(-dy, x[1].shape)]


def _multiply(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [_unbroadcast(dy * x[1], x[0].shape), _unbroadcast(dy * x[0], x[1].shape)]


def _divide(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [_unbroadcast(dy / x[1], x[0].shape), _unbroadcast(-(dy * y) / x[1], x[1].shape)]


def _larger(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    mine = ops.where(ops.equal(x[0], x[1]), 0.5 * dy, dy)
    return [_unbroadcast(ops.where(ops.equal(each, y), mine, 0.0), each.shape) for each in x]


def _power(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    base, exponent = x
    less = ops.where(ops.equal(exponent, 0.0), 0.0, exponent - 1.0)  # 0^-1 is no number
    first = dy * exponent * ops.power(base, less)
    return [_unbroadcast(first, base.shape), _unbroadcast(dy * y * ops.log(base), exponent.shape)]


# --- sums -------------------------------------------------------------------------------------------------------------


def _axes(node: Node) -> tuple[int, ...]:
    axis, rank = node.op.axis, len(node.inputs[0].shape)  # type: ignore[attr-defined]
    every = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(i % rank for i in every)


def _sum(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [_spread(dy, x[0].shape, _axes(node))]


def _mean(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    count = math.prod(x[0].shape[i] for i in _axes(node))
    return [_spread(dy / float(count), x[0].shape, _axes(node))]


def _extremum(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    axes = _axes(node)
    equal = ops.equal(x[0], _spread(y, x[0].shape, axes))
    count = ops.sum(ops.cast(equal, dy.dtype), axis=axes, keepdims=True)
    return [ops.where(equal, _spread(dy, x[0].shape, axes) / count, 0.0)]


def _global_average(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    shape = x[0].shape
    axes = tuple(range(1, len(shape) - 1))
    return [_spread(dy / float(math.prod(shape[1:-1])), shape, axes)]


def _weighted_mean(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    if op.reduction == "mean_with_sample_weight" and len(x) > 1:
        raise _refused("WeightedMean of mean_with_sample_weight")
    shape = x[0].shape
    g = dy if op.reduction == "sum" else dy / float(math.prod(shape))
    g = _spread(g, shape, tuple(range(len(shape))))
    if len(x) > 1:
        weights = ops.reshape(x[1], (*x[1].shape, *(1,) * (len(shape) - len(x[1].shape))))
        g = g * weights
    return [g, *[None] * (len(x) - 1)]


def _weighted_sum(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    weights = node.op.weights or (1.0,) * len(x)  # type: ignore[attr-defined]
    return [dy * float(weight) for weight in weights]


# --- shapes -----------------------------------------------------------------------------------------------------------


def _reshape(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [ops.reshape(dy, tuple(x[0].shape))]


def _transpose(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    order = node.op.order(len(x[0].shape))  # type: ignore[attr-defined]
    return [ops.transpose(dy, tuple(order.index(i) for i in range(len(order))))]


def _concatenate(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    axis, at, parts = node.op.axis % len(dy.shape), 0, []  # type: ignore[attr-defined]
    for each in x:
        key = tuple(slice(at, at + each.shape[axis]) if i == axis else slice(None) for i in range(len(dy.shape)))
        parts.append(dy[key])
        at += each.shape[axis]
    return parts


def _slice(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    start = node.op.start  # type: ignore[attr-defined]
    sides = [(a, e - a - g) for a, e, g in zip(start, x[0].shape, dy.shape, strict=True)]
    return [ops.pad(dy, tuple(sides))]


def _pad(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    if op.mode != "constant":
        raise _refused(f"Pad of mode {op.mode!r}")
    sides = [(0, 0)] * (len(dy.shape) - len(op.padding)) + list(op.padding)
    if len(op.padding) != len(dy.shape):
        sides = [(0, 0), *op.padding, (0, 0)]
    return [dy[tuple(slice(a, a + e) for (a, _), e in zip(sides, x[0].shape, strict=True))]]


def _cast(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [ops.cast(dy, x[0].dtype)]


# --- products ---------------------------------------------------------------------------------------------------------


def _matmul(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    a, b = x
    da, db = ops.matmul(dy, ops.swapaxes(b, -1, -2)), ops.matmul(ops.swapaxes(a, -1, -2), dy)
    return [_unbroadcast(da, a.shape), _unbroadcast(db, b.shape)]


def _dense(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    _plain(node)
    images, w = x[:2]
    rows, g = ops.reshape(images, (-1, w.shape[0])), ops.reshape(dy, (-1, w.shape[1]))
    dx = ops.reshape(ops.matmul(g, ops.transpose(w)), tuple(images.shape))
    return [dx, ops.matmul(ops.transpose(rows), g), *[ops.sum(g, axis=0)] * (len(x) - 2)]


def _bias(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [dy, ops.sum(dy, axis=tuple(range(len(dy.shape) - 1)))]


def _convolution(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    """dx is the transposed convolution of dy; dw is not here."""
    op: Any = node.op
    _plain(node)
    if op.groups != 1:
        raise _refused("Conv of several groups")
    p = op.problem(node.inputs[0].spec, node.inputs[1].spec)
    sides, extra = [], []
    for extent, out, kernel, stride, dilation, before, after in p.axes[3 - p.rank :]:
        reach = (kernel - 1) * dilation + 1
        sides.append((before, after))
        extra.append(extent - ((out - 1) * stride + reach - before - after))
    back = ConvTranspose(op.strides, tuple(sides), op.dilation, output_padding=tuple(extra))
    db = [ops.sum(dy, axis=tuple(range(len(dy.shape) - 1)))] if len(x) > 2 else []
    return [back(dy, x[1]), _NOT_HERE, *db]


def _transposed_convolution(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    _plain(node)
    p = op.problem(node.inputs[0].spec, node.inputs[1].spec)
    sides = tuple((before, after) for *_, before, after in p.axes[3 - p.rank :])
    db = [ops.sum(dy, axis=tuple(range(len(dy.shape) - 1)))] if len(x) > 2 else []
    return [Conv(op.strides, sides, op.dilation)(dy, x[1]), _NOT_HERE, *db]


# --- normalization, softmax, dropout ----------------------------------------------------------------------------------


def _normalized(x: Any, dy: Any, gamma: Any, axes: tuple[int, ...], epsilon: float) -> tuple[Any, Any, Any]:
    """dx, and what dgamma and dbeta are sums of, where x is normalized by its own mean and variance along axes."""
    mean = ops.mean(x, axis=axes, keepdims=True)
    inverse = ops.rsqrt(ops.mean(ops.square(x - mean), axis=axes, keepdims=True) + epsilon)
    hat = (x - mean) * inverse
    g = dy if gamma is None else dy * gamma
    dx = inverse * (g - ops.mean(g, axis=axes, keepdims=True) - hat * ops.mean(g * hat, axis=axes, keepdims=True))
    return dx, dy * hat, dy


def _parameters(op: Any, dgamma: Any, dbeta: Any, kept: int) -> list[Any]:
    axes = tuple(range(len(dgamma.shape) - kept))
    return [ops.sum(each, axis=axes) for each, there in ((dgamma, op.scale), (dbeta, op.center)) if there]


def _layer_norm(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    if op.rms or op.axis not in (-1, len(x[0].shape) - 1):
        raise _refused("LayerNorm of other axes than the last, or by the mean square")
    found = _normalized(x[0], dy, x[1] if op.scale else None, (len(x[0].shape) - 1,), op.epsilon)
    return [found[0], *_parameters(op, *found[1:], 1)]


def _batch_norm(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    _plain(node)
    gamma, rest = x[1] if op.scale else None, [None, None]
    if not op.frozen:
        found = _normalized(x[0], dy, gamma, tuple(range(len(x[0].shape) - 1)), op.epsilon)
        return [found[0], *_parameters(op, *found[1:], 1), *rest]
    mean, variance = (x[i] for i in op.state)
    inverse = ops.rsqrt(variance + op.epsilon)
    hat = (x[0] - mean) * inverse
    dx = dy * inverse if gamma is None else dy * (gamma * inverse)
    return [dx, *_parameters(op, dy * hat, dy, 1), *rest]


def _softmax(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [y * (dy - ops.sum(dy * y, axis=node.op.axis, keepdims=True))]  # type: ignore[attr-defined]


def _log_softmax(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [dy - ops.exp(y) * ops.sum(dy, axis=node.op.axis, keepdims=True)]  # type: ignore[attr-defined]


def _dropout(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    """dy times the mask, which the same operator makes of ones: its numbers depend on its stream and the step."""
    graph: Any = dy.graph
    mask = node.op(graph.constant(np.ones(tuple(x[0].shape)), x[0].dtype, tuple(x[0].shape)))
    mask.node.stream = node.stream
    return [ops.where(ops.equal(mask, 0.0), 0.0, dy * mask)]


def _where(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    chosen = (ops.where(x[0], dy, 0.0), ops.where(x[0], 0.0, dy))
    return [None, *(_unbroadcast(g, each.shape) for g, each in zip(chosen, x[1:], strict=True))]


def _same(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [dy]


class _NotHere:
    """Stands for a gradient that has no rule."""


_NOT_HERE = _NotHere()

#: rules by the operator's class, or the function of the table
RULES: dict[str, Rule] = {
    "Activation": _activation, "Add": _add, "Subtract": _subtract, "Multiply": _multiply, "Divide": _divide,
    "Maximum": _larger, "Minimum": _larger, "Power": _power, "Sum": _sum, "Mean": _mean, "Max": _extremum,
    "Min": _extremum, "GlobalAveragePool": _global_average, "WeightedMean": _weighted_mean,
    "WeightedSum": _weighted_sum, "Reshape": _reshape, "Transpose": _transpose, "Concatenate": _concatenate,
    "Slice": _slice, "Pad": _pad, "Cast": _cast, "MatMul": _matmul, "Dense": _dense, "Bias": _bias,
    "Conv": _convolution, "ConvTranspose": _transposed_convolution, "LayerNorm": _layer_norm,
    "BatchNorm": _batch_norm, "Softmax": _softmax, "LogSoftmax": _log_softmax, "Dropout": _dropout,
    "GaussianNoise": _same, "where": _where,
}  # fmt: skip


def rule_of(node: Node) -> Rule:
    """The rule of a node's operator.  Raises NotImplementedError that names it where there is none."""
    rule = RULES.get(getattr(node.op, "function", type(node.op).__name__))
    if rule is None:
        raise _refused(node.op.name)
    return rule


def is_here(gradient: Any) -> bool:
    """Whether a rule gives this gradient."""
    return gradient is not _NOT_HERE


def _plain(node: Node) -> None:
    if node.op.activation is not None or node.op.residual:
        raise _refused(f"{node.op.name} with a fused activation or residual")


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"GradientTape inside another tape's block: {name}: its gradient cannot be differentiated again"
    )


refused = _refused
