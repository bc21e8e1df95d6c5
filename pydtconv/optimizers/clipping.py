"""Gradients made smaller: each element, each variable's gradient by its norm, or all by the norm of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import devices
from pydtconv.optimizers import kernels

#: slices of a store's flat arrays with the gradients that lie there, each of one dtype
Pieces = Sequence[tuple[slice, np.ndarray]]
#: the sums of arrays over all processes
Total = Callable[[np.ndarray], np.ndarray]


def clip(optimizer: Any, store: Any, pieces: Pieces, total: Total | None = None) -> None:
    """In place, as the optimizer's arguments say; for `global_clipnorm` the pieces are all there is.

    total: where other processes have the other pieces: the sums of their squared norms and these.
    """
    if optimizer.clipvalue:
        for _, gradients in pieces:
            kernels.clip(gradients, optimizer.clipvalue)
    elif optimizer.global_clipnorm:
        _clip_norms([[gradients for _, gradients in pieces]], optimizer.global_clipnorm, total)
    elif optimizer.clipnorm:
        groups = [_of_variable(store, variable, pieces) for variable in store.variables]
        _clip_norms(groups, optimizer.clipnorm, total)


def _of_variable(store: Any, variable: Any, pieces: Pieces) -> list[np.ndarray]:
    """What pieces have of a variable's gradient."""
    found, own = [], store.slice_of(variable)
    for part, gradients in pieces:
        both = slice(max(part.start, own.start), min(part.stop, own.stop))
        if both.start < both.stop:
            found.append(gradients[within(part, both, gradients.itemsize // store.itemsize)])
    return found


def within(part: slice, inner: slice, words: int) -> slice:
    """Where a slice of the flat arrays lies in an array of another one's numbers, each of so many words."""
    return slice((inner.start - part.start) // words, (inner.stop - part.start) // words)


def _clip_norms(groups: Sequence[Sequence[np.ndarray]], limit: float, total: Total | None) -> None:
    """Each group by the norm of all its arrays."""
    present = [group for group in groups if group]
    if present and not isinstance(present[0][0], np.ndarray):
        for group in present:
            devices.of(group[0]).clip_norm(group, limit)
        return
    squares = np.array([sum(map(kernels.squared_norm, group)) for group in groups], np.float64)
    for group, norm in zip(groups, np.sqrt(squares if total is None else total(squares)).tolist(), strict=True):
        if not norm <= limit:
            for each in group:
                kernels.scale(each, limit / norm)
