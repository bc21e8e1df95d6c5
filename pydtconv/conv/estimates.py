"""The cost model behind the ranking of convolution algorithms: what a pass does, times what that costs.

`work_of_...` count, per family of algorithms, what a pass does: floating-point operations with their padding to whole
vectors, tiles, bytes.  COSTS says what each costs an algorithm: coefficients of 0 or more, fitted to measurements by
`python -m benchmarks.ranking` (relative errors over a grid of layers, two threads of an AVX-512 CPU), products that no
transform saves at the cores' peak or more.  Only ratios matter; `pydtconv tune` measures where they do not hold.
"""

from __future__ import annotations

from typing import NamedTuple

from pydtconv._ext import runtime
from pydtconv._ext import winograd as winograd_ext
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.taps import taps_met

#: the direct algorithm has its own micro-kernel, at the vector length of the build; matrix products find wider ones
NARROW = 3.0 if runtime.level() == "generic" else 1.0


class Work(NamedTuple):
    """What a pass does, or what a unit of it costs in picoseconds."""

    products: float  # floating-point operations
    tiles: float  # direct: tiles, or operations that rows they lack would do; winograd: bytes of transformed tiles
    matrix: float  # bytes of im2col's matrix, packed or stored
    images: float  # bytes of x and y
    filters: float  # bytes of w, transformed or not
    calls: float  # groups


def _itemsize(p: ConvProblem) -> int:
    return 8 if p.dtype == "float64" else 4


def _vectors(channels: int, p: ConvProblem) -> int:
    """Channels in whole vectors."""
    vector = 64 // _itemsize(p)
    return -(-channels // vector) * vector


def _images(p: ConvProblem) -> float:
    return (p.n * p.ih * p.iw * p.ci + p.n * p.oh * p.ow * p.co) * _itemsize(p)


def work_of_gemm(p: ConvProblem, direction: str) -> Work:
    """An m x co x k product; the matrix of pointwise convolutions is the image, which only backward_weights packs."""
    ci, co, taps, pixels = p.ci // p.groups, p.co // p.groups, p.kh * p.kw, p.n * p.oh * p.ow
    k = taps * ci if direction == "forward" else _vectors(taps * ci, p)
    wide = co if direction == "backward_data" else _vectors(co, p)
    packed = taps > 1 or direction == "backward_weights"
    return Work(
        products=2.0 * p.groups * (pixels + 8) * k * wide * _itemsize(p) / 4,
        tiles=0.0,
        matrix=float(packed * pixels * taps * p.ci * _itemsize(p)),
        images=_images(p),
        filters=float(taps * ci * p.co * _itemsize(p)),
        calls=p.groups,
    )


def _share_of_taps(written: int, taps: int, stride: int, dilation: int, before: int, read: int) -> float:
    """The share of an axis's taps that do not fall on padding."""
    return taps_met(written, taps, stride, dilation, before, read) / (taps * written)


def work_of_direct(p: ConvProblem, direction: str) -> Work:
    """Products of the taps that exist, in whole vectors of the channels that lie along them.

    In forward and backward_data each tile of 14 pixels and 32 channels costs something by itself; in backward_weights
    the tile's rows are input channels, or of all taps of a few, and what counts are rows that stay empty.
    """
    ci, co, taps = p.ci // p.groups, p.co // p.groups, p.kh * p.kw
    share = _share_of_taps(p.oh, p.kh, p.sh, p.dil_h, p.padding[0][0], p.ih)
    share *= _share_of_taps(p.ow, p.kw, p.sw, p.dil_w, p.padding[1][0], p.iw)
    across, down = (ci, co) if direction == "backward_data" else (co, ci)
    wide = _vectors(across, p)
    products = 2.0 * p.groups * p.n * p.oh * p.ow * share * taps * down * wide * _itemsize(p) / 4
    if direction == "backward_weights":
        rows = ci if ci > 8 else taps * ci
        tiles = products * (-(-rows // 14) * 14 - rows) / rows
    else:
        written = p.n * (p.ih * p.iw if direction == "backward_data" else p.oh * p.ow)
        tiles = float(p.groups * -(-written // 14) * -(-across * _itemsize(p) // 128))
    return Work(
        products=products * NARROW,
        tiles=tiles * NARROW,
        matrix=0.0,
        images=_images(p),
        filters=float(taps * ci * p.co * _itemsize(p)),
        calls=1.0,
    )


def work_of_winograd(p: ConvProblem, direction: str) -> Work:
    """Products of transformed tiles, with a start-up per row of each; tiles and filters written and read."""
    oh, ow = (p.ih, p.iw) if direction == "backward_data" else (p.oh, p.ow)
    m = winograd_ext.tile(oh, ow)
    tiles, points = p.n * -(-oh // m) * -(-ow // m), (m + 2) ** 2
    return Work(
        products=2.0 * points * tiles * (_vectors(p.ci, p) + 8) * (_vectors(p.co, p) + 8) * _itemsize(p) / 4,
        tiles=float(points * tiles * (p.ci + p.co) * _itemsize(p)),
        matrix=0.0,
        images=_images(p),
        filters=float(points * p.ci * p.co * _itemsize(p)),
        calls=1.0,
    )


def work_of_depthwise(p: ConvProblem, direction: str) -> Work:
    """Nothing else supports what it does, so that a rough figure will do."""
    return Work(float(p.flops), 0.0, 0.0, _images(p), 0.0, 1.0)


COSTS: dict[tuple[str, str], Work] = {
    ("im2col", "forward"): Work(4.71, 0, 76, 20.5, 52.3, 0),
    ("im2col", "backward_data"): Work(4.7, 0, 42.9, 30.7, 53, 0),
    ("im2col", "backward_weights"): Work(4.7, 0, 78, 62.7, 1.95, 0),
    ("convgemm", "forward"): Work(4.63, 0, 17.9, 24, 55.3, 0),
    ("deconvgemm", "backward_data"): Work(4.66, 0, 31.1, 32.9, 63.3, 0),
    ("reindex", "backward_weights"): Work(4.6, 0, 39.4, 132, 132, 0),
    ("convgemm_trans", "backward_weights"): Work(4.94, 0, 23.1, 23.8, 7.92, 0),
    ("direct", "forward"): Work(4.67, 2.37e04, 0, 9.48, 115, 0),
    ("direct", "backward_data"): Work(4.88, 3.32e03, 0, 7.55, 129, 3.7e06),
    ("direct", "backward_weights"): Work(5.22, 1.38, 0, 23.4, 68.9, 1.44e07),
    ("winograd", "forward"): Work(5.5, 0, 0, 2.54, 47.4, 0),
    ("winograd", "backward_data"): Work(4.4, 39.4, 0, 0, 50.3, 0),
    ("winograd", "backward_weights"): Work(6.53, 0.765, 0, 0, 19, 0),
    ("depthwise", "forward"): Work(40, 0, 0, 30, 0, 1e7),
    ("depthwise", "backward_data"): Work(40, 0, 0, 30, 0, 1e7),
    ("depthwise", "backward_weights"): Work(40, 0, 0, 30, 0, 1e7),
}


def seconds(cost: Work, work: Work) -> float:
    """The model's estimate of a pass."""
    return 1e-12 * sum(amount * each for amount, each in zip(work, cost, strict=True))
