"""GEMM of bfloat16 operands: each usable micro-kernel on its edge tiles, mixed operands, transposes, the epilogue."""

import numpy as np
import pytest

from pydtconv import config, dtypes, microkernels
from pydtconv._ext import cpu
from pydtconv.gemm import gemm, multiply_mixed
from tests.marks import chosen_freely

ml_dtypes = pytest.importorskip("ml_dtypes")
BFLOAT16 = ml_dtypes.bfloat16
KERNELS = [kernel for kernel in microkernels.available("bfloat16") if kernel.usable]


@pytest.fixture
def kernel():
    """A function that makes a micro-kernel active for the test."""
    yield lambda name: microkernels.select(name, "bfloat16")
    microkernels.select(None, "bfloat16")


def random(shape, seed, dtype=BFLOAT16):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32).astype(BFLOAT16).astype(dtype)


def assert_product(got, a, b, add=0.0, scale=1.0):
    """Within the rounding of a float32 sum, and of one number of bfloat16 where it is one."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    exact, terms = scale * (a @ b) + add, np.abs(scale) * (np.abs(a) @ np.abs(b)) + np.abs(add)
    half = 2**-8 * (1 + 1e-3) if got.dtype == BFLOAT16 else 0.0
    assert np.all(np.abs(got.astype(np.float64) - exact) <= half * np.abs(exact) + 2e-6 * terms)


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_edge_tiles(row, kernel):
    kernel(row.name)
    for m in (1, row.mr - 1, row.mr + 1, 2 * row.mr + 3):
        for n in (1, row.nr - 1, row.nr + 1):
            for k in (1, 33, 64):
                a, b = random((m, k), 1), random((k, n), 2)
                assert_product(gemm(a, b), a, b)
                assert_product(gemm(a, b.astype(np.float32)), a, b)


@pytest.mark.parametrize("types", [(BFLOAT16, np.float32), (np.float32, BFLOAT16), (BFLOAT16, BFLOAT16)], ids=str)
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)], ids=str)
def test_transposes_and_types(types, transposes):
    m, n, k = 45, 70, 83
    a = random((k, m) if transposes[0] else (m, k), 1, types[0])
    b = random((n, k) if transposes[1] else (k, n), 2, types[1])
    left, right = a.T if transposes[0] else a, b.T if transposes[1] else b
    for out in (np.float32, BFLOAT16):
        c = random((m, n), 3, out)
        before = c.astype(np.float64)
        got = gemm(a, b, c, -0.5, 2.0, *transposes)
        assert got is c
        assert_product(got, left, right, 2 * before, -0.5)
    spread = np.zeros((2 * m, 3 * k), types[0])
    spread[::2, ::3] = left
    assert_product(gemm(spread[::2, ::3], right), left, right)
    assert_product(gemm(left, right, np.empty((m, n), np.float32, order="F")), left, right)


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 8192), (30, 70, 9001), (1, 1, 20011), (300, 33, 16399), (2, 1500, 8200)]
)
def test_long_sums(row, kernel, m, n, k):
    """Cut in slices: whatever the layout, the epilogue and the number of threads, which changes no bit."""
    kernel(row.name)
    a, b = random((m, k), 1), random((k, n), 2)
    got = gemm(a, b)
    assert_product(got, a, b)
    for threads in (1, 3):
        config.set_num_threads(threads)
        np.testing.assert_array_equal(gemm(np.ascontiguousarray(a.T), b, transpose_a=True), got)
    c = random((m, n), 3, BFLOAT16)
    before = c.astype(np.float64)
    assert_product(gemm(a, b.astype(np.float32), c, -0.5, 2.0), a, b, 2 * before, -0.5)


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(200, 64, 256), (193, 96, 512), (100, 64, 1024), (70, 64, 300), (65, 32, 549)],
    ids=["in place", "in place, odd rows", "rows in the same sets", "short line", "several pieces"],
)
def test_rows_in_place_and_packed(m, n, k):
    """Whole vectors of results, as float32 and as bfloat16, of rows as they lie and of packed ones."""
    a, b = random((m, k), 1), random((k, n), 2)
    for out in (np.float32, BFLOAT16):
        assert_product(gemm(a, b, np.empty((m, n), out)), a, b)
    wide = np.zeros((m, k + 32), BFLOAT16)
    wide[:, :k] = a
    assert_product(gemm(wide[:, :k], b), a, b)


def test_float32_operands_are_rounded_to_nearest_even():
    a = np.array([[1 + 2**-8, 1 + 3 * 2**-8, np.inf, np.nan]], np.float32)
    got = gemm(a, np.eye(4, dtype=BFLOAT16)[:, :2])
    assert got.dtype == np.float32
    assert np.isnan(got).all()  # infinity and NaN meet zeros
    assert np.array_equal(gemm(a[:, :2], np.eye(2, dtype=BFLOAT16)), [[1, 1 + 2**-6]])
    assert np.isinf(gemm(a[:, 2:3], np.ones((1, 1), BFLOAT16)))


def test_epilogue():
    a, b, bias = random((50, 40), 1), random((40, 45), 2), random((45,), 3, np.float32)
    out = np.empty((50, 45), np.uint16)
    multiply_mixed(a, b, out, bias=bias, activation=1)
    exact = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
    np.testing.assert_allclose(dtypes.from_bits(out), exact, rtol=2**-8, atol=1e-5)


def test_results_do_not_depend_on_threads():
    a, b = random((300, 700), 1), random((700, 130), 2)
    before, results = config.num_threads(), []
    try:
        for threads in (1, 2, 5):
            config.set_num_threads(threads)
            results.append(gemm(a, b))
    finally:
        config.set_num_threads(before)
    assert all(np.array_equal(results[0], other) for other in results[1:])


@chosen_freely
def test_kernels_need_their_features_and_the_best_is_taken(kernel):
    names = [row.name for row in microkernels.available("bfloat16")]
    if "amx_bf16" in names:
        assert names[0] == "amx_bf16"
        assert ("amx_bf16" in [row.name for row in KERNELS]) == ("amx_bf16" in cpu.features())
    assert microkernels.selected("bfloat16").name == KERNELS[0].name
    kernel("portable")
    assert microkernels.selected("bfloat16").name == "portable_4x16"


def test_bad_input():
    a, b = random((2, 3), 1), random((3, 2), 2)
    with pytest.raises(TypeError, match="same dtype, got bfloat16 and float64"):
        gemm(a, b.astype(np.float64))
    with pytest.raises(TypeError, match="out must be bfloat16 or float32 as a and b are, got float64"):
        gemm(a, b, np.empty((2, 2)))


@pytest.mark.parametrize("shape", [(8, 1030, 300), (16, 300, 1030), (1, 5, 60000), (3, 20000, 40)], ids=str)
def test_few_rows_meet_weights_that_are_not_rounded(shape):
    m, n, k = shape
    weights = np.random.default_rng(3).standard_normal((k, n), np.float32)
    for transposed in (False, True):
        a, b = random((m, k), 1), np.asfortranarray(weights) if transposed else weights
        assert_product(gemm(a, b, np.empty((m, n), np.float32)), a, b)
        half = random((m, n), 2)
        before = half.astype(np.float64)
        assert_product(gemm(a, b, half, -0.5, 2.0), a, b, 2 * before, -0.5)


def test_gradient_of_large_weights_from_few_rows():
    x, dy = random((7, 300), 1), random((7, 1030), 2)
    for rows in (x, x.astype(np.float32)):
        before = random((300, 1030), 3, np.float32)
        dw = before.copy()
        assert_product(gemm(rows, dy, dw, 1.0, 1.0, True), x.T, dy, before)
