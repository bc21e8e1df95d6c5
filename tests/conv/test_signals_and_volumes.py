"""Convolutions of one and three axes: every algorithm and pass of the table against the reference."""

import numpy as np
import pytest

from pydtconv import config, conv
from pydtconv.conv import ConvProblem, algorithms, explain
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.winograd import TransformedFilters
from tests.conv.cases import IDS, ROWS, case_of, channel_slice, random_cases_of

every_pass = pytest.mark.parametrize(("algorithm", "direction"), ROWS, ids=IDS)


def check(cases, algorithm, direction):
    for i, case in enumerate(cases):
        config.set_num_threads(1 + i % 3)
        case.check(algorithm, direction, case.run(algorithm, direction))


@pytest.mark.parametrize("rank", [1, 3])
@every_pass
def test_random_problems(algorithm, direction, rank):
    cases = random_cases_of(rank, algorithm, direction, 12)
    assert cases or "axes" in TABLE[algorithm].reason(
        ConvProblem.of((1, *(8,) * rank, 8), (*(3,) * rank, 8, 8)), direction
    )
    check(cases, algorithm, direction)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [1, 2, 3])
@every_pass
def test_many_random_problems(algorithm, direction, rank):
    check(random_cases_of(rank, algorithm, direction, 100), algorithm, direction)


@pytest.mark.parametrize("rank", [1, 3])
@every_pass
def test_channel_slices_and_threads(algorithm, direction, rank):
    """Slices of wider images, written in place; the same bits on any number of threads."""
    for case in random_cases_of(rank, algorithm, direction, 3):
        x, y = channel_slice(case.x), channel_slice(case.dy)
        results = []
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            w = case.w.copy()
            written = {"forward": y, "backward_data": x, "backward_weights": w}[direction]
            written[...] = np.nan
            bias = case.b if direction == "forward" else None
            space = np.empty(conv.workspace_bytes(case.p, direction, algorithm), np.uint8)
            run(bind(case.p, direction, algorithm, x, w, y, bias=bias), space)
            case.check(algorithm, direction, written)
            results.append(written.tobytes())
        assert len(set(results)) == 1
        for wide in (x.base, y.base):
            assert np.isnan(wide[..., :3]).all()
            assert np.isnan(wide[..., -2:]).all()


def test_one_axis_is_a_case_of_two():
    p = ConvProblem.of((3, 20, 6), (5, 3, 8), strides=2, padding="same", groups=2)
    q = ConvProblem(3, 1, 20, 6, 8, (1, 5), (1, 2), "same", groups=2)
    assert p.sizes == q.sizes
    assert (p.rank, p.x_shape, p.w_shape, p.y_shape) == (1, (3, 20, 6), (5, 3, 8), (3, 10, 8))
    for direction in DIRECTIONS:
        assert algorithms(p, direction) == algorithms(q, direction)


def test_sizes_of_three_axes():
    p = ConvProblem.of((2, 5, 7, 9, 4), (3, 1, 2, 2, 6), (2, 1, 3), ((1, 0), (0, 0), (2, 1)), (1, 1, 4), 2)
    assert (p.id, p.ih, p.iw, p.od, p.oh, p.ow) == (5, 7, 9, 2, 7, 3)
    assert (p.kd, p.kh, p.kw, p.sd, p.sh, p.sw, p.dil_d, p.dil_h, p.dil_w) == (3, 1, 2, 2, 1, 3, 1, 1, 4)
    assert p.y_shape == (2, 2, 7, 3, 6)
    assert p.flops == 2 * 2 * 2 * 7 * 3 * 6 * 2 * 6
    assert p == ConvProblem.of(p.x_shape, p.w_shape, p.strides, p.padding, p.dilation, 2)
    assert {axis.extent for axis in ConvProblem(1, 3, 4, 1, 1, 1).axes} == {1, 3, 4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((1, 8), (3, 1)), r"x_shape: expected \(n, \*spatial, ci\) with one to three axes, got \(1, 8\)"),
        (((1, 8, 8, 2), (3, 2, 4)), r"w_shape: expected .* with 4 sizes, as \(1, 8, 8, 2\) has, got \(3, 2, 4\)"),
        (((1, 8, 2), (3, 3, 4)), r"w_shape: expected \(3, 2, 4\) for x_shape \(1, 8, 2\) and groups=1, got"),
        (((1, 8, 8, 8, 2), (3, 3, 3, 2, 4), (1, 2)), r"strides: expected an integer or three integers, got \(1, 2\)"),
        (((1, 8, 2), (3, 2, 4), 1, ((0, 0), (1, 1))), r"padding: expected .* \(\(left, right\),\) of integers"),
        (((1, 0, 8, 8, 2), (3, 3, 3, 2, 4)), "id: expected an integer of 1 or more, got 0"),
        (((1, 2, 8, 8, 2), (3, 3, 3, 2, 4)), r"the output would be empty \(0 x 6 x 6\): kernel 3 x 3 x 3"),
        (((1, 8, 8, 8, 2), (3, 3, 3, 2, 4), 1, ((2**31 - 1, 9), (0, 0), (0, 0))), "at most 2147483647 pixels in depth"),
    ],
)
def test_bad_shapes(arguments, message):
    with pytest.raises(ValueError, match=message):
        ConvProblem.of(*arguments)


