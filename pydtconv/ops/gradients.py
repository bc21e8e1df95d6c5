"""What gradients in operators share: repeated axes, and what windows have at each of their places."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pydtconv.dtypes import real
from pydtconv.ops.base import functions

Sizes = Sequence[int]


def unbroadcast(g: Any, shape: Sizes) -> Any:
    """The sum over the axes along which an operand of this shape was repeated."""
    extra = len(g.shape) - len(shape)
    axes = (*range(extra), *(i + extra for i, e in enumerate(shape) if e == 1 and g.shape[i + extra] != 1))
    return functions.reshape(functions.sum(g, axis=axes), tuple(shape)) if axes else g


def spread(g: Any, shape: Sizes, axes: Sizes) -> Any:
    """g, of which axes were reduced, repeated along these."""
    kept = tuple(1 if i in axes else e for i, e in enumerate(shape))
    return functions.multiply(functions.reshape(g, kept), np.ones(tuple(shape), real(g.dtype)))


def by_last_axis(g: Any) -> Any:
    """The sum over all axes but the last: the gradient of a bias."""
    return functions.sum(g, axis=tuple(range(len(g.shape) - 1)))


def window_taps(
    x: Any, kernel: Sizes, strides: Sizes, dilation: Sizes, sides: Sequence[tuple[int, int]], out: Sizes
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """For each place in a window what all windows have there: images of the outputs' extents, 0 beyond x."""
    more = []
    for extent, k, s, d, (before, _), o in zip(x.shape[1:-1], kernel, strides, dilation, sides, out, strict=True):
        more.append((before, max((o - 1) * s + (k - 1) * d + 1 - before - extent, 0)))
    padded = functions.pad(x, ((0, 0), *more, (0, 0)))
    for place in itertools.product(*map(range, kernel)):
        steps = zip(place, strides, dilation, out, strict=True)
        windows = tuple(slice(at * d, at * d + (o - 1) * s + 1, s) for at, s, d, o in steps)
        yield place, padded[(slice(None), *windows, slice(None))]


def pixels_of_windows(op: Any, x: Any) -> tuple[list[Any], np.ndarray]:
    """The pixels of a pooling's windows, and which of them are inside x: (*out, 1, pixels)."""
    windows = [op.window(axis, x.spec) for axis in range(1, len(x.shape) - 1)]
    out = [window.outputs(extent) for window, extent in zip(windows, x.shape[1:-1], strict=True)]
    sides = [(window.before, window.after) for window in windows]
    strides = [window.stride for window in windows]
    found, inside = [], []
    for place, tap in window_taps(x, op.pool_size, strides, [1] * len(out), sides, out):
        found.append(tap)
        along = [
            (at + s * np.arange(o) >= before) & (at + s * np.arange(o) < before + extent)
            for at, s, o, (before, _), extent in zip(place, strides, out, sides, x.shape[1:-1], strict=True)
        ]
        inside.append(np.prod(np.meshgrid(*along, indexing="ij"), axis=0)[..., None])
    return found, np.stack(inside, -1).astype(bool)


def first_largest(pixels: Any, inside: Any = True) -> Any:
    """The largest along the last axis: the first of equal ones."""
    places = functions.argmax(functions.where(inside, pixels, -np.inf), axis=-1)
    chosen = functions.one_hot(places, pixels.shape[-1], dtype="bool")
    return functions.sum(functions.where(chosen, pixels, 0.0), axis=-1)


def largest_of_images(x: Any) -> Any:
    """The largest of each channel."""
    return first_largest(functions.swapaxes(functions.reshape(x, (x.shape[0], -1, x.shape[-1])), 1, 2))


def normalized(x: Any, dy: Any, gamma: Any, axes: Sizes, epsilon: float) -> tuple[Any, Any, Any]:
    """dx, and what dgamma and dbeta are sums of, where x is normalized by its own mean and variance along axes."""
    ops = functions
    mean = ops.mean(x, axis=axes, keepdims=True)
    inverse = ops.rsqrt(ops.mean(ops.square(x - mean), axis=axes, keepdims=True) + epsilon)
    hat = (x - mean) * inverse
    g = dy if gamma is None else dy * gamma
    dx = inverse * (g - ops.mean(g, axis=axes, keepdims=True) - hat * ops.mean(g * hat, axis=axes, keepdims=True))
    return dx, dy * hat, dy


def of_parameters(op: Any, dgamma: Any, dbeta: Any) -> list[Any]:
    """The gradients of gamma and beta, those that the operator has."""
    return [by_last_axis(each) for each, there in ((dgamma, op.scale), (dbeta, op.center)) if there]
