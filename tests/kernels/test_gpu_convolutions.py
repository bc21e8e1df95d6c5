"""Algorithms of convolution for GPUs, run on this machine: they are those of the CPU's plain sums, in double."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import conv, devices
from pydtconv.conv import ConvProblem
from pydtconv.devices.host import HostArray
from pydtconv.kernels.gpu.convolutions import TABLE, choose, explain
from pydtconv.kernels.gpu.convolutions.fourier import basis_of, tiles_of

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


def run(p, direction, name, x, w, dy, adds=False, start=None, sliced=False):
    """A pass of an algorithm on the device host; sliced: images are slices of channels."""
    host = devices.get("host")
    launcher = host.launcher()
    workspace = host.zeros((TABLE[name].workspace(p, direction),), np.uint8)
    workspace.memory.view(np.uint8)[:] = 0xFF
    image = p.y_shape if direction == "forward" else p.x_shape
    out = np.full((*image[:-1], image[-1] + 3 * sliced), np.nan, x.dtype)[..., : image[-1]]
    if start is not None:
        out[...] = start
    x, w, dy, target = (HostArray(array) for array in (x, w, dy, out))
    algorithm = TABLE[name]
    if direction == "forward":
        algorithm.forward(launcher, p, x, w, target, workspace, adds)()
    elif direction == "backward_data":
        algorithm.backward_data(launcher, p, dy, w, target, workspace, adds)()
    else:
        out = np.full(p.w_shape, np.nan, x.dtype)
        algorithm.backward_weights(launcher, p, x, dy, HostArray(out), workspace)()
    return out


def expected(p, direction, x, w, dy):
    operands = {"forward": (x, w), "backward_data": (dy, w), "backward_weights": (x, dy)}[direction]
    return getattr(conv, direction)(p, *operands, algorithm="im2col")


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_algorithm_computes_the_plain_sum(problem, direction):
    p = PROBLEMS[problem]
    p = ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, p.groups, "float64")
    x, w, dy = arrays_of(p)
    want = expected(p, direction, x, w, dy)
    for name, reason in explain(p, direction).items():
        if reason is None:
            np.testing.assert_allclose(run(p, direction, name, x, w, dy), want, atol=1e-12 * np.abs(want).max())
            if direction != "backward_weights":
                got = run(p, direction, name, x, w, dy, True, np.ones_like(want), True)
                np.testing.assert_allclose(got, want + 1, atol=1e-12 * np.abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_fourier_in_single_precision(direction):
    p = ConvProblem(2, 12, 12, 8, 8, kernel=(5, 5), padding="same", dtype="float32")
    x, w, dy = arrays_of(p, "float32")
    want = expected(p, direction, x, w, dy)
    np.testing.assert_allclose(run(p, direction, "fft", x, w, dy), want, atol=2e-6 * np.abs(want).max())


def test_what_serves_a_problem():
    p = PROBLEMS["s2_groups"]
    assert choose(p, "forward", None) == "im2col"
    with pytest.raises(ValueError, match="'fft' of forward on a GPU: expected strides and dilation of 1, got"):
        choose(p, "forward", "fft")
    with pytest.raises(ValueError, match="expected one of im2col, fft on a GPU, got 'winograd'"):
        choose(p, "forward", {"forward": "winograd"})
    assert choose(PROBLEMS["3x3_same"], "backward_data", "fft") == "fft"


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
