"""Convolutions of float32 by products of bfloat16 (direct_bf16x3, direct_bf16), and when they are chosen."""

import numpy as np
import pytest

from pydtconv import config, conv, dtypes, microkernels
from pydtconv.conv import ConvProblem, matmul_precision, timings
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import choose, explain, ranking, workspace_bytes
from tests.conv.cases import case_of, random_problem, random_problem_of, tolerance
from tests.conv.test_bfloat16 import CASES, KERNELS
from tests.marks import slow
from tests.reference import conv as reference

NAMES = [name for name, row in TABLE.items() if row.products]
P = ConvProblem(64, 8, 8, 256, 256, 3, 2, "same")
WRITTEN = {"forward": "y", "backward_data": "x", "backward_weights": "w"}


@pytest.fixture(autouse=True)
def _as_before():
    yield
    microkernels.select(None, "bfloat16")
    config.set_float32_matmul_precision("highest")


@pytest.fixture
def amx(monkeypatch):
    """As if AMX were active, wherever the test runs."""
    monkeypatch.setattr(matmul_precision, "reason", lambda: None)


def check(p, names=NAMES):
    """All passes against float64, in a workspace of exactly the bytes that they ask for."""
    case = case_of(p)
    for name in names:
        for direction in DIRECTIONS:
            arrays = {"x": case.x, "w": case.w, "y": case.dy}
            out = arrays[WRITTEN[direction]] = np.full(arrays[WRITTEN[direction]].shape, np.nan, "float32")
            nbytes = workspace_bytes(p, direction, name)
            memory = np.full(nbytes + 4096, 0xA5, np.uint8)
            bias = case.b if direction == "forward" else None
            run(bind(p, direction, name, **arrays, bias=bias, workspace=memory[:nbytes]))
            case.check(name, direction, out)
            assert (memory[nbytes:] == 0xA5).all()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", [name if name == KERNELS[0] else slow(name) for name in KERNELS])
def test_each_kernel_against_float64(name, case):
    microkernels.select(name, "bfloat16")
    check(ConvProblem(**CASES[case]))


@pytest.mark.parametrize("seeds", [range(0, 12, 2), slow(range(12, 160, 2))], ids=str)
def test_random_problems(seeds):
    for seed in seeds:
        config.set_num_threads(1 + seed % 3)
        check(random_problem(seed, depthwise=False))
        p = random_problem_of(1 + seed % 3, seed, depthwise=False)
        if p.dtype == "float32":
            check(p)


def test_three_products_are_a_hundred_times_as_exact_as_one():
    """Of the sum of products, 2^-17 and 2^-9 at most; halves hold 16 bits and a sign."""
    p = ConvProblem(2, 8, 8, 64, 32, 3, padding="same")
    case = case_of(p)
    want = case.want["forward"]
    errors = [np.linalg.norm(case.run(name, "forward") - want) / np.linalg.norm(want) for name in NAMES]
    assert errors[0] < 1e-5 < 1e-3 < errors[1] < 5e-3


def test_one_product_is_that_of_rounded_operands():
    p = ConvProblem(2, 6, 7, 33, 40, 3, 2, "same")
    x, w = (dtypes.from_bits(dtypes.to_bits(array)) for array in (case_of(p).x, case_of(p).w))
    got, exact = conv.forward(p, x, w, algorithm="direct_bf16"), conv.forward(p, x, w, algorithm="direct_bf16x3")
    np.testing.assert_array_equal(got, conv.forward(p, case_of(p).x, case_of(p).w, algorithm="direct_bf16"))
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-6 * np.abs(exact).max())  # halves below are 0


