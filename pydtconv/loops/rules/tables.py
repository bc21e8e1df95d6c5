"""Functions of the tables: what is linear has its transpose, what is written in NumPy is read as operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import FLOATING
from pydtconv.graph.ir.graph import Node
from pydtconv.images.places import corners
from pydtconv.loops.rules.pulling import RULES, Rule, composed, refused
from pydtconv.loops.rules.written import Written, read
from pydtconv.ops.functions.tables.reducing import neighbours
from pydtconv.ops.table_op import RULES as TABLE
from pydtconv.ops.table_op import Backward, TableOp, no_gradient
from pydtconv.ops.table_op import Rule as Row

_NAME = "transposed"


# --- transposes of linear functions -----------------------------------------------------------------------------------


def _operands(b: Sequence[Any], floats: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """The gradients of the outputs, and what stands in the places of the operands: None for floats."""
    count = len(b) - floats.count(False)
    rest = iter(b[count:])
    return list(b[:count]), [None if is_float else next(rest) for is_float in floats]


def _without_offset(static: Any) -> Any:
    """Settings with which a function is linear, not only affine."""
    return tuple((name, 0.0 if name == "fill_value" else value) for name, value in static)


def _whole(y: Any, dy: Any) -> list[Any]:
    """The gradients of all outputs, zeros where there is none."""
    ys, dys = (y, dy) if isinstance(y, list) else ([y], [dy])
    return [ops.zeros(each.shape, each.dtype) if g is None else g for each, g in zip(ys, dys, strict=True)]


def _transposed(*arrays: np.ndarray, function: str, static: Any, shapes: Any, floats: Any) -> Any:
    dy, x = _operands(arrays, floats)
    found = TABLE[function].gradient(Backward(tuple(dy), tuple(x), (None,), shapes), **dict(static))  # type: ignore[misc]
    parts = [part for part, is_float in zip(found, floats, strict=True) if is_float]
    return parts[0] if len(parts) == 1 else parts


def _transposed_gradient(b: Backward, function: str, static: Any, shapes: Any, floats: Any) -> Any:
    """The function itself, without what it adds where there is nothing."""
    _, x = _operands(b.x, floats)
    given = iter(b.dy)
    moved = [
        np.zeros(shape) if is_float and (each := next(given)) is None else each if is_float else x[i]
        for i, (is_float, shape) in enumerate(zip(floats, shapes, strict=True))
    ]
    found = TABLE[function].forward(*moved, **dict(_without_offset(static)))
    parts = found if isinstance(found, (tuple, list)) else [found]
    return (*parts, *[None] * floats.count(False))


def _transposed_shape(*extents: Any, function: str, static: Any, shapes: Any, floats: Any) -> Any:
    found = [tuple(shape) for shape, is_float in zip(shapes, floats, strict=True) if is_float]
    return found[0] if len(found) == 1 else found


TABLE[_NAME] = Row(_transposed, _transposed_gradient, _transposed_shape, "first")


def _linear(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    linear = op.rule.linear or range(len(x))
    floats = tuple(i in linear and each.dtype in FLOATING for i, each in enumerate(x))
    settings = {"function": op.function, "static": op.static, "shapes": tuple(each.shape for each in x)}
    transposed = TableOp(_NAME, (*settings.items(), ("floats", floats)))
    found = transposed(*_whole(y, dy), *(each for each, is_float in zip(x, floats, strict=True) if not is_float))
    parts = iter(found if isinstance(found, (tuple, list)) else [found])
    return [next(parts) if is_float else None for is_float in floats]


def _transposed_again(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    static = dict(node.op.static)  # type: ignore[attr-defined]
    _, others = _operands(x, static["floats"])
    given = iter(_whole(y, dy))
    moved = [next(given) if is_float else each for is_float, each in zip(static["floats"], others, strict=True)]
    found = TableOp(static["function"], _without_offset(static["static"]))(*moved)
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    return [*parts, *[None] * (len(x) - len(parts))]


# --- gradients of arrays, read as operators ---------------------------------------------------------------------------


def _read(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    op: Any = node.op
    several = isinstance(y, list)
    dys = tuple(None if each is None else Written(each) for each in (dy if several else [dy]))
    ys = tuple(map(Written, y if several else [y]))
    shapes = tuple(tuple(each.shape) for each in x)
    found = op.rule.gradient(Backward(dys, tuple(map(Written, x)), ys, shapes), **dict(op.static))
    return [None if each is None else read(each) for each in found]


# --- functions of their own -------------------------------------------------------------------------------------------


def _along_line(x: Any, axis: int | None) -> tuple[Any, int]:
    return (ops.reshape(x, (-1,)), 0) if axis is None else (x, axis % len(x.shape))


def _sorted(op: Any, x: Any) -> Any:
    """The elements in the order of now, which is the same close by."""
    line, axis = _along_line(x, dict(op.static)["axis"])
    return ops.take_along_axis(line, ops.argsort(line, axis=axis), axis=axis)


def _largest(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    if dy[0] is None:
        return [None]
    places = ops.one_hot(y[1], x[0].shape[-1], dtype=dy[0].dtype)
    return [ops.sum(ops.expand_dims(dy[0], -1) * places, axis=-2)]


def _others(x: Any) -> Any:
    """x (..., n) -> (..., n): the product of all elements but one."""
    n = x.shape[-1]
    return ops.prod(ops.where(np.eye(n, dtype=bool), 1.0, ops.expand_dims(x, -2)), axis=-1)


def _rows(x: Any, axes: Sequence[int]) -> tuple[Any, list[int], list[int]]:
    """x with these axes joined as the last one, the order of axes that was taken, and the extents before joining."""
    order = [*(i for i in range(len(x.shape)) if i not in axes), *axes]
    moved = ops.transpose(x, order)
    extents = list(moved.shape)
    return ops.reshape(moved, (*extents[: len(order) - len(axes)], -1)), order, extents


def _all_axes(axis: Any, rank: int) -> list[int]:
    return list(range(rank)) if axis is None else [i % rank for i in ([axis] if isinstance(axis, int) else axis)]


def _product(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    static = dict(node.op.static)  # type: ignore[attr-defined]
    axes = _all_axes(static["axis"], len(x[0].shape))
    rows, order, extents = _rows(x[0], axes)
    g = ops.reshape(dy, (*rows.shape[:-1], 1)) * _others(rows)
    back = [order.index(i) for i in range(len(order))]
    return [ops.transpose(ops.reshape(g, extents), back)]


def _products_up_to(op: Any, x: Any) -> Any:
    line, axis = _along_line(x, dict(op.static)["axis"])
    line = ops.moveaxis(line, axis, -1)
    n = line.shape[-1]
    found = ops.prod(ops.where(np.tri(n, dtype=bool), ops.expand_dims(line, -2), 1.0), axis=-1)
    return ops.moveaxis(found, -1, axis)


def _quantiles(op: Any, x: Any) -> Any:
    """Between the elements of the ranks of now."""
    static = {"q": 0.5, "method": "linear", "keepdims": False, **dict(op.static)}
    q = np.asarray(static["q"], float) / (100 if op.function == "percentile" else 1)
    axes = _all_axes(static["axis"], len(x.shape))
    rows, _, _ = _rows(x, axes)
    rows = ops.sort(rows, axis=-1)
    shares = [_shares(rows.shape[-1], float(each), static["method"]) for each in q.reshape(-1)]
    found = [ops.sum(rows * share, axis=-1) for share in shares]
    kept = tuple(1 if i in axes else e for i, e in enumerate(x.shape))
    shape = kept if static["keepdims"] else tuple(e for i, e in enumerate(x.shape) if i not in axes)
    found = [ops.reshape(each, shape) for each in found]
    return found[0] if q.ndim == 0 else ops.stack(found)


def _shares(n: int, q: float, method: str) -> np.ndarray:
    """The share that each rank of n has in a quantile."""
    low, high, share = neighbours(q, n, method)
    found = np.zeros(n)
    found[low] += 1 - share
    found[high] += share
    return found


def _segments(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    data, ids = x
    count = y.shape[0]
    mine = ops.equal(data, ops.take(y, ops.clip(ids, 0, count - 1), axis=0))
    inside = ops.logical_and(ops.greater_equal(ids, 0), ops.less(ids, count))
    mine = ops.logical_and(mine, ops.reshape(inside, (-1, *(1,) * (len(data.shape) - 1))))
    share = ops.segment_sum(ops.cast(mine, dy.dtype), ids, count)
    g = dy / ops.maximum(share, 1.0)
    return [ops.where(mine, ops.take(g, ops.clip(ids, 0, count - 1), axis=0), 0.0), None]


def _sampled(op: Any, x: Any, coordinates: Any) -> Any:
    """The corners around each place, by their numbers in x."""
    static = dict(op.static)
    size, flat = math.prod(x.shape), ops.reshape(x, (-1,))
    steps = [math.prod(x.shape[i + 1 :]) for i in range(len(x.shape))]
    total: Any = 0.0
    given = [Written(coordinates[i]) for i in range(len(x.shape))]
    for indices, weight, inside in corners(given, x.shape, static["order"], static["fill_mode"]):
        place = sum(index * step for index, step in zip(indices, steps, strict=True))
        values: Any = Written(ops.take(flat, ops.clip(read(place), 0, size - 1)))
        total = total + weight * (values if inside is None else np.where(inside, values, static["fill_value"]))
    return read(total)


#: a logarithm of nothing that has derivatives
_NEVER = -1e30


def _aligned(op: Any, target: Any, output: Any, lengths: Any, steps: Any) -> Any:
    """The forward recursion of Graves et al. (2006), section 4.1, over the labels with blanks around each."""
    n, count, _ = output.shape
    blank, width = dict(op.static)["mask_index"], target.shape[1]
    lengths, steps = (ops.reshape(ops.cast(each, "int32"), (n, 1)) for each in (lengths, steps))
    labels = ops.where(ops.less(np.arange(width), lengths), ops.cast(target, "int32"), blank)
    pairs = ops.reshape(ops.stack([ops.full_like(labels, blank), labels], axis=-1), (n, 2 * width))
    states = ops.concatenate([pairs, ops.full((n, 1), blank, "int32")], axis=1)
    differs = ops.cast(ops.not_equal(states[:, 2:], states[:, :-2]), "int32") * (np.arange(2 * width - 1) % 2)
    skips = ops.cast(ops.pad(differs, ((0, 0), (2, 0))), "bool")
    places = ops.broadcast_to(ops.expand_dims(states, 1), (n, count, 2 * width + 1))
    scores = ops.take_along_axis(ops.log_softmax(output), places, axis=2)

    def behind(alpha: Any, by: int) -> Any:
        return ops.pad(alpha[:, :-by], ((0, 0), (by, 0)), constant_values=_NEVER)

    alpha = ops.where(np.arange(2 * width + 1) < 2, scores[:, 0], _NEVER)
    for step in range(1, count):
        moved = ops.logaddexp(ops.logaddexp(alpha, behind(alpha, 1)), ops.where(skips, behind(alpha, 2), _NEVER))
        alpha = ops.where(ops.less(step, steps), moved + scores[:, step], alpha)
    ends = np.arange(2 * width + 1)
    last = ops.logical_or(ops.equal(ends, 2 * lengths), ops.equal(ends, 2 * lengths - 1))
    return -ops.logsumexp(ops.where(last, alpha, _NEVER), axis=1)


def _of_functions(node: Node, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
    """The backward function that was given, where it is made of NumPy's functions alone."""
    op: Any = node.op
    reason = "expected its backward function to be made of NumPy's functions alone"
    if op.backward_function is None:
        raise refused(op.name, reason)
    try:
        found = op.backward_function(Written(dy), *map(Written, x), Written(y) if op.reads_y else None)
    except Exception as error:
        raise refused(op.name, f"{reason}, got {type(error).__name__}: {error}") from error
    parts = found if isinstance(found, (tuple, list)) else (found,)
    if any(part is not None and not isinstance(part, Written) for part in parts):
        raise refused(op.name, reason)
    op.check_gradients([None if part is None else part.shape for part in parts], [tuple(each.shape) for each in x])
    return [None if part is None else ops.cast(part.tensor, each.dtype) for part, each in zip(parts, x, strict=True)]


_OWN: dict[str, Rule] = {
    "sort": composed(_sorted), "top_k": _largest, "prod": _product, "cumprod": composed(_products_up_to),
    "quantile": composed(_quantiles), "percentile": composed(_quantiles), "median": composed(_quantiles),
    "segment_max": _segments, "segment_min": _segments, "map_coordinates": composed(_sampled),
    "ctc_loss": composed(_aligned), _NAME: _transposed_again,
}  # fmt: skip


def rule_of_table(name: str) -> Rule | None:
    """The rule of a function of the table, None where it has none."""
    row = TABLE[name]
    if name in _OWN:
        return _OWN[name]
    if row.gradient is None or row.gradient is no_gradient or row.lacks:
        return None
    return _linear if row.linear or not (row.reads_x or row.reads_y) else _read


RULES.update({name: rule for name in TABLE if (rule := rule_of_table(name)) is not None})
RULES["NumpyOp"] = _of_functions
