"""The fewest multiplications of a convolution: what a floor of its time is made of."""

from __future__ import annotations

from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.taps import taps_met

#: points of the largest tile of Winograd's method that keeps float32 results accurate: F(4, 3), F(2, 5)
LARGEST_TILE = 6


def fewest_multiplications(p: ConvProblem, direction: str) -> int:
    """Multiplications of this pass by the method that needs the fewest, without its transforms.

    Each dimension by itself takes the best of the direct method, with taps on padding left out, and of Winograd's
    minimal filtering F(m, k), which has m + k - 1 multiplications for m outputs (S. Winograd, "Arithmetic Complexity of
    Computations", 1980; A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, equation 5;
    strides and dilations of 1 only).  3x3 filters on large images: 36 where the direct method has 144.
    """
    rows = _products(p.ih, p.oh, p.kh, p.sh, p.dil_h, p.padding[0][0], direction)
    columns = _products(p.iw, p.ow, p.kw, p.sw, p.dil_w, p.padding[1][0], direction)
    return p.n * rows * columns * (p.ci // p.groups) * p.co


def _products(extent: int, out: int, kernel: int, stride: int, dilation: int, before: int, direction: str) -> int:
    taps = taps_met(out, kernel, stride, dilation, before, extent)
    if (stride, dilation) != (1, 1):
        return taps
    written = extent if direction == "backward_data" else out
    tiles = range(1, LARGEST_TILE + 2 - kernel)
    return min([taps, *(-(-written // m) * (m + kernel - 1) for m in tiles)])
