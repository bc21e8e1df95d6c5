"""Images that a batch normalization leaves, computed as others read them (cext/nn/normalized_image.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv._ext import norm as ext
from pydtconv.conv.bound_passes import AFTER_NORMALIZATION
from pydtconv.kernels.base import BackwardReductions, Call, Prologue
from pydtconv.kernels.cpu.moments import moments_in
from pydtconv.kernels.cpu.rows import rows_of

__all__ = ["AFTER_NORMALIZATION", "bind_mean_gradient", "bind_normalized_product", "bind_normalized_sums"]


def bind_normalized_sums(
    prologue: Prologue | None, n: int, x: Any, dy: Any, y: Any, factor: float = 1.0, accumulate: bool = False
) -> Call:
    """y (n, c) (+)= factor times the sum over each image's pixels of what the prologue makes of x, times dy if given.

    x, dy (n * pixels, c): rows of pixels.  Without a prologue it is x itself; the sum has the same bits.
    """
    mean = scale = beta = None
    code = 0
    if prologue is not None:
        mean, scale, beta = prologue.mean, prologue.scale, prologue.beta
        code = AFTER_NORMALIZATION[prologue.activation]
    call: Call = ext.bind_normalized_sums(n, x, mean, scale, beta, code, dy, factor, accumulate, y)
    return call


def bind_normalized_product(prologue: Prologue, n: int, x: Any, factors: Any, y: Any) -> Call:
    """y = what the prologue makes of x, times the factors (n, c) of each image; x, y (n * pixels, c)."""
    mean, scale, beta = prologue.mean, prologue.scale, prologue.beta
    code = AFTER_NORMALIZATION[prologue.activation]
    call: Call = ext.bind_normalized_product(n, x, mean, scale, beta, code, factors, y)
    return call


def bind_mean_gradient(
    found: BackwardReductions, n: int, dy: Any, dx: Any, accumulate: bool, workspace: np.ndarray
) -> Call:
    """dx (+)= dy (n, c) / pixels at each pixel of an image, and the sums that are found on the way.

    dx (n * pixels, c).  workspace: 16 bytes for each element of dy.
    """
    x, factor = rows_of(found.x), n / len(dx)
    mean, scale, beta = found.prologue.mean, found.prologue.scale, found.prologue.beta
    code = AFTER_NORMALIZATION[found.prologue.activation]
    sums = moments_in(found.sums)
    call: Call = ext.bind_normalized_gradient(
        n, x, mean, scale, beta, code, dy, factor, accumulate, dx, *sums, workspace
    )
    return call
