"""Fourier transforms on NumPy arrays, over one axis or two: the transforms of the convolution in the Fourier domain.

    spectra = fft.rfft(signals)               # (batch, n) -> (batch, n // 2 + 1)
    planes = fft.rfft2(images, axes=(1, 2))   # NHWC: channels lie along the vectors

The meaning is NumPy's.  Lengths are 2^a 3^b 5^c 7^d, 2 to 256; arrays are float32, float64, complex64 or complex128,
the result has their precision.  Axes of a two-dimensional transform are neighbours.  `numpy.fft` does what else there
is.  Real arrays are transformed two at a time: errors of both are relative to the larger one, and a value that is not
finite spoils both.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from itertools import pairwise
from math import prod, sqrt
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv._ext import fft as ext

__all__ = ["fft", "fft2", "ifft", "ifft2", "irfft", "irfft2", "rfft", "rfft2"]

_COMPLEX, _INVERSE, _REAL, _TO_REAL = range(4)
_FACTORS, _MOST = (2, 3, 5, 7), 256
_REALS = {"float32": "float32", "float64": "float64", "complex64": "float32", "complex128": "float64"}
_COMPLEXES = {"float32": "complex64", "float64": "complex128"}
_KEPT = 8 << 20
_NORMS = (None, "backward", "ortho", "forward")


def is_length(n: int) -> bool:
    if not 2 <= n <= _MOST:
        return False
    for factor in _FACTORS:
        while n % factor == 0:
            n //= factor
    return n == 1


def _array(name: str, x: Any, kind: int) -> np.ndarray:
    """x in native order, in C order, real where the transform wants that."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"{name}: x: expected a numpy.ndarray, got {type(x).__name__}")
    known = ("float32", "float64") if kind == _REAL else tuple(_REALS)
    if x.dtype.name not in known:
        raise TypeError(f"{name}: x: expected one of {', '.join(known)}, got {x.dtype}; see numpy.fft.{name}")
    if x.size == 0:
        raise ValueError(f"{name}: x: expected an array that is not empty, got shape {x.shape}")
    wanted = x.dtype if kind == _REAL else _COMPLEXES.get(x.dtype.name, x.dtype)
    return np.ascontiguousarray(x, np.dtype(wanted).newbyteorder("="))


def _axes(name: str, x: np.ndarray, axes: Sequence[int]) -> list[int]:
    """Axes counted from 0, in the order of memory.  Raises ValueError where they are no neighbours."""
    found = []
    for axis in axes:
        if not -x.ndim <= operator.index(axis) < x.ndim:
            raise ValueError(f"{name}: axis: expected one of the {x.ndim} axes of x, got {axis}")
        found.append(operator.index(axis) % x.ndim)
    if any(second - first != 1 for first, second in pairwise(found)):
        raise ValueError(f"{name}: axes: expected two neighbours in order, got {tuple(axes)}; see numpy.fft.{name}")
    return found


def _transform(name: str, kind: int, x: Any, sizes: Sequence[int | None], axes: Sequence[int], norm: Any) -> np.ndarray:
    if hasattr(x, "__cuda_array_interface__"):
        kinds = ("complex", "inverse", "real", "to_real")
        return hooks.transform_on_device(name, kinds[kind], x, sizes, axes, norm)
    x = _array(name, x, kind)
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm: expected None, 'backward', 'ortho' or 'forward', got {norm!r}")
    places = _axes(name, x, axes)
    given = [x.shape[place] for place in places]
    points = []
    for i, size in enumerate(sizes):
        last = 2 * (given[i] - 1) if kind == _TO_REAL and i == len(sizes) - 1 else given[i]
        n = last if size is None else operator.index(size)
        if not is_length(n):
            raise ValueError(
                f"{name}: n: expected a length 2^a 3^b 5^c 7^d from 2 to {_MOST}, got {n}; numpy.fft.{name} has others"
            )
        points.append(n)
    out = list(points)
    if kind == _REAL:
        out[-1] = points[-1] // 2 + 1
    before, after = x.shape[: places[0]], x.shape[places[-1] + 1 :]
    y = np.empty((*before, *out, *after), x.real.dtype if kind == _TO_REAL else _COMPLEXES[x.real.dtype.name])
    single = len(points) == 1
    key = (
        prod(before),
        1 if single else points[0],
        points[-1],
        prod(after),
        1 if single else given[0],
        given[-1],
    )
    dtype = x.real.dtype.name
    with config.hold_num_threads():
        workspace = kept_workspace(ext.workspace_bytes(key, kind, dtype))
        status = ext.run(key, kind, _scale(kind, norm, prod(points)), _numbers(x), _numbers(y), workspace)
    if status:
        raise RuntimeError(f"{name}: the library's status is {status}")
    return y


