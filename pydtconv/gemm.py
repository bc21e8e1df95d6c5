"""Matrix product on NumPy arrays, over the library's own GEMM."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import gemm as _gemm
from pydtconv._ext import ukr

_local = threading.local()


def _workspace(size: int) -> NDArray[np.uint8]:
    """Scratch memory of at least `size` bytes, kept per thread."""
    kept: NDArray[np.uint8] | None = getattr(_local, "workspace", None)
    if kept is None or kept.nbytes < size:
        kept = _local.workspace = np.empty(size, np.uint8)
    return kept


def _operand(name: str, array: NDArray, transpose: bool) -> NDArray:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"gemm: {name} must be a NumPy array, got {type(array).__name__}")
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"gemm: {name} must be float32 or float64, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"gemm: {name} must have two dimensions, got shape {array.shape}")
    if not array.dtype.isnative or any(stride % array.itemsize for stride in array.strides):
        array = np.array(array, array.dtype.newbyteorder("="))
    return array.T if transpose else array


def _checked_out(out: NDArray, shape: tuple[int, int], dtype: np.dtype) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"gemm: out must be a NumPy array, got {type(out).__name__}")
    if out.dtype != dtype or not out.dtype.isnative:
        raise TypeError(f"gemm: out must be {dtype} as a and b are, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"gemm: out must have shape {shape}, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("gemm: out is read-only")


def gemm(
    a: NDArray,
    b: NDArray,
    out: NDArray | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> NDArray:
    """out = alpha * a @ b + beta * out.

    a: (m, k), or (k, m) with transpose_a.  b: (k, n), or (n, k) with transpose_b.  Both float32 or both float64, with
    any strides: views are used as they are.  out: (m, n), written and returned; made where it is absent.  Rows or
    columns of out must be contiguous.  beta = 0 means that out is not read.

    Raises TypeError for another dtype, ValueError for shapes that do not fit, an out that is read-only, has no
    contiguous rows or columns, or shares memory with a or b.
    """
    a, b = _operand("a", a, transpose_a), _operand("b", b, transpose_b)
    if a.dtype != b.dtype:
        raise TypeError(f"gemm: a and b must have the same dtype, got {a.dtype} and {b.dtype}")
    (m, k), (k_b, n) = a.shape, b.shape
    if k != k_b:
        raise ValueError(f"gemm: the inner sizes of a and b must agree, got a {(m, k)} and b {(k_b, n)}")
    if out is None:
        if beta != 0:
            raise ValueError(f"gemm: beta = {beta!r} needs an out to read")
        out = np.empty((m, n), a.dtype)
    else:
        _checked_out(out, (m, n), a.dtype)
        if np.shares_memory(out, a) or np.shares_memory(out, b):
            raise ValueError("gemm: out shares memory with a or b")
    if m == 0 or n == 0:
        return out
    if k == 0 or alpha == 0:
        np.multiply(out, beta, out=out) if beta != 0 else out.fill(0)
        return out
    c = out
    if c.strides[1] != c.itemsize and n > 1:  # columns are contiguous: out.T = b.T @ a.T
        a, b, c = b.T, a.T, out.T
    if (c.strides[1] != c.itemsize and c.shape[1] > 1) or c.strides[0] < 0 or c.strides[0] % c.itemsize:
        raise ValueError(f"gemm: rows or columns of out must be contiguous, got strides {out.strides}")
    size = _gemm.workspace_bytes(c.shape[0], c.shape[1], k, a.dtype.name)
    ukr.check(_gemm.gemm(a, b, c, alpha, beta, _workspace(size)), "gemm")
    return out
