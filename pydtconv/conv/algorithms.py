"""The table of convolution algorithms: one row each.

To add one: a C file in cext/conv with its passes listed in cext/include/dtconv_conv.h, and a row here.  Tests and
benchmarks walk this table.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from pydtconv._ext import conv as ext
from pydtconv.conv import bases, calibrated, estimates
from pydtconv.conv.problem import DIRECTIONS, Axis, ConvProblem
from pydtconv.extents import LARGEST


@dataclass(frozen=True)
class Algorithm:
    """One row: the passes it has, when it can be used, and what it is expected to cost.

    supports(p): None, or the reason why not.  work(p, direction): what the cost model counts.
    gathers: whether forward can gather mean and variance of y, and backward_data reductions of dx, on the way out.
    bypasses: whether such a backward_data can write the gradient of what was normalized, but for what follows from the
    sums.
    normalizes: whether forward and backward_weights of a pointwise convolution, by products of bfloat16 of any, can
    normalize x as they read it.  normalizes_taps: those of any.  normalizes_channels: those of depthwise ones.
    rounding: how many times its rounding errors may be those of the sum of products; rounding_of_bfloat16: of images in
    bfloat16, before their results are rounded, where that is another number.  contained: whether a value that
    is not finite or nearly overflows spoils those results only whose sums it is in; zeros beside an image may be in
    sums, too, with the filter's taps there.  Where `config.set_conv_precision("strict")` is active, what rounds more or
    does not contain is left out.
    bfloat16, float32: whether it has passes for images in bfloat16; in float32, and but for `products` in float64.
    products: how many products of bfloat16 stand for one of float32 (matmul_precision.py); None: it multiplies as it
    stores.
    coarse: whether it is chosen only where `config.set_float32_matmul_precision` allows larger errors.
    calibrates: whether the small problems of a calibration say what it costs; else its costs are as many times those
    known as those of all others are.
    has_basis: whether its tiles may have several sizes; "fft 12x12" is the row "fft" with a basis of its own.
    """

    name: str
    directions: tuple[str, ...]
    supports: Callable[[ConvProblem], str | None]
    work: Callable[[ConvProblem, str], estimates.Work]
    rounding: float = 1.0
    rounding_of_bfloat16: float | None = None
    gathers: bool = False
    bypasses: bool = False
    normalizes: bool = False
    normalizes_taps: bool = False
    normalizes_channels: bool = False
    contained: bool = True
    bfloat16: bool = False
    float32: bool = True
    products: int | None = None
    coarse: bool = False
    calibrates: bool = True
    has_basis: bool = False
    basis: bases.Basis | None = None

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        """None where this algorithm can do this pass of p, else why not."""
        if direction not in self.directions:
            return f"{self.name} has no {direction}, only {' and '.join(self.directions)}"
        if p.dtype == "bfloat16" and not self.bfloat16:
            others = ", ".join(row.name for row in TABLE.values() if row.bfloat16)
            return f"{self.name} has passes for float32 and float64 only ({others} do bfloat16)"
        if p.dtype != "bfloat16" and not self.float32:
            return f"{self.name} has passes for bfloat16 only, got {p.dtype}"
        if self.products is not None and p.dtype != "float32":
            return f"{self.name} multiplies float32 as bfloat16, got {p.dtype}"
        reason = self.supports(p)
        if reason is None and self.basis is not None and bases.seconds(p, direction, self.basis, self.family) == 0:
            return f"a basis of {bases.written(self.basis)} does not hold {p.kh}x{p.kw} filters, or is too large"
        return reason

    def of(self, p: ConvProblem, direction: str) -> Algorithm:
        """This row with the basis that it is expected to be the fastest with, where it has one."""
        return self.with_basis(bases.best(p, direction, self.family)) if self.has_basis and self.basis is None else self

    def others(self, p: ConvProblem, direction: str, count: int) -> list[Algorithm]:
        """This row with the `count` next best bases."""
        if not self.has_basis:
            return []
        return [self.with_basis(basis) for basis in bases.ranking(p, direction, family=self.family)[1 : 1 + count]]

    def with_basis(self, basis: bases.Basis) -> Algorithm:
        return replace(self, name=f"{self.family} {bases.written(basis)}", basis=basis)

    @property
    def family(self) -> str:
        """Its name without a basis."""
        return self.name.partition(" ")[0]

    def sizes(self, p: ConvProblem) -> tuple[int, ...]:
        """What the C library's problem holds."""
        return p.sizes if self.basis is None else p.sizes + self.basis

    @property
    def of_reals(self) -> bool:
        """Whether it multiplies float32 and float64 as they are."""
        return self.float32 and self.products is None

    def rounding_in(self, dtype: str) -> float:
        """`rounding`, of images of this dtype."""
        other = self.rounding_of_bfloat16
        return self.rounding if dtype != "bfloat16" or other is None else other

    @property
    def strict(self) -> bool:
        """Whether it gives what plain sums of products give, but for the order of additions."""
        return self.rounding == 1 and self.contained

    def gathers_reductions(self, p: ConvProblem) -> bool:
        """Whether backward_data of p can gather reductions of dx: not where it writes phases of it."""
        return self.gathers and not (self.has_basis and set(p.strides) != {1})

    def bypasses_in(self, p: ConvProblem) -> bool:
        """Whether backward_data of p can write the gradient of what was normalized."""
        return self.bypasses and self.gathers_reductions(p)

    def normalizes_in(self, p: ConvProblem, activation: str | None = None) -> bool:
        """Whether forward and backward_weights of p can normalize x as they read it, with an activation behind it."""
        if self.normalizes_channels:
            return self.supports(p) is None
        if p.groups > 1 or activation in _CURVED:
            return False
        copies = p.dtype == "bfloat16" or self.products is not None
        if activation == "relu6" and (copies or self.normalizes_taps):
            return False
        if self.normalizes_taps:
            return True
        return self.normalizes and (p.is_pointwise or copies)

    def seconds(self, p: ConvProblem, direction: str) -> float:
        """The cost model's estimate with the threads now set.

        Where the machine has not been calibrated only ratios between algorithms mean something.
        """
        return estimates.seconds(calibrated.costs(self.family, direction, p.dtype), self.amounts(p, direction))

    def amounts(self, p: ConvProblem, direction: str) -> estimates.Work:
        """What the cost model counts, with the basis of this row."""
        return (
            estimates.work_of_fft(p, direction, self.basis, self.family) if self.has_basis else self.work(p, direction)
        )

    def spectra_size(self, p: ConvProblem) -> int:
        """Elements of the transform of x that forward can leave for backward_weights with this basis; 0: it cannot."""
        if self.basis is None:
            return 0
        return int(ext.fft_spectra(self.sizes(p), self.family, p.dtype)[0])

    def dy_spectra_size(self, p: ConvProblem, direction: str) -> int:
        """Elements of the transform of dy that backward_weights can leave for backward_data: this row's pass leaves or
        reads it, where one of the other cuts dy into the same tiles.  0: none does.
        """
        if self.basis is None or direction == "forward":
            return 0
        families = [row.family for row in TABLE.values() if row.has_basis]
        mine = [(self.family, other) if direction == "backward_data" else (other, self.family) for other in families]
        return max(int(ext.fft_dy_spectra(self.sizes(p), *both, p.dtype)[0]) for both in mine)

    def workspace_bytes(self, p: ConvProblem, direction: str) -> int:
        """Bytes of scratch memory with the threads now set."""
        return int(ext.workspace_bytes(self.sizes(p), self.family, direction, p.dtype))


