"""Pooling in plain NumPy, one window after the other."""

import numpy as np


def padding_of(padding, extents, pool_size, strides):
    """((top, bottom), (left, right)); "same" as in Keras."""
    if padding == "valid":
        return ((0, 0), (0, 0))
    if padding != "same":
        return padding
    sides = []
    for extent, size, stride in zip(extents, pool_size, strides, strict=True):
        total = max((-(-extent // stride) - 1) * stride + size - extent, 0)
        sides.append((total // 2, total - total // 2))
    return tuple(sides)


def windows(x, pool_size, strides, padding):
    """(n, oh, ow, taps, c) with NaN where a tap lies outside of x."""
    sides = padding_of(padding, x.shape[1:3], pool_size, strides)
    padded = np.pad(x, ((0, 0), *sides, (0, 0)), constant_values=np.nan)
    oh, ow = ((padded.shape[1 + d] - pool_size[d]) // strides[d] + 1 for d in (0, 1))
    result = np.empty((x.shape[0], oh, ow, pool_size[0] * pool_size[1], x.shape[3]))
    for i in range(oh):
        for j in range(ow):
            top, left = i * strides[0], j * strides[1]
            window = padded[:, top : top + pool_size[0], left : left + pool_size[1]]
            result[:, i, j] = window.reshape(x.shape[0], -1, x.shape[3])
    return result


def max_pool(x, pool_size, strides, padding):
    return np.nanmax(windows(x, pool_size, strides, padding), axis=3)


def average_pool(x, pool_size, strides, padding, count_include_pad=False):
    taps = windows(x, pool_size, strides, padding)
    return np.nansum(taps, axis=3) / taps.shape[3] if count_include_pad else np.nanmean(taps, axis=3)
