"""Mean and variance of each channel of an image, as a tensor that passes from what computes the image to who reads it.

The tensor is an image itself, (2, 1, 1, c), the mean first, so that the moments of a concatenation along the channels
are the concatenation of those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pydtconv._ext import norm
from pydtconv.ops.base import Call, Op, Pass, Spec
from pydtconv.ops.rows import check_float, rows_of


def moments_spec(x: Spec) -> Spec:
    """Spec of the moments of an image."""
    return Spec((2, 1, 1, x.shape[-1]), x.dtype)


def moments_in(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and biased variance as vectors (c,), views of an array of moments."""
    return array[0, 0, 0], array[1, 0, 0]


def statistics(x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Callable[..., int]:
    """Binds a sweep over x that writes its moments; called with a workspace, it returns the C library's status, 0."""
    rows = rows_of(x)

    def gather(workspace: np.ndarray | None) -> int:
        norm.batchnorm_statistics(rows, mean, variance, workspace)
        return 0

    return gather


def statistics_workspace(x: Spec) -> int:
    """Bytes of workspace of `statistics`."""
    c = x.shape[-1] or 1
    return int(norm.batchnorm_workspace(x.size // c, c, x.dtype == "float64"))


@dataclass(frozen=True)
class Moments(Op):
    """Mean and biased variance of x (n, h, w, c) over all but the last axis, (2, 1, 1, c).  Not differentiated."""

    nondifferentiable = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        if len(x.shape) != 4:
            raise ValueError(f"Moments: expected an image (n, h, w, c), got shape {x.shape}")
        check_float("Moments", "x", x.dtype)
        return moments_spec(x)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return statistics_workspace(inputs[0])

    def forward(self, p: Pass) -> Call:
        gather: Any = statistics(p.x[0], *moments_in(p.y[0]))
        return partial(gather, p.workspace)
