"""backward_data that writes the gradient of what a batch normalization has read."""

import numpy as np
import pytest

from pydtconv import config, dtypes
from pydtconv._ext import norm
from pydtconv.conv import ConvProblem, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from tests.conv.test_backward_reductions import KINDS, sliced
from tests.conv.test_bfloat16 import CASES as CASES_OF_BFLOAT16
from tests.conv.test_bfloat16 import arrays_of, assert_rounded_once, bound, exact_passes, random, rounded
from tests.conv.test_moments import LARGE, PROBLEMS
from tests.marks import slow
from tests.reference.elementwise import SLOPES

CASES = [
    slow(make, name) if make in LARGE else (make, name)
    for make in PROBLEMS
    for name, row in TABLE.items()
    if row.of_reals and row.bypasses_in(make()) and not row.reason(make(), "backward_data")
]


def arrays(p):
    rng = np.random.default_rng(0)
    image, dx = sliced(rng, p.x_shape, p.dtype, 6), sliced(rng, p.x_shape, p.dtype, 10)
    dy, w = rng.standard_normal(p.y_shape).astype(p.dtype), rng.standard_normal(p.w_shape).astype(p.dtype)
    vectors = [rng.standard_normal(p.ci).astype(p.dtype) for _ in range(3)]
    return image, dx, dy, w, vectors, np.full((2, p.ci), np.nan, p.dtype)


def backward(p, algorithm, activation, shifts, accumulate, bypass):
    """What was in dx, dx, what is normalized, how, and both sums; the workspace is exactly what was asked for."""
    image, dx, dy, w, (mean, scale, beta), sums = arrays(p)
    before = dx.copy()
    normalization = (mean, scale, beta if shifts else None, activation)
    memory = np.full(workspace_bytes(p, "backward_data", algorithm) + 4096, 0xA5, np.uint8)
    reductions = (image, normalization, *sums)
    bound = bind(p, "backward_data", algorithm, dx, w, dy, accumulate=accumulate, reductions=reductions, bypass=bypass)
    run(bound, memory[:-4096])
    assert (memory[-4096:] == 0xA5).all()
    return before, dx, image, normalization, sums


@pytest.mark.parametrize("threads", [slow(1), 3])
@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
@pytest.mark.parametrize(("make", "algorithm"), CASES)
def test_it_is_the_gradient_through_the_normalization_but_for_its_means(make, algorithm, dtype, threads):
    p = make(dtype=dtype)
    config.set_num_threads(threads)
    rounding = 4 * np.finfo(dtype).eps
    for activation, shifts, accumulate in KINDS:
        kind = (activation, shifts, accumulate)
        before, found, image, (mean, scale, beta, _), sums = backward(p, algorithm, *kind, True)
        g = backward(p, algorithm, activation, shifts, False, False)
        assert g[4].tobytes() == sums.tobytes()
        z = (image - mean) * scale + (0 if beta is None else beta)
        gradient = g[1].astype("longdouble") * SLOPES[activation or "linear"](z.astype("longdouble"))
        want = gradient * scale + (before if accumulate else 0)
        np.testing.assert_allclose(found, want, rtol=rounding, atol=rounding * np.abs(want).max())


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("case", ["rows", "stride", "stride_past_taps", "pointwise", "many_filters", "pointwise_odd"])
def test_images_of_bfloat16_are_rounded_once(case, accumulate):
    p = ConvProblem(dtype="bfloat16", **CASES_OF_BFLOAT16[case])
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    before = rounded(random(p.x_shape, 7))
    dx, sums = dtypes.to_bits(before), np.empty((2, p.ci), np.float32)
    reductions = (dtypes.to_bits(x), (mean, scale, beta, "relu"), *sums)
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy), accumulate=accumulate, reductions=reductions, bypass=True)
    centred = x.astype(np.float64) - mean
    g = exact_passes(p, x, w, dy)[1] * (centred * scale + beta > 0)
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))[1] * np.abs(scale) + np.abs(before)
    assert_rounded_once(dx, g * scale + (before if accumulate else 0), sizes)
    axes = tuple(range(g.ndim - 1))
    np.testing.assert_allclose(sums[0], g.sum(axes), atol=1e-3)
    np.testing.assert_allclose(sums[1], (g * centred).sum(axes), atol=2e-3)


def test_refused_where_it_cannot_be():
    p = ConvProblem(2, 4, 4, 16, 16, 3, padding="same")
    image, dx, dy, w, (mean, scale, beta), sums = arrays(p)
    reductions = (image, (mean, scale, beta, "relu"), *sums)
    with pytest.raises(ValueError, match="bypass: expected False for backward_data of direct, which has no reductions"):
        bind(p, "backward_data", "direct", dx, w, dy, bypass=True)
    with pytest.raises(ValueError, match="bypass: expected False for backward_data of winograd"):
        bind(p, "backward_data", "winograd", dx, w, dy, reductions=reductions, bypass=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (1000, 32), (777, 71), (16, 300)])
def test_mean_terms_are_subtracted(shape, dtype):
    rng = np.random.default_rng(0)
    x, dx = sliced(rng, shape, dtype, 6), sliced(rng, shape, dtype, 10)
    mean, offset, slope = (rng.standard_normal(shape[1]).astype(dtype) for _ in range(3))
    want = dx - (offset + (x.astype("longdouble") - mean) * slope)
    around = dx.base.copy()
    norm.bind_backward_means(x, mean, offset, slope, dx)()
    rounding = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(dx, want, rtol=rounding, atol=rounding * np.abs(want).max())
    np.testing.assert_array_equal(dx.base[:, :5], around[:, :5])
    np.testing.assert_array_equal(dx.base[:, 5 + shape[1] :], around[:, 5 + shape[1] :])
