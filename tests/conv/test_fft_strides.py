"""Strides in the Fourier domain: phases of images and of filters."""

import numpy as np
import pytest

from pydtconv import config, conv
from pydtconv.conv import ConvProblem, bases
from pydtconv.conv.algorithms import TABLE, phase_taps
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import DIRECTIONS
from tests.conv.cases import case_of, channel_slice

FAMILIES = ("fft", "fft_overlap_add")
CASES = [
    case_of(ConvProblem(2, 23, 27, 3, 18, 11, 4)),
    case_of(ConvProblem(3, 13, 12, 5, 7, (5, 4), (2, 3), ((2, 1), (3, 0)))),
    case_of(ConvProblem(2, 14, 9, 6, 8, (7, 3), (3, 1), "same", dilation=(1, 2), groups=2, dtype="float64")),
    case_of(ConvProblem(2, 9, 9, 4, 6, 3, 2, ((1, 1), (1, 1)), groups=2)),
    case_of(ConvProblem.of((3, 100, 4), (9, 4, 20), strides=2, padding="same")),
    case_of(ConvProblem(1, 16, 15, 2, 3, (3, 9), (4, 7), ((3, 5), (5, 6)))),
]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_passes(family, direction):
    for i, case in enumerate(CASES):
        config.set_num_threads(1 + i % 3)
        for basis in bases.ranking(case.p, direction, 100.0, family)[::40]:
            name = f"{family} {bases.written(basis)}"
            case.check(name, direction, case.run(name, direction))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_channel_slices_and_threads(direction):
    for case in CASES:
        x, y = channel_slice(case.x), channel_slice(case.dy)
        results = []
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            w = case.w.copy()
            written = {"forward": y, "backward_data": x, "backward_weights": w}[direction]
            written[...] = np.nan
            bias = case.b if direction == "forward" else None
            space = scratch(conv.workspace_bytes(case.p, direction, "fft"))
            run(bind(case.p, direction, "fft", x, w, y, bias=bias), space)
            case.check("fft", direction, written)
            results.append(written.tobytes())
        assert len(set(results)) == 1
        for wide in (x.base, y.base):
            assert np.isnan(wide[..., :3]).all()


def test_dx_is_added_to():
    for case in CASES[:4]:
        dx = case.x.copy()
        space = scratch(conv.workspace_bytes(case.p, "backward_data", "fft"))
        run(bind(case.p, "backward_data", "fft", dx, case.w, case.dy, accumulate=True), space)
        np.testing.assert_allclose(dx, case.x + case.want["backward_data"], rtol=0, atol=1e-4 * np.abs(dx).max())


def test_spectra_that_forward_keeps():
    case, row = CASES[0], TABLE["fft 12x12"]
    spectra = np.full(row.spectra_size(case.p), np.nan, "float32")
    y, dw = np.empty(case.p.y_shape, "float32"), np.empty(case.p.w_shape, "float32")
    space = [scratch(row.workspace_bytes(case.p, direction)) for direction in ("forward", "backward_weights")]
    run(bind(case.p, "forward", row.name, case.x, case.w, y, bias=case.b, spectra=spectra), space[0])
    case.check("fft", "forward", y)
    nowhere = np.full(case.p.x_shape, np.nan, "float32")  # x itself is not read again
    run(bind(case.p, "backward_weights", row.name, nowhere, dw, case.dy, spectra=spectra), space[1])
    case.check("fft", "backward_weights", dw)


def test_taps_of_phases():
    """11 taps at a stride of 4 are 3 of each of 16 phases; a padding of 1 shifts them."""
    assert [phase_taps(axis) for axis in ConvProblem(1, 30, 30, 1, 1, 11, 4).axes] == [1, 3, 3]
    assert [phase_taps(axis) for axis in ConvProblem(1, 30, 30, 1, 1, 4, 4, ((1, 0), (0, 0))).axes] == [1, 2, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": 4, "strides": 4}, "filters of more than one tap, got 4x4 of 4x4 phases"),
        ({"kernel": 3, "strides": 2, "dilation": 2}, "phases of dilation 1, got strides 2, 2 and dilation 2, 2"),
    ],
)
def test_reasons(options, words):
    p = ConvProblem(1, 16, 16, 8, 8, **options)
    for family in FAMILIES:
        assert words in str(conv.explain(p, "forward")[family])


def test_reductions_are_not_gathered():
    """Whose sums are over pixels of dx, not of its phases."""
    assert TABLE["fft"].gathers_reductions(ConvProblem(1, 16, 16, 8, 8, 5))
    assert not TABLE["fft 8x8"].gathers_reductions(ConvProblem(1, 16, 16, 8, 8, 5, 2))


def test_auto_takes_phases_of_long_signals_and_not_of_images_of_few_channels():
    """As measured: 1.5 times direct's speed for 15 taps of signals, half of it for the first layer of a ResNet."""
    signals = ConvProblem.of((32, 1024, 64), (15, 64, 128), 2, "same")
    assert conv.algorithms(signals, "forward")[0].startswith("fft")
    for p in (ConvProblem(16, 224, 224, 3, 64, 7, 2, "same"), ConvProblem(64, 32, 32, 64, 128, 3, 2, "same")):
        for direction in DIRECTIONS:
            assert not conv.algorithms(p, direction)[0].startswith("fft")
