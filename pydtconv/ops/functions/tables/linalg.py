"""Linear algebra and transforms by NumPy.  Those without a gradient here raise where one is wanted."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import Backward, Rule, no_gradient

Shape = tuple[int, ...]


def _matrix(extents: Shape) -> Shape:
    if len(extents) < 2:
        raise ValueError(f"expected matrices, got shape {extents}")
    return extents


def _square(extents: Shape, *more: Shape, **static: Any) -> Shape:
    if len(extents) < 2 or extents[-1] != extents[-2]:
        raise ValueError(f"expected square matrices, got shape {extents}")
    return extents


def _t(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def _solved(a: Shape, b: Shape, **static: Any) -> Shape:
    extent = _square(a)[-1]
    if not b or extent != b[-1 if len(b) == len(a) - 1 else -2]:
        raise ValueError(f"expected {extent} rows of b, got shape {b}")
    return b


def _correlated(a: Shape, b: Shape, mode: str) -> Shape:
    if len(a) != 1 or len(b) != 1 or mode not in ("valid", "same", "full"):
        raise ValueError(f"expected two vectors and mode 'valid', 'same' or 'full', got {mode!r}")
    short, long = sorted((*a, *b))
    return ({"valid": long - short + 1, "same": long, "full": long + short - 1}[mode],)


def _cholesky(x: np.ndarray, upper: bool) -> np.ndarray:
    lower = np.linalg.cholesky(x)
    return _t(lower) if upper else lower


def _cholesky_inverse(x: np.ndarray, upper: bool) -> np.ndarray:
    lower = _t(np.triu(x)) if upper else np.tril(x)
    return np.linalg.inv(np.matmul(lower, _t(lower)))


def _solve_triangular(a: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    triangle = np.tril(a) if lower else np.triu(a)
    return _solve(triangle, b)


def _solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == a.ndim - 1 else np.linalg.solve(a, b)


def _solve_gradient(g: Backward) -> Any:
    a, b = g.x
    db = _solve(_t(a), g.dy[0])
    y = g.y[0]
    if b.ndim == a.ndim - 1:
        return -db[..., :, None] * y[..., None, :], db
    return -np.matmul(db, _t(y)), db


def _slogdet(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign, logarithm = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(logarithm)


def _slogdet_gradient(b: Backward) -> Any:
    if b.dy[1] is None:
        return (np.zeros(b.shapes[0]),)
    return (b.dy[1][..., None, None] * _t(np.linalg.inv(b.x[0])),)


def _logdet_gradient(b: Backward) -> Any:
    return (b.dy[0][..., None, None] * _t(np.linalg.inv(b.x[0])),)


def _det_gradient(b: Backward) -> Any:
    return ((b.dy[0] * b.y[0])[..., None, None] * _t(np.linalg.inv(b.x[0])),)


def _inv_gradient(b: Backward) -> Any:
    y = _t(b.y[0])
    return (-np.matmul(np.matmul(y, b.dy[0]), y),)


def _svd_shape(extents: Shape, full_matrices: bool, compute_uv: bool) -> Any:
    *batch, m, n = _matrix(extents)
    k = min(m, n)
    if not compute_uv:
        return (*batch, k)
    return [(*batch, m, m if full_matrices else k), (*batch, k), (*batch, n if full_matrices else k, n)]


def _qr(x: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    _qr_shape(x.shape, mode)
    q, r = np.linalg.qr(x, mode)  # type: ignore[call-overload]
    return q, r


def _qr_shape(extents: Shape, mode: str) -> list[Shape]:
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode: expected 'reduced' or 'complete', got {mode!r}")
    *batch, m, n = _matrix(extents)
    k = m if mode == "complete" else min(m, n)
    return [(*batch, m, k), (*batch, k, n)]


def _lu_factor(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row by row with pivots, as LAPACK's getrf: L and U in one matrix, and the row exchanged with each."""
    lu = x.astype("float64")
    m, n = lu.shape[-2:]
    pivots = np.zeros((*lu.shape[:-2], min(m, n)), "int32")
    for place in np.ndindex(*lu.shape[:-2]):
        a = lu[place]
        for i in range(min(m, n)):
            p = i + int(np.argmax(np.abs(a[i:, i])))
            pivots[(*place, i)] = p
            a[[i, p]] = a[[p, i]]
            if a[i, i] != 0:
                a[i + 1 :, i] /= a[i, i]
                a[i + 1 :, i + 1 :] -= a[i + 1 :, i, None] * a[i, None, i + 1 :]
    return lu, pivots


