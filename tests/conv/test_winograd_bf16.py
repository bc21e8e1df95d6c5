"""`winograd_bf16`: its passes against a model that rounds where it rounds, and what every algorithm must keep."""

import numpy as np
import pytest

from pydtconv import config, dtypes, microkernels
from pydtconv._ext import winograd as ext
from pydtconv.conv import ConvProblem, backward_data, backward_weights, forward
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import algorithms, explain
from tests.conv.test_bfloat16 import ACTIVATIONS, arrays_of, bound, exact_passes, random, rounded
from tests.marks import slow

USABLE = [kernel.name for kernel in microkernels.available("bfloat16") if kernel.usable]
KERNELS = [name for name in ("avx512_bf16", "portable_4x16") if name in USABLE]
#: of a side of 2 and of 4 outputs; infinity is one more
POINTS = {2: (0, 1, -1), 4: (0, 2 / 3, -2 / 3, 3 / 2, -3 / 2)}


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


def tiles(image, size, step):
    """(n, th, tw, *size, c) rectangles of an image, `step` apart."""
    view = np.lib.stride_tricks.sliding_window_view(image, size, (1, 2))[:, :: step[0], :: step[1]]
    return np.moveaxis(view, 3, -1)


def on_both_sides(down, across, squares):
    return np.einsum("ik,jl,...klc->...ijc", down, across, squares)


def correlated(m, image, filters):
    """The valid correlation of an image with 3 x 3 filters (ci, co), by rounded tiles of m[0] x m[1]."""
    (bt, g, at), (bt2, g2, at2) = (matrices(side) for side in m)
    n, high, wide = image.shape[0], image.shape[1] - 2, image.shape[2] - 2
    th, tw = -(-high // m[0]), -(-wide // m[1])
    padded = np.pad(image, ((0, 0), (0, th * m[0] - high), (0, tw * m[1] - wide), (0, 0)))
    v = rounded(on_both_sides(bt, bt2, tiles(padded, (m[0] + 2, m[1] + 2), m)))
    u = rounded(np.einsum("ik,jl,klcd->ijcd", g, g2, filters))
    y = on_both_sides(at, at2, np.einsum("nhwijc,ijcd->nhwijd", v.astype(float), u.astype(float)))
    return np.moveaxis(y, 3, 2).reshape(n, th * m[0], tw * m[1], -1)[:, :high, :wide]


def model(p, x, w, dy, m):
    """y, dx and dw of a convolution of strides and dilation of 1, by tiles of a height and width each."""
    (top, bottom), (left, right) = p.padding[-2:]
    x, w, dy = (array.astype(float) for array in (x, w, dy))
    y = correlated(m[0], np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0))), w)
    around = np.pad(dy, ((0, 0), (2 - top, 2 - bottom), (2 - left, 2 - right), (0, 0)))
    dx = correlated(m[1], around, w[::-1, ::-1].swapaxes(2, 3))
    m = [side for side, _ in m]
    side = m[2]
    bt, g, at = matrices(side)
    th, tw = -(-p.oh // side), -(-p.ow // side)
    far = ((0, 0), (0, th * side - p.oh), (0, tw * side - p.ow), (0, 0))
    read = np.pad(np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0))), far)
    v = rounded(on_both_sides(bt, bt, tiles(read, (side + 2, side + 2), (side, side)))).astype(float)
    z = rounded(on_both_sides(at.T, at.T, tiles(np.pad(dy, far), (side, side), (side, side)))).astype(float)
    du = np.einsum("nhwijc,nhwijd->ijcd", v, z)
    return y, dx, np.einsum("ik,jl,ijcd->klcd", g, g, du)


def computed(p, x, w, dy):
    y = forward(p, dtypes.to_bits(x), w, algorithm="winograd_bf16")
    dx = backward_data(p, dtypes.to_bits(dy), w, algorithm="winograd_bf16")
    dw = backward_weights(p, dtypes.to_bits(x), dtypes.to_bits(dy), algorithm="winograd_bf16")
    return dtypes.from_bits(y), dtypes.from_bits(dx), dw


def check(p, tile):
    """tile: height and width of those of y, and side of those of both backward passes."""
    sides = (tile[:2], (tile[2], tile[2]), (tile[2], tile[2]))
    extents = ((p.oh, p.ow), (p.ih, p.iw), (p.oh, p.ow))
    assert [ext.tile(*e, d, "rounded") for e, d in zip(extents, DIRECTIONS, strict=True)] == list(sides)
    x, w, dy = arrays_of(p)
    w = random(p.w_shape, 2)  # filters are float32, and rounded when they are transformed
    every = zip(computed(p, x, w, dy), model(p, x, w, dy, sides), exact_passes(p, x, w, dy), strict=True)
    for direction, (got, want, plain) in zip(DIRECTIONS, every, strict=True):
        of_tiles = np.sqrt(np.mean((want - plain) ** 2))
        error = np.abs(got - want)
        largest = np.abs(want).max()
        if direction != "backward_weights":
            error = np.maximum(error - np.abs(want) * 2**-8, 0)
        assert error.max() <= 0.01 * largest  # a number that is rounded to the other side
        assert np.sqrt(np.mean(error**2)) <= 0.1 * of_tiles + 2e-6 * largest
        assert of_tiles <= (7 if direction == "forward" else 12) * 2**-9 * np.sqrt(np.mean(plain**2))


