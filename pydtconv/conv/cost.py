"""The fewest multiplications of a convolution: what a floor of its time is made of."""

from __future__ import annotations

from math import prod

from pydtconv.conv.problem import Axis, ConvProblem
from pydtconv.conv.tap_counts import taps_met

#: points of the largest tile of Winograd's method that keeps float32 results accurate: F(4, 3), F(2, 5)
LARGEST_TILE = 6


def fewest_multiplications(p: ConvProblem, direction: str) -> int:
    """Multiplications of this pass by the method that needs the fewest, without its transforms.

    Each dimension by itself takes the best of the direct method, with taps on padding left out, and of Winograd's
    minimal filtering F(m, k), which has m + k - 1 multiplications for m outputs (S. Winograd, "Arithmetic Complexity of
    Computations", 1980; A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, equation 5;
    strides and dilations of 1 only).  3x3 filters on large images: 36 where the direct method has 144.
    """
    return p.n * prod(_products(axis, direction) for axis in p.axes) * (p.ci // p.groups) * p.co


def _products(axis: Axis, direction: str) -> int:
    extent, out, kernel, stride, dilation, before, _ = axis
    taps = taps_met(out, kernel, stride, dilation, before, extent)
    if (stride, dilation) != (1, 1):
        return taps
    written = extent if direction == "backward_data" else out
    tiles = range(1, LARGEST_TILE + 2 - kernel)
    return min([taps, *(-(-written // m) * (m + kernel - 1) for m in tiles)])
