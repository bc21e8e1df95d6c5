"""`winograd_bf16`: backward passes against a model that rounds where it rounds, and what every algorithm must keep."""

import numpy as np
import pytest

from pydtconv import config, dtypes, microkernels
from pydtconv.conv import ConvProblem, backward_data, backward_weights
from pydtconv.conv.selection import algorithms, explain
from tests.conv.test_bfloat16 import arrays_of, bound, exact_passes, random, rounded
from tests.marks import slow

USABLE = [kernel.name for kernel in microkernels.available("bfloat16") if kernel.usable]
KERNELS = [name for name in ("avx512_bf16", "portable_4x16") if name in USABLE]
#: of a tile of 2 x 2 and of 4 x 4; infinity is one more
POINTS = {2: (0, 1, -1), 4: (0, 2 / 3, -2 / 3, 3 / 2, -3 / 2)}
PASSES = {"backward_data": 1, "backward_weights": 2}


@pytest.fixture(autouse=True)
def _kernel():
    """One that the algorithm needs, whatever CPU this is."""
    microkernels.select(KERNELS[0], "bfloat16")
    yield
    microkernels.select(None, "bfloat16")


def matrices(m):
    """B^T, G and A^T by multiplication of polynomials at the points (transform_tables.h)."""
    points = np.array(POINTS[m])
    others = [np.delete(points, i) for i in range(len(points))]
    norms = [np.prod(p - q) for p, q in zip(points, others, strict=True)]
    taps = [np.append(points**k / norms, k == 2) for k in (0, 1, 2)]
    input_ = [np.append(np.poly(q)[::-1], 0) for q in others] + [np.poly(points)[::-1]]
    output = [np.append(points**k, k == m - 1) for k in range(m)]
    return np.array(input_), np.array(taps).T, np.array(output)


def tiles(image, m, size, step):
    """(n, th, tw, size, size, c) squares of an image, `step` apart."""
    view = np.lib.stride_tricks.sliding_window_view(image, (size, size), (1, 2))[:, ::step, ::step]
    return np.moveaxis(view, 3, -1)


def on_both_sides(matrix, squares):
    return np.einsum("ik,jl,...klc->...ijc", matrix, matrix, squares)


def correlated(m, image, filters):
    """The valid correlation of an image with 3 x 3 filters (ci, co), by rounded tiles."""
    bt, g, at = matrices(m)
    n, high, wide = image.shape[0], image.shape[1] - 2, image.shape[2] - 2
    th, tw = -(-high // m), -(-wide // m)
    padded = np.pad(image, ((0, 0), (0, th * m - high), (0, tw * m - wide), (0, 0)))
    v = rounded(on_both_sides(bt, tiles(padded, m, m + 2, m)))
    u = rounded(np.einsum("ik,jl,klcd->ijcd", g, g, filters))
    y = on_both_sides(at, np.einsum("nhwijc,ijcd->nhwijd", v.astype(float), u.astype(float)))
    return np.moveaxis(y, 3, 2).reshape(n, th * m, tw * m, -1)[:, :high, :wide]


def model(p, x, w, dy, m):
    """dx and dw of a convolution of strides and dilation of 1."""
    (top, bottom), (left, right) = p.padding[-2:]
    x, w, dy = (array.astype(float) for array in (x, w, dy))
    around = np.pad(dy, ((0, 0), (2 - top, 2 - bottom), (2 - left, 2 - right), (0, 0)))
    dx = correlated(m[0], around, w[::-1, ::-1].swapaxes(2, 3))
    bt, g, at = matrices(m[1])
    th, tw = -(-p.oh // m[1]), -(-p.ow // m[1])
    far = ((0, 0), (0, th * m[1] - p.oh), (0, tw * m[1] - p.ow), (0, 0))
    read = np.pad(np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0))), far)
    v = rounded(on_both_sides(bt, tiles(read, m[1], m[1] + 2, m[1]))).astype(float)
    z = rounded(on_both_sides(at.T, tiles(np.pad(dy, far), m[1], m[1], m[1]))).astype(float)
    du = np.einsum("nhwijc,nhwijd->ijcd", v, z)
    return dx, np.einsum("ik,jl,ijcd->klcd", g, g, du)