_CURVED = ("silu", "hard_silu")


def _is_depthwise(p: ConvProblem) -> bool:
    return p.groups == p.ci and p.groups > 1


def _multiplies_matrices(p: ConvProblem) -> str | None:
    if _is_depthwise(p):
        return (
            f"groups == ci == {p.ci}: with one channel in each group there is no matrix to multiply (depthwise does it)"
        )
    return None


def _gathers_taps(p: ConvProblem) -> str | None:
    longest = max(axis.kernel * axis.out for axis in p.axes)
    if longest > LARGEST:
        return f"rdx gathers an image of at most {LARGEST} pixels an axis, these filters need {longest}"
    return _multiplies_matrices(p)


def _one_channel_per_group(p: ConvProblem) -> str | None:
    return None if p.groups == p.ci else f"depthwise needs groups == ci, got groups={p.groups} and ci={p.ci}"


def _three_by_three(p: ConvProblem) -> str | None:
    if p.rank == 1:
        return "winograd has tiles of two axes, not of one"
    if p.kernel[-2:] != (3, 3):
        return f"winograd needs {'' if p.rank == 2 else 'k x '}3x3 filters, got {'x'.join(map(str, p.kernel))}"
    if set(p.strides) != {1}:
        return f"winograd needs strides of 1, got {', '.join(map(str, p.strides))}"
    if p.kd > 1 and p.dil_d > 1:
        return f"winograd needs a dilation of 1 along the depth, got {p.dil_d}"
    return None if p.groups == 1 else f"winograd needs groups == 1, got {p.groups}"


