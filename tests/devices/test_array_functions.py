"""`pydtconv.fft` and `pydtconv.conv` on arrays of a device, which they take and give."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import conv, devices, fft
from pydtconv.conv import ConvProblem
from pydtconv.devices.host import HostArray
from pydtconv.kernels.gpu.fourier import LENGTHS

RNG = np.random.default_rng(5)
REAL = RNG.normal(size=(3, 8, 16, 5))
COMPLEX = REAL + 1j * RNG.normal(size=REAL.shape)


@pytest.mark.slow
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("shape", [(5, "n"), (2, "n", 3), (1, "n", 35)], ids=str)
def test_all_lengths(n, shape):
    """Real and complex, points or channels lying together, in both precisions."""
    axis = shape.index("n")
    extents = [n if extent == "n" else extent for extent in shape]
    x = RNG.normal(size=extents)
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        one = x.astype(dtype)
        spectrum = fft.rfft(HostArray(one), axis=axis)
        want = np.fft.rfft(x, axis=axis)
        np.testing.assert_allclose(spectrum.get(), want, atol=tolerance * np.abs(want).max())
        np.testing.assert_allclose(fft.irfft(spectrum, axis=axis).get(), one, atol=tolerance * np.abs(x).max())
        two = (x + 1j * x[::-1]).astype(f"complex{8 * 2 * one.itemsize}")
        found, want = fft.fft(HostArray(two), axis=axis), np.fft.fft(two, axis=axis)
        np.testing.assert_allclose(found.get(), want, atol=tolerance * np.abs(want).max())
        np.testing.assert_allclose(fft.ifft(found, axis=axis).get(), two, atol=tolerance * np.abs(two).max())
    if n > 2:
        part = HostArray(np.ascontiguousarray(np.take(x, range(n - 1), axis)))
        np.testing.assert_allclose(fft.rfft(part, n, axis).get(), np.fft.rfft(part.get(), n, axis), atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("axes", [(1, 2), (2, 3), (0, 1)], ids=str)
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_two_axes(axes, norm):
    arrays = [np.ascontiguousarray(np.take(np.take(a, range(2), axes[0]), range(4), axes[1])) for a in (REAL, COMPLEX)]
    one, two = arrays
    spectrum = fft.rfft2(HostArray(one), axes=axes, norm=norm)
    np.testing.assert_allclose(spectrum.get(), np.fft.rfft2(one, axes=axes, norm=norm), atol=1e-12)
    np.testing.assert_allclose(fft.irfft2(spectrum, axes=axes, norm=norm).get(), one, atol=1e-12)
    found = fft.fft2(HostArray(two), axes=axes, norm=norm)
    np.testing.assert_allclose(found.get(), np.fft.fft2(two, axes=axes, norm=norm), atol=1e-12)
    np.testing.assert_allclose(fft.ifft2(found, axes=axes, norm=norm).get(), two, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "im2col", "fft"])
def test_convolutions(algorithm):
    p = ConvProblem(2, 7, 6, 3, 4, kernel=(3, 3), padding="same", dtype="float64")
    x, w, dy, bias = (RNG.normal(size=shape) for shape in (p.x_shape, p.w_shape, p.y_shape, (4,)))
    there = {"x": HostArray(x), "w": HostArray(w), "dy": HostArray(dy), "bias": HostArray(bias)}
    y = conv.forward(p, there["x"], there["w"], there["bias"], algorithm=algorithm)
    np.testing.assert_allclose(y.get(), conv.forward(p, x, w, bias, algorithm="im2col"), atol=1e-12)
    out = HostArray(np.empty(p.x_shape))
    assert conv.backward_data(p, there["dy"], there["w"], algorithm=algorithm, out=out) is out
    np.testing.assert_allclose(out.get(), conv.backward_data(p, dy, w, algorithm="im2col"), atol=1e-12)
    dw = conv.backward_weights(p, there["x"], there["dy"], algorithm=algorithm)
    np.testing.assert_allclose(dw.get(), conv.backward_weights(p, x, dy, algorithm="im2col"), atol=1e-11)


def test_what_does_not_fit():
    p = ConvProblem(2, 7, 6, 3, 4, kernel=(3, 3))
    x, w = HostArray(np.zeros(p.x_shape, "float32")), np.zeros(p.w_shape, "float32")
    with pytest.raises(ValueError, match="w: expected an array of device host, got one of cpu"):
        conv.forward(p, x, w)
    with pytest.raises(ValueError, match=r"w: expected \(3, 3, 3, 4\) of float32 in C order, got \(3, 3, 3, 4\) of"):
        conv.forward(p, x, HostArray(w.astype("float64")))
    with pytest.raises(ValueError, match="n: expected one of 2, 4, 8, 16, 32, 64, 128, 256 points on a device, got 12"):
        fft.rfft(HostArray(np.zeros((2, 12))))
    with pytest.raises(ValueError, match="expected a spectrum of 16 points on a device, got 5 frequencies"):
        fft.irfft(HostArray(np.zeros((2, 5), complex)), 16)
    with pytest.raises(TypeError, match="expected an array of NumPy or of a device, got list"):
        devices.of([1.0])
    with pytest.raises(TypeError, match="not taken for a NumPy array"):
        np.asarray(x)
