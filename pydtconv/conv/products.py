"""Products of matrices that are no convolutions, as the convolutions that they are: pointwise, of a row of pixels.

Whether they take Strassen's algorithm is the choice of convolutions (selection.py): its precision, variant, workspace
limit, measurements and cost model hold for dense layers, contractions and what else multiplies matrices, too.
"""

from __future__ import annotations

from functools import lru_cache

from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import choose


def strassen_levels(m: int, n: int, k: int, dtype: str) -> int:
    """Levels of Strassen's algorithm of C (m, n) = A (m, k) B (k, n).

    1 where a pointwise convolution of m pixels with k channels and n filters takes `strassen` in forward; else 0.
    """
    p = _pointwise(m, n, k, dtype)
    return int(p is not None and choose(p, "forward").algorithm == "strassen")


@lru_cache(maxsize=4096)
def _pointwise(m: int, n: int, k: int, dtype: str) -> ConvProblem | None:
    """None where there is none: of nothing, and of matrices beyond the limits of images."""
    if min(m, n, k) < 1:
        return None
    try:
        return ConvProblem.of((1, 1, m, k), (1, 1, k, n), dtype=dtype)
    except ValueError:
        return None
