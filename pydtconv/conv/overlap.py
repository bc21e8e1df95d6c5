"""Convolution of signals and images of any length with filters of any length: `convolve` and `correlate`.

The meaning is that of scipy.signal.convolve and correlate over the filter's axes: a filter of one axis works along the
last axis of the signals, one of two axes along the last two; axes before are a batch.

    y = overlap.convolve(signal, taps, mode="same")

Methods: "overlap_discard" cuts the signal into overlapping windows, of whose circular convolutions the parts without
wrap are kept; "overlap_add" into disjoint blocks, whose results overlap and are added; "parts" cuts both (parts.py);
"direct" transforms nothing.  A filter that is longer than a transform is cut, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import log2
from typing import Any

import numpy as np

from pydtconv import config, fft
from pydtconv._ext import fft as ext
from pydtconv.conv import parts

METHODS = ("auto", "overlap_add", "overlap_discard", "parts", "direct")
MODES, DOMAINS = ("full", "same", "valid"), ("spectral", "spatial")
#: taps of a filter's part, and points of the longest transform; filters below FEW taps are not worth a transform
_PART, _POINTS, _FEW = 128, 256, 8
#: windows that are transformed at a time where they are in NumPy's hands
_WINDOWS = 256
_LENGTHS = [n for n in range(2, _POINTS + 1) if fft.is_length(n)]


def convolve(
    a: np.ndarray, b: np.ndarray, mode: str = "full", method: str = "auto", domain: str = "spectral", block: Any = None
) -> np.ndarray:
    """The convolution of a (..., n) with b (m,), or of a (..., h, w) with b (kh, kw).

    mode: "full", all results; "same", the middle ones, as many as a has; "valid", those without zeros at the ends.
    method: see the module; "auto" takes what is expected to be the fastest.  Filters of two axes have "overlap_add" and
    "direct".  domain: "spatial" multiplies blocks without transforms; "overlap_discard" has it not.  block: results
    (overlap_discard) or elements of a (overlap_add) of a block, of one axis also a pair for "parts": elements of a's
    and of b's blocks, of which one divides the other; None: chosen.
    Values that are not finite spoil all results of the blocks that they are in, but for "direct".
    Raises ValueError or TypeError naming the argument.
    """
    a, b, dtype = _arrays(a, b)
    for name, value, known in (("mode", mode, MODES), ("method", method, METHODS), ("domain", domain, DOMAINS)):
        if value not in known:
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    slices = [_slice(mode, n, m) for n, m in zip(a.shape[-b.ndim :], b.shape, strict=True)]
    if method == "auto":
        windows = b.ndim == 1 and domain == "spectral"
        several = "overlap_discard" if windows else "overlap_add"
        method = "direct" if b.size < _FEW and block is None else several
    _check_method(method, domain, b.ndim)
    _check_block(method, block, b.ndim)
    if method == "direct":
        return _direct(a, b, slices, dtype)
    if method == "parts":
        return _in_parts(a, b, slices[0], domain, block, dtype)
    if method == "overlap_discard":
        return _discard(a, b, slices[0], block, dtype)
    full = _add(a, b, domain, block, dtype)
    return np.ascontiguousarray(full[_last(slice(*of) for of in slices)])


def correlate(
    a: np.ndarray, b: np.ndarray, mode: str = "full", method: str = "auto", domain: str = "spectral", block: Any = None
) -> np.ndarray:
    """The correlation of a with b: the convolution with b turned round and conjugated; otherwise as `convolve`.

    Where b is longer than a, "valid" gives SciPy's results, too.
    """
    if not isinstance(b, np.ndarray):
        raise TypeError(f"b: expected a numpy.ndarray, got {type(b).__name__}")
    return convolve(a, np.ascontiguousarray(np.flip(b).conj()), mode, method, domain, block)


def _last(slices: Iterable[slice]) -> Any:
    """Indices of the last axes."""
    return (..., *slices)


def _arrays(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray, np.dtype]:
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{name}: expected a numpy.ndarray, got {type(value).__name__}")
        if value.dtype.name not in ("float32", "float64", "complex64", "complex128"):
            raise TypeError(f"{name}: expected float32, float64, complex64 or complex128, got {value.dtype}")
        if value.size == 0:
            raise ValueError(f"{name}: expected an array that is not empty, got shape {value.shape}")
    if b.ndim not in (1, 2):
        raise ValueError(f"b: expected one or two axes, got shape {b.shape}")
    if a.ndim < b.ndim:
        raise ValueError(f"a: expected at least the {b.ndim} axes of b, got shape {a.shape}")
    dtype = np.result_type(a.dtype, b.dtype)
    real = np.empty(0, dtype).real.dtype
    return (*(value.astype(dtype if np.iscomplexobj(value) else real, copy=False) for value in (a, b)), dtype)


def _slice(mode: str, n: int, m: int) -> tuple[int, int]:
    """First and last + 1 of the n + m - 1 results."""
    if mode == "full":
        return 0, n + m - 1
    if mode == "same":
        return (m - 1) // 2, (m - 1) // 2 + n
    return min(n, m) - 1, max(n, m)


def _check_method(method: str, domain: str, axes: int) -> None:
    if axes == 2 and method in ("overlap_discard", "parts"):
        raise ValueError(f"method: expected 'overlap_add' or 'direct' for filters of two axes, got {method!r}")
    if method == "overlap_discard" and domain == "spatial":
        raise ValueError(
            "method: expected 'overlap_add', 'parts' or 'direct' in the domain 'spatial', got 'overlap_discard'"
        )


def _check_block(method: str, block: Any, axes: int) -> None:
    several = isinstance(block, Sequence)
    if method == "parts":
        if block is not None and not (several and len(block) == 2):
            raise ValueError(f"block: expected a pair of lengths for 'parts', of a's and b's blocks, got {block!r}")
    elif method == "direct" and block is not None:
        raise ValueError(f"block: expected None for 'direct', which has no blocks, got {block!r}")
    elif several and (axes == 1 or len(block) != axes):
        wanted = "an integer" if axes == 1 else "an integer or a pair of integers"
        raise ValueError(f"block: expected {wanted} for {method!r} and a filter of {axes} axes, got {block!r}")
    for size in () if block is None else block if several else (block,):
        if isinstance(size, bool) or not hasattr(size, "__index__") or not 1 <= size < _POINTS:
            raise ValueError(f"block: expected an integer from 1 to {_POINTS - 1}, got {size!r}")
    if method == "parts" and block is not None and max(block) % min(block):
        raise ValueError(f"block: expected lengths of which one divides the other, got {tuple(block)}")


def _direct(a: np.ndarray, b: np.ndarray, slices: list[tuple[int, int]], dtype: np.dtype) -> np.ndarray:
    """The sum over taps, each a product of whole arrays."""
    batch, axes = a.shape[: a.ndim - b.ndim], b.ndim
    y = np.zeros((*batch, *(stop - start for start, stop in slices)), dtype)
    for tap in product(*map(range, b.shape)):
        source, target = [], []
        for t, n, (start, stop) in zip(tap, a.shape[-axes:], slices, strict=True):
            low, high = max(start, t), min(stop, t + n)
            source.append(slice(low - t, max(high, low) - t))
            target.append(slice(low - start, max(high, low) - start))
        y[_last(target)] += a[_last(source)] * b[tap]
    return y


def _discard(a: np.ndarray, b: np.ndarray, of: tuple[int, int], block: int | None, dtype: np.dtype) -> np.ndarray:
    """Overlapping windows, by the C library; complex signals as real ones."""
    if np.iscomplexobj(a) or np.iscomplexobj(b):
        y = np.empty((*a.shape[:-1], of[1] - of[0]), dtype)
        if np.iscomplexobj(b):
            turned, plain = _discard(a, b.imag, of, block, dtype), _discard(a, b.real, of, block, dtype)
            y.real, y.imag = plain.real - turned.imag, plain.imag + turned.real
        else:
            y.real, y.imag = (_discard(part, b, of, block, dtype) for part in (a.real, a.imag))
        return y
    points, hop, part = _windows(b.size, block)
    signals = np.ascontiguousarray(a).reshape(-1, a.shape[-1])
    y = np.empty((len(signals), of[1] - of[0]), a.dtype)
    sizes = (len(signals), a.shape[-1], b.size, *of, points, hop, part)
    with config.hold_num_threads():
        workspace = np.empty(ext.overlap_workspace_bytes(sizes, a.dtype.name), np.uint8)
        status = ext.overlap(sizes, signals, np.ascontiguousarray(b), y, workspace)
    if status:
        raise RuntimeError(f"convolve: the library's status is {status}")
    return y.reshape(*a.shape[:-1], -1)


@lru_cache(maxsize=256)
def _windows(taps: int, block: int | None) -> tuple[int, int, int]:
    """Points of a window, results of it, and taps of a part of the filter: those of the least work per result."""
    if block is not None:
        part = taps if taps + block - 1 <= _POINTS else block
        return _length(block + part - 1), block, part
    found = []
    for points in (n for n in _LENGTHS if n % 2 == 0 and n >= 16):
        part, hop = (taps, points - taps + 1) if taps <= points // 2 else (points // 2, points // 2)
        work = 2 * points * (6 + 2.5 * log2(points)) + 4 * points * -(-taps // part)
        found.append((work / hop, points, hop, part))
    return min(found)[1:]


def _length(least: int) -> int:
    """The shortest transform of so many points.  Raises ValueError where there is none."""
    for n in _LENGTHS:
        if n >= least:
            return n
    raise ValueError(f"block: expected blocks whose products have at most {_POINTS} elements, got {least}")


def _transforms(real: bool, axes: int, points: tuple[int, ...]) -> tuple[Any, Any]:
    where = tuple(range(-axes, 0))
    if axes == 1:
        forward, back = (fft.rfft, fft.irfft) if real else (fft.fft, fft.ifft)
        return (lambda x: forward(x, points[0])), (lambda x: back(x, points[0]))
    forward2, back2 = (fft.rfft2, fft.irfft2) if real else (fft.fft2, fft.ifft2)
    return (lambda x: forward2(x, points, where)), (lambda x: back2(x, points, where))


def _pieces(shape: tuple[int, ...], sizes: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """An array of that shape, cut into pieces of these sizes."""
    starts = (range(0, n, size) for n, size in zip(shape, sizes, strict=True))
    for corner in product(*starts):
        yield tuple(slice(at, min(at + size, n)) for at, size, n in zip(corner, sizes, shape, strict=True))


def _add(a: np.ndarray, b: np.ndarray, domain: str, block: Any, dtype: np.dtype) -> np.ndarray:
    """Disjoint blocks of a and of b, whose results are added; all results."""
    axes = b.ndim
    extents = a.shape[-axes:]
    y = np.zeros((*a.shape[: a.ndim - axes], *(n + m - 1 for n, m in zip(extents, b.shape, strict=True))), dtype)
    given = block if isinstance(block, Sequence) else [block] * axes
    sizes = [min(size, _POINTS // 2) for size in b.shape]
    blocks = [
        min(n, (_length(min(4 * m, _POINTS)) - m + 1) if own is None else int(own))
        for n, m, own in zip(extents, sizes, given, strict=True)
    ]
    points = tuple(max(2, _length(n + m - 1)) for n, m in zip(blocks, sizes, strict=True))
    forward, back = _transforms(not np.issubdtype(dtype, np.complexfloating), axes, points)
    for taps in _pieces(b.shape, sizes):
        filters = np.ascontiguousarray(b[taps], dtype)
        spectrum = forward(filters) if domain == "spectral" else None
        for piece in _pieces(extents, blocks):
            some = np.ascontiguousarray(a[_last(piece)], dtype)
            shape = [p.stop - p.start + t.stop - t.start - 1 for p, t in zip(piece, taps, strict=True)]
            if spectrum is None:
                got = _direct(some, filters, [(0, n) for n in shape], dtype)
            else:
                got = back(forward(some) * spectrum)[_last(slice(n) for n in shape)]
            at = (slice(p.start + t.start, p.start + t.start + n) for p, t, n in zip(piece, taps, shape, strict=True))
            y[_last(at)] += got
    return y


def _in_parts(
    a: np.ndarray, b: np.ndarray, of: tuple[int, int], domain: str, block: Any, dtype: np.dtype
) -> np.ndarray:
    """Both cut into blocks; products are summed by interval before one inverse transform."""
    l1, l2 = (int(size) for size in block) if block is not None else (_PART, min(_PART, 1 << (b.size - 1).bit_length()))
    points = _length(l1 + l2 - 1)
    n1, n2 = -(-a.shape[-1] // l1), -(-b.size // l2)
    forward, back = _transforms(not np.issubdtype(dtype, np.complexfloating), 1, (points,))
    blocks = [_cut(x, count, size, dtype) for x, count, size in ((a, n1, l1), (b, n2, l2))]
    y = np.zeros((*a.shape[:-1], n1 * l1 + n2 * l2 + points), dtype)
    if domain == "spectral":
        blocks = [forward(some) for some in blocks]
    left, right = blocks
    for division in parts.schedule(n1, n2, l1, l2, *of):
        for interval in division.intervals:
            if not interval.pairs:
                continue
            i, j = (list(indices) for indices in zip(*interval.pairs, strict=True))
            if domain == "spectral":
                got = back(np.einsum("...pk,pk->...k", left[..., i, :], right[j]))[..., : l1 + l2 - 1]
            else:
                pairs = zip(i, j, strict=True)
                got = sum(_direct(left[..., p, :], right[q], [(0, l1 + l2 - 1)], dtype) for p, q in pairs)
            y[..., interval.start : interval.start + l1 + l2 - 1] += got
    return np.ascontiguousarray(y[..., of[0] : of[1]])


def _cut(x: np.ndarray, count: int, size: int, dtype: np.dtype) -> np.ndarray:
    """(..., n) as blocks (..., count, size), filled up with zeros."""
    y = np.zeros((*x.shape[:-1], count * size), dtype)
    y[..., : x.shape[-1]] = x
    return y.reshape(*x.shape[:-1], count, size)
