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
#: whether this process adds the norm of a slice to those sums
Counted = Callable[[slice], bool]


def clip(
    optimizer: Any, store: Any, pieces: Pieces, total: Total | None = None, counted: Counted | None = None
) -> None:
    """In place, as the optimizer's arguments say; for `global_clipnorm` the pieces are all there is.

    total: where other processes have the other pieces: the sums of their squared norms and these.  counted: where they
    have some of these, too: those that this process counts; all by default.
    """
    if optimizer.clipvalue:
        for _, gradients in pieces:
            kernels.clip(gradients, optimizer.clipvalue)
    elif optimizer.global_clipnorm:
        _clip_norms([pieces], optimizer.global_clipnorm, total, counted)
    elif optimizer.clipnorm:
        groups = [_of_variable(store, variable, pieces) for variable in store.variables]
        _clip_norms(groups, optimizer.clipnorm, total, counted)


def _of_variable(store: Any, variable: Any, pieces: Pieces) -> Pieces:
    """What pieces have of a variable's gradient."""
    found, own = [], store.slice_of(variable)
    for part, gradients in pieces:
        both = slice(max(part.start, own.start), min(part.stop, own.stop))
        if both.start < both.stop:
            found.append((both, gradients[within(part, both, gradients.itemsize // store.itemsize)]))
    return found


def within(part: slice, inner: slice, words: int) -> slice:
    """Where a slice of the flat arrays lies in an array of another one's numbers, each of so many words."""
    return slice((inner.start - part.start) // words, (inner.stop - part.start) // words)


def _clip_norms(groups: Sequence[Pieces], limit: float, total: Total | None, counted: Counted | None) -> None:
    """Each group by the norm of all its arrays."""
    present = [[each for _, each in group] for group in groups if group]
    if present and not isinstance(present[0][0], np.ndarray):
        for arrays in present:
            devices.of(arrays[0]).clip_norm(arrays, limit)
        return
    counts = [[each for part, each in group if counted is None or counted(part)] for group in groups]
    squares = np.array([sum(map(kernels.squared_norm, group)) for group in counts], np.float64)
    for group, norm in zip(groups, np.sqrt(squares if total is None else total(squares)).tolist(), strict=True):
        if not norm <= limit:
            for _, each in group:
                kernels.scale(each, limit / norm)
