"""GEMM against float64 NumPy: every usable micro-kernel on its edge tiles, strides, beta, epilogue, threads."""

import numpy as np
import pytest

from pydtconv import conv, microkernels
from pydtconv.gemm import gemm, set_ways
from tests.marks import slow

from . import clib

KERNELS = [kernel for dtype in ("float32", "float64") for kernel in microkernels.available(dtype) if kernel.usable]
TOLERANCE = {"float32": 2e-6, "float64": 4e-15}


def random(shape, dtype="float32", seed=0):
    return (np.random.default_rng([seed, *shape]).random(shape) - 0.5).astype(dtype)


def error(got, a, b, add=0.0):
    """Largest error in units of the sum of the terms' sizes."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = np.abs(a) @ np.abs(b) + np.abs(add) + 1e-30
    return np.max(np.abs(got - (a @ b + add)) / scale)


@pytest.mark.parametrize(
    "row",
    [slow(row) if row.name.startswith("blis") and "haswell" not in row.name else row for row in KERNELS],
    ids=lambda row: f"{row.name}-{row.dtype}",
)
def test_edge_tiles(row, kernel, threads):
    kernel(row.name, row.dtype)
    threads(2)
    for m in (1, row.mr - 1, row.mr, row.mr + 1, 3 * row.mr + 2):
        for n in (1, row.nr - 1, row.nr, row.nr + 1, 2 * row.nr + 3):
            for k in (1, 7, row.kc + 1):
                if m == 0 or n == 0:
                    continue
                a, b = random((m, k), row.dtype, 1), random((k, n), row.dtype, 2)
                for left in (a, np.asfortranarray(a)):
                    assert error(gemm(left, b), a, b) < TOLERANCE[row.dtype], (m, n, k)


@pytest.mark.parametrize(
    "row",
    [row if row == microkernels.selected(row.dtype) else slow(row) for row in KERNELS],
    ids=lambda row: f"{row.name}-{row.dtype}",
)
def test_several_blocks_of_each_loop(row, kernel, threads):
    kernel(row.name, row.dtype)
    threads(2)
    m, n, k = row.mc + row.mr + 1, row.nc + row.nr + 1, 2 * row.kc + 1
    a, b = random((m, 3000), row.dtype)[:, :k], random((3000, n), row.dtype)[:k]
    assert error(gemm(a, b), a, b) < TOLERANCE[row.dtype]
    a, b = random((33, 9001), row.dtype), random((9001, 200), row.dtype)
    assert error(gemm(a, b), a, b) < TOLERANCE[row.dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("out_order", ["C", "F"])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (1, 1), (-0.5, 0), (0.25, -2), (0, 0.5), (0, 0)])
def test_transposes_scales_orders(dtype, out_order, transpose_a, transpose_b, alpha, beta):
    m, n, k = 37, 45, 29
    a = random((k, m) if transpose_a else (m, k), dtype)
    b = random((n, k) if transpose_b else (k, n), dtype)
    c = np.array(random((m, n), dtype), order=out_order)
    left, right = a.T if transpose_a else a, b.T if transpose_b else b
    want = alpha * (left.astype(np.float64) @ right) + beta * c.astype(np.float64)
    got = gemm(a, b, c, alpha, beta, transpose_a, transpose_b)
    assert got is c
    np.testing.assert_allclose(got, want, rtol=0, atol=30 * TOLERANCE[dtype])


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2, ::3],
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: x.T,
        lambda x: x[3:, 5:],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: x[:, :1],
    ],
    ids=str.split("steps up left T slice rows column"),
)
def test_views_are_used_as_they_are(view):
    a = view(random((60, 62)))
    b = view(random((62, 64)))
    k = min(a.shape[1], b.shape[0])
    a, b = a[:, :k], b[:k]
    assert error(gemm(a, b), a, b) < TOLERANCE["float32"]


def test_columns_of_a_wider_out():
    wide = np.full((20, 50), 7.0, np.float32)
    a, b = random((20, 11)), random((11, 13))
    gemm(a, b, wide[:, 5:18])
    assert error(wide[:, 5:18], a, b) < TOLERANCE["float32"]
    assert (wide[:, :5] == 7).all()
    assert (wide[:, 18:] == 7).all()


def test_beta_0_does_not_read_out():
    c = np.full((15, 33), np.nan, np.float32)
    assert np.isfinite(gemm(random((15, 3)), random((3, 33)), c)).all()
    assert np.isfinite(gemm(random((15, 0)), random((0, 33)), np.full_like(c, np.nan))).all()


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)], ids=str)
def test_empty(shape):
    m, n, k = shape
    c = random((m, n))
    want = 2 * c
    np.testing.assert_array_equal(gemm(random((m, k)), random((k, n)), c, beta=2), want)


THIN = [
    *[(m, 1031, 517, False) for m in (1, 2, 3, 7, 8, 9, 13, 16, 17)],  # few rows, with rests of columns and depth
    *[(m, 1031, 517, True) for m in (1, 2, 3, 7, 8, 9, 13, 16, 17)],
    (16, 40, 8200, True),  # A does not fit in L2
    (31, 500, 200, True),  # columns of A are vectors, sums are turned
    *[(m, 1031, 257, True) for m in (48, 61, 64, 128, 129)],
    (3, 20000, 30, False),
    *[(1031, 1100, k, False) for k in (1, 2, 7, 16, 17)],  # small depth
    (1031, 1100, 7, True),
]
QUICK = [
    (3, 1031, 517, False),
    (31, 500, 200, True),
    (8, 1031, 517, False),
    (13, 1031, 517, True),
    (1031, 1100, 7, True),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k", "transpose_b"), [case if case in QUICK else slow(*case) for case in THIN])
def test_large_matrices_with_thin_ones(m, n, k, transpose_b, dtype, threads):
    a = random((m, k), dtype)
    b = random((n, k), dtype) if transpose_b else random((k, n + 3), dtype)[:, :n]
    right = b.T if transpose_b else b
    for left in (a, np.asfortranarray(a), random((m, k + 5), dtype)[:, :k]):
        results = []
        for count in (1, 2, 3):
            threads(count)
            wide = np.full((m, n + 2), np.nan, dtype)
            results.append(gemm(left, b, wide[:, :n], transpose_b=transpose_b))
            assert np.isnan(wide[:, n:]).all()
        assert error(results[0], left, right) < 3 * TOLERANCE[dtype]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])
    c = random((m, n), dtype)
    want = 0.5 * (a.astype(np.float64) @ right) - 2.0 * c
    got = gemm(a, b, c.copy(), 0.5, -2.0, transpose_b=transpose_b)
    np.testing.assert_allclose(got, want, rtol=0, atol=k * TOLERANCE[dtype])


@pytest.mark.parametrize("shape", [(700, 65, 600), (20, 1200, 300), (64, 64, 5000), (5, 3, 999), (1, 999, 77)], ids=str)
def test_same_bits_on_any_number_of_threads(shape, threads):
    m, n, k = shape
    a, b = random((m, k)), random((k, n))
    results = []
    for count in (1, 2, 3, 4, 7):
        threads(count)
        results.append(gemm(a, b))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("in_place", [False, True], ids=["packed", "in_place"])
@pytest.mark.parametrize("shape", [(300, 70, 40), (14, 2000, 900), (1000, 33, 2500), (9, 5, 0)], ids=str)
def test_epilogue_sees_every_block_once_when_finished(dtype, in_place, shape, threads):
    m, n, k = shape
    a, b, wide = random((m, k), dtype), random((k, n), dtype), random((m, n + 3), dtype)
    c, before = wide[:, :n], wide.copy()
    seen = np.zeros((m, n), int)

    def add_one(i, rows, j, columns, block):
        seen[i : i + rows, j : j + columns] += 1
        block += 1

    threads(2)
    assert clib.gemm(a, b, c, beta=1, epilogue=add_one, in_place=in_place) == 0
    assert (seen == 1).all()
    assert error(c, a, b, before[:, :n].astype(np.float64) + 1) < TOLERANCE[dtype]
    np.testing.assert_array_equal(wide[:, n:], before[:, n:])


def test_status_of_the_c_function():
    a, b, c = random((20, 10)), random((10, 30)), np.zeros((20, 30), np.float32)
    assert clib.gemm(a, b, c, workspace=100) == 2
    assert (c == 0).all()
    narrow = np.lib.stride_tricks.as_strided(c, (20, 30), (4 * 29, 4))
    assert clib.gemm(a, b, narrow) == 3


def test_workspace_is_bounded():
    from pydtconv._ext import gemm as binding

    assert binding.workspace_bytes(1 << 22, 1 << 14, 1 << 16, "float32") < 16 << 20
    assert binding.workspace_bytes(100, 64, 576, "float32") == binding.workspace_bytes(100, 64, 576, "float32")
    assert binding.workspace_bytes(1 << 20, 64, 576, "float32") <= binding.workspace_bytes(1 << 22, 64, 576, "float32")


def test_smaller_problems_need_no_more_workspace():
    from pydtconv._ext import gemm as binding

    rng = np.random.default_rng(4)
    for _ in range(2000):
        sizes = np.exp(rng.uniform(0, np.log(20000), 3)).astype(int) + 1
        smaller = np.maximum(sizes * rng.uniform(0.3, 1, 3), 1).astype(int)
        dtype = ("float32", "float64")[rng.integers(2)]
        assert binding.workspace_bytes(*smaller, dtype) <= binding.workspace_bytes(*sizes, dtype), (sizes, smaller)


@pytest.mark.parametrize("l2", [256 << 10, 512 << 10, 1 << 20])
def test_fewer_rows_need_no_more_workspace_than_many(l2):
    from pydtconv._ext import gemm as binding
    from pydtconv._ext import runtime

    before = runtime.cache_bytes(2)
    runtime.set_cache_bytes(2, l2)
    try:
        for n, k in [(1, 4096), (8, 4096), (8, 4082), (31, 8192), (40, 8192)]:
            for dtype in ("float32", "float64"):
                few, many = (binding.workspace_bytes(m, n, k, dtype) for m in (16, 4096))
                assert few <= many, (n, k, dtype)
                assert binding.workspace_bytes(16, n, k, dtype) <= binding.workspace_bytes(16, n, k + 15, dtype)
    finally:
        runtime.set_cache_bytes(2, before)


A, B = random((4, 5)), random((5, 6))


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((A.tolist(), B), TypeError, "a must be a NumPy array, got list"),
        ((A.astype(np.int32), B), TypeError, "a must be float32, float64 or bfloat16, got int32"),
        ((A, B.astype(np.float64)), TypeError, "same dtype, got float32 and float64"),
        ((A, B[0]), ValueError, r"b must have two dimensions, got shape \(6,\)"),
        ((A, A), ValueError, r"inner sizes .* got a \(4, 5\) and b \(4, 5\)"),
        ((A, B, np.zeros((4, 5), np.float32)), ValueError, r"out must have shape \(4, 6\), got \(4, 5\)"),
        ((A, B, np.zeros((4, 6))), TypeError, "out must be float32 as a and b are, got float64"),
        ((A, B, [1]), TypeError, "out must be a NumPy array, got list"),
        ((A, B, None, 1, 1), ValueError, "beta = 1 needs an out"),
        ((A, B, np.zeros((8, 12), np.float32)[::2, ::2]), ValueError, "rows or columns of out must be contiguous"),
        ((A, B, np.zeros((4, 6), np.float32)[::-1]), ValueError, "out must"),
    ],
)
def test_errors_name_argument_and_expectation(arguments, kind, message):
    with pytest.raises(kind, match=message):
        gemm(*arguments)


def test_out_that_is_read_only_or_overlaps():
    out = np.zeros((4, 6), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        gemm(A, B, out)
    both = random((10, 10))
    with pytest.raises(ValueError, match="out shares memory with a or b"):
        gemm(both[:4, :4], both[4:8, :4], both[:4, :4])
    gemm(both[:, :4], random((4, 5)), both[:, 5:])


WAYS = [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2), (2, 1, 2, 1), (1, 2, 1, 3), (2, 2, 2, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ways", WAYS, ids=str)
def test_the_threads_of_each_loop_change_no_bit(ways, dtype, threads):
    """Few and many rows, columns and steps: some threads have nothing to do, and loops have several blocks."""
    row = microkernels.selected(dtype)
    threads(2)
    sizes = [(row.mr + 1, row.nr + 1, 3), (5 * row.mr, 9 * row.nr + 2, 2 * row.kc + 1), (row.mc + 1, 40, 300)]
    for m, n, k in [*sizes, (40, row.nc + 1, 1100), (3, 200, 40)]:
        a, b, c = random((m, k), dtype, 1), random((k, n), dtype, 2), random((m, n), dtype, 3)
        want = gemm(a, b, c.copy(), 0.5, -2, ways=(1, 1, 1, 1))
        got = gemm(a, b, c.copy(), 0.5, -2, ways=list(np.array(ways)))
        assert np.array_equal(got, want), (m, n, k)
        assert error(gemm(a, b, ways=ways), a, b) < TOLERANCE[dtype], (m, n, k)
        if m > row.mr + 1 and k > 100:  # no thin matrix
            assert np.array_equal(gemm(a, b, c.copy(), 0.5, -2), want), (m, n, k)
    a, b = random((70, 50), dtype).T, random((90, 70), dtype).T
    assert np.array_equal(gemm(a, b, np.empty((50, 90), dtype, order="F"), ways=ways), gemm(a, b, ways=(1, 1, 1, 1)))


@pytest.mark.parametrize("ways", [(1, 1, 1), (1, 1, 1, 0), (2, 2, 2, 1.0), 4, (1 << 10, 1 << 10, 1, 1), "1111"])
def test_ways_that_are_none_are_refused(ways):
    with pytest.raises(ValueError, match="ways must be threads of jc, ic, jr and ir, 1 to"):
        gemm(random((4, 4)), random((4, 4)), ways=ways)


def test_ways_of_bfloat16_are_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = random((4, 4)).astype(ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match="ways are of float32 and float64, got bfloat16"):
        gemm(a, a, ways=(1, 1, 1, 1))


@pytest.mark.parametrize("ways", [(2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)], ids=str)
def test_ways_that_are_set_hold_for_convolutions(ways, threads):
    """With an epilogue and without, where as many threads run; elsewhere they change nothing."""
    threads(2)
    p = conv.ConvProblem(2, 33, 31, 40, 70, 3, padding="same")
    x, w, dy, bias = random(p.x_shape), random(p.w_shape), random(p.y_shape), random((p.co,))

    def results():
        yield conv.forward(p, x, w, bias, algorithm="convgemm")
        yield conv.backward_data(p, dy, w, algorithm="deconvgemm")
        yield conv.backward_weights(p, x, dy, algorithm="rdx")
        yield gemm(x[0, 0], w[0, 0])

    want, before = list(results()), conv.workspace_bytes(p, "forward", "convgemm")
    set_ways(ways)
    try:  # a packed B for each thread of jc
        assert (conv.workspace_bytes(p, "forward", "convgemm") > before) == (ways[0] > 1)
        assert all(map(np.array_equal, results(), want))
        threads(3)
        assert all(map(np.array_equal, results(), want))
    finally:
        set_ways(None)
    with pytest.raises(ValueError, match="ways must be threads of jc, ic, jr and ir"):
        set_ways((1, 2))