_kept = threading.local()


def kept_workspace(nbytes: int) -> np.ndarray:
    """Scratch memory; up to _KEPT bytes of it are this thread's own from call to call."""
    if nbytes > _KEPT:
        return np.empty(nbytes, np.uint8)
    if getattr(_kept, "memory", None) is None or _kept.memory.size < nbytes:
        _kept.memory = np.empty(nbytes, np.uint8)
    memory: np.ndarray = _kept.memory
    return memory


def _scale(kind: int, norm: str | None, points: int) -> float:
    if norm == "ortho":
        return 1 / sqrt(points)
    inverse = kind in (_INVERSE, _TO_REAL)
    return 1 / points if inverse == (norm in (None, "backward")) else 1.0


def _numbers(array: np.ndarray) -> np.ndarray:
    return array.view(_REALS[array.dtype.name]).reshape(-1)


def fft(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str | None = None) -> np.ndarray:
    """Complex frequencies 0 .. n - 1 along an axis: `numpy.fft.fft`.

    x (..., m, ...), real or complex; n: points, more than m are zeros, None: m.  Raises ValueError or TypeError naming
    the argument, and numpy.fft for what is not here.
    """
    return _transform("fft", _COMPLEX, x, (n,), (axis,), norm)


def ifft(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str | None = None) -> np.ndarray:
    """The inverse of `fft`, complex; arguments and errors as there."""
    return _transform("ifft", _INVERSE, x, (n,), (axis,), norm)


def rfft(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str | None = None) -> np.ndarray:
    """The frequencies 0 .. n // 2 of real x along an axis; otherwise as `fft`."""
    return _transform("rfft", _REAL, x, (n,), (axis,), norm)


def irfft(x: np.ndarray, n: int | None = None, axis: int = -1, norm: str | None = None) -> np.ndarray:
    """The inverse of `rfft`, real: n points, None: 2 (m - 1) from m frequencies."""
    return _transform("irfft", _TO_REAL, x, (n,), (axis,), norm)


def _two(name: str, s: Any, axes: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    sizes = (None, None) if s is None else tuple(s)
    axes = tuple(axes)
    if len(sizes) != 2 or len(axes) != 2:
        raise ValueError(
            f"{name}: expected two sizes and two axes, got s={s} and axes={axes}; see numpy.fft.{name[:-1]}n"
        )
    return sizes, axes


def fft2(x: np.ndarray, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> np.ndarray:
    """`fft` along two neighbouring axes; s: points of both, None: those of x."""
    return _transform("fft2", _COMPLEX, x, *_two("fft2", s, axes), norm)


def ifft2(x: np.ndarray, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> np.ndarray:
    """The inverse of `fft2`."""
    return _transform("ifft2", _INVERSE, x, *_two("ifft2", s, axes), norm)


def rfft2(x: np.ndarray, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> np.ndarray:
    """`fft2` of real x; of the second axis the frequencies 0 .. n // 2."""
    return _transform("rfft2", _REAL, x, *_two("rfft2", s, axes), norm)


def irfft2(x: np.ndarray, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> np.ndarray:
    """The inverse of `rfft2`, real."""
    return _transform("irfft2", _TO_REAL, x, *_two("irfft2", s, axes), norm)
