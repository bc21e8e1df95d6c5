"""Images in bfloat16 through the Fourier domain: float32 between them, and rounded as they are stored."""

import numpy as np
import pytest

from pydtconv import config, dtypes
from pydtconv.conv import ConvProblem, backward_data, backward_weights, bases, forward
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import algorithms, choose, ranking
from tests.conv.test_bfloat16 import arrays_of, bound, check, random

#: parts of vectors and of panels, tiles that images do not fill, and each way in which images are cut
CASES = {
    "wide": ConvProblem(3, 9, 8, 20, 34, 5, padding="same", dtype="bfloat16"),
    "seven": ConvProblem(1, 20, 13, 33, 7, 7, padding=((4, 0), (9, 2)), dtype="bfloat16"),
    "first_layer": ConvProblem(1, 15, 18, 3, 40, 7, padding="same", dtype="bfloat16"),
    "interleaved": ConvProblem(2, 20, 17, 16, 9, (3, 4), padding="same", dilation=(2, 3), dtype="bfloat16"),
    "groups": ConvProblem(2, 12, 14, 12, 40, 5, groups=2, dtype="bfloat16"),
    "phases": ConvProblem(3, 13, 12, 5, 18, (5, 4), (2, 3), ((2, 1), (3, 0)), dtype="bfloat16"),
    "phases_of_groups": ConvProblem(2, 9, 9, 4, 6, 3, 2, ((1, 1), (1, 1)), groups=2, dtype="bfloat16"),
    "signals": ConvProblem.of((3, 100, 9), (31, 9, 20), padding="same", dtype="bfloat16"),
    "volumes": ConvProblem.of((2, 4, 7, 6, 5), (3, 2, 4, 5, 18), padding="same", dtype="bfloat16"),
    "tiles": ConvProblem(3, 24, 24, 20, 24, 5, padding="same", dtype="bfloat16"),
}
FAMILIES = ("fft", "fft_overlap_add")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("case", CASES)
def test_passes_are_rounded_once(case, family):
    p = CASES[case]
    if TABLE[family].reason(p, "forward"):
        assert (case, family) == ("volumes", "fft_overlap_add")
        return
    check(p, family)
    ranked = bases.ranking(p, "forward", 100.0, family)
    other = TABLE[family].with_basis(ranked[len(ranked) // 2])
    if all(other.reason(p, each) is None for each in DIRECTIONS):
        check(p, other.name)


def three_passes(p, name):
    x, w, dy = (dtypes.to_bits(array) if i != 1 else array for i, array in enumerate(arrays_of(p)))
    y, dx = forward(p, x, w, algorithm=name), backward_data(p, dy, w, algorithm=name)
    return [array.tobytes() for array in (y, dx, backward_weights(p, x, dy, algorithm=name))]


@pytest.mark.parametrize("name", ["fft 12x12", "fft 28x28", "fft_overlap_add 12x12"])
def test_results_do_not_depend_on_threads(name):
    found = []
    for threads in (1, 2, 3):
        config.set_num_threads(threads)
        found.append(three_passes(CASES["tiles"], name))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["fft", "fft_overlap_add"])
def test_the_bits_are_those_of_float32_rounded(name):
    """The same tiles, the same numbers in them; filters are not rounded."""
    p = CASES["wide"]
    q = ConvProblem(3, 9, 8, 20, 34, 5, padding="same")
    x, w, dy = arrays_of(p)
    halves = three_passes(p, f"{name} 18x16")
    reals = (
        forward(q, x, w, algorithm=f"{name} 18x16"),
        backward_data(q, dy, w, algorithm=f"{name} 18x16"),
    )
    assert halves[:2] == [dtypes.to_bits(array).tobytes() for array in reals]
    assert halves[2] == backward_weights(q, x, dy, algorithm=f"{name} 18x16").tobytes()


def test_transforms_that_one_pass_leaves_for_another_are_float32():
    name, p = "fft 18x16", CASES["wide"]
    row = TABLE[name]
    x, w, dy = (dtypes.to_bits(array) if i != 1 else array for i, array in enumerate(arrays_of(p)))
    spectra = np.full(row.spectra_size(p), np.nan, np.float32)
    dy_spectra = np.full(row.dy_spectra_size(p, "backward_weights"), np.nan, np.float32)
    y, dx = np.empty(p.y_shape, np.uint16), np.empty(p.x_shape, np.uint16)
    dw, nowhere = np.empty(p.w_shape, np.float32), np.full(p.x_shape, 0x7FC0, np.uint16)  # NaN, which is not read
    space = [scratch(row.workspace_bytes(p, direction)) for direction in DIRECTIONS]
    run(bind(p, "forward", name, x, w, y, spectra=spectra), space[0])
    run(bind(p, "backward_weights", name, nowhere, dw, dy, spectra=spectra, dy_spectra=dy_spectra), space[2])
    run(bind(p, "backward_data", name, dx, w, np.full_like(dy, 0x7FC0), dy_spectra=dy_spectra), space[1])
    assert np.array_equal(y, forward(p, x, w, algorithm=name))
    assert np.array_equal(dw, backward_weights(p, x, dy, algorithm=name))
    assert np.array_equal(dx, backward_data(p, dy, w, algorithm=name))
    with pytest.raises(ValueError, match="spectra: expected dtype float32, got float64"):
        bind(p, "forward", name, x, w, y, spectra=spectra.astype(np.float64))


@pytest.mark.parametrize("family", FAMILIES)
def test_phases_are_added_to_dx(family):
    """With strides dx is rounded before it is added, and after."""
    p = CASES["phases"]
    _, w, dy = arrays_of(p)
    before = dtypes.to_bits(random(p.x_shape, 7))
    dx = before.copy()
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy), family, accumulate=True)
    alone = dtypes.from_bits(backward_data(p, dtypes.to_bits(dy), w, algorithm=family))
    assert np.array_equal(dx, dtypes.to_bits(alone + dtypes.from_bits(before)))


def test_wide_filters_take_it_and_strict_precision_leaves_it_out():
    p = ConvProblem(64, 32, 32, 64, 96, 7, padding="same", dtype="bfloat16")
    for direction in DIRECTIONS:
        assert {"fft", "fft_overlap_add"} <= {name.partition(" ")[0] for name in algorithms(p, direction)}
        assert not any(name.startswith("fft") for name in ranking(p, direction, "strict"))
    assert choose(p, "forward", "fft 36x36").algorithm == "fft 36x36"
