"""Pooling, by the windows' pixels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.loops.rules.pulling import RULES, composed

Sizes = Sequence[int]


def taps(
    x: Any, kernel: Sizes, strides: Sizes, dilation: Sizes, sides: Sequence[tuple[int, int]], out: Sizes
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """For each place in a window what all windows have there: images of the outputs' extents, 0 beyond x."""
    more = []
    for extent, k, s, d, (before, _), o in zip(x.shape[1:-1], kernel, strides, dilation, sides, out, strict=True):
        more.append((before, max((o - 1) * s + (k - 1) * d + 1 - before - extent, 0)))
    padded = ops.pad(x, ((0, 0), *more, (0, 0)))
    for place in itertools.product(*map(range, kernel)):
        steps = zip(place, strides, dilation, out, strict=True)
        windows = tuple(slice(at * d, at * d + (o - 1) * s + 1, s) for at, s, d, o in steps)
        yield place, padded[(slice(None), *windows, slice(None))]


def _pooled(op: Any, x: Any) -> tuple[list[Any], np.ndarray]:
    """The pixels of windows, and which of them are inside x: (*out, 1, pixels)."""
    windows = [op.window(axis, x.spec) for axis in range(1, len(x.shape) - 1)]
    out = [window.outputs(extent) for window, extent in zip(windows, x.shape[1:-1], strict=True)]
    sides = [(window.before, window.after) for window in windows]
    strides = [window.stride for window in windows]
    found, inside = [], []
    for place, tap in taps(x, op.pool_size, strides, [1] * len(out), sides, out):
        found.append(tap)
        along = [
            (at + s * np.arange(o) >= before) & (at + s * np.arange(o) < before + extent)
            for at, s, o, (before, _), extent in zip(place, strides, out, sides, x.shape[1:-1], strict=True)
        ]
        inside.append(np.prod(np.meshgrid(*along, indexing="ij"), axis=0)[..., None])
    return found, np.stack(inside, -1).astype(bool)


def _first_of(pixels: Any, inside: Any = True) -> Any:
    """The largest along the last axis: the first of equal ones."""
    places = ops.argmax(ops.where(inside, pixels, -np.inf), axis=-1)
    chosen = ops.one_hot(places, pixels.shape[-1], dtype="bool")
    return ops.sum(ops.where(chosen, pixels, 0.0), axis=-1)


def _largest(op: Any, x: Any) -> Any:
    found, inside = _pooled(op, x)
    return _first_of(ops.stack(found, axis=-1), inside)


def _average(op: Any, x: Any) -> Any:
    found, inside = _pooled(op, x)
    count = float(len(found)) if op.count_include_pad else inside.sum(-1).astype(float)
    return ops.sum(ops.stack(found, axis=-1), axis=-1) / count


def _bounds(extent: int, out: int) -> list[tuple[int, int]]:
    return [(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)]


def _adaptive_average(op: Any, x: Any) -> Any:
    for axis, out in enumerate(op.output_size, 1):
        shares = np.zeros((out, x.shape[axis]))
        for i, (start, stop) in enumerate(_bounds(x.shape[axis], out)):
            shares[i, start:stop] = 1 / (stop - start)
        x = ops.moveaxis(ops.tensordot(x, ops.convert_to_tensor(shares, x.dtype), axes=([axis], [1])), -1, axis)
    return x


def _adaptive_largest(op: Any, x: Any) -> Any:
    bounds = [_bounds(extent, out) for extent, out in zip(x.shape[1:-1], op.output_size, strict=True)]
    cells = []
    for window in itertools.product(*bounds):
        part = x[(slice(None), *(slice(start, stop) for start, stop in window), slice(None))]
        cells.append(_whole(part))
    return ops.reshape(ops.stack(cells, axis=1), (-1, *op.output_size, x.shape[-1]))


def _whole(x: Any) -> Any:
    """The largest of each channel."""
    return _first_of(ops.swapaxes(ops.reshape(x, (x.shape[0], -1, x.shape[-1])), 1, 2))


def _global_largest(op: Any, x: Any) -> Any:
    y = _whole(x)
    return ops.reshape(y, (y.shape[0], *(1,) * (len(x.shape) - 2), y.shape[-1])) if op.keepdims else y


RULES.update(
    {
        "MaxPool": composed(_largest), "AveragePool": composed(_average),
        "AdaptiveAveragePool": composed(_adaptive_average), "AdaptiveMaxPool": composed(_adaptive_largest),
        "GlobalMaxPool": composed(_global_largest),
    }
)  # fmt: skip
