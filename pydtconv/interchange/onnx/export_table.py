"""The table from our operators to ONNX's, and what its rows share: layouts, axes, operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.dtypes import real
from pydtconv.graph import Node, Tensor
from pydtconv.interchange.onnx.writer import Multiple, Writer, to_first
from pydtconv.ops import kinds
from pydtconv.ops.base import Op

#: by operator: what writes a node of it
ROWS: dict[type, Callable[[Writer, Node], None]] = {}


def row(*operators: type) -> Callable[[Callable[[Writer, Any], None]], Callable[[Writer, Any], None]]:
    def enter(function: Callable[[Writer, Any], None]) -> Callable[[Writer, Any], None]:
        ROWS.update(dict.fromkeys(operators, function))
        return function

    return enter


def activation(writer: Writer, like: Tensor, x: str, kind: str | None, *parameters: float | None) -> str:
    """The name of f(x); like: a tensor of x's dtype.  None for a parameter: its default."""
    if kind is None:
        return x
    dtype = real(like.dtype)

    def emit(operator: str, *values: Any, **attributes: Any) -> str:
        names = [v if isinstance(v, str) else writer.constant(np.array(v, dtype)) for v in values]
        return writer.emit(operator, *names, **attributes)

    return kinds.ROWS[kind].onnx(emit, x, *kinds.given(kind, *parameters))


def follows(extent: Any) -> bool:
    return isinstance(extent, Multiple)


def finish(w: Writer, node: Node, name: str, first: bool, *given: float | None) -> None:
    """The output of an operator that may have an activation of its own."""
    kind = getattr(node.op, "activation", None)
    w.set(node.outputs[0], activation(w, node.outputs[0], name, kind, *given), first)


def layout(w: Writer, *tensors: Tensor) -> bool:
    """Whether to compute with the channels first: as the largest of the inputs is there."""
    largest = max(tensors, key=lambda tensor: tensor.spec.size if w.array_of(tensor) is None else 0)
    return w.is_first(largest) and len(largest.shape) == max(len(tensor.shape) for tensor in tensors)


def place_of(axis: int, rank: int, first: bool) -> int:
    """Where an axis of ours is in the layout."""
    axis %= rank
    return to_first(rank).index(axis) if first else axis


def aligned(w: Writer, tensor: Tensor, rank: int, first: bool) -> str:
    """An operand of a result of `rank` axes that broadcasts."""
    own = len(tensor.shape)
    if not first or own == rank:
        return w.read(tensor, first)
    if own == 0:
        return w.value(tensor)
    order = to_first(rank)
    shape = (1,) * (rank - own) + tuple(w.extents[tensor])
    placed = [shape[axis] for axis in order]
    array = w.array_of(tensor)
    if array is not None and not any(map(follows, shape)):
        array = array.reshape((1,) * (rank - own) + array.shape).transpose(order)
        return w.constant(array, name="constant" if tensor.variable is None else tensor.variable.path)
    if own == 1:
        return w.reshaped(w.value(tensor), placed)
    return w.transposed(w.reshaped(w.value(tensor), shape), order)


def window(node: Node) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, strides, dilations and pads (all before, then all after) of an operator that is a window."""
    specs = [tensor.spec for tensor in node.inputs]
    windows = [node.op.window(axis, *specs) for axis in range(1, len(specs[0].shape) - 1)]
    kernel, strides, dilations, before, after = (
        [getattr(window, field) for window in windows] for field in ("kernel", "stride", "dilation", "before", "after")
    )
    return kernel, strides, dilations, [*before, *after]


def row_of(op: Op | type[Op]) -> Callable[[Writer, Node], None] | None:
    """What writes a node of an operator; None where ONNX has nothing like it."""
    declared = _same if op.onnx == "Identity" else _broadcast if op.onnx else None
    return ROWS.get(op if isinstance(op, type) else type(op), declared)


def _same(w: Writer, node: Node) -> None:
    """What changes its input in training alone."""
    if node.op.always and getattr(node.op, "rate", 1):  # type: ignore[attr-defined]
        raise ValueError(f"export: {node.op.name} that is active outside of training has no ONNX operator")
    first = layout(w, node.inputs[0])
    w.set(node.outputs[0], w.read(node.inputs[0], first), first)


def _broadcast(w: Writer, node: Node) -> None:
    """One operator on inputs that are broadcast."""
    first, rank = layout(w, *node.inputs), len(node.outputs[0].shape)
    names = [aligned(w, tensor, rank, first) for tensor in node.inputs]
    w.set(node.outputs[0], w.emit(node.op.onnx, *names), first)
