"""Filters' gradients as a forward convolution: the memory of the image that each algorithm makes."""

from math import prod

import pytest

from pydtconv import conv
from pydtconv.conv import ConvProblem


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("strides", "dilation", "groups"), [(1, 1, 1), (2, 1, 1), ((1, 3), 2, 4)])
def test_the_workspace_has_room_for_the_image(strides, dilation, groups, dtype):
    """`rdx` gathers the pixels of each tap, exchanged_strides copies x; all else is the same."""
    p = ConvProblem(4, 24, 20, 16, 8, (3, 5), strides, "same", dilation, groups, dtype)
    of_a_pixel = p.n * p.ci // groups * (4 if dtype == "float32" else 8)
    rdx, exchanged = (conv.workspace_bytes(p, "backward_weights", name) for name in ("rdx", "exchanged_strides"))
    assert rdx - exchanged == of_a_pixel * (prod(p.kernel) * prod(p.out) - prod(p.spatial))


def test_an_image_that_is_too_wide_is_refused():
    p = ConvProblem(1, 1, 1 << 17, 1, 1, (1, (1 << 16) + 1))
    reason = conv.explain(p, "backward_weights")["rdx"]
    assert reason == f"rdx gathers an image of at most {2**31 - 1} pixels an axis, these filters need {2**32 + 2**16}"
    assert conv.explain(p, "backward_weights")["exchanged_strides"] is None
