"""Where one value that is not finite, or too large, gets to; and what "strict" leaves out for it."""

import numpy as np
import pytest

from pydtconv import config, conv
from pydtconv.conv import ConvProblem
from pydtconv.conv.algorithms import TABLE
from tests.conv.cases import ROWS
from tests.reference import conv as reference

P = ConvProblem(2, 9, 8, 5, 6, 3, padding="same")
DEPTHWISE = ConvProblem(2, 9, 8, 5, 5, 3, padding="same", groups=5)
PLACES = {"x": [(0, 0, 0, 0), (1, 4, 3, 2)], "dy": [(0, 0, 0, 0), (1, 4, 3, 2)], "w": [(0, 0, 0, 0), (1, 1, 3, 2)]}


def compute(p, algorithm, direction, x, w, dy):
    if direction == "forward":
        return conv.forward(p, x, w, algorithm=algorithm)
    if direction == "backward_data":
        return conv.backward_data(p, dy, w, algorithm=algorithm)
    return conv.backward_weights(p, x, dy, algorithm=algorithm)


def readers(p, direction, operand, place):
    """How often each result's sum has this element, with the taps on padding; of w always all pixels of its channel."""
    shapes = {"x": p.x_shape, "w": p.w_shape, "dy": p.y_shape}
    ones = {name: np.ones(shape) for name, shape in shapes.items()}
    ones[operand] = np.zeros(shapes[operand])
    ones[operand][place] = 1
    options = {"strides": (p.sh, p.sw), "padding": p.padding, "dilation": (p.dil_h, p.dil_w), "groups": p.groups}
    if direction == "forward":
        counts = reference.forward(ones["x"], ones["w"], **options)
    elif direction == "backward_data":
        counts = reference.backward_data(ones["dy"], ones["w"], p.x_shape, **options)
    else:
        counts = reference.backward_weights(ones["x"], ones["dy"], p.w_shape, **options)
    met = counts > 0
    return met, np.broadcast_to(met.any(axis=(0, 1, 2)), met.shape) if operand == "w" else met


@pytest.mark.parametrize(("algorithm", "direction"), [row for row in ROWS if TABLE[row[0]].contained])
@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38], ids=["inf", "nan", "huge"])
def test_it_reaches_the_sums_it_is_in_and_no_other(algorithm, direction, value):
    p = DEPTHWISE if algorithm == "depthwise" else P
    operands = {"forward": ("x", "w"), "backward_data": ("dy", "w"), "backward_weights": ("x", "dy")}[direction]
    for operand in operands:
        for place in PLACES[operand]:
            if algorithm == "depthwise" and operand == "w":
                place = (*place[:2], 0, place[3])
            arrays = {"x": p.x_shape, "w": p.w_shape, "dy": p.y_shape}
            arrays = {name: np.full(shape, 0.5, p.dtype) for name, shape in arrays.items()}
            arrays[operand][place] = value
            for other in operands:
                arrays[other] *= np.float32(8) if other != operand else np.float32(1)
            with np.errstate(all="ignore"):
                finite = np.isfinite(compute(p, algorithm, direction, arrays["x"], arrays["w"], arrays["dy"]))
            met, may = readers(p, direction, operand, place)
            if operand != "w" and direction == "backward_weights":  # a tap on padding has 0 times this value
                may = np.broadcast_to(met.any(axis=(0, 1), keepdims=True), met.shape)
            assert not finite[met].any(), (operand, place)
            assert finite[~may].all(), (operand, place)


@pytest.mark.parametrize("value", [np.inf, 1.5e38])
def test_winograd_spreads_it_over_a_tile(value):
    """As the documentation says; the direct method keeps the huge one finite."""
    x, w = np.full(P.x_shape, 0.5, "float32"), np.full(P.w_shape, 0.1, "float32")
    x[0, 4, 4, 0] = value
    with np.errstate(all="ignore"):
        spread = ~np.isfinite(conv.forward(P, x, w, algorithm="winograd"))[0, ..., 0]
        kept = ~np.isfinite(conv.forward(P, x, w, algorithm="direct"))[0, ..., 0]
    assert kept.sum() == (9 if np.isinf(value) else 0)
    assert spread.sum() > 9


@pytest.mark.parametrize("direction", conv.problem.DIRECTIONS)
def test_strict_leaves_out_what_spreads(direction, monkeypatch):
    monkeypatch.setattr(config, "_conv_precision", "strict")
    names = conv.algorithms(P, direction)
    assert names
    assert all(TABLE[name].contained for name in names)
    assert not TABLE["winograd"].contained