def _rounded_tiles(p: ConvProblem) -> str | None:
    if p.rank == 3:
        return "winograd_bf16 has tiles of two axes, not of three"
    reason = _three_by_three(p)
    if reason is None and not ext.workspace_bytes(p.sizes, "winograd_bf16", "backward_data", p.dtype):
        return "winograd_bf16 needs a micro-kernel that takes pairs of bfloat16 which lie apart, such as avx512_bf16"
    return reason


def phase_taps(axis: Axis) -> int:
    """Taps of a phase of the filters, whose pixels lie a stride apart (cext/conv/fourier_phases.c)."""
    return (axis.kernel - 1 + -axis.before % axis.stride) // axis.stride + 1


def _large_filters(p: ConvProblem) -> str | None:
    depth = p.axes[0]
    if depth.stride > 1 or (depth.dilation > 1 and depth.kernel > 1):
        return f"fft needs a stride and a dilation of 1 along the depth, got {depth.stride} and {depth.dilation}"
    if any(axis.stride > 1 and axis.dilation > 1 for axis in p.axes):
        return f"fft does strides by phases of dilation 1, got strides {p.sh}, {p.sw} and dilation {p.dil_h}, {p.dil_w}"
    taps = [phase_taps(axis) for axis in p.axes[1:]]
    if prod(taps) == 1:
        of = "" if {p.sh, p.sw} == {1} else f" of {p.sh}x{p.sw} phases"
        return f"fft needs filters of more than one tap, got {p.kh}x{p.kw}{of}"
    if bases.best(p, "forward") == bases.NONE or bases.best(p, "backward_data") == bases.NONE:
        return f"fft has transforms of at most 256 points along an axis, too few for {p.kh}x{p.kw} filters"
    return _multiplies_matrices(p)


def _disjoint_tiles(p: ConvProblem) -> str | None:
    return "fft_overlap_add adds up tiles of one or two axes, not of three" if p.rank == 3 else _large_filters(p)


class Table(dict[str, Algorithm]):
    """Rows by name; that of a row with a basis, such as "fft 12x12", stands for one, too."""

    def __missing__(self, name: str) -> Algorithm:
        family, _, basis = name.partition(" ")
        row, sizes = self.get(family), bases.read(basis)
        if row is None or not row.has_basis or sizes is None:
            raise KeyError(name)
        return row.with_basis(sizes)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(self[name])
        except KeyError:
            return False


#: of version 1.0
FORMER_NAMES = {"reindex": "exchanged_strides"}

