"""Mean and variance of each channel in one pass over an image (cext/nn/batchnorm.c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pydtconv._ext import norm
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.cpu.rows import rows_of
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.moments import Moments


def moments_in(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and biased variance as vectors (c,), views of an array of moments."""
    return array[0, 0, 0], array[1, 0, 0]


def statistics(x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> Callable[..., int]:
    """Binds a pass over x that writes its moments; called with a workspace, it returns the C library's status, 0."""
    find = norm.bind_statistics(rows_of(x), mean, variance)

    def gather(workspace: np.ndarray | None) -> int:
        find(workspace)
        return 0

    return gather


def statistics_workspace(x: Spec) -> int:
    """Bytes of workspace of `statistics`."""
    c = x.shape[-1] or 1
    return int(norm.batchnorm_workspace(x.size // c, c, x.dtype))


def combined(parts: np.ndarray, counts: Sequence[int], whole: np.ndarray) -> Call:
    """Binds what writes the moments of an image from those of its parts, (parts, 2, 1, 1, c), of so many pixels each.

    The variance of the whole is the mean of the parts' variances and of the squares of what their means are off by
    (T. Chan, G. Golub, R. LeVeque, 1979).
    """
    weights = np.array(counts, parts.dtype) / sum(counts)
    means, variances = parts[:, 0, 0, 0], parts[:, 1, 0, 0]
    mean, variance = moments_in(whole)
    off = np.empty_like(means)

    def combine() -> None:
        np.dot(weights, means, out=mean)
        np.subtract(means, mean, out=off)
        np.multiply(off, off, out=off)
        np.add(off, variances, out=off)
        np.dot(weights, off, out=variance)

    return combine


@register(Moments, dtypes=IMAGES)
class MomentsKernel(Kernel[Moments]):
    """The pass that a convolution's own moments save."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return statistics_workspace(inputs[0])

    def forward(self, p: Pass) -> Call:
        gather: Any = statistics(p.x[0], *moments_in(p.y[0]))
        return partial(gather, p.workspace)