def computed(p, x, w, dy):
    dx = backward_data(p, dtypes.to_bits(dy), w, algorithm="winograd_bf16")
    return dtypes.from_bits(dx), backward_weights(p, dtypes.to_bits(x), dtypes.to_bits(dy), algorithm="winograd_bf16")


def check(p, sides):
    """sides: of tiles in both passes."""
    x, w, dy = arrays_of(p)
    w = random(p.w_shape, 2)  # filters are float32, and rounded when they are transformed
    exact = exact_passes(p, x, w, dy)
    for got, want, plain in zip(computed(p, x, w, dy), model(p, x, w, dy, sides), exact[1:], strict=True):
        of_tiles = np.sqrt(np.mean((want - plain) ** 2))
        error = np.abs(got - want)
        largest = np.abs(want).max()
        if got.shape == p.x_shape:
            error = np.maximum(error - np.abs(want) * 2**-8, 0)
        assert error.max() <= 0.01 * largest  # a number that is rounded to the other side
        assert np.sqrt(np.mean(error**2)) <= 0.1 * of_tiles + 2e-6 * largest
        assert of_tiles <= 12 * 2**-9 * np.sqrt(np.mean(plain**2))


#: image, sides of tiles of dx and of dy
EXTENTS = [
    ((2, 2), (2, 2)),
    ((4, 4), (4, 4)),
    ((8, 12), (4, 4)),
    ((7, 9), (4, 4)),
    ((5, 2), (2, 2)),
    ((6, 6), (4, 4)),
    ((1, 9), (2, 2)),
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("extents", "sides"), EXTENTS)
@pytest.mark.parametrize("channels", [(19, 35), (1, 64), (32, 1)])
def test_sums_of_rounded_tiles(kernel, extents, sides, channels):
    microkernels.select(kernel, "bfloat16")
    check(ConvProblem(3, *extents, *channels, 3, padding="same", dtype="bfloat16"), sides)


@pytest.mark.parametrize("padding", ["valid", ((1, 2), (2, 0)), ((2, 2), (2, 2))])
def test_padding(padding):
    p = ConvProblem(2, 14, 11, 18, 40, 3, padding=padding, dtype="bfloat16")
    check(p, (4, 4))


def test_many_blocks_of_tiles():
    """Both ways of backward_weights: one block, several of them; and filters that are transformed a panel at a time."""
    check(ConvProblem(40, 16, 12, 20, 33, 3, padding="same", dtype="bfloat16"), (4, 4))
    check(ConvProblem(3, 4, 4, 300, 290, 3, padding="same", dtype="bfloat16"), (4, 4))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, *(slow(seed) for seed in range(4, 40))])
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    n, h, w, ci, co = (int(v) for v in rng.integers((1, 3, 3, 1, 1), (5, 24, 24, 70, 70)))
    dilation = int(rng.integers(1, 3)) if min(h, w) > 4 else 1
    p = ConvProblem(n, h, w, ci, co, 3, 1, "same", dilation, dtype="bfloat16")
    x, weights, dy = arrays_of(p)
    for got, want in zip(computed(p, x, weights, dy), exact_passes(p, x, weights, dy)[1:], strict=True):
        assert np.sqrt(np.mean((got - want) ** 2)) <= 0.02 * np.sqrt(np.mean(want**2)) + 1e-6


@pytest.mark.parametrize("sizes", [(3, 8, 7, 40, 33), (50, 15, 15, 20, 9), (3, 4, 4, 300, 290)])
def test_bits_do_not_depend_on_threads(sizes):
    p = ConvProblem(*sizes, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    before, results = config.num_threads(), []
    try:
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            results.append(computed(p, x, w, dy))
    finally:
        config.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("sizes", [(3, 8, 7, 40, 33), (3, 4, 4, 300, 290)])
def test_backward_data_adds_and_gathers(sizes):
    """In a workspace of NaN that is not longer than it has to be."""
    p = ConvProblem(*sizes, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    before = rounded(random(p.x_shape, 7))
    dx, sums = dtypes.to_bits(before), np.empty((2, p.ci), np.float32)
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy), "winograd_bf16", accumulate=True,
          reductions=(dtypes.to_bits(x), (mean, scale, beta, True), *sums))  # fmt: skip
    plain = np.empty(p.x_shape, np.uint16)
    bound(p, "backward_data", plain, w, dtypes.to_bits(dy), "winograd_bf16")
    want = dtypes.from_bits(plain).astype(np.float64) + before
    assert np.all(np.abs(dtypes.from_bits(dx) - want) <= np.abs(want) * 2**-8 + np.abs(want - before) * 2**-8)
    centred = x.astype(np.float64) - mean
    g = dtypes.from_bits(dx) * (centred * scale + beta > 0)
    np.testing.assert_allclose(sums[0], g.sum((0, 1, 2)), atol=1e-5 * np.abs(g).sum((0, 1, 2)).max())
    each = np.abs(g * centred).sum((0, 1, 2)).max()
    np.testing.assert_allclose(sums[1], (g * centred).sum((0, 1, 2)), atol=1e-5 * each)


