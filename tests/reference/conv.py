"""Convolution in plain float64 NumPy: images NHWC, filters HWIO, padding by side, strides, dilation, groups."""

from __future__ import annotations

import numpy as np


def _taps(x_shape, w_shape, strides, padding, dilation):
    """(kh, kw, rows, columns) of each tap, slices of the padded image that it multiplies; and the output's size."""
    (top, bottom), (left, right) = padding
    height, width = x_shape[1] + top + bottom, x_shape[2] + left + right
    kh, kw = w_shape[:2]
    oh = (height - (kh - 1) * dilation[0] - 1) // strides[0] + 1
    ow = (width - (kw - 1) * dilation[1] - 1) // strides[1] + 1
    taps = []
    for i in range(kh):
        for j in range(kw):
            rows = slice(i * dilation[0], i * dilation[0] + (oh - 1) * strides[0] + 1, strides[0])
            columns = slice(j * dilation[1], j * dilation[1] + (ow - 1) * strides[1] + 1, strides[1])
            taps.append((i, j, rows, columns))
    return taps, oh, ow


def _pad(x, padding):
    return np.pad(np.asarray(x, "float64"), ((0, 0), *padding, (0, 0)))


def _groups(ci, co, groups):
    """Channel slices (input, output) of each group."""
    a, b = ci // groups, co // groups
    return [(slice(g * a, (g + 1) * a), slice(g * b, (g + 1) * b)) for g in range(groups)]


def forward(x, w, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1, bias=None):
    """y (n, oh, ow, co)."""
    w = np.asarray(w, "float64")
    taps, oh, ow = _taps(x.shape, w.shape, strides, padding, dilation)
    xp = _pad(x, padding)
    y = np.zeros((x.shape[0], oh, ow, w.shape[3]))
    for inputs, outputs in _groups(x.shape[3], w.shape[3], groups):
        for i, j, rows, columns in taps:
            y[..., outputs] += xp[:, rows, columns, inputs] @ w[i, j, :, outputs]
    return y if bias is None else y + np.asarray(bias, "float64")


def backward_data(dy, w, x_shape, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """dx of x_shape."""
    w, dy = np.asarray(w, "float64"), np.asarray(dy, "float64")
    taps, _, _ = _taps(x_shape, w.shape, strides, padding, dilation)
    dxp = _pad(np.zeros(x_shape), padding)
    for inputs, outputs in _groups(x_shape[3], w.shape[3], groups):
        for i, j, rows, columns in taps:
            dxp[:, rows, columns, inputs] += dy[..., outputs] @ w[i, j, :, outputs].T
    top, left = padding[0][0], padding[1][0]
    return dxp[:, top : top + x_shape[1], left : left + x_shape[2]]


def backward_weights(x, dy, w_shape, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """dw of w_shape."""
    dy = np.asarray(dy, "float64")
    taps, _, _ = _taps(x.shape, w_shape, strides, padding, dilation)
    xp = _pad(x, padding)
    dw = np.zeros(w_shape)
    for inputs, outputs in _groups(x.shape[3], w_shape[3], groups):
        for i, j, rows, columns in taps:
            dw[i, j, :, outputs] = np.tensordot(
                xp[:, rows, columns, inputs], dy[..., outputs], axes=([0, 1, 2], [0, 1, 2])
            )
    return dw
