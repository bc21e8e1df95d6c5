"""Activations, arithmetic, and what is chosen element by element."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from pydtconv import ops
from pydtconv.graph.ir.graph import Node
from pydtconv.loops.rules.pulling import RULES, Rule, composed
from pydtconv.loops.rules.shapes import unbroadcast
from pydtconv.ops.activation import SMOOTH, Activation

_INNER = math.sqrt(2.0 / math.pi)


def between(x: Any, low: float, high: float, dy: Any, otherwise: Any = 0.0) -> Any:
    """dy where x lies between two numbers."""
    return ops.where(ops.logical_and(x > low, x < high), dy, otherwise)


def _pieces(kind: str, x: Any, dy: Any, a: float, b: float, c: float) -> Any:
    """The gradient of an activation that is constant somewhere; None for another one.

    There dy is left out, not multiplied by 0: it may be infinite.
    """
    gradients: dict[str, Callable[[], Any]] = {
        "relu": lambda: ops.where(x > 0.0, dy, 0.0),
        "relu6": lambda: between(x, 0.0, 6.0, dy),
        "clip": lambda: between(x, a, b, dy, ops.where(ops.logical_or(ops.equal(x, a), ops.equal(x, b)), c * dy, 0.0)),
        "leaky_relu": lambda: ops.where(x > 0.0, dy, a * dy if a else 0.0),
        "relu_general": lambda: ops.where(x > c, ops.where(x < b, dy, 0.0), a * dy if a else 0.0),
        "elu": lambda: ops.where(x > 0.0, b * dy, dy * (a * b / c * ops.exp(ops.minimum(x, 0.0) / c)) if a else 0.0),
        "abs": lambda: ops.where(ops.equal(x, 0.0), 0.0, dy * ops.sign(x)),
        "hard_sigmoid": lambda: between(x, -0.5 / a, 0.5 / a, a * dy) if a else None,
        "hard_silu": lambda: ops.where(x > 3.0, dy, between(x, -3.0, 3.0, dy * ((2.0 * x + 3.0) / 6.0))),
        "threshold": lambda: ops.where(x > a, dy, 0.0),
        "hard_shrink": lambda: ops.where(ops.abs(x) > a, dy, 0.0),
        "soft_shrink": lambda: ops.where(ops.abs(x) > a, dy, 0.0),
        "sparse_plus": lambda: ops.where(x > 1.0, dy, between(x, -1.0, 1.0, dy * ((x + 1.0) * 0.5))),
    }
    return gradients[kind]() if kind in gradients else None


def _slope(kind: str, x: Any, y: Any, a: float) -> Any:
    """The derivative of a smooth activation; None where it is 0, a number where it is the same everywhere."""
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
        "tanh_shrink": lambda: ops.square(ops.tanh(x)),
        "sigmoid": lambda: y * (1.0 - y),
        "log_sigmoid": lambda: ops.sigmoid(-x),
        "softplus": lambda: ops.sigmoid(x),
        "softsign": lambda: 1.0 / ops.square(1.0 + ops.abs(x)),
        "squareplus": lambda: 0.5 * (1.0 + x / ops.sqrt(ops.square(x) + a)),
        "silu": lambda: (s := ops.sigmoid(x)) * (1.0 + x * (1.0 - s)),
        "mish": lambda: (t := ops.tanh(ops.softplus(x))) + x * ops.sigmoid(x) * (1.0 - ops.square(t)),
        "gelu": lambda: (
            0.5 * (1.0 + ops.erf(x * math.sqrt(0.5)))
            + x * ops.exp(ops.square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        ),
        "gelu_tanh": lambda: (
            0.5 * (1.0 + (t := ops.tanh(_INNER * (x + 0.044715 * ops.power(x, 3.0)))))
            + 0.5 * _INNER * x * (1.0 - ops.square(t)) * (1.0 + 0.134145 * ops.square(x))
        ),
    }
    return slopes[kind]()


def _of_kind(kind: str, x: Any, y: Any, dy: Any, parameters: Sequence[float]) -> Any:
    a, b, c = parameters
    if kind == "hard_sigmoid" and not a:
        return None
    found = _pieces(kind, x, dy, a, b, c)
    if found is not None:
        return found
    slope = _slope(kind, x, y, a)
    return None if slope is None else dy * slope


def _activation(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    return [_of_kind(op.kind, x[0], y, dy, op.parameters)]


def _unfused(op: Any, *x: Any) -> Any:
    return Activation(op.activation)(dataclasses.replace(op, activation=None)(*x))


def fusing(rule: Rule) -> Rule:
    """The rule of an operator with a fused activation and residual, by the rule of it without them."""

    def whole(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        op: Any = node.op
        if op.activation in SMOOTH:
            return composed(_unfused)(node, x, y, dy)
        g = dy
        if op.activation is not None:
            g = _of_kind(op.activation, y, y, dy, (getattr(op, "alpha", 0.0), 0.0, 0.0))
        found = rule(node, x[: len(x) - op.residual], y, g)
        return [*found, *[g] * op.residual]

    return whole


def _add(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    g = dy / float(len(x)) if op.average else dy
    return [unbroadcast(g, each.shape) for each in x]


def _subtract(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [unbroadcast(dy, x[0].shape), unbroadcast(-dy, x[1].shape)]


def _multiply(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [unbroadcast(dy * x[1], x[0].shape), unbroadcast(dy * x[0], x[1].shape)]


def _divide(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [unbroadcast(dy / x[1], x[0].shape), unbroadcast(-(dy * y) / x[1], x[1].shape)]


def _larger(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    mine = ops.where(ops.equal(x[0], x[1]), 0.5 * dy, dy)
    return [unbroadcast(ops.where(ops.equal(each, y), mine, 0.0), each.shape) for each in x]


def _power(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    base, exponent = x
    less = ops.where(ops.equal(exponent, 0.0), 0.0, exponent - 1.0)  # 0^-1 is no number
    first = dy * exponent * ops.power(base, less)
    return [unbroadcast(first, base.shape), unbroadcast(dy * y * ops.log(base), exponent.shape)]


def _cast(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [ops.cast(dy, x[0].dtype)]


def _same(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [dy]


def _penalty(op: Any, w: Any) -> Any:
    return op.l1 * ops.sum(ops.abs(w)) + op.l2 * ops.sum(ops.square(w))


def _portion(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [node.op(dy)]


RULES.update(
    {
        "Activation": _activation, "Add": fusing(_add), "Subtract": _subtract, "Multiply": _multiply,
        "Divide": _divide, "Maximum": _larger, "Minimum": _larger, "Power": _power, "Cast": _cast,
        "GaussianNoise": _same, "L1L2Penalty": composed(_penalty), "Portion": _portion,
    }
)  # fmt: skip