@pytest.mark.parametrize("name", NAMES)
def test_everything_around_a_pass(name):
    """A normalized x, bias, residual, ReLU and moments; dx that is added to, with reductions; slices of channels."""
    p = ConvProblem(3, 6, 7, 40, 37, 3, padding="same")
    rng = np.random.default_rng(0)
    wide_x, wide_y = (rng.standard_normal((*shape[:3], shape[3] + 6), "float32") for shape in (p.x_shape, p.y_shape))
    x, y, w, dy = wide_x[..., 2:-4], wide_y.copy()[..., 4:-2], case_of(p).w, case_of(p).dy
    mean, scale, beta, image = (rng.standard_normal(shape, "float32") for shape in ((40,), (40,), (40,), p.x_shape))
    prologue, residual = (mean, scale, beta, "relu"), wide_y[..., 4:-2]
    moments, bias = (np.empty(37, "float32"), np.empty(37, "float32")), case_of(p).b
    options = {"bias": bias, "activation": "relu", "moments": moments, "prologue": prologue, "residual": residual}
    run(bind(p, "forward", name, x, w, y, **options), np.empty(workspace_bytes(p, "forward", name), np.uint8))
    read = np.maximum((x.astype("float64") - mean) * scale + beta, 0)
    want = np.maximum(reference.forward(read, w, padding=p.padding) + bias + residual, 0)
    allowed = tolerance(name, "float32")
    assert np.abs(y - want).max() <= allowed * np.abs(want).max()
    rows = y.astype("float64").reshape(-1, 37)
    np.testing.assert_allclose(moments, (rows.mean(0), rows.var(0)), rtol=1e-4, atol=1e-4)
    dw, memory = np.empty_like(w), np.empty(workspace_bytes(p, "backward_weights", name), np.uint8)
    run(bind(p, "backward_weights", name, x, dw, dy, prologue=prologue), memory)
    want = reference.backward_weights(read, dy, p.w_shape, padding=p.padding)
    assert np.abs(dw - want).max() <= allowed * np.abs(want).max()
    dx, sums = x.copy(), np.empty((2, 40), "float32")
    bound = bind(p, "backward_data", name, dx, w, dy, accumulate=True, reductions=(image, prologue, *sums))
    run(bound, np.empty(workspace_bytes(p, "backward_data", name), np.uint8))
    want = reference.backward_data(dy, w, p.x_shape, padding=p.padding) + x
    assert np.abs(dx - want).max() <= allowed * np.abs(want).max()
    g = np.where((image - mean) * scale + beta > 0, dx, 0).astype("float64")
    want = np.array((g.sum((0, 1, 2)), (g * (image - mean)).sum((0, 1, 2))))
    np.testing.assert_allclose(sums, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("case", ["rows", "pixels_of_images", "first_layer", "pointwise"])
def test_results_do_not_depend_on_threads(case):
    p = ConvProblem(**(CASES[case] | {"n": 20}))
    found = []
    for threads in (1, 3):
        config.set_num_threads(threads)
        found.append([case_of(p).run("direct_bf16x3", direction).tobytes() for direction in DIRECTIONS])
    assert found[0] == found[1]


def test_the_precision_chooses(amx):
    """What the ranking takes, what explain and choose say; the tuning's key; float64 and "strict" stay."""
    double = ConvProblem(64, 8, 8, 256, 256, 3, 2, "same", dtype="float64")
    before, key = conv.algorithms(double, "forward"), timings.key(P, "forward")
    assert not set(conv.algorithms(P, "forward")) & set(NAMES)
    assert "set_float32_matmul_precision('high') allows it, 'highest' is active" in explain(P, "forward")[NAMES[0]]
    for precision, name, other in (("high", *NAMES), ("medium", *reversed(NAMES))):
        config.set_float32_matmul_precision(precision)
        assert choose(P, "forward").algorithm == name
        assert explain(P, "forward")[name] is None
        assert explain(P, "forward")[other] is not None
        assert timings.key(P, "forward") != key
        assert other not in conv.algorithms(P, "forward")
        assert conv.algorithms(double, "forward") == before
        assert not set(ranking(P, "forward", "strict", matmul_precision.in_force())) & set(NAMES)
        assert name in matmul_precision.described() or "where they are faster" in matmul_precision.described()
    assert choose(P, "forward", "direct_bf16x3").why == "asked for"
    assert "multiplies float32 as bfloat16, got float64" in str(explain(double, "forward")["direct_bf16x3"])


def test_without_amx_all_is_as_highest():
    microkernels.select(KERNELS[-1], "bfloat16")
    before = conv.algorithms(P, "forward")
    config.set_float32_matmul_precision("high")
    assert conv.algorithms(P, "forward") == before
    assert "only amx_bf16 makes products of bfloat16 faster" in str(explain(P, "forward")["direct_bf16x3"])
    assert matmul_precision.described().startswith("high, computed as highest: only amx_bf16")


def test_medium_allows_large_tiles_on_every_cpu():
    """Which "highest" and "high" do not, nor float64 models at any; and which may be asked for by name."""
    microkernels.select(KERNELS[-1], "bfloat16")
    p, double, half = (
        ConvProblem(16, 28, 28, 128, 128, 3, padding="same", dtype=dtype)
        for dtype in ("float32", "float64", "bfloat16")
    )
    for precision in ("highest", "high", "medium"):
        config.set_float32_matmul_precision(precision)
        for direction in DIRECTIONS:
            assert (choose(p, direction).algorithm == "winograd_large") == (precision == "medium")
            assert "winograd_large" not in conv.algorithms(double, direction)
            assert choose(p, direction, "winograd_large").why == "asked for"
        reason = explain(p, "forward")["winograd_large"]
        assert reason is None or f"precision('medium') allows it, {precision!r} is active" in reason
    assert reason is None
    assert "allowed in float32 alone, got float64" in explain(double, "forward")["winograd_large"]
    assert matmul_precision.described().startswith(
        "medium, large tiles in Winograd's convolutions; all else computed as highest"
    )
    with pytest.raises(ValueError, match="winograd_large has passes for float32 and float64 only"):
        choose(half, "forward", "winograd_large")