def test_backward_weights_in_a_workspace_of_nan():
    p = ConvProblem(5, 7, 9, 21, 37, 3, padding="same", dtype="bfloat16")
    x, _, dy = arrays_of(p)
    dw = np.full(p.w_shape, np.nan, np.float32)
    bound(p, "backward_weights", dtypes.to_bits(x), dw, dtypes.to_bits(dy), "winograd_bf16")
    want = backward_weights(p, dtypes.to_bits(x), dtypes.to_bits(dy), algorithm="winograd_bf16")
    np.testing.assert_array_equal(dw, want)


def test_slices_of_channels():
    p = ConvProblem(2, 6, 7, 24, 40, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    wide = {name: np.full((*shape[:3], shape[3] + 30), 7, np.uint16) for name, shape in
            (("x", p.x_shape), ("dx", p.x_shape), ("dy", p.y_shape))}  # fmt: skip
    wide["x"][..., 3:27], wide["dy"][..., 5:45] = dtypes.to_bits(x), dtypes.to_bits(dy)
    dx = backward_data(p, wide["dy"][..., 5:45], w, out=wide["dx"][..., 9:33], algorithm="winograd_bf16")
    dw = backward_weights(p, wide["x"][..., 3:27], wide["dy"][..., 5:45], algorithm="winograd_bf16")
    plain = computed(p, x, w, dy)
    np.testing.assert_array_equal(dtypes.from_bits(dx), plain[0])
    np.testing.assert_array_equal(dw, plain[1])
    assert np.all(wide["dx"][..., :9] == 7)
    assert np.all(wide["dx"][..., 33:] == 7)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(value):
    p = ConvProblem(1, 9, 9, 33, 17, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    dy[0, 4, 4, 5] = value
    dx, dw = computed(p, x, w, dy)
    assert not np.isfinite(dx[0, 3:6, 3:6]).any()
    assert not np.isfinite(dw[..., 5]).any()
    assert np.isfinite(np.delete(dw, 5, axis=-1)).all()


def test_it_is_chosen_where_products_of_bfloat16_are_fast():
    p = ConvProblem(16, 28, 28, 128, 128, 3, padding="same", dtype="bfloat16")
    first = {direction: algorithms(p, direction)[0] for direction in ("forward", *PASSES)}
    fast = KERNELS[0] == "avx512_bf16"
    assert [first[direction] == "winograd_bf16" for direction in PASSES] == [fast] * 2
    assert first["forward"] != "winograd_bf16"
    try:
        config.set_conv_precision("strict")
        assert all("winograd" not in name for direction in PASSES for name in algorithms(p, direction))
    finally:
        config.set_conv_precision("fast")


def test_what_it_does_not_do_says_so():
    sizes = {"n": 1, "ih": 9, "iw": 9, "ci": 8, "co": 8, "kernel": 3}
    reasons = explain(ConvProblem(**sizes), "backward_data")
    assert reasons["winograd_bf16"] == "winograd_bf16 has passes for bfloat16 only, got float32"
    p = ConvProblem(**sizes, dtype="bfloat16")
    assert explain(p, "backward_data")["winograd_bf16"] is None
    assert "has no forward" in explain(p, "forward")["winograd_bf16"]
    volume = ConvProblem.of((1, 5, 6, 7, 4), (3, 3, 3, 4, 4), dtype="bfloat16")
    assert "of two axes" in explain(volume, "backward_weights")["winograd_bf16"]
    others = [name for name in USABLE if name not in KERNELS]
    if others:
        microkernels.select(others[0], "bfloat16")
        assert "micro-kernel" in explain(p, "backward_data")["winograd_bf16"]
