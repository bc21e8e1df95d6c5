"""Filters of the image's size: an image is then one pixel, where its pixels lie side by side."""

import numpy as np
import pytest

from pydtconv import config, conv
from pydtconv.conv import ConvProblem
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from tests.conv.cases import IDS, ROWS, case_of, channel_slice

CASES = [
    case_of(ConvProblem(5, 3, 4, 6, 9, (3, 4))),
    case_of(ConvProblem(17, 5, 5, 2, 33, 5, dtype="float64")),
    case_of(ConvProblem.of((3, 7, 5), (7, 5, 4), strides=2)),
    case_of(ConvProblem.of((3, 2, 3, 3, 4), (2, 3, 3, 4, 8))),
    case_of(ConvProblem(4, 3, 3, 1, 1, 3)),
]


@pytest.mark.parametrize(("algorithm", "direction"), ROWS, ids=IDS)
def test_dense_images_and_channel_slices(algorithm, direction):
    for i, case in enumerate(CASES):
        if TABLE[algorithm].reason(case.p, direction) is not None:
            continue
        config.set_num_threads(1 + i % 3)
        case.check(algorithm, direction, case.run(algorithm, direction))
        arrays = {"x": channel_slice(case.x), "w": case.w.copy(), "y": channel_slice(case.dy)}
        written = arrays[{"forward": "y", "backward_data": "x", "backward_weights": "w"}[direction]]
        written[...] = np.nan
        nbytes = conv.workspace_bytes(case.p, direction, algorithm)
        bound = bind(case.p, direction, algorithm, **arrays, bias=case.b if direction == "forward" else None)
        run(bound, np.empty(nbytes, np.uint8))
        case.check(algorithm, direction, written)


@pytest.mark.parametrize(("algorithm", "direction"), ROWS, ids=IDS)
def test_less_workspace_than_told_is_refused(algorithm, direction):
    case = CASES[0]
    if TABLE[algorithm].reason(case.p, direction) is not None:
        pytest.skip("cannot do it")
    nbytes = conv.workspace_bytes(case.p, direction, algorithm)
    bound = bind(case.p, direction, algorithm, case.x.copy(), case.w.copy(), case.dy.copy())
    if nbytes:
        with pytest.raises(RuntimeError, match="workspace"):
            run(bound, np.empty(nbytes - 64, np.uint8))


def test_dx_is_added_to():
    case = CASES[0]
    for algorithm in ("im2col", "deconvgemm", "direct"):
        dx = case.x.copy()
        space = np.empty(conv.workspace_bytes(case.p, "backward_data", algorithm), np.uint8)
        run(bind(case.p, "backward_data", algorithm, dx, case.w, case.dy, accumulate=True), space)
        np.testing.assert_allclose(dx, case.x + case.want["backward_data"], rtol=0, atol=1e-4 * np.abs(dx).max())


def test_a_single_channel_is_not_left_to_depthwise():
    """Which has a vector of one element there: fifty times PyTorch's time."""
    p = ConvProblem(16, 44, 44, 1, 1, 13)
    assert all(conv.algorithms(p, direction)[0] != "depthwise" for direction in ("forward", "backward_weights"))
