"""Transforms of cext/cuda/fourier.cu: plain sums in double, whatever lies where, clipped, padded and conjugated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pydtconv import devices
from pydtconv.kernels.gpu.fourier import LENGTHS, Side, Transform, interleaved, planar
from tests.devices.accelerators import back, on_each, there

RNG = np.random.default_rng(4)
#: outer and middle places, channels; an odd number of channels, blocks that are not full, one channel
BATCHES = ((1, 1, 1), (2, 3, 5), (3, 1, 70), (1, 1, 133))


def side_of(kind, batch, points, points_first):
    """A side of this batch, the reals it takes, and the places in it of element (outer, middle, channel, point)."""
    outer, middle, channels = batch
    channel, point = (points, 1) if points_first else (1, channels)
    distances = (middle * channels * points, channels * points, channel, point)
    count = outer * middle * channels * points
    made = {
        "real": Side(*distances),
        "pairs": interleaved(*distances),
        "planes": planar(*distances, count, 2),
        "gauss": planar(*distances, count, 3),
    }[kind]
    index = np.add.outer(
        np.add.outer(np.arange(outer) * distances[0], np.arange(middle) * distances[1]),
        np.add.outer(np.arange(channels) * channel, np.arange(points) * point),
    )
    return made, count * {"real": 1, "pairs": 2, "planes": 2, "gauss": 3}[kind], index


def laid(kind, values, size, index):
    """The reals of a side with these elements; of Gauss's products re = p0 - p1, im = p2 - p0 - p1."""
    count, out = index.size, np.full(size, np.nan)
    if kind == "pairs":
        out[2 * index], out[2 * index + 1] = values.real, values.imag
        return out
    second = RNG.normal(size=index.shape) if kind == "gauss" else 0
    out[index] = values.real + second
    if kind != "real":
        out[index + count] = second if kind == "gauss" else values.imag
    if kind == "gauss":
        out[index + 2 * count] = values.imag + values.real + 2 * second
    return out


def found(kind, array, index):
    """The elements of a side that was written; Gauss's third plane is the sum of the others."""
    count = index.size
    if kind == "real":
        return array[index]
    if kind == "pairs":
        return array[2 * index] + 1j * array[2 * index + 1]
    if kind == "gauss":
        np.testing.assert_allclose(array[index + 2 * count], array[index] + array[index + count], rtol=1e-5, atol=1e-5)
    return array[index] + 1j * array[index + count]


def check(n, inverse, batch, kinds, layouts, device, dtype="float64", conjugate=False, accumulate=False, clip=True):
    """One transform of random elements; clip: of the points some are not there."""
    extent = max(n - 2, 1) if clip else n
    start = min(1, n - extent)
    frequencies = n // 2 + 1 if kinds[1 if inverse else 0] == "real" else n
    counts = (frequencies, extent) if inverse else (extent, frequencies)
    (source, size, index), (target, out_size, out_index) = (
        side_of(kind, batch, count, first) for kind, count, first in zip(kinds, counts, layouts, strict=True)
    )
    shape = (*batch, counts[0])
    values = RNG.normal(size=shape) + (0 if kinds[0] == "real" else 1j * RNG.normal(size=shape))
    x = laid(kinds[0], values, size, index).astype(dtype)
    y = np.ones(out_size, dtype) if accumulate else np.full(out_size, np.nan, dtype)
    one, two = there(device, x), there(device, y)
    launcher = devices.get(device).launcher()
    made = Transform(n, inverse, batch, source, target, start, extent, frequencies, 0.5, conjugate, accumulate)
    made.bind(launcher, one, two)()
    if inverse:
        whole = np.conj(values) if conjugate else values
        want = (np.fft.irfft(whole, n) if kinds[1] == "real" else np.fft.ifft(whole, n)) * n
        want = want[..., start : start + extent]
    else:
        points = np.zeros((*batch, n), values.dtype)
        points[..., start : start + extent] = values
        want = np.fft.rfft(points) if kinds[0] == "real" else np.fft.fft(points)
        want = np.conj(want) if conjugate else want
    got = found(kinds[1], back(device, two), out_index)
    ones = (1 if kinds[1] == "real" else 1 + 1j) if accumulate else 0
    tolerance = (1e-12 if dtype == "float64" else 1e-5) * max(np.abs(want).max(), 1)
    np.testing.assert_allclose(got, 0.5 * want + ones, atol=tolerance)


REAL = [("real", kind) for kind in ("pairs", "planes", "gauss")]
COMPLEX = list(itertools.product(("pairs", "planes"), ("pairs", "planes", "gauss")))


@pytest.mark.parametrize("n", LENGTHS)
@on_each
def test_all_sides(n, device):
    """Each pair of kinds and layouts, with padding and clipping, and with the spectrum conjugated."""
    for number, (kinds, layouts) in enumerate(
        itertools.product(REAL + COMPLEX, itertools.product((False, True), repeat=2))
    ):
        batch, conjugate = BATCHES[number % len(BATCHES)], number % 3 == 1
        check(n, False, batch, kinds, layouts, device, conjugate=conjugate)
        check(n, True, batch, kinds[::-1], layouts, device, conjugate=conjugate)


@pytest.mark.parametrize("n", LENGTHS)
@on_each
def test_single_precision_whole_and_added(n, device):
    for batch, layouts in zip(BATCHES, itertools.product((False, True), repeat=2), strict=True):
        for kinds in (("real", "planes"), ("planes", "pairs")):
            check(n, False, batch, kinds, layouts, device, "float32", clip=False)
            check(n, True, batch, kinds[::-1], layouts, device, "float32", clip=False, accumulate=True)
            check(n, True, batch, kinds[::-1], layouts[::-1], device, accumulate=True)
