"""Pooling in plain NumPy, one window after the other."""

import itertools

import numpy as np


def padding_of(padding, extents, pool_size, strides):
    """(before, after) of each axis; "same" as in Keras."""
    if padding == "valid":
        return ((0, 0),) * len(extents)
    if padding != "same":
        return padding
    sides = []
    for extent, size, stride in zip(extents, pool_size, strides, strict=True):
        total = max((-(-extent // stride) - 1) * stride + size - extent, 0)
        sides.append((total // 2, total - total // 2))
    return tuple(sides)


def windows(x, pool_size, strides, padding):
    """(n, *out, taps, c) with NaN where a tap lies outside of x."""
    sides = padding_of(padding, x.shape[1:-1], pool_size, strides)
    padded = np.pad(x, ((0, 0), *sides, (0, 0)), constant_values=np.nan)
    out = [(padded.shape[1 + d] - size) // strides[d] + 1 for d, size in enumerate(pool_size)]
    result = np.empty((x.shape[0], *out, int(np.prod(pool_size)), x.shape[-1]))
    for place in itertools.product(*(range(extent) for extent in out)):
        starts = [i * stride for i, stride in zip(place, strides, strict=True)]
        window = padded[(slice(None), *(slice(a, a + size) for a, size in zip(starts, pool_size, strict=True)))]
        result[(slice(None), *place)] = window.reshape(x.shape[0], -1, x.shape[-1])
    return result


def adaptive(x, output_size, function):
    """`function` over the windows that an image is cut into, from floor(i * n / out) to ceil((i + 1) * n / out)."""
    result = np.empty((x.shape[0], *output_size, x.shape[-1]))
    for place in itertools.product(*(range(out) for out in output_size)):
        sizes = zip(place, x.shape[1:-1], output_size, strict=True)
        window = x[(slice(None), *(slice(i * n // out, -(-(i + 1) * n // out)) for i, n, out in sizes))]
        result[(slice(None), *place)] = function(window.reshape(x.shape[0], -1, x.shape[-1]), axis=1)
    return result


def max_pool(x, pool_size, strides, padding):
    return np.nanmax(windows(x, pool_size, strides, padding), axis=-2)


def average_pool(x, pool_size, strides, padding, count_include_pad=False):
    taps = windows(x, pool_size, strides, padding)
    return np.nansum(taps, axis=-2) / taps.shape[-2] if count_include_pad else np.nanmean(taps, axis=-2)
