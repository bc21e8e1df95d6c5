"""Transforms and convolutions on arrays of a device, at once: what `pydtconv.fft` and `pydtconv.conv` do with them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise
from math import prod, sqrt
from typing import Any

import numpy as np

from pydtconv import hooks
from pydtconv.conv.problem import ConvProblem
from pydtconv.devices.accelerator import Accelerator
from pydtconv.devices.names import of
from pydtconv.kernels.gpu.convolutions import TABLE, choose
from pydtconv.kernels.gpu.fourier import LENGTHS, Side, Transform, interleaved
from pydtconv.kernels.gpu.fourier_planes import SquareTransform, serves
from pydtconv.kernels.gpu.linear import bind_finish

_REALS = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}
_COMPLEXES = {"float32": "complex64", "float64": "complex128"}


def _accelerator(array: Any) -> Accelerator:
    found = of(array)
    assert isinstance(found, Accelerator)
    return found


@hooks.transform_on_device.fill
def transform(name: str, kind: str, x: Any, sizes: Sequence[int | None], axes: Sequence[int], norm: str | None) -> Any:
    """One of the functions of `pydtconv.fft`, of 2^a points; kind: "complex", "inverse", "real", "to_real".

    Raises ValueError or TypeError naming the argument, before anything runs.
    """
    device = _accelerator(x)
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{name}: norm: expected None, 'backward', 'ortho' or 'forward', got {norm!r}")
    dtype = np.dtype(x.dtype).name
    if dtype not in _REALS or (kind == "real" and dtype not in _COMPLEXES):
        raise TypeError(f"{name}: x: expected an array of a type that it transforms, got {x.dtype}")
    if not x.flags.c_contiguous or not x.size:
        raise ValueError(f"{name}: x: expected an array in C order that is not empty, got strides {x.strides}")
    places = [operator.index(axis) % x.ndim for axis in axes]
    if any(second - first != 1 for first, second in pairwise(places)):
        raise ValueError(f"{name}: axes: expected two neighbours in order, got {tuple(axes)}")
    points = []
    for i, size in enumerate(sizes):
        there, last = x.shape[places[i]], kind == "to_real" and i == len(sizes) - 1
        n = (2 * (there - 1) if last else there) if size is None else operator.index(size)
        if n not in LENGTHS:
            raise ValueError(f"{name}: n: expected one of {', '.join(map(str, LENGTHS))} points on a device, got {n}")
        fixed = kind in ("inverse", "to_real")
        if fixed and there != (n // 2 + 1 if last else n):
            raise ValueError(f"{name}: n: expected a spectrum of {n} points on a device, got {there} frequencies")
        points.append(n)
    inverse = kind in ("inverse", "to_real")
    scale = 1.0 / prod(points) if inverse == (norm in (None, "backward")) else 1.0
    scale = 1 / sqrt(prod(points)) if norm == "ortho" else scale
    order = list(zip(places, points, strict=True))
    with device.joined():
        if len(points) == 2 and kind in ("real", "to_real"):
            channels = prod(x.shape[places[-1] + 1 :])
            if serves(points[0], points[1], _REALS[dtype], channels == 1):
                return _squares(device, x, places[0], points[0], inverse, scale)
        for number, (place, n) in enumerate(order if inverse else order[::-1]):
            ends = number == len(order) - 1
            half = place == places[-1] and kind in ("real", "to_real")
            x = _along(device, x, place, n, inverse, half, scale if ends else 1.0)
    return x


def _along(device: Accelerator, x: Any, place: int, n: int, inverse: bool, half: bool, scale: float) -> Any:
    """The transforms along one axis; half: of real points, or to real points."""
    real = _REALS[np.dtype(x.dtype).name]
    there, frequencies = x.shape[place], n // 2 + 1 if half else n
    count = n if inverse else frequencies
    y = device.zeros((*x.shape[:place], count, *x.shape[place + 1 :]), real if half and inverse else _COMPLEXES[real])
    outer, channels = prod(x.shape[:place]), prod(x.shape[place + 1 :])

    def side(array: Any, extent: int) -> Side:
        made = interleaved if np.dtype(array.dtype).kind == "c" else Side
        if channels == 1:  # neighbouring points are neighbours in memory
            return made(0, 0, extent, 1)
        return made(extent * channels, 0, 1, channels)

    batch = (1, 1, outer) if channels == 1 else (outer, 1, channels)
    extent = n if inverse else min(there, n)
    bound = Transform(n, inverse, batch, side(x, there), side(y, count), 0, extent, frequencies, scale)
    launcher = device.launcher()
    call = bound.bind(launcher, x, y)
    call()
    return y


def _squares(device: Accelerator, x: Any, place: int, n: int, inverse: bool, scale: float) -> Any:
    """Real transforms of squares along an axis and the next."""
    real, half = _REALS[np.dtype(x.dtype).name], n // 2 + 1
    shape = (*x.shape[:place], n, n if inverse else half, *x.shape[place + 2 :])
    y = device.zeros(shape, real if inverse else _COMPLEXES[real])
    images, channels = prod(shape[:place]), prod(shape[place + 2 :])

    def side(array: Any) -> Side:
        rows, points = array.shape[place : place + 2]
        made = interleaved if np.dtype(array.dtype).kind == "c" else Side
        return made(rows * points * channels, points * channels, 1, channels)

    extents = (n, n) if inverse else (min(x.shape[place], n), min(x.shape[place + 1], n))
    made = SquareTransform(n, inverse, (images, channels), side(x), side(y), (0, 0), extents, scale)
    launcher = device.launcher()
    made.bind(launcher, x, y)()
    return y


@hooks.convolve_on_device.fill
def convolution(p: ConvProblem, direction: str, first: Any, second: Any, bias: Any, algorithm: Any, out: Any) -> Any:
    """A pass of `pydtconv.conv`; first and second: x and w, dy and w, or x and dy.

    Raises ValueError, before anything runs, for arrays that do not fit the problem or lie on another device.
    """
    shapes = {
        "forward": (("x", p.x_shape), ("w", p.w_shape), p.y_shape),
        "backward_data": (("dy", p.y_shape), ("w", p.w_shape), p.x_shape),
        "backward_weights": (("x", p.x_shape), ("dy", p.y_shape), p.w_shape),
    }[direction]
    if p.dtype not in _COMPLEXES:
        raise ValueError(f"dtype: expected float32 or float64 on a device, got {p.dtype}")
    device = _accelerator(first)
    given = [(*shapes[0], first), (*shapes[1], second)]
    given += [] if bias is None else [("bias", (p.co,), bias)]
    given += [] if out is None else [("out", shapes[2], out)]
    for name, shape, array in given:
        if of(array) is not device:
            raise ValueError(f"{name}: expected an array of device {device.name}, got one of {of(array).name}")
        if tuple(array.shape) != shape or np.dtype(array.dtype).name != p.dtype or not array.flags.c_contiguous:
            raise ValueError(f"{name}: expected {shape} of {p.dtype} in C order, got {array.shape} of {array.dtype}")
    found = TABLE[choose(p, direction, algorithm, None, device.name).algorithm]
    with device.joined():
        launcher, out = device.launcher(), device.zeros(shapes[2], p.dtype) if out is None else out
        workspace = device.zeros((found.workspace(p, direction),), np.uint8)
        if direction == "forward":
            found.forward(launcher, p, first, second, out, workspace, False)()
            if bias is not None:
                bind_finish(launcher, out, bias, None, None, None)()
        elif direction == "backward_data":
            found.backward_data(launcher, p, first, second, out, workspace, False)()
        else:
            found.backward_weights(launcher, p, first, second, out, workspace)()
    return out
