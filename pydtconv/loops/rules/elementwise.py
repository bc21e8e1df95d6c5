"""Activations, arithmetic, and what is chosen element by element."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.graph.ir.graph import Node
from pydtconv.loops.rules.pulling import RULES, Rule, composed
from pydtconv.loops.rules.shapes import unbroadcast
from pydtconv.ops import kinds
from pydtconv.ops.activation import Activation


def _of_kind(kind: str, x: Any, y: Any, dy: Any, *parameters: float | None) -> Any:
    return kinds.ROWS[kind].gradient(ops, x, y, dy, *kinds.given(kind, *parameters))


def _activation(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    return [_of_kind(op.kind, x[0], y, dy, *op.parameters)]


def _unfused(op: Any, *x: Any) -> Any:
    return Activation(op.activation)(dataclasses.replace(op, activation=None)(*x))


def fusing(rule: Rule) -> Rule:
    """The rule of an operator with a fused activation and residual, by the rule of it without them."""

    def whole(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        op: Any = node.op
        if op.activation in kinds.SMOOTH:
            return composed(_unfused)(node, x, y, dy)
        g = dy
        if op.activation is not None:
            g = _of_kind(op.activation, y, y, dy, getattr(op, "alpha", None))
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


def _portion(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [node.op(dy)]


RULES.update(
    {
        "Activation": _activation, "Add": fusing(_add), "Subtract": _subtract, "Multiply": _multiply,
        "Divide": _divide, "Maximum": _larger, "Minimum": _larger, "Power": _power, "Cast": _cast,
        "GaussianNoise": _same, "Portion": _portion,
    }
)  # fmt: skip
