"""Sums, extrema, and what moves elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir.graph import Node
from pydtconv.loops.rules.pulling import RULES, composed
from pydtconv.loops.rules.shapes import spread


def _axes(node: Node) -> tuple[int, ...]:
    axis, rank = node.op.axis, len(node.inputs[0].shape)  # type: ignore[attr-defined]
    every = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return tuple(i % rank for i in every)


def _sum(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [spread(dy, x[0].shape, _axes(node))]


def _mean(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    count = math.prod(x[0].shape[i] for i in _axes(node))
    return [spread(dy / float(count), x[0].shape, _axes(node))]


def _extremum(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    axes = _axes(node)
    equal = ops.equal(x[0], spread(y, x[0].shape, axes))
    count = ops.sum(ops.cast(equal, dy.dtype), axis=axes, keepdims=True)
    return [ops.where(equal, spread(dy, x[0].shape, axes) / count, 0.0)]


def _global_average(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    shape = x[0].shape
    axes = tuple(range(1, len(shape) - 1))
    return [spread(dy / float(math.prod(shape[1:-1])), shape, axes)]


def _weighted_mean(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    shape = x[0].shape
    g = dy if op.reduction == "sum" else dy / float(math.prod(shape))
    g = spread(g, shape, tuple(range(len(shape))))
    if len(x) > 1:
        weights = ops.reshape(x[1], (*x[1].shape, *(1,) * (len(shape) - len(x[1].shape))))
        g = g * weights
        if op.reduction == "mean_with_sample_weight":
            g = ops.divide_no_nan(g * float(math.prod(shape)), ops.sum(x[1]))
    return [g, *[None] * (len(x) - 1)]


def _weighted_sum(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    weights = node.op.weights or (1.0,) * len(x)  # type: ignore[attr-defined]
    return [dy * float(weight) for weight in weights]


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
        return _mirrored(node, x, y, dy)
    sides = [(0, 0)] * (len(dy.shape) - len(op.padding)) + list(op.padding)
    if len(op.padding) != len(dy.shape):
        sides = [(0, 0), *op.padding, (0, 0)]
    return [dy[tuple(slice(a, a + e) for (a, _), e in zip(sides, x[0].shape, strict=True))]]


def _mirroring(op: Any, x: Any) -> Any:
    for axis, sides in enumerate(op.padding):
        if any(sides):
            x = ops.take(x, np.pad(np.arange(x.shape[axis]), sides, op.mode), axis=axis)
    return x


_mirrored = composed(_mirroring)


def _upsampled(op: Any, x: Any) -> Any:
    if op.interpolation == "bilinear":
        size = tuple(extent * times for extent, times in zip(x.shape[1:-1], op.size, strict=True))
        return ops.image.resize(x, size, "bilinear", data_format="channels_last")
    for axis, times in enumerate(op.size):
        x = ops.repeat(x, times, axis=axis + 1)
    return x


def _rows(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    index, table = x
    flat = ops.reshape(ops.cast(index, "int32"), (-1,))
    return [None, ops.segment_sum(ops.reshape(dy, (-1, table.shape[1])), flat, table.shape[0])]


RULES.update(
    {
        "Sum": _sum, "Mean": _mean, "Max": _extremum, "Min": _extremum, "GlobalAveragePool": _global_average,
        "WeightedMean": _weighted_mean, "WeightedSum": _weighted_sum, "Reshape": _reshape, "Transpose": _transpose,
        "Concatenate": _concatenate, "Slice": _slice, "Pad": _pad, "Upsample": composed(_upsampled), "TakeRows": _rows,
    }
)  # fmt: skip
