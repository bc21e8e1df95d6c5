"""Functions of `tf.linalg`: those of matrices alone are here, others are tf's own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.named import as_named


def band_part(input: Any, num_lower: int, num_upper: int, name: str | None = None) -> Any:
    """Matrices with zeros beyond so many diagonals below and above the main one; all of them where that is negative."""
    rows, columns = (np.arange(n) for n in input.shape[-2:])
    below, above = rows[:, None] - columns, columns - rows[:, None]
    kept = ((num_lower < 0) | (below <= num_lower)) & ((num_upper < 0) | (above <= num_upper))
    return ops.where(kept, input, ops.zeros_like(input))


def _one_diagonal(function: str, k: Any, padding_value: Any = 0) -> int:
    """The number of a diagonal.  Raises NotImplementedError where several are meant, or another value around them."""
    if np.ndim(k) or padding_value != 0:
        raise NotImplementedError(f"tf.linalg.{function}: expected one diagonal k, padding_value=0, got k={k!r}")
    return int(k)


def diag(
    diagonal: Any,
    name: str | None = None,
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Any:
    """Matrices with these diagonals, the k-th above the main one, and zeros beside."""
    offset, x = _one_diagonal("diag", k, padding_value), array(diagonal)
    if num_rows != -1 or num_cols != -1:
        raise NotImplementedError(f"tf.linalg.diag: expected square matrices, got {num_rows} x {num_cols}: use tf.pad")
    square = ops.where(np.eye(x.shape[-1], dtype=bool), ops.expand_dims(x, -1), ops.zeros_like(ops.expand_dims(x, -1)))
    sides = (abs(offset), 0) if offset < 0 else (0, offset), (offset, 0) if offset > 0 else (0, -offset)
    return ops.pad(square, (*((0, 0),) * (len(x.shape) - 1), *sides)) if offset else square


def diag_part(
    input: Any, name: str | None = None, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """The k-th diagonals above the main ones."""
    return ops.diagonal(input, _one_diagonal("diag_part", k, padding_value), -2, -1)


def set_diag(input: Any, diagonal: Any, name: str | None = None, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """Matrices with another k-th diagonal above the main one."""
    offset = _one_diagonal("set_diag", k)
    rows, columns = (np.arange(n, dtype="int32") for n in input.shape[-2:])
    x = array(diagonal)
    places = np.clip(np.minimum(rows[:, None], columns) if not offset else rows[:, None] + min(offset, 0), 0, None)
    wide = ops.take(x, np.minimum(np.broadcast_to(places, input.shape[-2:]), x.shape[-1] - 1), axis=-1)
    return ops.where(columns - rows[:, None] == offset, wide, input)


def matrix_transpose(a: Any, name: str | None = None, conjugate: bool = False) -> Any:
    return ops.swapaxes(a, -1, -2)


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    matrix = ops.swapaxes(a, -1, -2) if transpose_a or adjoint_a else a
    return ops.squeeze(ops.matmul(matrix, ops.expand_dims(b, -1)), -1)


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None) -> Any:
    """The norm of all elements, of those along an axis, or of matrices along two axes."""
    x, keeps = array(tensor), bool(keepdims)
    axes = axis if axis is None or isinstance(axis, (int, np.integer)) else tuple(int(i) for i in axis)
    if isinstance(axes, tuple) and len(axes) == 1:
        axes = axes[0]
    if ord in ("euclidean", "fro") or (ord == 2 and not isinstance(axes, tuple)):
        return ops.sqrt(ops.sum(ops.square(x), axis=axes, keepdims=keeps))
    if isinstance(axes, tuple):
        if ord not in (1, 2, np.inf):
            raise ValueError(f"tf.norm: ord: expected 'euclidean', 'fro', 1, 2 or infinity of matrices, got {ord!r}")
        found = ops.norm(x, ord, axes)
        return ops.expand_dims(found, sorted(i % len(x.shape) for i in axes)) if keeps else found
    if isinstance(ord, str) or ord <= 0:
        raise ValueError(f"tf.norm: ord: expected 'euclidean' or a number above 0, got {ord!r}")
    if ord == np.inf:
        return ops.max(ops.abs(x), axis=axes, keepdims=keeps)
    return ops.sum(ops.abs(x) ** float(ord), axis=axes, keepdims=keeps) ** (1.0 / float(ord))


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """The tensor over its norm, and the norm."""
    length = norm(tensor, ord, axis, keepdims=True)
    return array(tensor) / length, length


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values s, and u and v of tensor = u diag(s) v^T; s alone where compute_uv is False."""
    if not compute_uv:
        return ops.svd(tensor, full_matrices, False)
    u, s, vt = ops.svd(tensor, full_matrices)
    return s, u, ops.swapaxes(vt, -1, -2)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    return ops.qr(input, "complete" if full_matrices else "reduced")


