"""Rows of the table from ONNX to ours: shapes, parts, padding, resizing, and other moves of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import layers, ops
from pydtconv.interchange.onnx.call import BATCH, Call, check_size, is_symbolic, row


@row("Shape")
def _shape(call: Call) -> np.ndarray:
    shape = call.shape(call.x[0])
    return np.array(shape, "int64")[call.attribute("start", 0) : call.attribute("end", len(shape))]


@row("Size")
def _size(call: Call) -> np.ndarray:
    return np.array(math.prod(call.shape(call.x[0])), "int64")


def _reshaped(call: Call, x: Any, wanted: Sequence[int]) -> Any:
    """x in a shape where -1 is what is left, and multiples of `BATCH` follow the batch."""
    total, extents = math.prod(call.shape(x)), list(wanted)
    if None in x.shape and call.builder.freed and extents and extents[0] == call.builder.freed:
        extents[0] = BATCH
    if -1 in extents:
        rest = math.prod(extent for extent in extents if extent != -1)
        if extents.count(-1) > 1 or not rest or total % rest:
            raise call.error(f"shape: expected one for {x.shape}, got {list(wanted)}")
        extents[extents.index(-1)] = total // rest
    if math.prod(extents) != total or min(extents, default=1) < 0:
        raise call.error(f"shape: expected one for {x.shape}, got {list(wanted)}")
    return ops.reshape(x, tuple(-1 if extent and extent % BATCH == 0 else extent for extent in extents))


@row("Reshape")
def _reshape(call: Call) -> Any:
    x, shape = call.x[0], call.integers(1, "shape")
    assert shape is not None
    zero = call.attribute("allowzero", 0)
    own = call.shape(x)
    return _reshaped(call, x, [own[i] if not extent and not zero else extent for i, extent in enumerate(shape)])


@row("Flatten")
def _flatten(call: Call) -> Any:
    shape, axis = call.shape(call.x[0]), call.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if axis == 1:
        name = call.builder.layer_name(call.node.name or call.node.output[0])
        return layers.Flatten("channels_last", name=name)(call.x[0])
    return _reshaped(call, call.x[0], [math.prod(shape[:axis]), math.prod(shape[axis:])])


@row("Squeeze")
def _squeeze(call: Call) -> Any:
    axes = call.integers(1, "axes")
    return ops.squeeze(call.x[0], None if axes is None else tuple(axes))


@row("Unsqueeze")
def _unsqueeze(call: Call) -> Any:
    axes, x = call.integers(1, "axes") or [], call.x[0]
    rank = len(x.shape) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = ops.expand_dims(x, axis)
    return x


@row("Transpose")
def _transpose(call: Call) -> Any:
    return ops.transpose(call.x[0], call.attribute("perm"))


@row("Concat")
def _concat(call: Call) -> Any:
    axis = call.attribute("axis")
    batched = any(is_symbolic(value) and call.shape(value)[0] == BATCH for value in call.x)
    parts = [_following(call, value) if batched and axis else value for value in call.x]
    return ops.concatenate(parts, axis)


def _following(call: Call, value: Any) -> Any:
    """A constant part beside those of the batch: its one row, for each sample."""
    if is_symbolic(value):
        return value
    if len(value) not in (1, call.builder.freed) or (value != value[:1]).any():
        raise call.error(f"expected parts that follow the batch, got a constant of shape {value.shape} beside one")
    return ops.multiply(call.builder.ones(value.ndim), value[:1])


@row("Split")
def _split(call: Call) -> Any:
    x, axis = call.x[0], call.attribute("axis", 0)
    sizes, count = call.integers(1, "split"), len(call.node.output)
    call.expect("num_outputs", count)
    extent = call.shape(x)[axis]
    if sizes is None:
        each = -(-extent // count)
        sizes = [min(each, extent - i * each) for i in range(count)]
    if sum(sizes) != extent or min(sizes) < 1:
        raise call.error(f"split: expected parts of 1 or more that make {extent}, got {sizes}")
    ends = np.cumsum(sizes).tolist()
    return [ops.slice_along(x, axis, end - size, end) for end, size in zip(ends, sizes, strict=True)]


@row("Slice")
def _slice(call: Call) -> Any:
    x, shape = call.x[0], call.shape(call.x[0])
    starts, stops = call.integers(1, "starts"), call.integers(2, "ends")
    assert starts is not None
    assert stops is not None
    axes, steps = call.integers(3, "axes") or range(len(starts)), call.integers(4, "steps") or [1] * len(starts)
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        axis, extent = axis % len(shape), shape[axis]
        end = None if step < 0 and stop < -extent else stop
        first, last, _ = slice(start, end, step).indices(extent)
        if (first, last, step) == (0, extent, 1):
            continue
        if extent % BATCH == 0 < extent:
            raise call.error(f"axis {axis}: expected all of the batch, got {start} to {stop}")
        if step == 1:
            x = ops.slice_along(x, axis, first, last)
        else:
            check_size(call, [len(range(first, last, step))])
            x = ops.take(x, np.arange(first, last, step), axis)
    return x


@row("Expand")
def _expand(call: Call) -> Any:
    x, shape = call.x[0], call.integers(1, "shape")
    assert shape is not None
    own = call.shape(x)
    whole = np.broadcast_shapes(tuple(own), tuple(shape))
    if list(whole) == own:
        return x
    if any(extent % BATCH == 0 < extent for extent in whole):
        ones = [1 if extent % BATCH == 0 < extent else extent for extent in whole]
        check_size(call, ones, 4)
        return ops.multiply(x, np.ones(ones, "float32"))
    return ops.broadcast_to(x, whole)


@row("Tile")
def _tile(call: Call) -> Any:
    return ops.tile(call.x[0], tuple(call.integers(1, "repeats") or ()))


@row("Pad")
def _pad(call: Call) -> Any:
    x, rank = call.x[0], len(call.x[0].shape)
    pads, mode = call.integers(1, "pads"), call.attribute("mode", "constant")
    value, axes = call.attribute("value"), call.integers(3, "axes")
    assert pads is not None
    constant = call.constant(2, "constant_value")
    value = float(value) if value is not None else 0.0 if constant is None else float(constant.reshape(-1)[0])
    places = [axis % rank for axis in axes] if axes is not None else range(rank)
    half, sides = len(pads) // 2, [(0, 0)] * rank
    for i, axis in enumerate(places):
        sides[axis] = (pads[i], pads[i + half])
    for axis, (before, after) in enumerate(sides):  # negative ones cut off
        if min(before, after) < 0:
            x = ops.slice_along(x, axis, max(-before, 0), call.shape(x)[axis] - max(-after, 0))
    sides = [(max(before, 0), max(after, 0)) for before, after in sides]
    if mode in ("constant", "reflect"):
        return ops.pad(x, sides, mode, value if mode == "constant" else None)
    if mode not in ("edge", "wrap"):
        raise call.error(f"mode: expected 'constant', 'reflect', 'edge' or 'wrap', got {mode!r}")
    for axis, (before, after) in enumerate(sides):
        if before or after:
            extent = call.shape(x)[axis]
            check_size(call, [before + extent + after])
            index = np.arange(-before, extent + after)
            x = ops.take(x, index % extent if mode == "wrap" else np.clip(index, 0, extent - 1), axis)
    return x


@row("GatherElements")
def _gather_elements(call: Call) -> Any:
    axis = call.attribute("axis", 0) % len(call.x[0].shape)
    index = call.x[1]
    if not is_symbolic(index):
        index = np.where(index < 0, index + call.shape(call.x[0])[axis], index)
    return ops.take_along_axis(call.x[0], index, axis)


@row("DepthToSpace")
def _depth_to_space(call: Call) -> Any:
    """ "DCR" is Keras's order with the channels last, "CRD" that with them first."""
    mode, block = call.attribute("mode", "DCR"), call.attribute("blocksize")
    if mode == "CRD":
        return ops.depth_to_space(call.x[0], block, "channels_first")
    x = ops.depth_to_space(ops.transpose(call.x[0], (0, 2, 3, 1)), block, "channels_last")
    return ops.transpose(x, (0, 3, 1, 2))


