"""Transforms of squares in one pass, by cext/cuda/fourier_planes.cu: plain sums in double."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import devices, fft
from pydtconv.devices.host import HostArray
from pydtconv.kernels.gpu.fourier import Side, interleaved, planar
from pydtconv.kernels.gpu.fourier_planes import SquareTransform, serves
from tests.devices.accelerators import back, on_each, there

RNG = np.random.default_rng(6)


def check(n, images, channels, planes, device, dtype="float64", conjugate=False, accumulate=False, clip=True):
    """Forward and back of images (n, h, w, c) to spectra as convolutions have them: (w, h, n, c), or pairs."""
    half, (top, left) = n // 2 + 1, (1, 2) if clip else (0, 0)
    rows, width = (n - 3, n - 2) if clip else (n, n)
    image, count = (images, rows, width, channels), half * n * images * channels
    real = Side(rows * width * channels, width * channels, 1, channels)
    distances = channels, images * channels, 1, n * images * channels
    spectrum = planar(*distances, count, planes) if planes > 1 else interleaved(*distances)
    launcher = devices.get(device).launcher()
    x = RNG.normal(size=image).astype(dtype)
    whole = np.zeros((images, n, n, channels))
    whole[:, top : top + rows, left : left + width] = x
    want = np.fft.rfft2(whole, axes=(1, 2)).transpose(2, 1, 0, 3)
    want = np.conj(want) if conjugate else want
    y = there(device, np.full(count * (planes if planes > 1 else 2), np.nan, dtype))
    forward = SquareTransform(n, False, (images, channels), real, spectrum, (top, left), (rows, width), 1.0, conjugate)
    forward.bind(launcher, there(device, x), y)()
    got, shape = back(device, y), (half, n, images, channels)
    parts = got.reshape(*shape, 2) if planes == 1 else np.moveaxis(got.reshape(planes, *shape), 0, -1)
    tolerance = (1e-12 if dtype == "float64" else 1e-5) * np.abs(want).max()
    np.testing.assert_allclose(parts[..., 0] + 1j * parts[..., 1], want, atol=tolerance)
    if planes == 3:  # read as products: re = p0 - p1, im = p2 - p0 - p1
        np.testing.assert_allclose(parts[..., 2], parts[..., 0] + parts[..., 1], atol=2 * tolerance)
        re, im = want.real, want.imag
        y = there(device, np.stack([re + 1, np.ones_like(re), im + re + 2]).astype(dtype))
    z = there(device, np.ones(image, dtype) if accumulate else np.full(image, np.nan, dtype))
    batch, starts, extents = (images, channels), (top, left), (rows, width)
    inverse = SquareTransform(n, True, batch, spectrum, real, starts, extents, 1 / n**2, conjugate, accumulate)
    inverse.bind(launcher, y, z)()
    np.testing.assert_allclose(back(device, z), x + accumulate, atol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("n", [8, 16, 32])
@on_each
def test_squares(n, device):
    """Many channels, few of several images, one; blocks that are not full."""
    check(n, 1, 70, 2, device)
    check(n, 3, 5, 3, device, conjugate=True)
    check(n, 2, 9, 1, device, accumulate=True)
    check(n, 5, 1, 1, device, conjugate=True, accumulate=True)
    check(n, 2, 33, 3, device, "float32", clip=False)


@on_each
def test_squares_of_64_points(device):
    check(64, 3, 1, 1, device, "float32")
    check(64, 2, 1, 3, device, "float32", conjugate=True, accumulate=True, clip=False)


def test_which_are_served():
    assert [n for n in (4, 8, 16, 32, 64, 128) if serves(n, n, "float32", True)] == [8, 16, 32, 64]
    assert [n for n in (4, 8, 16, 32, 64, 128) if serves(n, n, "float32", False)] == [8, 16, 32]
    assert not serves(64, 64, "float64", True)
    assert not serves(8, 16, "float32", True)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 16, 16, 5), (1, 32, 32), (1, 64, 64)], ids=str)
def test_spectra_that_no_real_points_have(shape):
    """What is not mirrored in the first and the middle frequency is left out, as NumPy does."""
    n, axes = shape[1], (1, 2)
    spectrum = RNG.normal(size=(2, shape[0], n, n // 2 + 1, *shape[3:]))
    spectrum = (spectrum[0] + 1j * spectrum[1]).astype("complex64")
    want = np.fft.irfft2(spectrum, axes=axes)
    np.testing.assert_allclose(fft.irfft2(HostArray(spectrum), axes=axes).get(), want, atol=1e-6)
    found = fft.rfft2(HostArray(want.astype("float32")), axes=axes).get()
    np.testing.assert_allclose(found, np.fft.rfft2(want, axes=axes), atol=1e-5)