ROWS: list[Row] = [
    ("cholesky(x, upper=False)", "The triangular factor of positive matrices.", Rule(_cholesky, None, _square)),
    (
        "cholesky_inverse(x, upper=False)",
        "The inverse of the matrix whose Cholesky factor is x.",
        Rule(_cholesky_inverse, None, _square),
    ),
    (
        "det(x)",
        "Determinants.",
        Rule(np.linalg.det, _det_gradient, lambda extents: _square(extents)[:-2], reads_y=True),
    ),
    ("inv(x)", "Inverses.", Rule(np.linalg.inv, _inv_gradient, _square, reads_x=False, reads_y=True)),
    (
        "slogdet(x)",
        "Sign and logarithm of determinants.",
        Rule(_slogdet, _slogdet_gradient, lambda extents: [_square(extents)[:-2]] * 2),
    ),
    (
        "logdet(x)",
        "The logarithm of determinants of positive matrices.",
        Rule(lambda x: np.linalg.slogdet(x)[1], _logdet_gradient, lambda extents: _square(extents)[:-2]),
    ),
    (
        "eig(x)",
        "Eigenvalues and eigenvectors.",
        Rule(np.linalg.eig, None, lambda extents: [_square(extents)[:-1], extents], "complex64"),
    ),
    (
        "eigh(x)",
        "Eigenvalues and eigenvectors of symmetric matrices.",
        Rule(np.linalg.eigh, None, lambda e: [_square(e)[:-1], e]),
    ),
    ("qr(x, mode='reduced')", "Orthogonal and triangular factors.", Rule(_qr, None, _qr_shape)),
    (
        "svd(x, full_matrices=True, compute_uv=True)",
        "Singular values, with their vectors where compute_uv.",
        Rule(np.linalg.svd, None, _svd_shape),
    ),
    (
        "lu_factor(x)",
        "Triangular factors in one matrix, and the exchanged rows.",
        Rule(_lu_factor, None, lambda e: [e, (*e[:-2], min(e[-2:]))], ("float", "int32")),
    ),
    (
        "solve(a, b)",
        "x of a x = b.",
        Rule(_solve, _solve_gradient, _solved, "floats", reads_y=True),
    ),
    (
        "solve_triangular(a, b, lower=False)",
        "x of a x = b for a triangular a.",
        Rule(_solve_triangular, None, _solved, "floats"),
    ),
    (
        "lstsq(a, b, rcond=None)",
        "x of the smallest |a x - b|.",
        Rule(
            lambda a, b, rcond: np.linalg.lstsq(a, b, rcond=rcond)[0],
            None,
            lambda a, b, rcond: (a[-1], *b[1:]),
            "floats",
        ),
    ),
    (
        "pinv(x, rcond=None)",
        "Pseudoinverses.",
        Rule(
            lambda x, rcond: np.linalg.pinv(x) if rcond is None else np.linalg.pinv(x, rcond),
            None,
            lambda extents, rcond: (*_matrix(extents)[:-2], extents[-1], extents[-2]),
        ),
    ),
    (
        "matrix_rank(x, tol=None)",
        "Ranks of matrices.",
        Rule(
            lambda x, tol: np.linalg.matrix_rank(x, tol),
            no_gradient,
            lambda extents, tol: _matrix(extents)[:-2],
            "int32",
        ),
    ),
    (
        "corrcoef(x)",
        "Correlation coefficients of the rows of x.",
        Rule(np.corrcoef, None, lambda extents: (extents[0], extents[0]) if len(extents) > 1 else (), "wide float"),
    ),
    (
        "correlate(x1, x2, mode='valid')",
        "The correlation of two vectors.",
        Rule(
            lambda a, b, mode: np.correlate(a * np.float32(1), b * np.float32(1), mode),
            None,
            _correlated,
            "floats",
        ),
    ),
]

_TENSORS = dict.fromkeys(("solve", "solve_triangular", "lstsq", "correlate"), 2)
_FUNCTIONS = functions_of(__name__, ROWS, _TENSORS)
globals().update(_FUNCTIONS)
__all__ = exported(
    _FUNCTIONS,
    linalg="""
        cholesky cholesky_inverse det inv eig eigh qr svd lu_factor solve solve_triangular lstsq pinv
        matrix_rank
    """,
    math="logdet",
)
