"""Transforms that one pass leaves for another, of x and of dy: by which algorithms, and what that gains.

forward leaves that of x for backward_weights, and backward_weights that of dy for backward_data.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pydtconv._ext import conv as ext
from pydtconv.conv import bases, calibrated, timings
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import ConvProblem

#: bases of backward_weights that are tried for both passes, within so many times the best one's time
TRIED, NEAR = 16, 1.25


class Kept(NamedTuple):
    """Algorithms of a pass and of backward_weights with one basis, elements of the spectra, and seconds gained."""

    other: str
    backward_weights: str
    elements: int
    seconds: float


def kept(p: ConvProblem, names: Mapping[str, str], is_open: bool = False, of: str = "forward") -> Kept | None:
    """What forward can leave for backward_weights where passes of p have these algorithms, or what this can leave for
    `of`, backward_data; None where nothing can be left, or it does not pay.

    is_open: whether the algorithms may be exchanged for those of a basis that suits both passes; those that have been
    measured stay.
    """
    return _found(p, names, of, is_open, is_open)


def kept_besides(p: ConvProblem, names: Mapping[str, str], is_open: bool = False) -> Kept | None:
    """What backward_weights, whose algorithm stays, can leave for backward_data; is_open: of the latter."""
    return _found(p, names, "backward_data", is_open, False)


def _found(p: ConvProblem, names: Mapping[str, str], of: str, is_open: bool, opens_weights: bool) -> Kept | None:
    other, weights = names.get(of), names.get("backward_weights")
    if other is None or weights is None:
        return None
    is_open = is_open and not timings.measured(p, of)
    opens_weights = is_open and opens_weights and not timings.measured(p, "backward_weights")
    changes = is_open and (opens_weights or of == "backward_data")
    return _kept(p, of, other, weights, changes, opens_weights, calibrated.state(p.dtype))


@lru_cache(maxsize=4096)
def _kept(
    p: ConvProblem,
    of: str,
    other: str,
    weights: str,
    changes: bool,
    changes_weights: bool,
    _state: tuple[str, int, int, int],
) -> Kept | None:
    row, second = TABLE[other], TABLE[weights]
    if row.basis is None or second.basis is None or p.groups > 1 or (of == "forward" and row.family != second.family):
        return None
    if not changes:
        found = _with(p, of, other, weights) if row.basis == second.basis else None
        return found if found is not None and found.seconds > 0 else None
    apart = row.seconds(p, of) + second.seconds(p, "backward_weights")
    tried = [second.basis]
    if changes_weights:
        tried = [row.basis, *bases.ranking(p, "backward_weights", NEAR, second.family)[:TRIED]]
    best: Kept | None = None
    for basis in dict.fromkeys(tried):
        both = row.with_basis(basis), second.with_basis(basis)
        if both[0].reason(p, of) is not None or both[1].reason(p, "backward_weights") is not None:
            continue
        found = _with(p, of, both[0].name, both[1].name)
        gain = apart + found.seconds - both[0].seconds(p, of) - both[1].seconds(p, "backward_weights")
        if gain > 0 and found.elements and (best is None or gain > best.seconds):
            best = found._replace(seconds=gain)
    return best


def _with(p: ConvProblem, of: str, other: str, weights: str) -> Kept:
    row, second = TABLE[other], TABLE[weights]
    sizes = row.sizes(p)
    if of == "forward":
        elements, seconds = ext.fft_spectra(sizes, row.family, p.dtype)
        cost = calibrated.costs(second.family, "backward_weights", p.dtype)
    else:
        elements, seconds = ext.fft_dy_spectra(sizes, row.family, second.family, p.dtype)
        cost = calibrated.costs(row.family, "backward_data", p.dtype)
    return Kept(other, weights, int(elements), float(seconds) * cost.products)
