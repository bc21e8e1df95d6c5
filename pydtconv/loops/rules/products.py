"""Products of matrices, convolutions, attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir.graph import Node
from pydtconv.loops.rules.elementwise import fusing
from pydtconv.loops.rules.pulling import RULES, composed, refused
from pydtconv.loops.rules.shapes import unbroadcast
from pydtconv.loops.rules.windows import taps
from pydtconv.ops.contraction import Contract
from pydtconv.ops.convolution import Conv
from pydtconv.ops.convolution_transpose import ConvTranspose


def _matmul(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    a, b = x
    da, db = ops.matmul(dy, ops.swapaxes(b, -1, -2)), ops.matmul(ops.swapaxes(a, -1, -2), dy)
    return [unbroadcast(da, a.shape), unbroadcast(db, b.shape)]


def _dense(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    images, w = x[:2]
    rows, g = ops.reshape(images, (-1, w.shape[0])), ops.reshape(dy, (-1, w.shape[1]))
    dx = ops.reshape(ops.matmul(g, ops.transpose(w)), tuple(images.shape))
    return [dx, ops.matmul(ops.transpose(rows), g), *[ops.sum(g, axis=0)] * (len(x) - 2)]


def _bias(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    return [dy, ops.sum(dy, axis=tuple(range(len(dy.shape) - 1)))]


def _contract(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    return [Contract(op.c, op.b, op.a)(dy, x[1]), Contract(op.a, op.c, op.b)(x[0], dy)]


def _sides(p: Any) -> tuple[tuple[int, int], ...]:
    """Padding before and after each axis of images."""
    return tuple((before, after) for *_, before, after in p.axes[3 - p.rank :])


def _of_bias(x: Sequence[Any], dy: Any) -> list[Any]:
    return [ops.sum(dy, axis=tuple(range(len(dy.shape) - 1)))] * (len(x) - 2)


def _grouped(groups: int, function: Any, *operands: Any) -> Any:
    """function of each group of the last axis of the operands, joined along the last axis."""
    if groups == 1:
        return function(*operands)
    parts = zip(*(ops.split(each, groups, axis=-1) for each in operands), strict=True)
    return ops.concatenate([function(*part) for part in parts], axis=-1)


def _of_filters(op: Any, p: Any, kernel: tuple[int, ...], images: Any, dy: Any) -> Any:
    """A convolution itself: samples are channels, dy is the filters, and strides and dilation change places."""
    rank = len(kernel)
    order = (rank + 1, *range(1, rank + 1), 0)
    images, filters = ops.transpose(images, order), ops.transpose(dy, (*range(1, rank + 1), 0, rank + 1))
    found = Conv(op.dilation, _sides(p), op.strides)(images, filters)
    found = found[(slice(None), *(slice(0, size) for size in kernel))]
    return ops.transpose(found, (*range(1, rank + 1), 0, rank + 1))


def _convolution(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    """By images the transposed convolution of dy, by filters the convolution of images with dy."""
    op: Any = node.op
    p = op.problem(node.inputs[0].spec, node.inputs[1].spec)
    extra = []
    for extent, out, kernel, stride, dilation, before, after in p.axes[3 - p.rank :]:
        extra.append(extent - ((out - 1) * stride + (kernel - 1) * dilation + 1 - before - after))
    back = ConvTranspose(op.strides, _sides(p), op.dilation, output_padding=tuple(extra))
    kernel = tuple(x[1].shape[:-2])
    dx = _grouped(op.groups, back, dy, x[1])
    dw = _grouped(op.groups, lambda images, g: _of_filters(op, p, kernel, images, g), x[0], dy)
    return [dx, dw, *_of_bias(x, dy)]


def _transposed_convolution(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    p = op.problem(node.inputs[0].spec, node.inputs[1].spec)
    dx = Conv(op.strides, _sides(p), op.dilation)(dy, x[1])
    return [dx, _of_filters(op, p, tuple(x[1].shape[:-2]), dy, x[0]), *_of_bias(x, dy)]


def _by_channel(op: Any, x: Any, w: Any, *bias: Any) -> Any:
    """A depthwise convolution, tap by tap: w (*kernel, c, multiplier)."""
    kernel, (c, multiplier) = tuple(w.shape[:-2]), tuple(w.shape[-2:])
    p = op.problem(x.spec, w.spec)
    strides, dilation = zip(*((axis[3], axis[4]) for axis in p.axes[3 - p.rank :]), strict=True)
    out = tuple(axis[1] for axis in p.axes[3 - p.rank :])
    total: Any = None
    for place, tap in taps(x, kernel, strides, dilation, _sides(p), out):
        term = ops.expand_dims(tap, -1) * w[place]
        total = term if total is None else total + term
    y = ops.reshape(total, (*total.shape[:-2], c * multiplier))
    return y + bias[0] if bias else y


def _attention(op: Any, q: Any, k: Any, v: Any, *masks: Any) -> Any:
    if op.rate:
        raise refused("attention with dropout")
    group = q.shape[2] // k.shape[2]
    k, v = (ops.repeat(each, group, axis=2) if group > 1 else each for each in (k, v))
    scores = ops.einsum("bqhd,bkhd->bhqk", q, k) * op.factor(q.shape[3])
    seen = np.ones((1, 1, q.shape[1], k.shape[1]), bool)
    if op.causal:
        seen = np.tril(seen)
    for mask in masks:
        seen = ops.logical_and(ops.cast(mask, "bool"), seen)
    weights = ops.softmax(ops.where(seen, scores, -1e30), axis=-1)
    if op.zero_empty:
        weights = ops.where(ops.any(seen, axis=-1, keepdims=True), weights, 0.0)
    return ops.einsum("bhqk,bkhd->bqhd", weights, v)


RULES.update(
    {
        "MatMul": _matmul, "Dense": fusing(_dense), "Bias": _bias, "Contract": _contract,
        "Conv": fusing(_convolution), "ConvTranspose": fusing(_transposed_convolution),
        "DepthwiseConv": fusing(composed(_by_channel)), "Attention": composed(_attention),
    }
)  # fmt: skip
