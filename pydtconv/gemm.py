"""Matrix product on NumPy arrays, over the library's own GEMM."""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pydtconv import (
    config,
    microkernels,  # noqa: F401  (puts the choice of a kernel in place)
)
from pydtconv._ext import gemm as _gemm
from pydtconv._ext import gemm_mixed as _mixed
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
    if array.dtype.name not in ("float32", "float64", "bfloat16"):
        raise TypeError(f"gemm: {name} must be float32, float64 or bfloat16, got {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"gemm: {name} must have two dimensions, got shape {array.shape}")
    uneven = not array.flags.aligned or any(stride % array.itemsize for stride in array.strides)
    if not array.dtype.isnative or uneven:
        array = np.array(array, array.dtype.newbyteorder("="))
    return array.T if transpose else array


def _checked_out(out: NDArray, shape: tuple[int, int], dtypes: set[str]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"gemm: out must be a NumPy array, got {type(out).__name__}")
    expected = dtypes | {"float32", "bfloat16"} if "bfloat16" in dtypes else dtypes
    if out.dtype.name not in expected or not out.dtype.isnative:
        raise TypeError(f"gemm: out must be {' or '.join(sorted(expected))} as a and b are, got {out.dtype}")
    if out.shape != shape:
        raise ValueError(f"gemm: out must have shape {shape}, got {out.shape}")
    if not out.flags.writeable:
        raise ValueError("gemm: out is read-only")
    if not out.flags.aligned:
        raise ValueError(f"gemm: out must be aligned, got an array at address {out.ctypes.data}")


def _check_ways(ways: Any, mixed: bool) -> None:
    whole = isinstance(ways, (tuple, list)) and all(isinstance(each, (int, np.integer)) for each in ways)
    if not whole or len(ways) != 4 or min(ways) < 1 or prod(map(int, ways)) > config.MOST_THREADS:
        most = config.MOST_THREADS
        raise ValueError(f"gemm: ways must be threads of jc, ic, jr and ir, 1 to {most} in all, got {ways!r}")
    if mixed:
        raise ValueError(f"gemm: ways are of float32 and float64, got bfloat16 and {ways!r}")


def _check_strassen(levels: Any, ways: Any, mixed: bool) -> None:
    if not isinstance(levels, (int, np.integer)) or isinstance(levels, bool) or not 0 <= levels <= 2:
        raise ValueError(f"gemm: strassen must be 0, 1 or 2 levels, got {levels!r}")
    if levels and (mixed or ways is not None):
        got = "bfloat16" if mixed else f"ways {ways!r}"
        raise ValueError(f"gemm: strassen is of float32 and float64 without ways, got {got}")


def set_ways(ways: tuple[int, int, int, int] | None) -> None:
    """Threads of the loops jc, ic, jr and ir for all products of a plan whose threads are as many; None: by sizes.

    For measurements: call it before plans are made, and while nothing runs.  Thin matrices, and products that other
    threads run one by one, take no notice.
    """
    if ways is not None:
        _check_ways(ways, False)
    _gemm.set_ways(ways)


def multiply_mixed(
    a: NDArray,
    b: NDArray,
    out: NDArray,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: NDArray | None = None,
    activation: int = 0,
    slope: float = 0.0,
    workspace: NDArray | None = None,
) -> None:
    """out = act(alpha * a @ b + beta * out + bias) by products of bfloat16 and sums of float32.

    Each of a, b and out is float32 or bfloat16, as ml_dtypes' or as uint16, its bits; rows of out are contiguous.
    bias: (n,) float32; activation: a code of dtconv_activation, slope that of leaky ReLU.  workspace: uint8,
    `mixed_workspace_bytes` of them; made where it is absent.  The caller has checked shapes.
    """
    a, b, out = (x.view(np.uint16) if x.dtype.name == "bfloat16" else x for x in (a, b, out))
    with config.hold_num_threads():
        if workspace is None:
            workspace = _workspace(_mixed.workspace_bytes(*out.shape, a.shape[1]))
        ukr.check(_mixed.gemm(a, b, out, workspace, beta, bias, activation, slope, alpha), "gemm")


def gemm(
    a: NDArray,
    b: NDArray,
    out: NDArray | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    transpose_a: bool = False,
    transpose_b: bool = False,
    ways: tuple[int, int, int, int] | None = None,
    strassen: int = 0,
) -> NDArray:
    """out = alpha * a @ b + beta * out.

    a: (m, k), or (k, m) with transpose_a.  b: (k, n), or (n, k) with transpose_b.  Both float32 or both float64, with
    any strides: views are used as they are, unless they are misaligned.  out: (m, n), written and returned; made
    where it is absent.  Rows or columns of out must be contiguous.  beta = 0 means that out is not read.

    Where a or b is ml_dtypes' bfloat16, the other one and out may each be bfloat16 or float32.  Then products are those
    of bfloat16, to which a float32 operand is rounded, sums are float32, and each result is rounded once.  An out that
    is made is bfloat16 where both are.

    ways: threads of the loops jc, ic, jr and ir, as BLIS has them; their product are the threads.  None: as many
    threads as are set, which divide rows and columns of out by its sizes.  Of an out whose columns are contiguous the
    transposed product is computed, and its loops are meant.  Results are the same bits, but where one matrix is thin:
    without ways that is another method.

    strassen: levels of Strassen's algorithm, 0 to 2.  Each takes 7 products of quarters of a and b instead of 8, with
    larger rounding errors, and is faster where the matrices are large; a value that is not finite reaches results of
    other rows and columns.  Sums of quarters are made while they are packed
    (J. Huang, T. Smith, G. Henry, R. van de Geijn, "Strassen's Algorithm Reloaded", SC 2016).

    Raises TypeError for another dtype, ValueError for shapes that do not fit, an out that is read-only, has no
    contiguous rows or columns, or shares memory with a or b, and for ways that are not four numbers of 1 or more, of
    too many threads, or of bfloat16; for other levels of Strassen's algorithm, and for ways or bfloat16 with them.
    """
    a, b = _operand("a", a, transpose_a), _operand("b", b, transpose_b)
    dtypes = {a.dtype.name, b.dtype.name}
    mixed = "bfloat16" in dtypes
    if len(dtypes) > 1 and dtypes != {"bfloat16", "float32"}:
        raise TypeError(f"gemm: a and b must have the same dtype, got {a.dtype} and {b.dtype}")
    if ways is not None:
        _check_ways(ways, mixed)
    _check_strassen(strassen, ways, mixed)
    (m, k), (k_b, n) = a.shape, b.shape
    if k != k_b:
        raise ValueError(f"gemm: the inner sizes of a and b must agree, got a {(m, k)} and b {(k_b, n)}")
    if out is None:
        if beta != 0:
            raise ValueError(f"gemm: beta = {beta!r} needs an out to read")
        out = np.empty((m, n), b.dtype if a.dtype.name == "bfloat16" else a.dtype)
    else:
        _checked_out(out, (m, n), dtypes)
        if np.shares_memory(out, a) or np.shares_memory(out, b):
            raise ValueError("gemm: out shares memory with a or b")
    if m == 0 or n == 0:
        return out
    if k == 0 or alpha == 0:
        np.multiply(out, out.dtype.type(beta), out=out) if beta != 0 else out.fill(0)
        return out
    c = out
    if c.strides[1] != c.itemsize and n > 1:  # columns are contiguous: out.T = b.T @ a.T
        a, b, c = b.T, a.T, out.T
    apart = c.shape[0] == 1 or c.strides[0] >= c.shape[1] * c.itemsize
    if (c.strides[1] != c.itemsize and c.shape[1] > 1) or not apart or c.strides[0] % c.itemsize:
        raise ValueError(
            f"gemm: rows or columns of out must be contiguous and apart, got strides {out.strides} "
            f"for shape {out.shape}"
        )
    if mixed:
        multiply_mixed(a, b, c, alpha, beta)
        return out
    with config.hold_num_threads():
        space = _workspace(_gemm.workspace_bytes(*c.shape, k, a.dtype.name, ways, strassen))
        ukr.check(_gemm.bind_gemm(a, b, c, alpha, beta, space, ways, strassen)(), "gemm")
    return out