@row("SpaceToDepth")
def _space_to_depth(call: Call) -> Any:
    x = ops.space_to_depth(ops.transpose(call.x[0], (0, 2, 3, 1)), call.attribute("blocksize"), "channels_last")
    return ops.transpose(x, (0, 3, 1, 2))


@row("Trilu")
def _trilu(call: Call) -> Any:
    k = call.constant(1, "k")
    diagonal = 0 if k is None else int(np.ravel(k)[0])
    return (ops.triu if call.attribute("upper", 1) else ops.tril)(call.x[0], diagonal)


# -- resizing ----------------------------------------------------------------------------------------------------------


@row("Resize", "Upsample")
def _resize(call: Call) -> Any:
    """Products with a matrix along each axis that changes; pixels repeated a whole number of times by a layer."""
    x, shape = call.x[0], call.shape(call.x[0])
    old = call.kind == "Upsample" or call.opset < 11
    scales = call.attribute("scales") if old and call.opset < 9 else call.constant(1 if old else 2, "scales")
    sizes = None if old else call.constant(3, "sizes")
    mode = call.attribute("mode", "nearest")
    place = "asymmetric" if old else call.attribute("coordinate_transformation_mode", "half_pixel")
    rounding = "floor" if old else call.attribute("nearest_mode", "round_prefer_floor")
    call.expect("keep_aspect_ratio_policy", "stretch")
    antialias, outside = call.attribute("antialias", 0), call.attribute("exclude_outside", 0)
    cubic = call.attribute("cubic_coeff_a", -0.75)
    call.attribute("extrapolation_value")
    if antialias or place == "tf_crop_and_resize":
        raise call.error(f"expected no antialias and no crop, got antialias={antialias} and {place!r}")
    axes = [axis % len(shape) for axis in call.attribute("axes", range(len(shape)))]
    if sizes is not None and sizes.size:
        wanted = [int(size) for size in sizes]
        factors = [size / shape[axis] for size, axis in zip(wanted, axes, strict=True)]
    else:
        factors = [float(factor) for factor in np.ravel(scales)]  # type: ignore[arg-type]
        wanted = [int(np.float32(shape[axis]) * np.float32(factor)) for factor, axis in zip(factors, axes, strict=True)]
    changes = [(axis, factor, size) for axis, factor, size in zip(axes, factors, wanted, strict=True) if factor != 1]
    if mode not in ("nearest", "linear", "cubic"):
        raise call.error(f"mode: expected 'nearest', 'linear' or 'cubic', got {mode!r}")
    if any(x.shape[axis] is None for axis, _, _ in changes):
        raise call.error("expected the batch to stay as it is")
    repeats = mode == "nearest" and all(factor == size // shape[axis] for axis, factor, size in changes)
    repeats = repeats and (place, rounding) in (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))
    if repeats and len(shape) == 4 and {axis for axis, _, _ in changes} <= {2, 3}:
        times = [next((size // shape[axis] for axis, _, size in changes if axis == d), 1) for d in (2, 3)]
        name = call.builder.layer_name(call.node.name or call.node.output[0])
        return layers.UpSampling2D(times, data_format="channels_first", name=name)(x)
    for axis, factor, size in changes:
        check_size(call, [size, 1 if mode == "nearest" else shape[axis]])
        single = "float32" if mode == "nearest" else "float64"  # ONNX Runtime rounds places in single precision
        centre = _centres(place, np.arange(size, dtype=single), shape[axis], size, factor, call).astype("float64")
        if mode == "nearest":
            x = ops.take(x, np.clip(_ROUNDINGS[rounding](centre), 0, shape[axis] - 1).astype("int64"), axis)
            continue
        matrix = _matrix(mode, centre, shape[axis], cubic, bool(outside)).astype("float32")
        x = ops.moveaxis(ops.matmul(ops.moveaxis(x, axis, -1), matrix.T), -1, axis)
    return x


_ROUNDINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def _centres(place: str, i: np.ndarray, extent: Any, size: Any, factor: Any, call: Call) -> np.ndarray:
    """Where the pixels of the result are in the image, in the precision of their numbers i."""
    extent, size, factor = map(i.dtype.type, (extent, size, factor))
    if place in ("half_pixel", "pytorch_half_pixel"):
        return np.zeros(1) if place == "pytorch_half_pixel" and size == 1 else (i + 0.5) / factor - 0.5
    if place == "half_pixel_symmetric":
        return extent / 2 * (1 - size / (extent * factor)) + (i + 0.5) / factor - 0.5
    if place == "asymmetric":
        return i / factor
    if place == "align_corners":
        return i * (extent - 1) / (size - 1) if size > 1 else np.zeros(1)  # as PyTorch and ONNX Runtime have it
    raise call.error(f"coordinate_transformation_mode: {place!r} is not supported")


def _matrix(mode: str, centre: np.ndarray, extent: int, a: float, exclude_outside: bool) -> np.ndarray:
    """(size, extent): weights of the pixels; those beyond the border are the outermost one."""
    matrix, radius = np.zeros((len(centre), extent)), 1 if mode == "linear" else 2
    low = np.floor(centre).astype(int)
    for step in range(1 - radius, radius + 1):
        index, gap = low + step, np.abs(centre - low - step)
        if mode == "linear":
            weight = 1 - gap
        else:
            inner = ((a + 2) * gap - (a + 3)) * gap * gap + 1
            weight = np.where(gap < 1, inner, ((a * gap - 5 * a) * gap + 8 * a) * gap - 4 * a)
        if exclude_outside:
            weight = np.where((index >= 0) & (index < extent), weight, 0)
        np.add.at(matrix, (np.arange(len(centre)), np.clip(index, 0, extent - 1)), weight)
    return matrix / matrix.sum(1, keepdims=True) if exclude_outside else matrix
