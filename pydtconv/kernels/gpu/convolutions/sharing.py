"""Spectra that passes leave for one another: by which algorithms, and what that gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydtconv import dtypes
from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.base import Keepable
from pydtconv.kernels.gpu.convolutions.choice import TABLE
from pydtconv.kernels.gpu.convolutions.fourier import Fourier
from pydtconv.ops.base import Spec

#: passes that share spectra: which, who leaves them, who finds them
SHARED = (
    ("spectra", "forward", "backward_weights"),
    ("w_spectra", "forward", "backward_data"),
    ("dy_spectra", "backward_weights", "backward_data"),
)
#: bytes that a GPU moves in a second, for what is gained by not making spectra again: only ratios count
RATE = 1e12


def kept(p: ConvProblem, names: Mapping[str, str]) -> Iterator[Keepable]:
    """What passes with these algorithms can leave: where both are of one strategy, so that spectra are the same."""
    for name, maker, reader in SHARED:
        first, second = TABLE[names[maker]], TABLE[names[reader]]
        if not isinstance(first, Fourier) or not isinstance(second, Fourier):
            continue
        mine, other = first.layout(p, maker), second.layout(p, reader)
        same = (mine.height, mine.width, mine.gauss) == (other.height, other.width, other.gauss)
        if not same or (name == "dy_spectra" and not all((*mine.whole, *other.whole))):
            continue
        elements = first.kept_elements(p, name)
        seconds = 2 * elements * dtypes.itemsize(p.dtype) / RATE
        of_data = reader == "backward_data"
        yield Keepable(name, Spec((elements,), p.dtype), seconds, {}, name == "dy_spectra", of_data)