def test_arrays_that_do_not_fit():
    p = ConvProblem.of((2, 4, 5, 6, 3), (3, 3, 3, 3, 4), padding="same")
    x, w = np.ones(p.x_shape, "float32"), np.ones(p.w_shape, "float32")
    with pytest.raises(ValueError, match=r"x: expected shape \(2, 4, 5, 6, 3\), got \(2, 4, 5, 18\)"):
        conv.forward(p, x.reshape(2, 4, 5, 18), w)
    with pytest.raises(ValueError, match="x: expected an NHWC array in C order"):
        conv.forward(p, x[:, ::-1], w)
    for direction in DIRECTIONS:
        assert [reason for reason in explain(p, direction).values() if reason is None]


def test_a_signal_is_cut_among_threads_and_a_case_stays_exact():
    """One long image of one axis: direct cuts it into chunks."""
    case = case_of(ConvProblem.of((1, 5000, 3), (7, 3, 5), 2, "same"))
    for direction in DIRECTIONS:
        case.check("direct", direction, case.run("direct", direction))


@every_pass
def test_workspace_is_as_large_as_told(algorithm, direction):
    """Of volumes: bytes after the workspace stay, and less is refused."""
    for case in random_cases_of(3, algorithm, direction, 4):
        nbytes = conv.workspace_bytes(case.p, direction, algorithm)
        memory = np.full(nbytes + 4096, 0xA5, np.uint8)
        written = {"forward": "y", "backward_data": "x", "backward_weights": "w"}[direction]
        arrays = {"x": case.x, "w": case.w, "y": case.dy}
        out = arrays[written] = np.full(arrays[written].shape, np.nan, case.p.dtype)
        bound = bind(case.p, direction, algorithm, **arrays, bias=case.b if direction == "forward" else None)
        run(bound, memory[:nbytes])
        case.check(algorithm, direction, out)
        assert (memory[nbytes:] == 0xA5).all()
        if nbytes:
            with pytest.raises(RuntimeError, match="workspace"):
                run(bound, memory[: nbytes - 64])


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("algorithm", [name for name, direction in ROWS if direction == "backward_data"])
def test_accumulate(algorithm, rank):
    for case in random_cases_of(rank, algorithm, "backward_data", 3):
        start = np.random.default_rng(1).standard_normal(case.p.x_shape).astype(case.p.dtype)
        dx = start.copy()
        space = np.empty(conv.workspace_bytes(case.p, "backward_data", algorithm), np.uint8)
        run(bind(case.p, "backward_data", algorithm, dx, case.w, case.dy, accumulate=True), space)
        np.testing.assert_allclose(dx, start + case.want["backward_data"], rtol=0, atol=1e-4 * np.abs(dx).max())


@pytest.mark.parametrize("algorithm", [name for name, direction in ROWS if direction == "forward"])
def test_residual_and_activation(algorithm):
    for case in random_cases_of(3, algorithm, "forward", 3):
        residual = channel_slice(case.dy)
        y = np.full(case.p.y_shape, np.nan, case.p.dtype)
        space = np.empty(conv.workspace_bytes(case.p, "forward", algorithm), np.uint8)
        options = {"bias": case.b, "activation": "relu", "residual": residual}
        run(bind(case.p, "forward", algorithm, case.x, case.w, y, **options), space)
        want = np.maximum(case.want["forward"] + residual, 0)
        np.testing.assert_allclose(y, want, rtol=0, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("direction", ["forward", "backward_data"])
def test_winograd_with_filters_transformed_ahead(direction):
    case = case_of(ConvProblem.of((2, 4, 7, 6, 5), (3, 3, 3, 5, 9), padding="same"))
    ahead = TransformedFilters(case.p, direction, case.w)
    got = ahead(case.x, case.b) if direction == "forward" else ahead(case.dy)
    case.check("winograd", direction, got)