TABLE = Table(
    {
        row.name: row
        for row in (
            Algorithm("im2col", DIRECTIONS, _multiplies_matrices, estimates.work_of_gemm),
            Algorithm("convgemm", ("forward",), _multiplies_matrices, estimates.work_of_gemm),
            Algorithm("deconvgemm", ("backward_data",), _multiplies_matrices, estimates.work_of_gemm),
            Algorithm("rdx", ("backward_weights",), _gathers_taps, estimates.work_of_gemm),
            Algorithm("exchanged_strides", ("backward_weights",), _multiplies_matrices, estimates.work_of_gemm),
            Algorithm("convgemm_trans", ("backward_weights",), _multiplies_matrices, estimates.work_of_gemm),
            Algorithm(
                "depthwise",
                DIRECTIONS,
                _one_channel_per_group,
                estimates.work_of_depthwise,
                gathers=True,
                normalizes_channels=True,
                bfloat16=True,
            ),
            Algorithm(
                "direct",
                DIRECTIONS,
                _multiplies_matrices,
                estimates.work_of_direct,
                gathers=True,
                bypasses=True,
                normalizes=True,
                bfloat16=True,
            ),
            Algorithm(
                "strassen",
                DIRECTIONS,
                _multiplies_matrices,
                estimates.work_of_strassen,
                rounding=3.0,
                contained=False,  # sums of quarters of matrices go to results of other quarters
                calibrates=False,  # it gains where the sums of large matrices cost little beside their products
            ),
            Algorithm(
                "direct_bf16x3",
                DIRECTIONS,
                _multiplies_matrices,
                estimates.work_of_bfloat16,
                rounding=3.0,
                gathers=True,
                bypasses=True,
                normalizes=True,
                contained=False,  # an infinity has no halves
                products=3,
            ),
            Algorithm(
                "direct_bf16",
                DIRECTIONS,
                _multiplies_matrices,
                estimates.work_of_bfloat16,
                rounding=1e3,
                gathers=True,
                bypasses=True,
                normalizes=True,
                contained=False,  # padding is zeros that are multiplied
                products=1,
            ),
            Algorithm(
                "winograd",
                DIRECTIONS,
                _three_by_three,
                estimates.work_of_winograd,
                rounding=10.0,
                rounding_of_bfloat16=100.0,  # tiles are those of winograd_large
                gathers=True,
                normalizes_taps=True,
                contained=False,  # sums of a tile's pixels and their products go to all results of the tile
                bfloat16=True,
            ),
            Algorithm(
                "winograd_large",
                DIRECTIONS,
                _three_by_three,
                estimates.work_of_large_winograd,
                rounding=100.0,
                gathers=True,
                normalizes_taps=True,
                contained=False,
                coarse=True,
            ),
            Algorithm(
                "winograd_bf16",
                DIRECTIONS,
                _rounded_tiles,
                estimates.work_of_rounded_winograd,
                rounding=5e3,
                gathers=True,
                normalizes_taps=True,
                contained=False,
                bfloat16=True,
                float32=False,
            ),
            Algorithm(
                "fft",
                DIRECTIONS,
                _large_filters,
                estimates.work_of_fft,
                rounding=3.0,
                gathers=True,
                contained=False,  # as of winograd
                bfloat16=True,
                has_basis=True,
            ),
            Algorithm(
                "fft_overlap_add",
                DIRECTIONS,
                _disjoint_tiles,
                estimates.work_of_fft,
                rounding=3.0,
                contained=False,
                bfloat16=True,
                has_basis=True,
            ),
        )
    }
)


def current_name(name: str) -> str:
    """An algorithm's name, also by a name that it had before, with a FutureWarning.

    Raises ValueError where there is no algorithm of this name.
    """
    if name in FORMER_NAMES:
        warnings.warn(f"algorithm: {name!r} is called {FORMER_NAMES[name]!r} now", FutureWarning, stacklevel=2)
    current = FORMER_NAMES.get(name, name)
    if current not in TABLE:
        raise ValueError(f"algorithm: expected 'auto' or one of {', '.join(TABLE)}, got {name!r}")
    return current
