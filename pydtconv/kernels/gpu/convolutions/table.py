"""The table of algorithms on GPUs, and the choice of one."""

from __future__ import annotations

from collections.abc import Mapping

from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.gpu.convolutions.algorithm import Algorithm
from pydtconv.kernels.gpu.convolutions.fourier import Fourier
from pydtconv.kernels.gpu.convolutions.im2col import Im2col

DIRECTIONS = ("forward", "backward_data", "backward_weights")
TABLE: dict[str, Algorithm] = {"im2col": Im2col(), "fft": Fourier()}


def explain(p: ConvProblem, direction: str) -> dict[str, str | None]:
    """Of each algorithm, why it does not serve a pass; None where it does."""
    if direction not in DIRECTIONS:
        raise ValueError(f"direction: expected one of {', '.join(DIRECTIONS)}, got {direction!r}")
    return {name: algorithm.reason(p, direction) for name, algorithm in TABLE.items()}


def algorithms(p: ConvProblem, direction: str) -> list[str]:
    """The algorithms that serve a pass, the one that is taken by default first."""
    return [name for name, reason in explain(p, direction).items() if reason is None]


def choose(p: ConvProblem, direction: str, asked_for: Mapping[str, str] | str | None, smallest: bool = False) -> str:
    """The algorithm of a pass: the one asked for, else that with the smallest workspace, or the first that serves.

    Raises ValueError for one that there is not on GPUs, or that does not serve the problem.
    """
    name = asked_for.get(direction) if isinstance(asked_for, Mapping) else asked_for
    found = algorithms(p, direction)
    if name in (None, "auto"):
        return min(found, key=lambda one: TABLE[one].workspace(p, direction)) if smallest else found[0]
    if name not in TABLE:
        raise ValueError(f"algorithm: expected one of {', '.join(TABLE)} on a GPU, got {name!r}")
    if name not in found:
        raise ValueError(f"algorithm {name!r} of {direction} on a GPU: {TABLE[name].reason(p, direction)}")
    return name
