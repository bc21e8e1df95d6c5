"""Sums over axes that were repeated, and repetition along axes that were summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.dtypes import real


def unbroadcast(g: Any, shape: Sequence[int]) -> Any:
    """The sum over the axes along which an operand of this shape was repeated."""
    extra = len(g.shape) - len(shape)
    axes = (*range(extra), *(i + extra for i, e in enumerate(shape) if e == 1 and g.shape[i + extra] != 1))
    return ops.reshape(ops.sum(g, axis=axes), tuple(shape)) if axes else g


def spread(g: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """g, of which axes were reduced, repeated along these."""
    kept = tuple(1 if i in axes else e for i, e in enumerate(shape))
    return ops.multiply(ops.reshape(g, kept), np.ones(tuple(shape), real(g.dtype)))
