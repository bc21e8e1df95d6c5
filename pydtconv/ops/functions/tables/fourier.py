"""Fourier transforms of arrays, complex numbers as pairs (real, imaginary), by NumPy; without gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.functions.operands import is_symbolic
from pydtconv.ops.functions.tables.elementwise import _FUNCTIONS
from pydtconv.utils.windows import window_of

__all__ = [
    "angle",
    "fft",
    "fft2",
    "ifft2",
    "irfft",
    "istft",
    "polar",
    "rfft",
    "stft",
    "view_as_complex",
    "view_as_real",
]


def _array(name: str, x: Any) -> np.ndarray:
    x = _FUNCTIONS["stop_gradient"](x)  # an array, of a variable too where no graph is traced
    if is_symbolic(x):
        raise NotImplementedError(f"ops.{name}: is here for arrays only, got {x!r}")
    return np.asarray(x)


def _pair(name: str, x: Any) -> np.ndarray:
    real, imag = (_array(name, part) for part in x)
    return real + 1j * imag


def _parts(z: np.ndarray, like: Any) -> tuple[np.ndarray, np.ndarray]:
    dtype = np.asarray(like).dtype
    dtype = dtype if dtype.kind == "f" else np.dtype("float32")
    return z.real.astype(dtype), z.imag.astype(dtype)


def fft(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """The transform of (real, imaginary) along the last axis."""
    return _parts(np.fft.fft(_pair("fft", x)), x[0])


def fft2(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """The transform of (real, imaginary) along the last two axes."""
    return _parts(np.fft.fft2(_pair("fft2", x)), x[0])


def ifft2(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of fft2."""
    return _parts(np.fft.ifft2(_pair("ifft2", x)), x[0])


def rfft(x: Any, fft_length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The transform of real x along the last axis: frequencies from 0 to half."""
    array = _array("rfft", x)
    return _parts(np.fft.rfft(array, fft_length), array)


def irfft(x: Any, fft_length: int | None = None) -> np.ndarray:
    """The inverse of rfft."""
    return np.fft.irfft(_pair("irfft", x), fft_length).astype(np.asarray(x[0]).dtype)


def _window(window: Any, sequence_length: int, fft_length: int) -> np.ndarray:
    """A periodic window of sequence_length in the middle of fft_length; None for ones."""
    try:
        found = window_of(window, sequence_length, periodic=True)
    except ValueError as error:
        raise ValueError(f"stft: {error}") from None
    values = np.ones(sequence_length) if found is None else found
    before = (fft_length - sequence_length) // 2
    return np.pad(values, (before, fft_length - sequence_length - before))


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Transforms of windows along the last axis: (..., n) -> two of (..., windows, fft_length // 2 + 1)."""
    array = _array("stft", x)
    values = _window(window, sequence_length, fft_length)
    if center:
        half = fft_length // 2
        array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(half, half)], mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(array, fft_length, -1)[..., ::sequence_stride, :]
    return _parts(np.fft.rfft(frames * values), array)


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> np.ndarray:
    """The inverse of stft: windows added up, divided by the sum of their squares."""
    values = _window(window, sequence_length, fft_length)
    frames = np.fft.irfft(_pair("istft", x), fft_length) * values
    count = frames.shape[-2]
    total = fft_length + (count - 1) * sequence_stride
    y, weight = np.zeros((*frames.shape[:-2], total)), np.zeros(total)
    for i in range(count):
        place = slice(i * sequence_stride, i * sequence_stride + fft_length)
        y[..., place] += frames[..., i, :]
        weight[place] += values**2
    y = y / np.where(weight > 1e-11, weight, 1)
    start = fft_length // 2 if center else 0
    end = start + length if length is not None else total - (fft_length // 2 if center else 0)
    return y[..., start:end].astype(np.asarray(x[0]).dtype)


def angle(x: Any) -> np.ndarray:
    """The angle of complex numbers."""
    array = _array("angle", x)
    return np.angle(array).astype(array.real.dtype if array.dtype.kind in "fc" else "float32")


def polar(abs_: Any, angle: Any) -> np.ndarray:
    """Complex numbers of absolute values and angles."""
    return _array("polar", abs_) * np.exp(1j * _array("polar", angle)).astype("complex64")


def view_as_complex(x: Any) -> np.ndarray:
    """(..., 2), real and imaginary parts, as complex numbers."""
    array = _array("view_as_complex", x)
    return array[..., 0] + (1j * array[..., 1]).astype("complex64")


def view_as_real(x: Any) -> np.ndarray:
    """Complex numbers as (..., 2), real and imaginary parts."""
    array = _array("view_as_real", x)
    return np.stack([array.real, array.imag], -1)
