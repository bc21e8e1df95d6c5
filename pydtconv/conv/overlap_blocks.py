"""Which blocks and transforms a convolution of `overlap` is cut into: those of the least expected time.

Sizes are pairs, of rows and of columns; rows are 1 where signals have one axis.  Transforms are those of
cext/fft/ring.h: first x high x wide complex points hold twice as many real elements.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

Pair = tuple[int, int]

_LENGTHS = (16, 32, 48, 64, 80, 96, 112, 128, 144, 192, 256)
_FIRST = [a * b for a in (1, 3, 5, 7) for b in (2, 4, 8, 16, 32, 64, 128, 256, 512) if a * b <= 1024]
#: nanoseconds: of a point's transform and its inverse, more where there are three levels, of each transform, of a
#: doubling of memory beyond a core's cache, of a product of two values, of a vector's product with a tap, of a result
_POINT, _LEVEL, _CALL, _DOUBLING, _VALUE, _TAP, _RESULT = 1.9, 0.6, 900.0, 0.9, 0.6, 0.4, 0.5
_CACHE, _MOST_DOUBLINGS = 1 << 20, 5
#: nanoseconds of work below which other threads are not woken; points of a transform that threads share
_ALONE, _SHARED = 40_000.0, 1 << 14
#: what a method without transforms multiplies, over what its results need
_EDGES = {"overlap_discard": 1.0, "overlap_add": 1.6, "parts": 2.0}
#: pieces of a row of results that are tried
_CUTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


class Blocks(NamedTuple):
    """A method's blocks.

    block: results ("overlap_discard") or elements of a of each; part: elements of b; steps: see `overlap.convolve`;
    points: of a transform, zeros without; ns: expected nanoseconds of all threads together.
    """

    method: str
    block: Pair
    part: Pair
    steps: Pair
    points: tuple[int, int, int]
    ns: float


class Problem(NamedTuple):
    """Extents of a and b, the results that are wanted, signals, bytes of a number, threads."""

    a: Pair
    b: Pair
    start: Pair
    stop: Pair
    signals: int
    size: int
    threads: int


class _Rings(NamedTuple):
    points: list[tuple[int, int, int]]
    n: np.ndarray
    ns: np.ndarray  # of a transform, a product and the inverse


@lru_cache
def _rings(size: int) -> _Rings:
    """All transforms to choose from: none that is larger is faster."""
    found: dict[int, tuple[float, tuple[int, int, int]]] = {}
    for high, wide in product(_LENGTHS, _LENGTHS):
        if not wide <= high <= 2 * wide + 16:
            continue
        for first in (1, *(_FIRST if high * wide >= 1024 else ())):
            n = first * high * wide
            doublings = min(max(0.0, np.log2(2 * n * size / _CACHE)), _MOST_DOUBLINGS)
            each = _POINT * size / 4 + (_LEVEL if first > 1 else 0) + _DOUBLING * doublings * size / 4
            found[n] = min(found.get(n, (np.inf, (0, 0, 0))), (_CALL + n * each, (first, high, wide)))
    kept: list[tuple[int, float, tuple[int, int, int]]] = []
    for n in sorted(found, reverse=True):
        if not kept or found[n][0] < 0.99 * kept[-1][1]:
            kept.append((n, *found[n]))
    kept.reverse()
    return _Rings([points for _, _, points in kept], *(np.array([row[i] for row in kept], float) for i in (0, 1)))


def most_elements(size: int) -> int:
    """Elements of the largest window."""
    return 2 * int(_rings(size).n[-1])


def _ring_of(elements: int, size: int) -> tuple[tuple[int, int, int], float]:
    """The fastest transform of so many real elements, and its nanoseconds.  Raises ValueError where there is none."""
    rings = _rings(size)
    i = int(np.searchsorted(rings.n, elements / 2))
    if i == len(rings.n):
        raise ValueError(
            f"block: expected blocks whose products have at most {most_elements(size)} elements, got {elements}"
        )
    return rings.points[i], float(rings.ns[i])


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _pair(first: float, second: float) -> Pair:
    return int(first), int(second)


def _extents(p: Problem, method: str) -> Pair:
    """What is cut: a, or the results ("overlap_discard")."""
    if method != "overlap_discard":
        return p.a
    return _pair(p.stop[0] - p.start[0], p.stop[1] - p.start[1])


def _steps(p: Problem, block: Pair, given: int | None) -> Pair:
    """The fewest steps of overlap-add whose blocks do not meet, or those that are given.  Raises ValueError."""
    axes = list(zip(p.a, p.b, block, strict=True))
    least = [_ceil(size + m - 1, size) if size < n else 1 for n, m, size in axes]
    if given is not None and given < max(least):
        raise ValueError(
            f"steps: expected {max(least)} or more for blocks of {block} and a filter of {p.b}, got {given}"
        )
    return _pair(*(least if given is None else (min(given, _ceil(n, size)) for n, _, size in axes)))


def with_block(p: Problem, method: str, domain: str, block: Pair, part: Pair, steps: int | None) -> Blocks:
    """Blocks of a given size; `part` is of "parts" alone.  Raises ValueError naming `block` or `steps`."""
    steps_of = (1, 1)
    if method == "parts":
        steps_of = _pair(*((i + j) // min(i, j) for i, j in zip(block, part, strict=True)))
    else:
        part = p.b
        block = _pair(*(min(size, n) for size, n in zip(block, _extents(p, method), strict=True)))
    if method == "overlap_add":
        steps_of = _steps(p, block, steps)
    points, ns = _ring_of((block[0] + part[0] - 1) * (block[1] + part[1] - 1), p.size)
    counts = [_ceil(n, size) for n, size in zip(_extents(p, method), block, strict=True)]
    blocks = Blocks(method, block, part, steps_of, points, ns * (p.signals * counts[0] * counts[1] + 0.5))
    if domain == "spatial" or (domain == "auto" and direct_ns(p, method) < blocks.ns):
        return blocks._replace(points=(0, 0, 0), ns=direct_ns(p, method))
    return blocks


def direct_ns(p: Problem, method: str) -> float:
    """Expected nanoseconds of all threads without transforms."""
    results = _EDGES[method] * p.signals * (p.stop[0] - p.start[0]) * (p.stop[1] - p.start[1])
    return results * (_RESULT + p.b[0] * p.b[1] * _TAP * p.size / 64)


def spatial(p: Problem, method: str, steps: int | None) -> Blocks:
    """Blocks without transforms: about what a core's first cache holds, and twice the filter where that is more."""
    single, part = p.a[0] == p.b[0] == 1, p.b
    if method == "parts":  # powers of two; a's and b's are equal for long filters: fewer divisions
        block = (1, 512) if single else (16, 64)
        part = _pair(*(min(n, max(1, n // 32, 1 << (m - 1).bit_length())) for n, m in zip(block, p.b, strict=True)))
    else:
        least = (1, 4096) if single else (16, 256)
        sizes = [max(size, min(2 * m, 8 * size)) for size, m in zip(least, p.b, strict=True)]
        if method == "overlap_add":
            sizes = list(p.a) if steps == 1 else list(map(max, sizes, p.b))
        # equal blocks: what is beyond the last one's results is computed, too
        extents = _extents(p, method)
        block = _pair(*(_ceil(n, max(1, n // size)) for n, size in zip(extents, sizes, strict=True)))
    return with_block(p, method, "spatial", block, part, steps)


def spectral(p: Problem, method: str, steps: int | None) -> tuple[float, Blocks]:
    """The blocks of least expected nanoseconds, and these: of each transform, and of each cut of the columns."""
    rings, extents, (kh, kw), found = _rings(p.size), _extents(p, method), p.b, []
    single = p.a[0] == kh == 1
    for cut in (1,) if single else _CUTS:
        wide = 2 * rings.n if single else np.full(len(rings.n), _ceil(extents[1], cut) + kw - 1.0)
        high = np.ones(len(rings.n)) if single else 2 * rings.n // wide
        hops = [np.minimum(high - kh + 1, extents[0]), np.minimum(wide - kw + 1, extents[1])]
        fits = (hops[0] >= 1) & (hops[1] >= 1)
        counts = [np.ceil(n / np.maximum(hop, 1)) for n, hop in zip(extents, hops, strict=True)]
        for hop, count, m in zip(hops, counts, p.b, strict=True):
            if method == "overlap_add":
                fits &= (count == 1) | (hop * ((steps or 2) - 1) >= m - 1)
        units = p.signals * counts[0] * counts[1]
        shared = (rings.n >= _SHARED) & (units < 4 * p.threads)
        rounds = np.where(shared, units / p.threads, np.ceil(units / p.threads))
        time = np.where(fits, (rounds + 0.5) * rings.ns, np.inf)
        i = int(np.argmin(time))
        if fits[i]:
            found.append((float(time[i]), _pair(hops[0][i], hops[1][i])))
    if not found:
        raise ValueError(f"{method}: expected arrays whose products have at most {most_elements(p.size)} elements")
    least, block = min(found)
    return least, with_block(p, method, "spectral", block, p.b, steps)


def spectral_parts(p: Problem) -> tuple[float, Blocks]:
    """Square blocks for "parts", as long in a as in b."""
    rings, best = _rings(p.size), (np.inf, (1, 1))
    single = p.a[0] == p.b[0] == 1
    for wide in (0,) if single else (8, 16, 32, 64, 128, 256, 512):
        columns = rings.n + 0.5 if single else np.full(len(rings.n), wide)
        rows = np.ones(len(rings.n)) if single else (2 * rings.n / (2 * wide - 1) + 1) // 2
        sides = [np.maximum(1, side // 1) for side in (rows, columns)]
        of_a, of_b = (np.prod([np.ceil(n / side) for n, side in zip(of, sides, strict=True)], 0) for of in (p.a, p.b))
        time = p.signals * ((2 * of_a + 2 * of_b) * rings.ns / 2 + of_a * of_b * rings.n * _VALUE)
        i = int(np.argmin(np.where(rows >= 1, time, np.inf)))
        best = min(best, (float(time[i]), _pair(sides[0][i], sides[1][i])))
    blocks = with_block(p, "parts", "spectral", best[1], best[1], None)
    return best[0] / p.threads, blocks._replace(ns=best[0])


def choose(p: Problem, method: str, domain: str, steps: int | None) -> Blocks:
    """Blocks of a method and domain; of "auto" those of the fastest."""
    if method == "direct":
        return spatial(p, "overlap_discard", None)
    ways: list[tuple[float, Blocks]] = []
    for name in ("overlap_discard", "overlap_add") if method == "auto" else (method,):
        if domain != "spatial":
            ways.append(spectral_parts(p) if name == "parts" else spectral(p, name, steps))
        if domain != "spectral":
            ways.append((direct_ns(p, name) / p.threads, spatial(p, name, steps)))
    return min(ways, key=operator.itemgetter(0))[1]


def threads_of(p: Problem, blocks: Blocks) -> int:
    """As many as there are, or one where the others would hardly be awake before the work is done."""
    return 1 if blocks.ns < _ALONE else p.threads
