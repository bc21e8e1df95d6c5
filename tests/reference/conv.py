"""Convolution in plain float64 NumPy: images (n, *spatial, ci) of any rank, filters (*kernel, ci // groups, co).

Strides and dilation are an integer or one for each axis; padding has (before, after) of each axis.
"""

from __future__ import annotations

import itertools

import numpy as np


def _by_axis(value, rank):
    return (value,) * rank if isinstance(value, int) else tuple(value)


def _taps(x_shape, w_shape, strides, padding, dilation):
    """(index, slices) of each tap: of the padded image, what it multiplies; and the output's sizes."""
    rank = len(x_shape) - 2
    strides, dilation = _by_axis(strides, rank), _by_axis(dilation, rank)
    kernel = w_shape[:rank]
    out = [
        (extent + before + after - (k - 1) * d - 1) // s + 1
        for extent, (before, after), k, s, d in zip(x_shape[1:-1], padding, kernel, strides, dilation, strict=True)
    ]
    taps = []
    for index in itertools.product(*(range(k) for k in kernel)):
        starts = [i * d for i, d in zip(index, dilation, strict=True)]
        slices = (slice(start, start + (o - 1) * s + 1, s) for start, o, s in zip(starts, out, strides, strict=True))
        taps.append((index, (slice(None), *slices)))
    return taps, out


def _padding(padding, x_shape):
    return ((0, 0),) * (len(x_shape) - 2) if padding is None else padding


def _pad(x, padding):
    return np.pad(np.asarray(x, "float64"), ((0, 0), *padding, (0, 0)))


def _groups(ci, co, groups):
    """Channel slices (input, output) of each group."""
    a, b = ci // groups, co // groups
    return [(slice(g * a, (g + 1) * a), slice(g * b, (g + 1) * b)) for g in range(groups)]


def forward(x, w, strides=1, padding=None, dilation=1, groups=1, bias=None):
    """y (n, *out, co)."""
    w, padding = np.asarray(w, "float64"), _padding(padding, x.shape)
    taps, out = _taps(x.shape, w.shape, strides, padding, dilation)
    xp = _pad(x, padding)
    y = np.zeros((x.shape[0], *out, w.shape[-1]))
    for inputs, outputs in _groups(x.shape[-1], w.shape[-1], groups):
        for index, read in taps:
            y[..., outputs] += xp[(*read, inputs)] @ w[index][:, outputs]
    return y if bias is None else y + np.asarray(bias, "float64")


def backward_data(dy, w, x_shape, strides=1, padding=None, dilation=1, groups=1):
    """dx of x_shape."""
    w, dy, padding = np.asarray(w, "float64"), np.asarray(dy, "float64"), _padding(padding, x_shape)
    taps, _ = _taps(x_shape, w.shape, strides, padding, dilation)
    dxp = _pad(np.zeros(x_shape), padding)
    for inputs, outputs in _groups(x_shape[-1], w.shape[-1], groups):
        for index, read in taps:
            dxp[(*read, inputs)] += dy[..., outputs] @ w[index][:, outputs].T
    inside = (slice(before, before + extent) for (before, _), extent in zip(padding, x_shape[1:-1], strict=True))
    return dxp[(slice(None), *inside)]


def backward_weights(x, dy, w_shape, strides=1, padding=None, dilation=1, groups=1):
    """dw of w_shape."""
    dy, padding = np.asarray(dy, "float64"), _padding(padding, x.shape)
    taps, _ = _taps(x.shape, w_shape, strides, padding, dilation)
    xp = _pad(x, padding)
    dw = np.zeros(w_shape)
    pixels = list(range(x.ndim - 1))
    for inputs, outputs in _groups(x.shape[-1], w_shape[-1], groups):
        for index, read in taps:
            dw[index][:, outputs] = np.tensordot(xp[(*read, inputs)], dy[..., outputs], axes=(pixels, pixels))
    return dw
