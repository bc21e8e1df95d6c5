"""Gradients made smaller: each element, each variable's gradient by its norm, or all by the norm of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import devices
from pydtconv.optimizers import kernels

#: slices of a store's flat arrays with the gradients that lie there, each of one dtype
Pieces = Sequence[tuple[slice, np.ndarray]]


def clip(optimizer: Any, store: Any, pieces: Pieces) -> None:
    """In place, as the optimizer's arguments say; for `global_clipnorm` the pieces are all there is."""
    if optimizer.clipvalue:
        for _, gradients in pieces:
            kernels.clip(gradients, optimizer.clipvalue)
    elif optimizer.global_clipnorm:
        _clip_norm([gradients for _, gradients in pieces], optimizer.global_clipnorm)
    elif optimizer.clipnorm:
        for part, gradients in pieces:
            words = gradients.itemsize // store.itemsize
            for variable in store.variables:
                own = store.slice_of(variable)
                if part.start <= own.start < part.stop:
                    _clip_norm([gradients[within(part, own, words)]], optimizer.clipnorm)


def within(part: slice, inner: slice, words: int) -> slice:
    """Where a slice of the flat arrays lies in an array of another one's numbers, each of so many words."""
    return slice((inner.start - part.start) // words, (inner.stop - part.start) // words)


def _clip_norm(gradients: Sequence[np.ndarray], limit: float) -> None:
    if not isinstance(gradients[0], np.ndarray):
        devices.of(gradients[0]).clip_norm(gradients, limit)
        return
    norm = sum(kernels.squared_norm(each) for each in gradients) ** 0.5
    if not norm <= limit:
        for each in gradients:
            kernels.scale(each, limit / norm)
