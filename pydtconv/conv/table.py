"""The table of convolution algorithms: one row each.

To add one: a C file in cext/conv with its passes listed in cext/include/dtconv_conv.h, and a row here.  Tests and
benchmarks walk this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydtconv._ext import conv as ext
from pydtconv.conv import estimates
from pydtconv.conv.problem import DIRECTIONS, ConvProblem


@dataclass(frozen=True)
class Algorithm:
    """One row: the passes it has, when it can be used, and what it is expected to cost.

    supports(p): None, or the reason why not.  work(p, direction): what the cost model counts.
    gathers: whether forward can gather mean and variance of y, and backward_data reductions of dx, on the way out.
    normalizes: whether forward and backward_weights of a pointwise convolution can normalize x as they read it.
    rounding: how many times its rounding errors may be those of the sum of products; above 1 it is left out where
    `config.set_conv_precision("strict")` is in force.
    """

    name: str
    directions: tuple[str, ...]
    supports: Callable[[ConvProblem], str | None]
    work: Callable[[ConvProblem, str], estimates.Work]
    rounding: float = 1.0
    gathers: bool = False
    normalizes: bool = False

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        """None where this algorithm can do this pass of p, else why not."""
        if direction not in self.directions:
            return f"{self.name} has no {direction}, only {' and '.join(self.directions)}"
        return self.supports(p)

    def normalizes_in(self, p: ConvProblem) -> bool:
        """Whether forward and backward_weights of p can normalize x as they read it."""
        return self.normalizes and p.is_pointwise and p.groups == 1

    def seconds(self, p: ConvProblem, direction: str) -> float:
        """The cost model's estimate; only ratios between algorithms mean something."""
        return estimates.seconds(estimates.COSTS[self.name, direction], self.work(p, direction))

    def workspace_bytes(self, p: ConvProblem, direction: str) -> int:
        """Bytes of scratch memory with the threads now set."""
        return int(ext.workspace_bytes(p.sizes, self.name, direction, p.dtype))


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


TABLE: dict[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm("im2col", DIRECTIONS, _multiplies_matrices, estimates.work_of_gemm),
        Algorithm("convgemm", ("forward",), _multiplies_matrices, estimates.work_of_gemm),
        Algorithm("deconvgemm", ("backward_data",), _multiplies_matrices, estimates.work_of_gemm),
        Algorithm("reindex", ("backward_weights",), _multiplies_matrices, estimates.work_of_gemm),
        Algorithm("convgemm_trans", ("backward_weights",), _multiplies_matrices, estimates.work_of_gemm),
        Algorithm("depthwise", DIRECTIONS, _one_channel_per_group, estimates.work_of_depthwise),
        Algorithm("direct", DIRECTIONS, _multiplies_matrices, estimates.work_of_direct, gathers=True, normalizes=True),
        Algorithm("winograd", DIRECTIONS, _three_by_three, estimates.work_of_winograd, rounding=10.0, gathers=True),
    )
}
