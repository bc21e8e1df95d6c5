"""Bases of the convolution in the Fourier domain: how many points the transforms of its tiles have along each axis."""

from __future__ import annotations

import re
from functools import lru_cache

from pydtconv._ext import conv as ext
from pydtconv.conv.problem import ConvProblem

Basis = tuple[int, int]  # points vertically and horizontally
NONE: Basis = (0, 0)
#: what the factors of lengths may be, and the most points
FACTORS, MOST = (2, 3, 5, 7), 256
#: so many times the best one's expected time is too long for a basis to be tried
NEAR = 1.6


def is_length(n: int) -> bool:
    """Whether there are transforms of n points: 2^a 3^b 5^c 7^d, 2 to 256."""
    if not 1 < n <= MOST:
        return False
    for factor in FACTORS:
        while n % factor == 0:
            n //= factor
    return n == 1


def written(basis: Basis) -> str:
    return f"{basis[0]}x{basis[1]}"


def read(text: str) -> Basis | None:
    """The basis that is written so; None where none is."""
    found = re.fullmatch(r"([1-9]\d{0,2})x([1-9]\d{0,2})", text)
    if not found:
        return None
    high, wide = int(found[1]), int(found[2])
    return (high, wide) if all(n == 1 or is_length(n) for n in (high, wide)) else None


@lru_cache(maxsize=4096)
def best(p: ConvProblem, direction: str, family: str = "fft") -> Basis:
    """The basis that the C library's cost model puts first; NONE where there is none."""
    high, wide, _ = ext.fft_basis(p.sizes, family, direction, p.dtype)
    return high, wide


def seconds(p: ConvProblem, direction: str, basis: Basis | None, family: str = "fft") -> float:
    """What a pass is expected to take; 0 where the basis does not do it."""
    return float(ext.fft_basis(p.sizes + (basis or NONE), family, direction, p.dtype)[2])


def ranking(p: ConvProblem, direction: str, near: float = NEAR, family: str = "fft") -> list[Basis]:
    """Bases of p within `near` times the best one's expected time, the fastest first."""
    lengths = [1, *(n for n in range(2, MOST + 1) if is_length(n))]
    first = best(p, direction, family)
    bound = near * seconds(p, direction, first, family)
    least_h, least_w = -(-p.kh // p.sh), -(-p.kw // p.sw)
    lows = [n for n in lengths if n >= least_h and (n == first[0] or p.ih > 1)]
    sizes = [(high, wide) for high in lows for wide in lengths if wide >= least_w]
    found = {basis: seconds(p, direction, basis, family) for basis in sizes}
    kept = [basis for basis, value in found.items() if 0 < value <= bound]
    return sorted(kept, key=lambda basis: found[basis])


def interpolated(p: ConvProblem) -> list[Basis]:
    """The bases that fbfft's authors try: an axis of n points, padding included, by n to 2^ceil(log2 n), one tile.

    N. Vasilache et al., "Fast Convolutional Nets With fbfft", ICLR 2015, section 3.4.  Axes of the same length are
    interpolated alike, as there.  None has more than MOST points.
    """
    high, wide = (
        [n for n in range(points, (1 << (points - 1).bit_length()) + 1) if is_length(n) or n == points == 1]
        for points in (axis.before + axis.extent + axis.after for axis in p.axes[1:])
    )
    return list(zip(high, wide, strict=True)) if high == wide else [(a, b) for a in high for b in wide]
