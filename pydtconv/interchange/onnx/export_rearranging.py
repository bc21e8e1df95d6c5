"""Rows of the table: pooling, reduction, and what moves elements."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from pydtconv import ops
from pydtconv.graph import Node
from pydtconv.interchange.onnx import export_functions
from pydtconv.interchange.onnx.export_table import ROWS, follows, layout, place_of, row, window
from pydtconv.interchange.onnx.writer import Multiple, Writer, to_first, to_last
from pydtconv.ops.base import Op
from pydtconv.ops.random import RandomCrop
from pydtconv.ops.separable import BANDS

# pooling, reduction


@row(ops.MaxPool, ops.AveragePool)
def _pool(w: Writer, node: Node) -> None:
    size, strides, _, pads = window(node)
    more = {"count_include_pad": int(node.op.count_include_pad)} if isinstance(node.op, ops.AveragePool) else {}
    y = w.emit(type(node.op).__name__, w.first(node.inputs[0]), kernel_shape=size, strides=strides, pads=pads, **more)
    w.set(node.outputs[0], y, True)


@row(ops.GlobalAveragePool, ops.GlobalMaxPool)
def _global_pool(w: Writer, node: Node) -> None:
    average, x = isinstance(node.op, ops.GlobalAveragePool), w.first(node.inputs[0])
    if node.op.keepdims:  # type: ignore[attr-defined]
        w.set(node.outputs[0], w.emit("GlobalAveragePool" if average else "GlobalMaxPool", x), True)
        return
    axes = w.integers(range(2, len(node.inputs[0].shape)))
    w.set(node.outputs[0], w.emit("ReduceMean" if average else "ReduceMax", x, axes, keepdims=0))


@row(ops.AdaptiveAveragePool, ops.AdaptiveMaxPool)
def _adaptive_pool(w: Writer, node: Node) -> None:
    extents, sizes = node.inputs[0].shape[1:-1], node.op.output_size  # type: ignore[attr-defined]
    if any((extent or 0) % size for extent, size in zip(extents, sizes, strict=True)):
        raise ValueError(f"export: {node.op.name}: expected an output_size that divides {extents}, got {sizes}")
    kernel = [(extent or 0) // size for extent, size in zip(extents, sizes, strict=True)]
    kind = "AveragePool" if isinstance(node.op, ops.AdaptiveAveragePool) else "MaxPool"
    w.set(node.outputs[0], w.emit(kind, w.first(node.inputs[0]), kernel_shape=kernel, strides=kernel), True)


@row(ops.Sum, ops.Mean, ops.Max, ops.Min)
def _reduction(w: Writer, node: Node) -> None:
    op, x = node.op, node.inputs[0]
    first, rank = layout(w, x), len(x.shape)
    axes = sorted(place_of(axis, rank, first) for axis in op.axes(rank))  # type: ignore[attr-defined]
    keepdims = op.keepdims  # type: ignore[attr-defined]
    if first and not keepdims and axes != list(range(2, rank)) and len(axes) != rank:
        first, axes = False, sorted(op.axes(rank))  # type: ignore[attr-defined]
    y = w.emit(f"Reduce{type(op).__name__}", w.read(x, first), w.integers(axes), keepdims=int(keepdims))
    w.set(node.outputs[0], y, first and keepdims)


@row(ops.ArgMax)
def _argmax(w: Writer, node: Node) -> None:
    op = node.op
    assert isinstance(op, ops.ArgMax)
    y = w.emit("ArgMax", w.value(node.inputs[0]), axis=op.axis, keepdims=int(op.keepdims))
    w.set(node.outputs[0], w.emit("Cast", y, to=export_functions.TYPES["int32"]))


# places


@row(ops.Concatenate)
def _concatenate(w: Writer, node: Node) -> None:
    first = layout(w, *node.inputs)
    axis = place_of(node.op.axis, len(node.outputs[0].shape), first)  # type: ignore[attr-defined]
    w.set(node.outputs[0], w.emit("Concat", *(w.read(tensor, first) for tensor in node.inputs), axis=axis), first)


@row(ops.Slice)
def _slice(w: Writer, node: Node) -> None:
    x, rank = node.inputs[0], len(node.inputs[0].shape)
    _cut(w, node, node.op.bounds(x.shape), rank)  # type: ignore[attr-defined]


@row(RandomCrop)
def _crop(w: Writer, node: Node) -> None:
    """Outside of training the middle."""
    op, (n, h, ww, c) = node.op, node.inputs[0].shape
    assert isinstance(op, RandomCrop)
    if op.always:
        raise ValueError("export: RandomCrop that is active outside of training has no ONNX operator")
    top, left = ((h or 0) - op.height) // 2, ((ww or 0) - op.width) // 2
    bounds = (slice(0, n), slice(top, top + op.height), slice(left, left + op.width), slice(0, c))
    _cut(w, node, bounds, 4)


def _cut(w: Writer, node: Node, bounds: Sequence[slice], rank: int) -> None:
    x = node.inputs[0]
    first = layout(w, x)
    cuts = [
        axis for axis, part in enumerate(bounds) if (part.start, part.stop) not in ((None, None), (0, x.shape[axis]))
    ]
    name = w.read(x, first)
    if any(follows(w.extents[x][axis]) for axis in cuts):
        raise ValueError("export: a part of the batch has no ONNX operator here")
    if cuts:
        starts = w.integers([bounds[axis].start for axis in cuts])
        stops = w.integers([bounds[axis].stop for axis in cuts])
        name = w.emit("Slice", name, starts, stops, w.integers([place_of(axis, rank, first) for axis in cuts]))
    w.set(node.outputs[0], name, first)


@row(ops.Pad)
def _pad(w: Writer, node: Node) -> None:
    op, x, first = node.op, node.inputs[0], layout(w, node.inputs[0])
    assert isinstance(op, ops.Pad)
    if op.mode == "symmetric":
        raise ValueError("export: pad: expected mode 'constant' or 'reflect', got 'symmetric', which ONNX has not")
    order = to_first(len(x.shape)) if first else range(len(x.shape))
    pads = [op.padding[axis][side] for side in (0, 1) for axis in order]
    value = [w.scalar(op.value, x)] if op.mode == "constant" else []
    w.set(node.outputs[0], w.emit("Pad", w.read(x, first), w.integers(pads), *value, mode=op.mode), first)


@row(ops.Upsample)
def _upsample(w: Writer, node: Node) -> None:
    op = node.op
    assert isinstance(op, ops.Upsample)
    scales, empty = w.constant(np.array([1, 1, *op.size], "float32")), ""
    nearest = op.interpolation == "nearest"
    y = w.emit(
        "Resize",
        w.first(node.inputs[0]),
        empty,
        scales,
        mode="nearest" if nearest else "linear",
        coordinate_transformation_mode="asymmetric" if nearest else "half_pixel",
        nearest_mode="floor" if nearest else None,
    )
    w.set(node.outputs[0], y, True)


@row(ops.Separable)
def _separable(w: Writer, node: Node) -> None:
    """Products with a matrix along axes."""
    x, tensor, op = w.value(node.inputs[0]), node.inputs[0], node.op
    assert isinstance(op, ops.Separable)
    rank, shape, results = len(tensor.shape), list(w.extents[tensor]), w.extents[node.outputs[0]]
    for axis, (kind, *settings) in zip(op.axes, op.filters, strict=True):
        extent = shape[axis] if op.extents is None else results[axis]
        if isinstance(extent, Multiple):
            raise ValueError("export: a resize along the batch has no ONNX operator")
        found = BANDS[kind](extent, *settings).matrix
        matrix = (found.T if op.extents is None else found).astype(node.outputs[0].dtype)
        order = [*(d for d in range(rank) if d != axis), axis]
        back = [order.index(d) for d in range(rank)]
        x = w.transposed(x, order) if axis != rank - 1 else x
        x = w.emit("MatMul", x, w.constant(matrix))
        x = w.transposed(x, back) if axis != rank - 1 else x
    w.set(node.outputs[0], x)


@row(ops.Reshape)
def _reshape(w: Writer, node: Node) -> None:
    w.set(node.outputs[0], w.reshaped(w.value(node.inputs[0]), w.extents[node.outputs[0]]))


@row(ops.Transpose)
def _transpose(w: Writer, node: Node) -> None:
    x, rank = node.inputs[0], len(node.inputs[0].shape)
    order = node.op.order(rank)  # type: ignore[attr-defined]
    if rank > 2 and order == to_first(rank) and w.array_of(x) is None:
        w.set(node.outputs[0], w.first(x))
    elif rank > 2 and order == to_last(rank):
        w.set(node.outputs[0], w.value(x), True)
    else:
        w.set(node.outputs[0], w.transposed(w.value(x), order))


@row(ops.TableOp)
def _function(w: Writer, node: Node) -> None:
    op = node.op
    assert isinstance(op, ops.TableOp)
    moving = dict(op.static).get("op")
    if isinstance(moving, Op) and type(moving) in ROWS:  # of elements of integers
        other = copy.copy(node)
        other.op = moving
        ROWS[type(moving)](w, other)
        return
    row = export_functions.row_of(op)
    if row is None:
        raise ValueError(f"export: the function ops.{op.function.lstrip('_')} has no ONNX operator here")
    names = row(w, node, dict(op.static))
    for tensor, name in zip(node.outputs, names if isinstance(names, list) else [names], strict=True):
        if name is not None:
            w.set(tensor, name)
