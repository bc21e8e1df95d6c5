"""Sums for batch normalization's backward that backward_data gathers from what it writes."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv.conv import ConvProblem, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from tests.conv.test_moments import LARGE, PROBLEMS
from tests.marks import slow
from tests.reference.elementwise import SLOPES

CASES = [
    slow(make, name) if make in LARGE else (make, name)
    for make in PROBLEMS
    for name, row in TABLE.items()
    if row.gathers_reductions(make()) and row.of_reals and not row.reason(make(), "backward_data")
]


#: activations, whether beta is there, whether dx is added to
KINDS = (
    ("relu", True, False), ("relu6", False, True), (None, True, True), ("silu", True, False), ("hard_silu", True, True),
)  # fmt: skip


def problem_of(algorithm, n, height, width, ci, co, dtype="float32"):
    """One of 3x3 filters that it can do."""
    groups, co = (ci, ci) if algorithm == "depthwise" else (1, co)
    return ConvProblem(n, height, width, ci, co, 3, padding="same", groups=groups, dtype=dtype)


def sliced(rng, shape, dtype, channels):
    """An image whose pixels are `channels` elements further apart than it has channels."""
    whole = rng.standard_normal((*shape[:-1], shape[-1] + channels)).astype(dtype)
    return whole[..., channels // 2 : channels // 2 + shape[-1]]


def gathered(p, algorithm, activation, shifts, accumulate):
    """dx, what it is the gradient of, and both sums; the workspace is exactly what was asked for."""
    rng = np.random.default_rng(0)
    image, dx = sliced(rng, p.x_shape, p.dtype, 6), sliced(rng, p.x_shape, p.dtype, 10)
    dy = rng.standard_normal(p.y_shape).astype(p.dtype)
    w = rng.standard_normal(p.w_shape).astype(p.dtype)
    mean, scale, beta = (rng.standard_normal(p.ci).astype(p.dtype) for _ in range(3))
    normalization = (mean, 4 * scale, beta if shifts else None, activation)
    sums = np.full((2, p.ci), np.nan, p.dtype)
    nbytes = workspace_bytes(p, "backward_data", algorithm)
    memory = np.full(nbytes + 4096, 0xA5, np.uint8)
    reductions = (image, normalization, *sums)
    bound = bind(p, "backward_data", algorithm, dx, w, dy, accumulate=accumulate, reductions=reductions)
    run(bound, memory[:nbytes])
    assert (memory[nbytes:] == 0xA5).all()
    return dx, image, normalization, sums


@pytest.mark.parametrize("threads", [slow(1), 3])
@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
@pytest.mark.parametrize(("make", "algorithm"), CASES)
def test_sums_are_those_of_what_was_written(make, algorithm, dtype, threads):
    p = make(dtype=dtype)
    config.set_num_threads(threads)
    rounding = 1e-5 if dtype == "float32" else 1e-13
    for kind in KINDS:
        dx, image, (mean, scale, beta, activation), sums = gathered(p, algorithm, *kind)
        deviation = image - mean
        z = deviation * scale + (0 if beta is None else beta)
        deviation = deviation.astype("longdouble")
        g = dx.astype("longdouble") * SLOPES[activation or "linear"](z.astype("longdouble"))
        for found, terms in zip(sums, (g, g * deviation), strict=True):
            pixels = terms.reshape(-1, p.ci)
            size = np.abs(pixels).sum(0).max()
            np.testing.assert_allclose(found, pixels.sum(0), rtol=0, atol=rounding * size)
        again = gathered(p, algorithm, *kind)
        assert again[3].tobytes() == sums.tobytes()
        assert again[0].tobytes() == dx.tobytes()


@pytest.mark.parametrize("algorithm", [name for name, row in TABLE.items() if row.gathers and row.of_reals])
def test_the_gradient_keeps_its_bits(algorithm):
    p = problem_of(algorithm, 2, 13, 11, 16, 40)
    rng = np.random.default_rng(0)
    for accumulate in (False, True):
        dx = gathered(p, algorithm, "relu", True, accumulate)[0]
        rng = np.random.default_rng(0)
        _, plain = sliced(rng, p.x_shape, p.dtype, 6), sliced(rng, p.x_shape, p.dtype, 10)
        dy, w = rng.standard_normal(p.y_shape).astype(p.dtype), rng.standard_normal(p.w_shape).astype(p.dtype)
        workspace = np.empty(workspace_bytes(p, "backward_data", algorithm), np.uint8)
        run(bind(p, "backward_data", algorithm, plain, w, dy, accumulate=accumulate), workspace)
        assert plain.tobytes() == dx.tobytes()


@pytest.mark.parametrize("algorithm", [name for name, row in TABLE.items() if row.gathers and row.of_reals])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_change_no_bit_of_the_gradient_and_at_most_the_last_ones_of_its_sums(algorithm, dtype):
    """As the guide to threads says: parts are cut for the threads.  The same number of them gives the same bits."""
    p, eps = problem_of(algorithm, 6, 40, 37, 16, 24, dtype), np.finfo(dtype).eps
    results = {}
    for threads in (1, 2, 3, 5, 3, 2):
        config.set_num_threads(threads)
        dx, image, (mean, scale, beta, _), sums = gathered(p, algorithm, "relu", True, False)
        before = results.setdefault(threads, (dx, sums))
        assert before[0].tobytes() == dx.tobytes()
        assert before[1].tobytes() == sums.tobytes()
    g = np.where((image - mean) * scale + beta > 0, dx, 0)
    terms = np.stack([g, g * (image - mean)]).astype("longdouble").reshape(2, -1, p.ci)
    dx, sums = results.pop(1)
    for other_dx, other_sums in results.values():
        assert other_dx.tobytes() == dx.tobytes()
        assert (np.abs(other_sums - sums) <= eps * np.abs(terms).sum(1)).all()


def test_refused_where_they_cannot_be_gathered():
    p = ConvProblem(1, 4, 4, 2, 3, 3)
    x, w, y = (np.zeros(shape, "float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    vector = np.zeros(2, "float32")
    normalization = (vector, vector, None, "relu")
    sums = (vector.copy(), vector.copy())
    with pytest.raises(ValueError, match="reductions: expected none for backward_data of im2col"):
        bind(p, "backward_data", "im2col", x, w, y, reductions=(x.copy(), normalization, *sums))
    with pytest.raises(ValueError, match="reductions: expected none for forward of direct"):
        bind(p, "forward", "direct", x, w, y, reductions=(x.copy(), normalization, *sums))
    with pytest.raises(ValueError, match=r"reductions: expected shape \(1, 4, 4, 2\)"):
        bind(p, "backward_data", "direct", x, w, y, reductions=(y.copy(), normalization, *sums))
    with pytest.raises(ValueError, match="scale: expected shape"):
        bind(p, "backward_data", "direct", x, w, y, reductions=(x.copy(), (vector, vector[:1], None, "relu"), *sums))
    image = x.copy()
    with pytest.raises(ValueError, match="sum: expected an array of its own"):
        bind(p, "backward_data", "direct", x, w, y, reductions=(image, normalization, image[0, 0, 0], sums[1]))
