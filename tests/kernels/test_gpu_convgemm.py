"""CONVGEMM for GPUs: each tile, and problems drawn at random, beside the CPU's plain sums in double.

The device "host" reports what is read or written outside of arrays, packs that are not aligned, and races.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, conv, devices
from pydtconv.conv import ConvProblem
from pydtconv.kernels.gpu.convolutions import choose
from pydtconv.kernels.gpu.convolutions.convgemm import Convgemm, Plan, plan_of, residues, shares_lines
from pydtconv.kernels.gpu.convolutions.tiles import tiles_of
from tests.devices.accelerators import back, on_each, there

DIRECTIONS = ("forward", "backward_data", "backward_weights")
#: of sums of products, whose operands are rounded before; a GPU's tensor cores cut off what float32 rounds
WITHIN = {"float32": 3e-6, "float64": 1e-13, "tf32": 1e-5}
#: a pass, whether channels are moved in packs, numbers, and whether taps of a line share what is read of images
KINDS = [
    *product(DIRECTIONS, (True, False), WITHIN, (False,)),
    *((direction, True, "tf32", True) for direction in DIRECTIONS),
]


class Planned(Convgemm):
    """By a plan of its own."""

    def __init__(self, plan):
        self._plan = plan

    def plan(self, p, direction, wide, tf32=False):
        return self._plan


def arrays_of(p, rng):
    return [rng.normal(size=shape).astype(p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape)]


def run(algorithm, p, direction, arrays, device="host", adds=False, cut=0):
    """A pass; adds: to ones; cut: channels behind those of the images, which are slices."""
    launcher, nbytes = devices.get(device).launcher(), algorithm.workspace(p, direction)
    x, w, dy = (_sliced(device, array, cut if i != 1 else 0) for i, array in enumerate(arrays))
    shape = {"forward": p.y_shape, "backward_data": p.x_shape, "backward_weights": p.w_shape}[direction]
    made = np.full(shape, 1 if adds else np.nan, p.dtype)
    out = _sliced(device, made, 0 if direction == "backward_weights" else cut)
    workspace = there(device, np.full(nbytes, 0xFF, np.uint8))
    if direction == "backward_weights":
        algorithm.backward_weights(launcher, p, x, dy, out, workspace)()
    else:
        operands = (x, w) if direction == "forward" else (dy, w)
        getattr(algorithm, direction)(launcher, p, *operands, out, workspace, adds)()
    return back(device, out)


def _sliced(device, array, cut):
    whole = np.full((*array.shape[:-1], array.shape[-1] + cut), np.nan, array.dtype)
    whole[..., : array.shape[-1]] = array
    return there(device, whole)[..., : array.shape[-1]]


def expected(p, direction, arrays):
    p = ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, p.groups, "float64")
    x, w, dy = (array.astype("float64") for array in arrays)
    operands = {"forward": (x, w), "backward_data": (dy, w), "backward_weights": (x, dy)}[direction]
    name = "depthwise" if p.groups == p.ci > 1 else "direct"
    return getattr(conv, direction)(p, *operands, algorithm=name)


def rounded(array):
    """The TF32 nearest to each number, by arithmetic: 11 bits of its significand; of two the one further from 0."""
    significand, exponent = np.frexp(array)
    found = np.trunc(significand.astype("float64") * 2**11 + np.copysign(0.5, significand))
    return np.ldexp(found, exponent - 11).astype(array.dtype)


@pytest.fixture
def tf32():
    """Operands may be rounded to TF32."""
    config.set_float32_matmul_precision("high")
    yield
    config.set_float32_matmul_precision("highest")


def check(got, want, dtype):
    np.testing.assert_allclose(got, want, rtol=0, atol=WITHIN[dtype] * max(np.abs(want).max(), 1))


@pytest.mark.parametrize(("direction", "wide", "numbers", "lines"), KINDS)
@on_each
def test_each_tile_and_its_edges(direction, wide, numbers, lines, device):
    """Rows and columns of one tile and a little more, sums that end within a step, of few steps and of parts; tiles
    without slices add terms in one order, so that they have the same bits."""
    rng, bits, dtype = np.random.default_rng(2), [], "float64" if numbers == "float64" else "float32"
    tf32 = numbers == "tf32"
    if tf32 and not devices.get(device).has_tf32:
        pytest.skip("this GPU has no TF32")
    plain_tile = tiles_of(direction, False, tf32)[-1]
    for tile in tiles_of(direction, wide, tf32, lines):
        height, width = tile.sizes(np.dtype(dtype).itemsize)
        more = 4 if wide else 1
        if direction == "backward_weights":
            ci, co, extents = -(-height // 12) * 4 + 4, width + more, (5, 7)
        else:
            ci, co, extents = 12, width + more, (3, (height + 3) // 3)
        if direction == "backward_data":
            ci, co = co, ci
        if not wide:
            ci += 1 - ci % 2
        p = ConvProblem(1, *extents, ci, co, (1, 3), padding="same", dtype=dtype)
        arrays = arrays_of(p, rng)
        parts, pixels = (3, 16) if direction == "backward_weights" else (1, 0)
        got = run(Planned(Plan(tile, wide, parts, pixels)), p, direction, arrays, device)
        want = expected(p, direction, [rounded(array) if tf32 else array for array in arrays])
        check(got, want, numbers)
        if tile.slices == 1:
            other = Plan(plain_tile, False, parts, pixels)
            bits.append((got, run(Planned(other), p, direction, arrays, device)))
    for got, plain in bits:
        np.testing.assert_array_equal(got, plain)


def draw(rng):
    """A problem of one to three axes: strides, dilation, padding by side, groups, few channels."""
    rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
    ci, co = (groups * int(rng.choice(counts)) for counts in ([1, 3, 4, 8, 20], [1, 4, 7, 20, 36]))
    kernel, strides, dilation = (tuple(map(int, rng.integers(1, most, rank))) for most in (5, 4, 4))
    padding = tuple((int(first), int(last)) for first, last in rng.integers(0, 4, (rank, 2)))
    extents = map(int, rng.integers(1, {1: 150, 2: 14, 3: 7}[rank], rank))
    dtype, images = str(rng.choice(["float32", "float64"])), int(rng.integers(1, 4))
    x, w = (images, *extents, ci), (*kernel, ci // groups, co)
    try:
        return ConvProblem.of(x, w, strides, padding, dilation, groups, dtype)
    except ValueError:  # no output
        return draw(rng)


@pytest.mark.parametrize("seed", range(4))
@on_each
def test_random_problems(seed, device):
    rng = np.random.default_rng(seed)
    for number in range(6):
        p = draw(rng)
        arrays = arrays_of(p, rng)
        for direction in DIRECTIONS:
            adds = direction != "backward_weights" and number % 2 == 1
            got = run(Convgemm(), p, direction, arrays, device, adds, cut=(0, 1, 4)[number % 3])
            check(got - adds, expected(p, direction, arrays), p.dtype)


@pytest.mark.usefixtures("tf32")
@on_each
def test_random_problems_in_tf32(device):
    """Of float32 alone, and what is off is the rounding of operands."""
    if not devices.get(device).has_tf32:
        pytest.skip("this GPU has no TF32")
    rng = np.random.default_rng(9)
    for number in range(10):
        p = draw(rng)
        arrays = arrays_of(p, rng)
        narrow = [rounded(array) for array in arrays] if p.dtype == "float32" else arrays
        for direction in DIRECTIONS:
            adds = direction != "backward_weights" and number % 2 == 1
            got = run(Convgemm(), p, direction, arrays, device, adds, cut=(0, 1, 4)[number % 3])
            check(got - adds, expected(p, direction, narrow), "tf32" if p.dtype == "float32" else p.dtype)


def by_lines(p, direction):
    """Taps of a line share what they read: the plan's tile, of backward_weights the last one, with parts."""
    tile, pixels = plan_of(p, direction, True, True).tile, p.n * math.prod(p.out)
    if direction == "backward_weights":
        tile = tiles_of(direction, True, True, True)[-1]
    assert tile.lines
    return Planned(Plan(tile, True, *(-(-pixels // 16), 16) if direction == "backward_weights" else ()))


@pytest.mark.usefixtures("tf32")
@pytest.mark.parametrize("kernel", [2, 3, 8])
@on_each
def test_taps_of_a_line_that_share_pixels(kernel, device):
    """Lines narrower and wider than filters, padding by side, strides of other axes, groups of channels that end within
    a step, infinities at the ends of lines; slices of channels."""
    if not devices.get(device).has_tf32:
        pytest.skip("this GPU has no TF32")
    rng = np.random.default_rng(kernel)
    for number, (extents, ci, co, groups) in enumerate(
        [((5, 3), 20, 12, 1), ((4, 21), 8, 24, 2), ((2, 3, 9), 4, 36, 1)]
    ):
        left = (0, kernel - 1, kernel // 2)[number]
        sides = ((1, 1),) * (len(extents) - 1) + ((left, kernel - 1 - left),)
        strides = (*(2,) * (len(extents) - 1), 1)
        w = (*(3,) * (len(extents) - 1), kernel, ci // groups, co)
        p = ConvProblem.of((2, *extents, ci), w, strides, sides, (1,) * len(extents), groups, "float32")
        directions = DIRECTIONS if kernel == 3 else DIRECTIONS[:2]
        assert all(shares_lines(p, direction) for direction in directions)
        assert kernel == 3 or not shares_lines(p, "backward_weights")
        arrays = [rounded(array) for array in arrays_of(p, rng)]
        for direction in directions:
            adds = number == 1 and direction != "backward_weights"
            got = run(by_lines(p, direction), p, direction, arrays, device, adds, cut=4 * number)
            check(got - adds, expected(p, direction, arrays), "tf32")
        x, w, dy = arrays
        x[:, 0, ..., -1, 1], infinite = np.inf, dy.copy()
        infinite[:, -1, ..., 0, 2] = -np.inf
        for direction in directions:  # backward_weights multiplies dy with the zeros of padding
            arrays = x, w, infinite if direction == "backward_data" else dy
            got = run(by_lines(p, direction), p, direction, arrays, device)
            want = expected(p, direction, arrays)
            np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.usefixtures("tf32")
def test_a_device_without_tf32_multiplies_in_float32(monkeypatch):
    p = ConvProblem(1, 5, 5, 4, 8, (3, 3))
    arrays = arrays_of(p, np.random.default_rng(0))
    monkeypatch.setattr(devices.get("host"), "has_tf32", False)
    for direction in DIRECTIONS:
        check(run(Convgemm(), p, direction, arrays), expected(p, direction, arrays), "float32")


@pytest.mark.parametrize("precision", ["highest", "high"])
def test_what_overflows_is_not_multiplied(precision):
    """Padding and the ends of sums are zeros in both operands: infinities elsewhere stay where they are."""
    config.set_float32_matmul_precision(precision)
    p = ConvProblem(1, 5, 5, 3, 4, (3, 3), padding="same")
    x, w, dy = arrays_of(p, np.random.default_rng(0))
    x[0, 0, 0], w[..., 2], dy[0, 4, 4, 1] = np.inf, np.inf, np.inf
    for direction in DIRECTIONS:
        got, want = run(Convgemm(), p, direction, (x, w, dy)), expected(p, direction, (x, w, dy))
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    config.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("sizes", [(9, 3, 2, 1, 1), (10, 5, 3, 2, 4), (7, 2, 3, 3, 0), (4, 1, 5, 1, 0)])
def test_residues_have_the_taps_that_reach_them(sizes):
    extent, kernel, stride, dilation, before = sizes
    axis, found = ConvProblem.of((1, extent, 1), (kernel, 1, 1), stride, ((before, 4),), dilation).axes[-1], set()
    for side in residues(axis):
        for row in range(side.rows):
            pixel = side.start + row * side.stride
            outs = [row + side.offset + i * side.step for i in range(side.taps)]
            found |= {(pixel, out, side.first + i * side.period) for i, out in enumerate(outs) if 0 <= out < axis.out}
    reached = {(o * stride - before + t * dilation, o, t) for o in range(axis.out) for t in range(kernel)}
    assert found == {each for each in reached if 0 <= each[0] < extent}
    assert sum(side.rows for side in residues(axis)) == extent


def test_when_it_is_the_default():
    def first(direction="forward", **given):
        return choose(ConvProblem(**{"n": 2, "ih": 9, "iw": 9, "ci": 8, "co": 8, "kernel": 3} | given), direction, None)

    assert {first(direction).algorithm for direction in DIRECTIONS} == {"convgemm"}
    assert first(ci=3, co=5, strides=2).algorithm == "convgemm"
    assert first(kernel=1).algorithm == first(dtype="float64").algorithm == "im2col"
    config.set_float32_matmul_precision("high")
    try:
        assert first().algorithm == "convgemm"
        assert first(dtype="float64").algorithm == first(kernel=1).algorithm == "im2col"
    finally:
        config.set_float32_matmul_precision("highest")
    config.set_conv_workspace_limit(0)
    try:
        assert first(dtype="float64").algorithm == "convgemm"
    finally:
        config.set_conv_workspace_limit(None)


def test_memory_is_that_of_partial_sums():
    p = ConvProblem(16, 56, 56, 64, 64, (3, 3), padding="same")
    need = {direction: Convgemm().workspace(p, direction) for direction in DIRECTIONS}
    assert need["forward"] == need["backward_data"] == 0
    parts = {plan_of(p, "backward_weights", wide).parts for wide in (True, False)}
    assert need["backward_weights"] == max(parts) * 4 * math.prod(p.w_shape) > 0
    by_im2col = conv.workspace_bytes(p, "backward_weights", "im2col", "host")
    assert need["backward_weights"] < by_im2col / 5
    small = ConvProblem(2, 8, 8, 64, 64, (3, 3), padding="same")
    assert Convgemm().workspace(small, "backward_weights") == 0


@pytest.mark.usefixtures("tf32")
def test_memory_in_tf32_is_that_of_the_most_parts():
    """A device with TF32 has other tiles, and other parts, than one without."""
    p = ConvProblem(16, 56, 56, 64, 64, (3, 3), padding="same")
    parts = [plan_of(p, "backward_weights", wide, tf32).parts for wide in (True, False) for tf32 in (True, False)]
    assert plan_of(p, "backward_weights", True, True).tile.suffix == "_lines_tf32"
    assert Convgemm().workspace(p, "backward_weights") == max(parts) * 4 * math.prod(p.w_shape)


def test_what_does_not_fit_is_refused_by_name():
    p = ConvProblem(2, 40000, 40000, 1, 1, (3, 3))
    with pytest.raises(ValueError, match="'convgemm' of forward on a GPU: expected at most 2147482624 pixels"):
        choose(p, "forward", "convgemm")
    assert choose(p, "forward", None).algorithm == "im2col"


def test_a_plan_has_no_columns():
    def peak(algorithm):
        convolution = keras.layers.Conv2D(16, 3, padding="same", algorithm=algorithm)
        model = keras.Sequential([keras.Input((16, 16, 16)), convolution, keras.layers.Flatten()])
        model.compile("sgd", "mse")
        with keras.device("host"):
            plan = model.plan(batch_size=8)
        (names,) = plan.algorithms.values()
        return set(names.values()), plan.peak_bytes

    (names, without), (_, by_im2col) = peak(None), peak("im2col")
    assert names == {"convgemm"}
    assert by_im2col - without > 7 * 16 * 16 * 16 * 9 * 4, "columns of most of the batch"
