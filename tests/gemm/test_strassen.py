"""Strassen's algorithm against float64 NumPy: edges, transposes, scales, blocks of each loop, threads, workspace."""

import numpy as np
import pytest

from pydtconv._ext import gemm as binding
from pydtconv.gemm import gemm
from tests.gemm.test_gemm import KERNELS, random

#: times the largest sum of products' sizes; a level makes errors about twice as large (docs/how/algorithms.md)
TOLERANCE = {"float32": 1e-6, "float64": 2e-15}
LEVELS = (1, 2)


def error(got, a, b, add=0.0):
    """Largest error in units of the largest sum of products' sizes: elements are sums of others, too."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = (np.abs(a) @ np.abs(b)).max() + np.abs(add).max()
    return np.abs(got - (a @ b + add)).max() / scale


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: f"{row.name}-{row.dtype}")
def test_edge_tiles(row, kernel, threads):
    """Parts that are whole tiles, one more and one less; parts that are empty; one element."""
    kernel(row.name, row.dtype)
    threads(2)
    for m in (1, 2 * row.mr - 1, 2 * row.mr, 4 * row.mr + 1):
        for n in (1, 2 * row.nr, 2 * row.nr + 1, 4 * row.nr - 1):
            for k in (1, 7, 130):
                a, b = random((m, k), row.dtype, 1), random((k, n), row.dtype, 2)
                for left, right in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
                    for levels in LEVELS:
                        got = gemm(left, right, strassen=levels)
                        assert error(got, a, b) < TOLERANCE[row.dtype], (m, n, k, levels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_transposes_scales_orders(dtype, levels, order):
    """Rows of a wider out: what lies beside it stays; with beta 0 it is not read."""
    m, n, k = 75, 131, 59
    for alpha, beta in ((1, 0), (1, 1), (-0.5, 0), (0.25, -2)):
        for transposed in (0, 1, 2, 3):
            a = random((k, m) if transposed & 1 else (m, k), dtype)
            b = random((n, k) if transposed & 2 else (k, n), dtype)
            wide = np.full((m + 2, n + 2), np.nan, dtype, order)
            c = wide[:m, 2:] if order == "C" else wide[2:, :n]
            start = random((m, n), dtype, 3) if beta else 0
            if beta:
                c[...] = start
            got = gemm(a, b, c, alpha, beta, bool(transposed & 1), bool(transposed & 2), strassen=levels)
            assert got is c
            left, right = alpha * (a.T if transposed & 1 else a), b.T if transposed & 2 else b
            assert error(c, left, right, beta * np.float64(start)) < TOLERANCE[dtype]
            assert np.isnan(wide).sum() == wide.size - c.size


def test_views_are_used_as_they_are():
    a, b = random((200, 150))[::2, ::-1], random((300, 90))[::-2, ::3]
    assert error(gemm(a, b, strassen=1), a, b) < TOLERANCE["float32"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_several_blocks_of_each_loop(dtype, threads):
    """Columns, depth and rows beyond those that are packed at a time, and the same bits on any number of threads."""
    for m, n, k in ((700, 300, 1100), (40, 2200, 3000)):
        a, b, c = random((m, k), dtype, 1), random((k, n), dtype, 2), random((m, n), dtype, 3)
        for levels in LEVELS:
            results = []
            for count in (1, 2, 3, 7):
                threads(count)
                results.append(gemm(a, b, c.copy(), 1, -0.5, strassen=levels).tobytes())
            assert len(set(results)) == 1
            got = np.frombuffer(results[0], dtype).reshape(m, n)
            assert error(got, a, b, -0.5 * np.float64(c)) < TOLERANCE[dtype]


def test_errors_grow_by_less_than_three_a_level(threads):
    """The bound of the paper: 12 times the classic product's a level; random numbers make it about twice."""
    threads(2)
    a, b = random((640, 640), seed=1), random((640, 640), seed=2)
    want = a.astype(np.float64) @ b.astype(np.float64)
    errors = [np.linalg.norm(gemm(a, b, strassen=levels) - want) for levels in (0, *LEVELS)]
    assert errors[0] < errors[1] < 3 * errors[0]
    assert errors[1] < errors[2] < 9 * errors[0]


def test_workspace_is_bounded_and_that_of_smaller_problems(threads):
    threads(2)
    rng = np.random.default_rng(4)
    for _ in range(500):
        sizes = np.exp(rng.uniform(0, np.log(20000), 3)).astype(int) + 1
        smaller = np.maximum(sizes * rng.uniform(0.3, 1, 3), 1).astype(int)
        dtype, levels = ("float32", "float64")[rng.integers(2)], int(rng.integers(1, 3))
        need, least = (binding.workspace_bytes(*each, dtype, strassen=levels) for each in (sizes, smaller))
        assert least <= need <= 40 << 20, (sizes, smaller)
    a, b, c = random((99, 88)), random((88, 77)), np.zeros((99, 77), np.float32)
    nbytes = binding.workspace_bytes(99, 77, 88, "float32", strassen=1)
    memory = np.full(nbytes + 4096, 0xA5, np.uint8)
    assert binding.bind_gemm(a, b, c, 1.0, 0.0, memory[: nbytes - 64], strassen=1)() == 2
    assert (c == 0).all()
    assert binding.bind_gemm(a, b, c, 1.0, 0.0, memory[:nbytes], strassen=1)() == 0
    assert error(c, a, b) < TOLERANCE["float32"]
    assert (memory[nbytes:] == 0xA5).all()


@pytest.mark.parametrize("levels", [3, -1, 1.0, True, "1", None])
def test_other_levels_are_refused(levels):
    with pytest.raises(ValueError, match="strassen must be 0, 1 or 2 levels, got"):
        gemm(random((4, 4)), random((4, 4)), strassen=levels)


def test_ways_and_bfloat16_with_it_are_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = random((4, 4))
    with pytest.raises(ValueError, match=r"float32 and float64 without ways, got ways \(1, 1, 1, 1\)"):
        gemm(a, a, strassen=1, ways=(1, 1, 1, 1))
    with pytest.raises(ValueError, match="float32 and float64 without ways, got bfloat16"):
        gemm(a.astype(ml_dtypes.bfloat16), a, strassen=1)
