"""Algorithms of convolution for GPUs, run on this machine and on a GPU: the CPU's plain sums, in double."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import conv, devices
from pydtconv.conv import ConvProblem
from pydtconv.kernels.gpu.convolutions import TABLE, candidates, choose, explain, kept
from pydtconv.kernels.gpu.convolutions.strategies import basis_of, fitting, read, tiles_of
from tests.devices.accelerators import back, on_each, there
from tests.marks import slow

DIRECTIONS = ("forward", "backward_data", "backward_weights")
PROBLEMS = {
    "3x3_same": ConvProblem(2, 9, 7, 3, 5, kernel=(3, 3), padding="same"),
    "3x3_valid": ConvProblem(3, 8, 8, 2, 4, kernel=(3, 3)),
    "5x4_sides": ConvProblem(1, 11, 12, 2, 3, kernel=(5, 4), padding=((3, 0), (1, 3))),
    "11x11": ConvProblem(1, 20, 17, 2, 2, kernel=(11, 11), padding="same"),
    "1x7": ConvProblem(2, 5, 15, 2, 3, kernel=(1, 7), padding="same"),
    "tiles": ConvProblem(1, 39, 70, 1, 2, kernel=(3, 3), padding="same"),
    "signal": ConvProblem.of((2, 300, 2), (9, 2, 3), 1, "same", 1, 1, "float64"),
    "channels": ConvProblem(1, 5, 5, 35, 3, kernel=(2, 2)),
    "s2_groups": ConvProblem(2, 9, 8, 4, 6, kernel=(3, 3), strides=(2, 1), padding="same", groups=2),
    "pointwise": ConvProblem(2, 4, 5, 6, 3, kernel=(1, 1)),
}


def arrays_of(p, dtype="float64"):
    rng = np.random.default_rng(3)
    return (rng.normal(size=shape).astype(dtype) for shape in (p.x_shape, p.w_shape, p.y_shape))


def run(p, direction, name, x, w, dy, adds=False, start=None, sliced=False, spectra=None, device="host"):
    """A pass of an algorithm on a device; sliced: images are slices of channels; spectra: that passes share."""
    algorithm, launcher = TABLE[name], devices.get(device).launcher()
    workspace = there(device, np.full(algorithm.workspace(p, direction, spectra or ()), 0xFF, np.uint8))
    image = p.y_shape if direction == "forward" else p.x_shape
    channels = image[-1]
    out = np.full((*image[:-1], channels + 3 * sliced), np.nan, x.dtype)
    if start is not None:
        out[..., :channels] = start
    x, w, dy = (there(device, array) for array in (x, w, dy))
    target = there(device, out)[..., :channels]
    if direction == "forward":
        algorithm.forward(launcher, p, x, w, target, workspace, adds, spectra)()
    elif direction == "backward_data":
        algorithm.backward_data(launcher, p, dy, w, target, workspace, adds, spectra)()
    else:
        target = there(device, np.full(p.w_shape, np.nan, out.dtype))
        algorithm.backward_weights(launcher, p, x, dy, target, workspace, spectra)()
    return back(device, target)


def expected(p, direction, x, w, dy):
    operands = {"forward": (x, w), "backward_data": (dy, w), "backward_weights": (x, dy)}[direction]
    return getattr(conv, direction)(p, *operands, algorithm="im2col")


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("problem", PROBLEMS)
@on_each
def test_each_algorithm_computes_the_plain_sum(problem, direction, device):
    p = PROBLEMS[problem]
    p = ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, p.groups, "float64")
    x, w, dy = arrays_of(p)
    want = expected(p, direction, x, w, dy)
    within = 1e-12 * np.abs(want).max()
    for name, reason in explain(p, direction).items():
        if reason is None:
            np.testing.assert_allclose(
                run(p, direction, name, x, w, dy, device=device), want, atol=1e-12 * np.abs(want).max()
            )
            if direction != "backward_weights":
                got = run(p, direction, name, x, w, dy, True, np.ones_like(want), True, device=device)
                np.testing.assert_allclose(got, want + 1, atol=within)


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
@on_each
def test_fourier_in_single_precision(direction, device):
    p = ConvProblem(2, 12, 12, 8, 8, kernel=(5, 5), padding="same", dtype="float32")
    x, w, dy = arrays_of(p, "float32")
    want = expected(p, direction, x, w, dy)
    np.testing.assert_allclose(run(p, direction, "fft", x, w, dy, device=device), want, atol=2e-6 * np.abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["3x3_same", "5x4_sides", "tiles", "signal", "1x7"])
@on_each
def test_each_strategy_computes_the_plain_sum(problem, device):
    """Whole images and tiles, complex products and Gauss's, one and two axes; what is tried when passes are tuned."""
    p = PROBLEMS[problem]
    p = ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, p.groups, "float64")
    x, w, dy = arrays_of(p)
    for direction in DIRECTIONS:
        want, names = expected(p, direction, x, w, dy), candidates(p, direction, 4)
        assert names[:2] == ["convgemm", "im2col"]
        assert {read(name).products for name in names[2:]} == {"gauss", "complex"}
        for name in names[2:]:
            np.testing.assert_allclose(
                run(p, direction, name, x, w, dy, device=device), want, atol=1e-12 * np.abs(want).max()
            )