#: image, tile of y, side of tiles of dx and of dw
EXTENTS = [
    ((2, 2), (2, 2, 2)),
    ((4, 4), (2, 4, 4)),
    ((8, 12), (2, 4, 4)),
    ((7, 9), (2, 4, 4)),
    ((5, 2), (2, 2, 2)),
    ((6, 6), (2, 2, 4)),
    ((1, 9), (2, 4, 2)),
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("extents", "tile"), EXTENTS)
@pytest.mark.parametrize("channels", [(19, 35), (1, 64), (32, 1)])
def test_sums_of_rounded_tiles(kernel, extents, tile, channels):
    microkernels.select(kernel, "bfloat16")
    check(ConvProblem(3, *extents, *channels, 3, padding="same", dtype="bfloat16"), tile)


@pytest.mark.parametrize("padding", ["valid", ((1, 2), (2, 0)), ((2, 2), (2, 2))])
def test_padding(padding):
    p = ConvProblem(2, 14, 11, 18, 40, 3, padding=padding, dtype="bfloat16")
    check(p, (2, 4, 4))


def test_many_blocks_of_tiles():
    """Both ways of backward_weights: one block, several of them; and filters that are transformed a panel at a time."""
    check(ConvProblem(40, 16, 12, 20, 33, 3, padding="same", dtype="bfloat16"), (2, 4, 4))
    check(ConvProblem(3, 4, 4, 300, 290, 3, padding="same", dtype="bfloat16"), (2, 4, 4))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, *(slow(seed) for seed in range(4, 40))])
