"""The table of convolution algorithms: one row each.

To add one: a C file in cext/conv with its passes listed in cext/include/dtconv_conv.h, and a row here.  Tests and
benchmarks walk this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydtconv._ext import conv as ext
from pydtconv._ext import winograd as winograd_ext
from pydtconv.conv.problem import DIRECTIONS, ConvProblem

# Of the cost model, in rates of one thread: FMA peak, memory, cache.  Only their ratios matter.
FLOPS = 1.0e11
MEMORY = 1.5e10
CACHE = 6.0e10


@dataclass(frozen=True)
class Algorithm:
    """One row: the passes it has, when it can be used, and what it is expected to cost.

    supports(p): None, or the reason why not.  seconds(p, direction): the cost model's estimate for one thread.
    rounding: how many times its rounding errors may be those of the sum of products; above 1 it is left out where
    `config.set_conv_precision("strict")` is in force.
    """

    name: str
    directions: tuple[str, ...]
    supports: Callable[[ConvProblem], str | None]
    seconds: Callable[[ConvProblem, str], float]
    rounding: float = 1.0

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        """None where this algorithm can do this pass of p, else why not."""
        if direction not in self.directions:
            return f"{self.name} has no {direction}, only {' and '.join(self.directions)}"
        return self.supports(p)

    def workspace_bytes(self, p: ConvProblem, direction: str) -> int:
        """Bytes of scratch memory with the threads now set."""
        return int(ext.workspace_bytes(p.sizes, self.name, direction, p.dtype == "float64"))


def _is_depthwise(p: ConvProblem) -> bool:
    return p.groups == p.ci and p.groups > 1


def _multiplies_matrices(p: ConvProblem) -> str | None:
    if _is_depthwise(p):
        return (
            f"groups == ci == {p.ci}: with one channel in each group there is no matrix to multiply (depthwise does it)"
        )
    return None


def _one_channel_per_group(p: ConvProblem) -> str | None:
    return None if p.groups == p.ci else f"depthwise needs groups == ci, got groups={p.groups} and ci={p.ci}"


def _three_by_three(p: ConvProblem) -> str | None:
    if (p.kh, p.kw) != (3, 3):
        return f"winograd needs 3x3 filters, got {p.kh}x{p.kw}"
    if (p.sh, p.sw) != (1, 1):
        return f"winograd needs strides of 1, got {p.sh}, {p.sw}"
    if (p.dil_h, p.dil_w) != (1, 1):
        return f"winograd needs a dilation of 1, got {p.dil_h}, {p.dil_w}"
    return None if p.groups == 1 else f"winograd needs groups == 1, got {p.groups}"


def _itemsize(p: ConvProblem) -> int:
    return 8 if p.dtype == "float64" else 4


def _x_bytes(p: ConvProblem) -> int:
    return p.n * p.ih * p.iw * p.ci * _itemsize(p)


def _y_bytes(p: ConvProblem) -> int:
    return p.n * p.oh * p.ow * p.co * _itemsize(p)


def _matrix_bytes(p: ConvProblem) -> int:
    return p.n * p.oh * p.ow * p.kh * p.kw * p.ci * _itemsize(p)


def _gemm(p: ConvProblem) -> float:
    """Multiplication, the traffic of packing the k-dimension's operand, and a start-up per group."""
    return p.flops / FLOPS + (_matrix_bytes(p) * 2) / CACHE + (_x_bytes(p) + _y_bytes(p)) / MEMORY + p.groups * 1e-5


def _matrix_traffic(p: ConvProblem) -> float:
    """The im2col matrix written and read once, in memory."""
    return 0.0 if (p.kh, p.kw) == (1, 1) else 2 * _matrix_bytes(p) / MEMORY


def _im2col(p: ConvProblem, direction: str) -> float:
    return _gemm(p) + _matrix_traffic(p)


def _packing(p: ConvProblem, direction: str) -> float:
    return _gemm(p)


def _unpacking(p: ConvProblem, direction: str) -> float:
    return _gemm(p) + (0.0 if (p.kh, p.kw) == (1, 1) else 2 * _matrix_bytes(p) / CACHE)


def _reindex(p: ConvProblem, direction: str) -> float:
    return _gemm(p) + 4 * _x_bytes(p) / MEMORY


def _depthwise(p: ConvProblem, direction: str) -> float:
    return 8 * p.flops / FLOPS + (_x_bytes(p) + _y_bytes(p)) / MEMORY


def _winograd(p: ConvProblem, direction: str) -> float:
    """Products of transformed tiles, with a start-up per row of each; tiles, products and filters written and read."""
    oh, ow = (p.ih, p.iw) if direction == "backward_data" else (p.oh, p.ow)
    m = winograd_ext.tile(oh, ow)
    tiles, points = p.n * -(-oh // m) * -(-ow // m), (m + 2) ** 2
    ci, co = -(-p.ci // 16) * 16, -(-p.co // 16) * 16
    multiplications = points * tiles * (ci + 8) * (co + 8)
    moved = 2 * points * (tiles * (ci + co) + p.ci * p.co) * _itemsize(p)
    return 2 * multiplications / FLOPS + moved / CACHE + (_x_bytes(p) + _y_bytes(p)) / MEMORY + 2e-5


def _share_of_taps(written: int, taps: int, stride: int, dilation: int, before: int, read: int) -> float:
    """The share of an axis's taps that do not fall on padding."""
    met = 0
    for tap in range(taps):
        offset = tap * dilation - before
        met += max(0, min(written, -(-(read - offset) // stride)) - max(0, -(offset // stride)))
    return met / (taps * written)


def _direct(p: ConvProblem, direction: str) -> float:
    """Products of the taps that exist, in whole vectors of the channels that lie along them; images read and written.

    The tile is 12 or 14 pixels high; in backward_weights it stands on ci, or on all taps of a few channels.
    """
    vector = 64 // _itemsize(p)
    ci, co = p.ci // p.groups, p.co // p.groups
    across = ci if direction == "backward_data" else co
    share = _share_of_taps(p.oh, p.kh, p.sh, p.dil_h, p.padding[0][0], p.ih)
    share *= _share_of_taps(p.ow, p.kw, p.sw, p.dil_w, p.padding[1][0], p.iw)
    work = p.flops * share * (-(-across // vector) * vector / across)
    if direction == "backward_weights":
        rows = ci if ci > 8 else p.kh * p.kw * ci
        work *= 1.15 * (rows + 2 * -(-rows // 14)) / rows
    return work / FLOPS + (_x_bytes(p) + _y_bytes(p)) / MEMORY + 1e-5


TABLE: dict[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm("im2col", DIRECTIONS, _multiplies_matrices, _im2col),
        Algorithm("convgemm", ("forward",), _multiplies_matrices, _packing),
        Algorithm("deconvgemm", ("backward_data",), _multiplies_matrices, _unpacking),
        Algorithm("reindex", ("backward_weights",), _multiplies_matrices, _reindex),
        Algorithm("convgemm_trans", ("backward_weights",), _multiplies_matrices, _packing),
        Algorithm("depthwise", DIRECTIONS, _one_channel_per_group, _depthwise),
        Algorithm("direct", DIRECTIONS, _multiplies_matrices, _direct),
        Algorithm("winograd", DIRECTIONS, _three_by_three, _winograd, rounding=10.0),
    )
}