@pytest.mark.parametrize("products", ["gauss", slow("complex")])
@pytest.mark.parametrize(
    ("problem", "points", "shared"),
    [
        ("3x3_same", "16x16", ("spectra", "w_spectra", "dy_spectra")),
        ("5x4_sides", "16x16", ("spectra", "w_spectra", "dy_spectra")),
        ("3x3_valid", "8x4", ("spectra", "w_spectra")),
    ],
)
@on_each
def test_passes_that_share_spectra_give_the_same_bits(problem, points, shared, products, device):
    """With less workspace, and without the transforms of what is there: it is not read again."""
    p = PROBLEMS[problem]
    p = ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, p.groups, "float64")
    (x, w, dy), name = arrays_of(p), f"fft {points} {products}"
    found = {each.name: each for each in kept(p, dict.fromkeys(DIRECTIONS, name))}
    assert tuple(found) == shared
    assert [each.within_backward for each in found.values()] == [each == "dy_spectra" for each in shared]
    spectra = {each.name: there(device, np.full(each.spec.shape, np.nan)) for each in found.values()}

    def run_here(direction, x, w, dy, spectra=None):
        return run(p, direction, name, x, w, dy, spectra=spectra, device=device)

    for direction in ("forward", "backward_weights", "backward_data"):
        alone = run_here(direction, x, w, dy)
        together = run_here(direction, x, w, dy, spectra)
        np.testing.assert_array_equal(together, alone)
        assert TABLE[name].workspace(p, direction, spectra) < TABLE[name].workspace(p, direction)
    nothing = np.full_like(x, np.nan), np.full_like(w, np.nan), np.full_like(dy, np.nan)
    got = run_here("backward_weights", nothing[0], w, dy, spectra)
    np.testing.assert_array_equal(got, run_here("backward_weights", x, w, dy))
    if "dy_spectra" in shared:
        got = run_here("backward_data", x, nothing[1], nothing[2], spectra)
        np.testing.assert_array_equal(got, run_here("backward_data", x, w, dy))


def test_what_passes_cannot_share():
    p = PROBLEMS["3x3_same"]
    names = dict.fromkeys(DIRECTIONS, "fft 16x16 gauss")
    assert not list(kept(p, dict.fromkeys(DIRECTIONS, "im2col")))
    assert [each.name for each in kept(p, names | {"forward": "fft 16x16 complex"})] == ["dy_spectra"]
    assert [each.name for each in kept(p, names | {"backward_weights": "fft 8x8 gauss"})] == ["w_spectra"]


def test_images_of_one_column_are_refused():
    p = ConvProblem(2, 9, 1, 3, 5, kernel=(3, 1), padding="same")
    assert explain(p, "forward")["fft"] == "expected images of more than one column, got one"
    assert candidates(p, "forward", 4) == ["convgemm", "im2col"]


def test_strategies_by_name():
    p = PROBLEMS["3x3_same"]
    assert choose(p, "forward", "fft 8x16 complex").algorithm == "fft 8x16 complex"
    assert choose(p, "forward", "fft 8x16").algorithm == "fft 8x16"
    assert choose(p, "forward", "fft").algorithm == "fft 16x16 gauss"
    assert {(each.height, each.width) for each in fitting(p, "forward")} == {
        (height, width) for height in (4, 8, 16) for width in (4, 8, 16)
    }
    with pytest.raises(ValueError, match="a basis of 2x8 points does not hold 3x3 filters"):
        choose(p, "forward", "fft 2x8")
    for name in ("fft 12x12", "fft 8", "fft 8x8 karatsuba", "fft 512x8"):
        with pytest.raises(ValueError, match="expected one of convgemm, im2col, fft on a GPU, got"):
            choose(p, "forward", name)


def test_what_serves_a_problem():
    p = PROBLEMS["s2_groups"]
    assert choose(p, "forward", None).algorithm == "convgemm"
    with pytest.raises(ValueError, match="'fft' of forward on a GPU: expected strides and dilation of 1, got"):
        choose(p, "forward", "fft")
    with pytest.raises(ValueError, match="expected one of convgemm, im2col, fft on a GPU, got 'winograd'"):
        choose(p, "forward", {"forward": "winograd"})
    assert choose(PROBLEMS["3x3_same"], "backward_data", "fft").algorithm.startswith("fft ")


def test_tiles_cover_all_results_and_read_what_they_need():
    for kernel in range(1, 12):
        for results in range(1, 300, 7):
            basis = basis_of(kernel, results)
            tiles = tiles_of(basis, results, results, kernel // 2)
            assert [t.first for t in tiles] == list(range(0, results, basis.results))
            assert sum(t.count for t in tiles) == results
            for t in tiles:
                assert t.start + t.extent <= basis.points
                assert t.source + t.extent <= results
