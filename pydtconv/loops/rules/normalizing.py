"""Normalization, softmax, dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir.graph import Node
from pydtconv.loops.rules.elementwise import fusing
from pydtconv.loops.rules.pulling import RULES, composed


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


def _by_axes(op: Any, x: Any, *parameters: Any) -> Any:
    axes = tuple(range(op.lead(len(x.shape)), len(x.shape)))
    moved = x if op.rms else x - ops.mean(x, axis=axes, keepdims=True)
    y = moved * ops.rsqrt(ops.mean(ops.square(moved), axis=axes, keepdims=True) + op.epsilon)
    given = iter(parameters)
    y = y * next(given) if op.scale else y
    return y + next(given) if op.center else y


def _layer_norm(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    if op.rms or op.lead(len(x[0].shape)) != len(x[0].shape) - 1:
        return composed(_by_axes)(node, x, y, dy)
    found = _normalized(x[0], dy, x[1] if op.scale else None, (len(x[0].shape) - 1,), op.epsilon)
    return [found[0], *_parameters(op, *found[1:], 1)]


def _batch_norm(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
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


RULES.update(
    {
        "LayerNorm": _layer_norm, "BatchNorm": fusing(_batch_norm), "Softmax": _softmax, "LogSoftmax": _log_softmax,
        "Dropout": _dropout,
    }
)  # fmt: skip
