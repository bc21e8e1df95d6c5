"""The table of algorithms on GPUs, and the choice of one: asked for, the variant's, the fastest measured, or the first.

What has been measured on a device lies in the file that tuning on CPUs writes (pydtconv/conv/timings.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from pydtconv import config
from pydtconv.conv import timings
from pydtconv.conv.problem import DIRECTIONS, ConvProblem
from pydtconv.conv.selection import Choice, check_direction, variant_of
from pydtconv.kernels.gpu.convolutions.algorithm import Algorithm
from pydtconv.kernels.gpu.convolutions.convgemm import Convgemm
from pydtconv.kernels.gpu.convolutions.fourier import Fourier
from pydtconv.kernels.gpu.convolutions.im2col import Im2col
from pydtconv.kernels.gpu.convolutions.strategies import read


class Table(dict[str, Algorithm]):
    """Algorithms by name; "fft" with a strategy, such as "fft 16x16 complex", stands for one, too."""

    def __missing__(self, name: str) -> Algorithm:
        strategy = read(name)
        if strategy is None:
            raise KeyError(name)
        return Fourier(strategy)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (super().__contains__(name) or read(name) is not None)


TABLE = Table({"convgemm": Convgemm(), "im2col": Im2col(), "fft": Fourier()})


def family(name: str) -> str:
    """The name of an algorithm without a strategy."""
    return name.partition(" ")[0]


def explain(p: ConvProblem, direction: str) -> dict[str, str | None]:
    """Of each algorithm, why it does not serve a pass; None where it does."""
    check_direction(direction)
    return {name: algorithm.reason(p, direction) for name, algorithm in TABLE.items()}


def in_order(p: ConvProblem) -> list[str]:
    """Names of the table, the default first: convgemm, but im2col where BLAS is expected to be faster.

    That is where tensor cores multiply for it alone, in float64, and where there are no columns to make.
    """
    by_blas = p.dtype == "float64" or p.is_pointwise
    return sorted(TABLE, key="im2col".__ne__) if by_blas else list(TABLE)


def algorithms(p: ConvProblem, direction: str, device: str = "gpu:0", of: str | None = None) -> list[str]:
    """The algorithms that serve a pass: those measured on the device, the fastest first, then those of `in_order`.

    of: a name without a strategy, for that one and its strategies alone.  Within the active workspace limit, where one
    is that needs no more.
    """
    reasons = explain(p, direction)
    names = [name for name in in_order(p) if reasons[name] is None and of in (None, name)]
    seconds = timings.measured(p, direction, device)
    found = [name for name in seconds if family(name) in names and TABLE[name].reason(p, direction) is None]
    found = [*sorted(found, key=seconds.__getitem__), *(name for name in names if name not in found)]
    limit = config.conv_workspace_limit()
    return found if limit is None else _within(p, direction, found, limit)


def _within(p: ConvProblem, direction: str, names: list[str], most: int) -> list[str]:
    """Those whose workspaces have at most so many bytes, or else as few as there are."""
    needs = {name: TABLE[name].workspace(p, direction) for name in names}
    return [name for name in names if needs[name] <= max(most, min(needs.values()))]


def choose(
    p: ConvProblem,
    direction: str,
    asked_for: Mapping[str, str] | str | None,
    within: int | None = None,
    device: str = "gpu:0",
    variant: str | None = None,
) -> Choice:
    """The algorithm of a pass, with its strategy, and why; "fft" takes the one that was measured to be the fastest.

    within: bytes of a workspace, where the choice is open.  variant: None for the active one.
    Raises ValueError for an algorithm that there is not on GPUs, or that does not serve the problem.
    """
    check_direction(direction)
    name = asked_for.get(direction) if isinstance(asked_for, Mapping) else asked_for
    seconds = timings.measured(p, direction, device)
    if name not in (None, "auto"):
        assert name is not None
        if name not in TABLE:
            raise ValueError(f"algorithm: expected one of {', '.join(TABLE)} on a GPU, got {name!r}")
        reason = TABLE[name].reason(p, direction)
        if reason is not None:
            raise ValueError(f"algorithm {name!r} of {direction} on a GPU: {reason}")
        measured = [each for each in algorithms(p, direction, device, name) if each in seconds]
        if measured:
            return Choice(measured[0], "asked for, its fastest measured")
        return Choice(next(iter(TABLE[name].others(p, direction, 1)), name), "asked for")
    found = algorithms(p, direction, device)
    wanted = variant_of(variant).algorithm(direction)
    if wanted in found:
        assert wanted is not None
        return Choice(wanted, f"variant {variant_of(variant).name}")
    first = found[0] if within is None else _within(p, direction, found, within)[0]
    return Choice(first, "fastest measured" if first in seconds else "the first that serves")


def candidates(p: ConvProblem, direction: str, count: int) -> list[str]:
    """What is to be timed: algorithms, with the `count` strategies that are expected to be the fastest where they have
    any."""
    found = []
    for name, reason in explain(p, direction).items():
        if reason is None:
            found += TABLE[name].others(p, direction, count) or [name]
    return found


__all__ = ["DIRECTIONS", "TABLE", "algorithms", "candidates", "choose", "explain", "family"]