def test_random_problems(seed):
    rng = np.random.default_rng(seed)
    n, h, w, ci, co = (int(v) for v in rng.integers((1, 3, 3, 1, 1), (5, 24, 24, 70, 70)))
    dilation = int(rng.integers(1, 3)) if min(h, w) > 4 else 1
    p = ConvProblem(n, h, w, ci, co, 3, 1, "same", dilation, dtype="bfloat16")
    x, weights, dy = arrays_of(p)
    for got, want in zip(computed(p, x, weights, dy), exact_passes(p, x, weights, dy), strict=True):
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


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("sizes", [(3, 8, 7, 40, 33), (3, 4, 4, 300, 290)])
def test_forward_adds_activates_and_gathers(sizes, activation):
    p = ConvProblem(*sizes, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    bias, added = random((p.co,), 4), rounded(random(p.y_shape, 5))
    y, (mean, variance) = np.empty(p.y_shape, np.uint16), np.empty((2, p.co), np.float32)
    bound(p, "forward", dtypes.to_bits(x), w, y, "winograd_bf16", bias=bias, residual=dtypes.to_bits(added),
          activation=activation, alpha=0.25, moments=(mean, variance))  # fmt: skip
    tile = ext.tile(p.oh, p.ow, "forward", "rounded")
    want = ACTIVATIONS[activation](model(p, x, w, dy, (tile, (4, 4), (4, 4)))[0] + bias + added)
    error = np.maximum(np.abs(dtypes.from_bits(y) - want) - np.abs(want) * 2**-8, 0)
    assert error.max() <= 0.01 * np.sqrt(9 * p.ci)  # a number that is rounded to the other side
    assert np.sqrt(np.mean(error**2)) <= 0.002 * np.sqrt(9 * p.ci)
    stored = dtypes.from_bits(y).astype(np.float64).reshape(-1, p.co)
    np.testing.assert_allclose(mean, stored.mean(0), atol=4e-6 * stored.std(0).max())
    np.testing.assert_allclose(variance, stored.var(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sizes", [(3, 8, 7, 40, 33), (3, 4, 4, 300, 290)])
def test_backward_data_adds_and_gathers(sizes):
    """In a workspace of NaN that is not longer than it has to be."""
    p = ConvProblem(*sizes, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    before = rounded(random(p.x_shape, 7))
    dx, sums = dtypes.to_bits(before), np.empty((2, p.ci), np.float32)
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy), "winograd_bf16", accumulate=True,
          reductions=(dtypes.to_bits(x), (mean, scale, beta, "relu"), *sums))  # fmt: skip
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


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("activation", ["relu", None])
@pytest.mark.parametrize(("extents", "tile"), EXTENTS)
def test_images_are_normalized_as_they_are_read(kernel, extents, tile, activation):
    """In float32; what lies outside of an image, or is no tile of it, is zero, not what zero is normalized to."""
    microkernels.select(kernel, "bfloat16")
    p = ConvProblem(3, *extents, 35, 19, 3, padding="same", dtype="bfloat16")
    x, _, dy = arrays_of(p)
    w, (mean, scale, beta) = random(p.w_shape, 2), random((3, p.ci), 6)
    read = (x - mean) * scale + beta
    read = read if activation is None else np.maximum(read, 0)
    y, dw = np.empty(p.y_shape, np.uint16), np.empty(p.w_shape, np.float32)
    how = {"prologue": (mean, scale, beta, activation)}
    bound(p, "forward", dtypes.to_bits(x), w, y, "winograd_bf16", **how)
    bound(p, "backward_weights", dtypes.to_bits(x), dw, dtypes.to_bits(dy), "winograd_bf16", **how)
    sides = (tile[:2], (tile[2], tile[2]), (tile[2], tile[2]))
    wanted, plain = model(p, read, w, dy, sides), exact_passes(p, read, w, dy)
    for got, of in ((dtypes.from_bits(y), 0), (dw, 2)):
        of_tiles = np.sqrt(np.mean((wanted[of] - plain[of]) ** 2))
        error = np.maximum(np.abs(got - wanted[of]) - (of == 0) * np.abs(wanted[of]) * 2**-8, 0)
        assert np.sqrt(np.mean(error**2)) <= 0.1 * of_tiles + 2e-6 * np.abs(wanted[of]).max()


def test_slices_of_channels():
    p = ConvProblem(2, 6, 7, 24, 40, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    wide = {name: np.full((*shape[:3], shape[3] + 30), 7, np.uint16) for name, shape in
            (("x", p.x_shape), ("dx", p.x_shape), ("dy", p.y_shape))}  # fmt: skip
    wide["x"][..., 3:27], wide["dy"][..., 5:45] = dtypes.to_bits(x), dtypes.to_bits(dy)
    wide["y"] = np.full_like(wide["dy"], 7)
    y = forward(p, wide["x"][..., 3:27], w, out=wide["y"][..., 6:46], algorithm="winograd_bf16")
    dx = backward_data(p, wide["dy"][..., 5:45], w, out=wide["dx"][..., 9:33], algorithm="winograd_bf16")
    dw = backward_weights(p, wide["x"][..., 3:27], wide["dy"][..., 5:45], algorithm="winograd_bf16")
    plain = computed(p, x, w, dy)
    np.testing.assert_array_equal(dtypes.from_bits(y), plain[0])
    np.testing.assert_array_equal(dtypes.from_bits(dx), plain[1])
    np.testing.assert_array_equal(dw, plain[2])
    for name, first, last in (("y", 6, 46), ("dx", 9, 33)):
        assert np.all(wide[name][..., :first] == 7)
        assert np.all(wide[name][..., last:] == 7)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_so(value):
    p = ConvProblem(1, 9, 9, 33, 17, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    dy[0, 4, 4, 5] = x[0, 4, 4, 5] = value
    y, dx, _ = computed(p, x, w, dy)
    assert not np.isfinite(y[0, 3:6, 3:6]).any()
    dw = computed(p, arrays_of(p)[0], w, dy)[2]
    assert not np.isfinite(dx[0, 3:6, 3:6]).any()
    assert not np.isfinite(dw[..., 5]).any()
    assert np.isfinite(np.delete(dw, 5, axis=-1)).all()


def test_it_is_chosen_where_products_of_bfloat16_are_fast():
    p = ConvProblem(16, 28, 28, 128, 128, 3, padding="same", dtype="bfloat16")
    fast = KERNELS[0] == "avx512_bf16"
    assert [algorithms(p, direction)[0] == "winograd_bf16" for direction in DIRECTIONS] == [fast] * 3
    try:
        config.set_conv_precision("strict")
        assert all("winograd" not in name for direction in DIRECTIONS for name in algorithms(p, direction))
    finally:
        config.set_conv_precision("fast")


def test_what_it_does_not_do_says_so():
    sizes = {"n": 1, "ih": 9, "iw": 9, "ci": 8, "co": 8, "kernel": 3}
    reasons = explain(ConvProblem(**sizes), "backward_data")
    assert reasons["winograd_bf16"] == "winograd_bf16 has passes for bfloat16 only, got float32"
    p = ConvProblem(**sizes, dtype="bfloat16")
    assert explain(p, "backward_data")["winograd_bf16"] is None
    assert explain(p, "forward")["winograd_bf16"] is None
    volume = ConvProblem.of((1, 5, 6, 7, 4), (3, 3, 3, 4, 4), dtype="bfloat16")
    assert "of two axes" in explain(volume, "backward_weights")["winograd_bf16"]
    others = [name for name in USABLE if name not in KERNELS]
    if others:
        microkernels.select(others[0], "bfloat16")
        assert "micro-kernel" in explain(p, "backward_data")["winograd_bf16"]
