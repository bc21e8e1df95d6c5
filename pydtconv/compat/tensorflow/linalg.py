"""Functions of `tf.linalg`: those of matrices alone are here, others are tf's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.functions import function_table, global_norm, l2_normalize


def table() -> dict[str, Any]:
    """The names of `tf.linalg`."""
    tensors = function_table()
    same = ("cholesky", "det", "inv", "qr", "solve", "svd", "trace", "cross")
    own = {
        "band_part": band_part, "diag": diag, "diag_part": lambda input: ops.diagonal(input, 0, -2, -1),
        "l2_normalize": l2_normalize, "matrix_transpose": lambda a: ops.swapaxes(a, -1, -2),
        "matvec": lambda a, b: ops.squeeze(ops.matmul(a, ops.expand_dims(b, -1)), -1),
        "set_diag": set_diag, "global_norm": global_norm,
    }  # fmt: skip
    shared = {name: tensors[name] for name in ("einsum", "eye", "matmul", "norm", "tensordot")}
    return shared | {name: getattr(ops, name) for name in same} | own


def band_part(input: Any, num_lower: int, num_upper: int, name: str | None = None) -> Any:
    """Matrices with zeros beyond so many diagonals below and above the main one; all of them where that is negative."""
    rows, columns = (np.arange(n) for n in input.shape[-2:])
    below, above = rows[:, None] - columns, columns - rows[:, None]
    kept = ((num_lower < 0) | (below <= num_lower)) & ((num_upper < 0) | (above <= num_upper))
    return ops.where(kept, input, ops.zeros_like(input))


def diag(diagonal: Any, name: str | None = None) -> Any:
    """Matrices with these main diagonals, and zeros beside."""
    wide = ops.expand_dims(diagonal, -1)
    return ops.where(np.eye(diagonal.shape[-1], dtype=bool), wide, ops.zeros_like(wide))


def set_diag(input: Any, diagonal: Any, name: str | None = None) -> Any:
    """Matrices with another main diagonal."""
    rows, columns = (np.arange(n) for n in input.shape[-2:])
    wide = ops.expand_dims(diagonal, -1) if len(columns) >= len(rows) else ops.expand_dims(diagonal, -2)
    return ops.where(rows[:, None] == columns, wide, input)
