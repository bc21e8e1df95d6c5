"""Which algorithm a pass runs: the caller's own, the active variant's, the fastest measured, or the ranking's first.

The named variants fix one algorithm per pass (Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, Table 2):
BASE, RDX, CGT, CGT+PM and CGT+DG; CGT+DG+PM is both.  AUTO leaves each pass to what `pydtconv tune` has measured, else
to the ranking.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydtconv import config, dtypes
from pydtconv.conv import calibrated, matmul_precision, timings
from pydtconv.conv.algorithms import TABLE, Algorithm, current_name
from pydtconv.conv.problem import DIRECTIONS, ConvProblem

#: pixels of an output by which "strict" chooses
_OUT = 32
#: times the seconds of an algorithm within which another is taken that saves work elsewhere
HARDLY_LONGER = 1.03


@dataclass(frozen=True)
class Variant:
    """A named choice.

    forward, backward_data, backward_weights: names of algorithms, None for the fastest one.
    persistent: whether workspaces are placed ahead by the plan (the paper's "+PM"), or allocated in each call.
    """

    name: str
    forward: str | None = None
    backward_data: str | None = None
    backward_weights: str | None = None
    persistent: bool = True

    def algorithm(self, direction: str) -> str | None:
        name: str | None = getattr(self, direction)
        return name


VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("BASE", "im2col", "im2col", "im2col", persistent=False),
        Variant("RDX", "convgemm", "im2col", "rdx", persistent=False),
        Variant("CGT", "convgemm", "im2col", "convgemm_trans", persistent=False),
        Variant("CGT+PM", "convgemm", "im2col", "convgemm_trans"),
        Variant("CGT+DG", "convgemm", "deconvgemm", "convgemm_trans", persistent=False),
        Variant("CGT+DG+PM", "convgemm", "deconvgemm", "convgemm_trans"),
        Variant("AUTO"),
    )
}


@dataclass(frozen=True)
class Choice:
    """An algorithm and why it was taken."""

    algorithm: str
    why: str


def variant_of(name: str | None = None) -> Variant:
    """The variant of that name, or the active one.  Raises ValueError naming the known ones."""
    name = config.conv_variant() if name is None else name
    if name not in VARIANTS:
        raise ValueError(f"variant: expected one of {', '.join(VARIANTS)}, got {name!r}")
    return VARIANTS[name]


def check_direction(direction: str) -> None:
    if direction not in DIRECTIONS:
        raise ValueError(f"direction: expected one of {', '.join(DIRECTIONS)}, got {direction!r}")


def explain(p: ConvProblem, direction: str) -> dict[str, str | None]:
    """For every algorithm of the table None where it can do this pass of p, else the reason why not.

    What `config.set_float32_matmul_precision` does not allow has a reason, too; a layer may ask for it by name.
    """
    check_direction(direction)
    return {
        name: row.reason(p, direction) or matmul_precision.why_not(row.products, row.coarse, p.dtype)
        for name, row in TABLE.items()
    }


def ranking(
    p: ConvProblem, direction: str, precision: str = "fast", of_bfloat16: int | None = None, coarse: bool = False
) -> tuple[str, ...]:
    """Names of the algorithms that support p, the fastest by the cost model first; "strict": only exact sums.

    "strict" orders those of forward and backward_data by the filters alone: a pixel is summed in the same order
    whatever image it is in.
    of_bfloat16: those that multiply float32 by so many products of bfloat16 are among them.  coarse: so are those with
    larger errors.
    """
    check_direction(direction)
    return _ranking(p, direction, precision, of_bfloat16, coarse, calibrated.state(p.dtype))


def _by_filters(direction: str) -> bool:
    """Whether the filters alone say which algorithm is taken."""
    return config.conv_precision() == "strict" and _keeps_order(direction)


def _keeps_order(direction: str) -> bool:
    """Whether the algorithms of a pass each sum a pixel in one order, whatever the image."""
    return direction != "backward_weights"


def _of_filters(p: ConvProblem) -> ConvProblem:
    """A convolution with the filters, strides and dilation of p whose output has _OUT pixels an axis, whatever p's."""
    sizes = zip(p.kernel, p.strides, p.dilation, strict=True)
    extents = [(kernel - 1) * dilation + 1 + (_OUT - 1) * stride for kernel, stride, dilation in sizes]
    try:
        return ConvProblem.of((1, *extents, p.ci), p.w_shape, p.strides, "valid", p.dilation, p.groups, p.dtype)
    except ValueError:  # filters so large that 32 pixels of output are beyond all limits
        return p


@lru_cache(maxsize=4096)
def _ranking(
    p: ConvProblem,
    direction: str,
    precision: str,
    of_bfloat16: int | None,
    coarse: bool,
    _state: tuple[str, int, int, int],
) -> tuple[str, ...]:
    """_state: of the cost model, whose estimates are remembered."""
    alike = _of_filters(p) if precision == "strict" and _keeps_order(direction) else p
    rows = [row for row in TABLE.values() if row.reason(p, direction) is None and row.products in (None, of_bfloat16)]
    rows = [row for row in rows if not row.coarse or (coarse and p.dtype == "float32")]
    if precision == "strict":
        rows = [row for row in rows if row.strict]
    rows = [row.of(p, direction) for row in rows]
    return tuple(row.name for row in sorted(rows, key=lambda row: row.seconds(alike, direction)))


def algorithms(p: ConvProblem, direction: str) -> list[str]:
    """Names of the algorithms that may be chosen for this pass of p: those measured, fastest first, then by the model.

    Of those that support it, within the active precision and workspace limit; at least one.  What was measured is of
    one image size, so that in "strict" precision it counts for backward_weights alone.
    """
    seconds = {} if _by_filters(direction) else timings.measured(p, direction)
    ranked = ranking(p, direction, config.conv_precision(), matmul_precision.in_force(), matmul_precision.are_coarse())
    families = {TABLE[name].family for name in ranked}  # a basis that was measured may not be the cost model's
    ranked += tuple(name for name in seconds if name not in ranked and name in TABLE and TABLE[name].family in families)
    limit = config.conv_workspace_limit()
    if limit is not None:
        needs = {name: TABLE[name].workspace_bytes(p, direction) for name in ranked}
        bound = max(limit, min(needs.values()))
        ranked = tuple(name for name in ranked if needs[name] <= bound)
    return sorted(ranked, key=lambda name: seconds.get(name, float("inf")))  # stable: the others keep their order


def nearly_as_fast(
    p: ConvProblem, direction: str, name: str, fits: Callable[[Algorithm], bool], saves: float = 0.0
) -> str | None:
    """The fastest algorithm that fits and takes hardly longer than this one, as measured or by the model; else None.

    saves: seconds that it saves elsewhere, for which it may take longer.
    """
    known = timings.measured(p, direction)
    seconds = known if name in known else {each: TABLE[each].seconds(p, direction) for each in algorithms(p, direction)}
    for each in algorithms(p, direction):
        if fits(TABLE[each]) and seconds.get(each, float("inf")) <= HARDLY_LONGER * seconds[name] + saves:
            return each
    return None


def seconds_to_read(p: ConvProblem, images: int) -> float:
    """Seconds in which memory gives so many images of p's input."""
    size = math.prod(p.x_shape) * dtypes.itemsize(p.dtype)
    return images * size / calibrated.machine(p.dtype).bytes


def supported(p: ConvProblem, direction: str, algorithm: str) -> str:
    """The algorithm's name, if it supports this pass of p.  Raises ValueError with the reason."""
    check_direction(direction)
    algorithm = current_name(algorithm)
    reason = TABLE[algorithm].reason(p, direction)
    if reason is not None:
        raise ValueError(
            f"algorithm: {algorithm!r} cannot do {direction} of {p}: {reason}; "
            f"expected one of {', '.join(algorithms(p, direction))}"
        )
    return algorithm


def choose(
    p: ConvProblem, direction: str, algorithm: str | Mapping[str, str] | None = None, variant: str | None = None
) -> Choice:
    """The algorithm of a pass and why: an explicit one, the variant's, or the first of `algorithms`.

    algorithm: a name, or names by direction; None or "auto" leave the choice open.  variant: None for the active one.
    A variant's algorithm that does not support p falls back to the first.  Raises ValueError for an explicit one.
    """
    explicit = algorithm.get(direction) if isinstance(algorithm, Mapping) else algorithm
    if explicit not in (None, "auto"):
        return Choice(supported(p, direction, str(explicit)), "asked for")
    fixed = variant_of(variant)
    first = algorithms(p, direction)[0]
    measured = () if _by_filters(direction) else timings.measured(p, direction)
    why = "fastest measured" if first in measured else "ranking by cost model"
    name = fixed.algorithm(direction)
    if name is None:
        return Choice(first, why)
    reason = TABLE[name].reason(p, direction)
    if reason is None:
        return Choice(name, f"variant {fixed.name}")
    return Choice(first, f"variant {fixed.name} wants {name}, but {reason}; {why}")


def workspace_bytes(p: ConvProblem, direction: str, algorithm: str) -> int:
    """Bytes of scratch memory of this pass with the threads now set.  Raises ValueError where it is not supported."""
    return TABLE[supported(p, direction, algorithm)].workspace_bytes(p, direction)
