"""Rows of the table from ONNX to ours: what has weights, and windows, as layers with the channels first."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pydtconv import layers, ops
from pydtconv.interchange.onnx.call import Call, is_symbolic, row
from pydtconv.interchange.onnx.writer import to_first, to_last

_FIRST = "channels_first"
_NAMES = {1: "1D", 2: "2D", 3: "3D"}

# -- windows -----------------------------------------------------------------------------------------------------------


def _spatial(call: Call) -> list[int]:
    """The extents behind batch and channels."""
    extents = call.shape(call.x[0])[2:]
    if len(extents) not in _NAMES:
        raise call.error(f"x: expected one to three axes behind the channels, got shape {call.x[0].shape}")
    return extents


def _geometry(call: Call, kernel: Sequence[int]) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Strides, dilations and the padding of each axis (before, after) of a window operator."""
    rank, extents = len(kernel), _spatial(call)
    strides = list(call.attribute("strides") or [1] * rank)
    dilations = list(call.attribute("dilations") or [1] * rank)
    pads, auto = list(call.attribute("pads") or [0] * 2 * rank), call.attribute("auto_pad", "NOTSET")
    if auto == "VALID":
        pads = [0] * 2 * rank
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for extent, size, stride, dilation in zip(extents, kernel, strides, dilations, strict=True):
            total = max((-(-extent // stride) - 1) * stride + (size - 1) * dilation + 1 - extent, 0)
            more, less = -(-total // 2), total // 2
            before.append(less if auto == "SAME_UPPER" else more)
            after.append(more if auto == "SAME_UPPER" else less)
        pads = before + after
    elif auto != "NOTSET":
        raise call.error(f"auto_pad: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto!r}")
    if min(pads) < 0:
        raise call.error(f"pads: expected numbers of 0 or more, got {pads}")
    return strides, dilations, list(zip(pads[:rank], pads[rank:], strict=True))


def _is_same(
    call: Call, kernel: Sequence[int], strides: list[int], dilations: list[int], sides: list[tuple[int, int]]
) -> bool:
    """Whether a padding is what Keras calls "same"."""
    for extent, size, stride, dilation, side in zip(_spatial(call), kernel, strides, dilations, sides, strict=True):
        total = max((-(-extent // stride) - 1) * stride + (size - 1) * dilation + 1 - extent, 0)
        if side != (total // 2, total - total // 2):
            return False
    return True


def _padded(call: Call, x: Any, sides: list[tuple[int, int]]) -> Any:
    """x with zeros around, by a layer."""
    if not any(any(side) for side in sides):
        return x
    name = call.builder.layer_name(f"{call.node.name or call.node.output[0]}_pad")
    kind = {2: layers.ZeroPadding2D, 3: layers.ZeroPadding3D}.get(len(sides))
    if kind is not None:
        return kind(tuple(sides), data_format=_FIRST, name=name)(x)
    return layers.ZeroPadding1D(sides[0], data_format=_FIRST, name=name)(x)


@row("Conv")
def _conv(call: Call) -> Any:
    w, b = call.constant(1, "W"), call.constant(2, "B")
    assert w is not None
    rank, x = w.ndim - 2, call.x[0]
    if w.ndim != len(x.shape) or rank not in _NAMES:
        raise call.error(f"W: expected {len(x.shape)} axes, got shape {w.shape}")
    kernel = list(w.shape[2:])
    call.expect("kernel_shape", None, kernel)
    strides, dilations, sides = _geometry(call, kernel)
    groups, ci = call.attribute("group", 1), call.shape(x)[1]
    both = max(strides) > 1 and max(dilations) > 1  # which layers do not have: all outputs, then some of them
    same = not both and _is_same(call, kernel, strides, dilations, sides)
    if not same:
        x = _padded(call, x, sides)
    shared: dict[str, Any] = {
        "strides": [1] * rank if both else strides,
        "dilation_rate": dilations,
        "padding": "same" if same else "valid",
        "data_format": _FIRST,
        "use_bias": b is not None,
    }
    bias = [] if b is None else [b]
    key = tuple(name for name in call.node.input[1:] if name)
    if groups == ci > 1 and rank < 3 and w.shape[1] == 1:
        # (ci * multiplier, 1, *kernel) -> (*kernel, ci, multiplier)
        filters = np.moveaxis(w.reshape(ci, w.shape[0] // ci, *kernel), (0, 1), (-2, -1))
        depthwise = getattr(layers, f"DepthwiseConv{_NAMES[rank]}")
        layer = partial(depthwise, kernel, depth_multiplier=w.shape[0] // ci, **shared)
    else:
        filters = np.moveaxis(w, (0, 1), (-1, -2))
        conv = getattr(layers, f"Conv{_NAMES[rank]}")
        layer = partial(conv, w.shape[0], kernel, groups=groups, **shared)
    y = call.make(layer, key, x, [filters, *bias])
    return ops.get_item(y, (..., *(slice(None, None, stride) for stride in strides))) if both else y


def _spread(x: Any, strides: Sequence[int], extra: Sequence[int]) -> Any:
    """Images with stride - 1 zeros between pixels, and further ones at the end."""
    for axis, (stride, more) in enumerate(zip(strides, extra, strict=True), 2):
        extent = x.shape[axis]
        parts = ops.pad(
            ops.expand_dims(x, axis + 1), [(0, (stride - 1) * (i == axis + 1)) for i in range(len(x.shape) + 1)]
        )
        flat = ops.reshape(parts, (-1, *x.shape[1:axis], extent * stride, *x.shape[axis + 1 :]))
        flat = ops.slice_along(flat, axis, 0, (extent - 1) * stride + 1)
        x = ops.pad(flat, [(0, more * (i == axis)) for i in range(len(x.shape))])
    return x


@row("ConvTranspose")
def _conv_transpose(call: Call) -> Any:
    w, b = call.constant(1, "W"), call.constant(2, "B")
    assert w is not None
    x, kernel = call.x[0], list(w.shape[2:])
    rank = len(kernel)
    if call.attribute("group", 1) != 1:
        raise call.error(f"group: expected 1, got {call.attribute('group')}")
    call.expect("kernel_shape", None, kernel)
    extents = _spatial(call)
    strides = list(call.attribute("strides") or [1] * rank)
    dilations = list(call.attribute("dilations") or [1] * rank)
    pads = list(call.attribute("pads") or [0] * 2 * rank)
    extra = list(call.attribute("output_padding") or [0] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    full = [s * (n - 1) + o + r for s, n, o, r in zip(strides, extents, extra, reach, strict=True)]
    auto, wanted = call.attribute("auto_pad", "NOTSET"), call.attribute("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(extents, strides, strict=True)]
    if wanted is not None:
        totals = [f - n for f, n in zip(full, wanted[-rank:], strict=True)]
        extra = [o + max(-t, 0) for o, t in zip(extra, totals, strict=True)]
        full = [f + max(-t, 0) for f, t in zip(full, totals, strict=True)]
        totals = [max(t, 0) for t in totals]
        halves = [t // 2 if auto != "SAME_LOWER" else t - t // 2 for t in totals]
        pads = halves + [t - h for t, h in zip(totals, halves, strict=True)]
    out = [f - pads[i] - pads[i + rank] for i, f in enumerate(full)]
    if max(strides) > 1 and max(dilations) > 1:  # which layers do not have: zeros between pixels instead of strides
        x = _spread(x, strides, extra)
        strides, extra = [1] * rank, [0] * rank
    # all that is written, then what the padding leaves of it
    plain = partial(
        getattr(layers, f"Conv{_NAMES[rank]}Transpose"),
        w.shape[1],
        kernel,
        strides=strides,
        output_padding=extra if any(extra) else None,
        dilation_rate=dilations,
        data_format=_FIRST,
        use_bias=b is not None,
    )
    filters = np.moveaxis(w, (0, 1), (-1, -2))
    key = tuple(name for name in call.node.input[1:] if name)
    y = call.make(plain, key, x, [filters, *([] if b is None else [b])])
    for axis in range(rank):
        start, have = pads[axis], call.shape(y)[axis + 2]
        if start < 0 or start + out[axis] > have:
            raise call.error(f"output_padding: expected less than the strides {strides}, got {extra}")
        if (start, out[axis]) != (0, have):
            y = ops.slice_along(y, axis + 2, start, start + out[axis])
    return y


@row("MaxPool", "AveragePool")
def _pool(call: Call) -> Any:
    kernel, x = list(call.attribute("kernel_shape") or []), call.x[0]
    strides, dilations, sides = _geometry(call, kernel)
    call.attribute("storage_order", 0)
    largest, counted = call.kind == "MaxPool", bool(call.attribute("count_include_pad", 0))
    beyond = [0] * len(kernel)
    if call.attribute("ceil_mode", 0):
        reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
        each = zip(_spatial(call), reach, strides, sides, strict=True)
        beyond = [_ceiling(extent, size, stride, before, after) for extent, size, stride, (before, after) in each]
    rank, counted = len(kernel), counted and any(any(side) for side in sides)
    if counted:  # what a last window reaches beyond the padding does not count
        x, sides = _padded(call, x, sides), [(0, 0)] * rank
    sides = [(before, after + more) for (before, after), more in zip(sides, beyond, strict=True)]
    if max(dilations) > 1:
        return _dilated_pool(x, largest, kernel, strides, dilations, sides)
    same = _is_same(call, kernel, strides, dilations, sides) and not counted
    if same or not any(any(side) for side in sides):
        kind = getattr(layers, f"{'Max' if largest else 'Average'}Pooling{_NAMES[rank]}")
        layer = partial(kind, kernel, strides, padding="same" if same else "valid", data_format=_FIRST)
        return call.make(layer, (), x, [])
    if any(max(side) >= size for side, size in zip(sides, kernel, strict=True)):
        raise call.error(f"pads: expected less than the kernel {kernel}, got {sides}")
    op = (ops.MaxPool if largest else ops.AveragePool)(tuple(kernel), tuple(strides), tuple(sides))
    return ops.transpose(op(ops.transpose(x, to_last(rank + 2))), to_first(rank + 2))


def _dilated_pool(
    x: Any,
    largest: bool,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    sides: Sequence[tuple[int, int]],
) -> Any:
    """The extremum or mean of what lies at each place of the windows."""
    around = ((0, 0), (0, 0), *sides)
    padded = ops.pad(x, around, constant_values=-np.inf if largest else 0)
    inside = np.pad(np.ones((1, 1, *x.shape[2:]), "float32"), around)
    found: Any = None
    count: Any = 0.0
    for place in itertools.product(*map(range, kernel)):
        each = zip(place, kernel, strides, dilations, padded.shape[2:], strict=True)
        windows: Any = (..., *(slice(i * d, extent - (k - 1 - i) * d, s) for i, k, s, d, extent in each))
        tap = ops.get_item(padded, windows)
        found = tap if found is None else ops.maximum(found, tap) if largest else ops.add(found, tap)
        count = count + inside[windows]
    return found if largest else ops.divide(found, np.maximum(count, 1))  # of padding alone it is 0


def _ceiling(extent: int, size: int, stride: int, before: int, after: int) -> int:
    """Pixels that a last window reaches beyond the padding, where it begins before that."""
    left = (extent + before + after - size) % stride
    last = (extent + before + after - size) // stride + 1
    return stride - left if left and last * stride < extent + before else 0


@row("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(call: Call) -> Any:
    rank = len(_spatial(call))
    kind = "Average" if call.kind == "GlobalAveragePool" else "Max"
    layer = getattr(layers, f"Global{kind}Pooling{_NAMES[rank]}")
    return call.make(partial(layer, data_format=_FIRST, keepdims=True), (), call.x[0], [])


# -- products ----------------------------------------------------------------------------------------------------------


@row("Gemm")
def _gemm(call: Call) -> Any:
    a, b, c = call.x[0], call.x[1], call.input(2)
    call.attribute("broadcast")  # before version 7
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    a = ops.transpose(a, (1, 0)) if call.attribute("transA", 0) else a
    turned = call.attribute("transB", 0)
    known = not is_symbolic(b) and (c is None or not is_symbolic(c)) and not call.attribute("transA", 0)
    if known and len(a.shape) == 2 and (c is None or c.size == 1 or c.size == c.shape[-1]):
        kernel = alpha * (b.T if turned else b)
        bias = [] if c is None else [np.broadcast_to(beta * c.reshape(-1), (kernel.shape[1],))]
        layer = partial(layers.Dense, kernel.shape[1], use_bias=bool(bias))
        return call.make(layer, tuple(call.node.input[1:]), a, [kernel.astype("float32"), *bias])
    y = ops.matmul(a, ops.transpose(b, (1, 0)) if turned else b)
    y = y if alpha == 1 else ops.multiply(y, alpha)
    return y if c is None else ops.add(y, c if beta == 1 else ops.multiply(c, beta))


@row("MatMul")
def _matmul(call: Call) -> Any:
    """With a matrix of weights a dense layer, which takes in a vector that is added afterwards."""
    a, b = call.x
    if is_symbolic(b) or b.ndim != 2 or len(a.shape) < 2:
        return ops.matmul(a, b)
    bias, after, key = [], call.only_reader(), tuple(call.node.input[1:])
    if after is not None and after.op_type == "Add":
        (other,) = [name for name in after.input if name != call.node.output[0]] or [None]
        value = call.builder.values.get(other)
        vector = isinstance(value, np.ndarray) and value.shape == b.shape[1:]
        if vector and other not in call.builder.of_batch:
            bias, key = [value], (*key, other)
    y = call.make(partial(layers.Dense, b.shape[1], use_bias=bool(bias)), key, a, [b, *bias])
    if bias:
        call.builder.values[after.output[0]] = y
        call.builder.fused.add(after.output[0])
    return y


# -- normalization and others with parameters -------------------------------------------------------------------------


def _vectors(call: Call, *names: str) -> list[np.ndarray]:
    """Inputs behind the first, which are vectors of weights."""
    found = [call.constant(i + 1, name) for i, name in enumerate(names)]
    if any(value is None or value.ndim != 1 for value in found):
        raise call.error(f"expected vectors {', '.join(names)}, got {[None if v is None else v.shape for v in found]}")
    return [value for value in found if value is not None]


@row("BatchNormalization")
def _batch_norm(call: Call) -> Any:
    call.expect("training_mode", 0)
    call.expect("spatial", 1)
    call.attribute("is_test")
    if call.opset < 14 and any(list(call.node.output)[1:]):
        raise call.error("training_mode: expected one output, got those of a network in training")
    weights = _vectors(call, "scale", "B", "mean", "var")
    layer = partial(
        layers.BatchNormalization,
        axis=1,
        momentum=call.attribute("momentum", 0.9),
        epsilon=call.attribute("epsilon", 1e-5),
    )
    return call.make(layer, tuple(call.node.input[1:]), call.x[0], weights)


@row("InstanceNormalization", "GroupNormalization")
def _group_norm(call: Call) -> Any:
    groups = call.attribute("num_groups", -1) if call.kind == "GroupNormalization" else -1
    call.expect("stash_type", 1)
    scale, bias = _vectors(call, "scale", "bias")
    channels = call.shape(call.x[0])[1]
    if len(scale) != channels:  # before version 21, by group
        scale, bias = (np.repeat(vector, channels // len(vector)) for vector in (scale, bias))
    layer = partial(layers.GroupNormalization, groups, axis=1, epsilon=call.attribute("epsilon", 1e-5))
    return call.make(layer, tuple(call.node.input[1:]), call.x[0], [scale, bias])


@row("LayerNormalization")
def _layer_norm(call: Call) -> Any:
    call.expect("stash_type", 1)
    scale, bias = call.constant(1, "Scale"), call.constant(2, "B")
    assert scale is not None
    rank = len(call.x[0].shape)
    axis = call.attribute("axis", -1) % rank
    shape = tuple(call.shape(call.x[0])[axis:])
    if axis == 0:
        raise call.error(f"axis: expected 1 to {rank - 1}, got {axis}")
    layer = partial(
        layers.LayerNormalization,
        axis=list(range(axis, rank)) if axis < rank - 1 else -1,
        epsilon=call.attribute("epsilon", 1e-5),
        center=bias is not None,
    )
    weights = [np.broadcast_to(value, shape) for value in (scale, bias) if value is not None]
    return call.make(layer, tuple(name for name in call.node.input[1:] if name), call.x[0], weights)


@row("RMSNormalization")
def _rms_norm(call: Call) -> Any:
    call.expect("stash_type", 1)
    x, scale = call.x[0], call.constant(1, "scale")
    rank = len(x.shape)
    axes = tuple(range(call.attribute("axis", -1) % rank, rank))
    mean = ops.mean(ops.square(x), axes, keepdims=True)
    return ops.multiply(ops.multiply(x, ops.rsqrt(ops.add(mean, call.attribute("epsilon", 1e-5)))), scale)


@row("PRelu")
def _prelu(call: Call) -> Any:
    slope, x = call.constant(1, "slope"), call.x[0]
    assert slope is not None
    if call.opset < 7 and slope.size > 1:  # one for each channel
        slope = slope.reshape(-1, *(1,) * (len(x.shape) - 2))
    shape = (1,) * (len(x.shape) - slope.ndim) + slope.shape
    if shape[0] != 1:
        raise call.error(f"slope: expected one that the batch shares, got shape {slope.shape}")
    shared = [axis for axis, extent in enumerate(shape) if axis and extent == 1 and x.shape[axis] != 1]
    layer = partial(layers.PReLU, shared_axes=shared or None)
    return call.make(layer, (call.node.input[1],), x, [slope.reshape(shape[1:])])


@row("Dropout")
def _dropout(call: Call) -> Any:
    """Active in training, as the network was before it was written."""
    ratio, active = call.constant(1, "ratio"), call.constant(2, "training_mode")
    if active is not None and bool(active):
        raise call.error("training_mode: expected False, got True")
    call.attribute("seed")
    call.attribute("is_test")
    rate = call.attribute("ratio", 0.5) if ratio is None else float(ratio)
    return call.make(partial(layers.Dropout, rate), (), call.x[0], [])


@row("Gather")
def _gather(call: Call) -> Any:
    """Rows of a table of weights are an embedding."""
    x, index, axis = call.x[0], call.x[1], call.attribute("axis", 0)
    if is_symbolic(index) and not is_symbolic(x) and axis == 0 and x.ndim == 2 and x.dtype.kind == "f":
        layer = partial(layers.Embedding, *x.shape)
        return call.make(layer, (call.node.input[0],), index, [x])
    if not is_symbolic(index):
        axis %= len(x.shape)
        extent = call.shape(x)[axis]
        index = np.asarray(np.where(index < 0, index + extent, index))
        if index.size and not (0 <= index.min() <= index.max() < extent):
            raise call.error(f"indices: expected 0 to {extent - 1}, got {index.min()} to {index.max()}")
        if index.ndim == 0:
            return ops.squeeze(ops.slice_along(x, axis, int(index), int(index) + 1), axis)
    return ops.take(x, index, axis)