def _adjoint_of(matrix: Any, adjoint: bool) -> Any:
    return ops.swapaxes(matrix, -1, -2) if adjoint else matrix


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Any:
    return ops.inv(_adjoint_of(input, adjoint))


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    return ops.solve(_adjoint_of(matrix, adjoint), rhs)


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None) -> Any:
    x = band_part(array(matrix), -1, 0) if lower else band_part(array(matrix), 0, -1)
    return ops.solve_triangular(_adjoint_of(x, adjoint), rhs, lower != adjoint)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """x of a x = rhs, of the Cholesky factor of a."""
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None) -> Any:
    """x of the least (a x - rhs)^2 + l2_regularizer x^2; of several, the shortest one."""
    a, b = array(matrix), array(rhs)
    if not l2_regularizer:
        return ops.matmul(ops.pinv(a), b)
    turned = ops.swapaxes(a, -1, -2)
    penalty = np.eye(a.shape[-1], dtype="float32") * float(l2_regularizer)
    return ops.solve(ops.matmul(turned, a) + penalty, ops.matmul(turned, b))


def logdet(matrix: Any, name: str | None = None) -> Any:
    """The logarithm of the determinant of positive definite matrices."""
    return 2.0 * ops.sum(ops.log(ops.diagonal(ops.cholesky(array(matrix)), 0, -2, -1)), axis=-1)


def _of_matrices(function: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    """A function of arrays alone, computed in float64."""

    def of(tensor: Any = None, name: str | None = None, input: Any = None) -> Any:
        x = array(tensor if input is None else input)
        found = function(np.asarray(x, "complex128" if np.iscomplexobj(x) else "float64"))
        if isinstance(found, tuple):
            return tuple(array(each) for each in found)
        return array(found, None if np.iscomplexobj(found) else str(x.dtype))

    return of


def _expm(x: np.ndarray) -> np.ndarray:
    """By scaling and squaring of Taylor's series."""
    times = max(0, math.ceil(math.log2(max(float(np.abs(x).sum(-1).max(initial=0)), 1e-300))) + 4)
    small = x / 2.0**times
    term = found = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    for i in range(1, 16):
        term = term @ small / i
        found = found + term
    for _ in range(times):
        found = found @ found
    return found


def _of_eigenvalues(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eig(x)
    found = vectors * function(values.astype("complex128"))[..., None, :] @ np.linalg.inv(vectors)
    return found if np.iscomplexobj(x) else found.real


def _complex(function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    """The results as complex numbers of 64 bits, as tensorflow gives them."""

    def of(x: np.ndarray) -> Any:
        found = function(x)
        several = isinstance(found, tuple)
        parts = tuple(np.asarray(each).astype("complex64") for each in (found if several else (found,)))
        return parts if several else parts[0]

    return of


def tensor_diag(diagonal: Any, name: str | None = None) -> Any:
    """A tensor of twice the axes, with these elements where both halves of the places are equal."""
    x = array(diagonal)
    flat = diag(ops.reshape(x, (-1,)))
    return ops.reshape(flat, (*x.shape, *x.shape))


def tensor_diag_part(input: Any, name: str | None = None) -> Any:
    """The elements where both halves of the places are equal."""
    x = array(input)
    half = x.shape[: len(x.shape) // 2]
    return ops.reshape(ops.diagonal(ops.reshape(x, (math.prod(half), -1))), tuple(half))


def of_matrices() -> dict[str, Any]:
    """The names of `tf.linalg` that tensorflow itself does not have."""
    same = ("cholesky", "det", "trace", "cross", "eigh", "slogdet", "pinv", "matrix_rank")
    own = (
        band_part, diag, diag_part, set_diag, matrix_transpose, matvec, normalize, svd, qr, inv, solve,
        triangular_solve, cholesky_solve, lstsq, logdet, tensor_diag, tensor_diag_part,
    )  # fmt: skip
    return {
        **{name: as_named(name, getattr(ops, name)) for name in same},
        **{each.__name__: each for each in own},
        "adjoint": lambda matrix, name=None: matrix_transpose(matrix),
        "eigvalsh": lambda tensor, name=None: ops.eigh(tensor)[0],
        "expm": _of_matrices(_expm),
        "logm": _of_matrices(functools.partial(_of_eigenvalues, np.log)),
        "sqrtm": _SQUARE_ROOT,
    }


_SQUARE_ROOT = _of_matrices(functools.partial(_of_eigenvalues, np.sqrt))


def of_tf() -> dict[str, Any]:
    """What tensorflow itself has of it."""
    return {
        "eig": _of_matrices(_complex(lambda x: tuple(np.linalg.eig(x)))),
        "eigvals": _of_matrices(_complex(np.linalg.eigvals)),
        "matrix_square_root": _SQUARE_ROOT,
        "norm": norm,
    }
