"""The fewest multiplications of a convolution, against counts by hand."""

import pytest

from pydtconv._ext import runtime
from pydtconv.conv import ConvProblem, estimates
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.cost import fewest_multiplications
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import ranking


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("sizes", "kernel", "strides", "products"),
    [
        ((2, 8, 8, 3, 5), 3, 1, 2 * 4 * 36 * 3 * 5),  # four tiles of F(4x4, 3x3)
        ((2, 2, 2, 3, 5), 3, 1, 2 * 16 * 3 * 5),  # the direct method has 4 taps inside for each of 4 outputs
        ((1, 4, 4, 2, 2), 5, 1, 1 * 4 * 36 * 2 * 2),  # four tiles of F(2x2, 5x5)
        ((1, 4, 4, 2, 7), 1, 1, 16 * 2 * 7),
        ((1, 4, 4, 2, 7), 3, 2, 5 * 5 * 2 * 7),  # taps 0 1 2 and 2 3 of rows 0 1 2 3
    ],
    ids=["f43", "padding", "f25", "1x1", "stride2"],
)
def test_fewest_multiplications(sizes, kernel, strides, products, direction):
    p = ConvProblem(*sizes, kernel, strides, "same")
    assert fewest_multiplications(p, direction) == products


def test_groups_and_dimensions_by_themselves():
    # rows: one tap each; columns: two tiles of F(4, 3), six products each, for the written extent of each pass
    p = ConvProblem(1, 3, 10, 4, 8, (1, 3), 1, "valid", groups=2)
    assert fewest_multiplications(p, "forward") == 3 * 12 * 2 * 8
    # ten columns of dx: 3 tiles of F(4, 3) or 5 of F(2, 3), so 18, and 24 taps by the direct method
    assert fewest_multiplications(p, "backward_data") == 3 * 18 * 2 * 8


def test_dilation_is_direct():
    p = ConvProblem(1, 7, 7, 1, 1, 3, 1, "valid", dilation=2)
    assert fewest_multiplications(p, "forward") == 9 * 9


@pytest.mark.parametrize(
    ("taps", "direction", "families"),
    [
        (3, "forward", {"direct", "fft"}),  # both take as long
        (3, "backward_weights", {"direct", "convgemm_trans"}),
        (31, "forward", {"fft"}),
        (31, "backward_data", {"fft"}),
        (31, "backward_weights", {"fft"}),
    ],
)
def test_short_filters_of_signals_are_not_worth_a_transform(taps: int, direction: str, families: set[str]) -> None:
    p = ConvProblem.of((32, 1024, 64), (taps, 64, 128), padding="same")
    if runtime.level() == "generic" and taps == 3:
        families = families | {"convgemm"}  # with short vectors the direct tile is no better than a packed product
    assert TABLE[ranking(p, direction)[0]].family in families


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_one_channel_is_no_depthwise_convolution(direction: str) -> None:
    """A vector of channels would hold one: ten times as slow as matrix products."""
    for dtype in ("float32", "bfloat16"):
        for filters in (1, 32):
            p = ConvProblem(64, 28, 28, 1, filters, 3, padding="same", dtype=dtype)
            assert ranking(p, direction)[0] != "depthwise"
            assert TABLE["depthwise"].reason(p, direction) is None


def test_pixels_at_borders_are_few_rows_of_a_tile() -> None:
    """Where filters are large, each pixel of one image meets other taps: a tile of its own, whose sums wait."""
    small, pointwise = ConvProblem(1, 12, 12, 64, 64, 9), ConvProblem(1, 12, 12, 64, 64, 1)
    wait, begun = estimates._borders(small, "backward_data", 2)
    assert wait == 4
    assert begun == estimates.BEGINNING * (12 * 12 - 1)
    assert estimates._borders(small, "forward", 2) == (1, 0)
    assert estimates._borders(pointwise, "backward_data", 2) == (1, 0)
    assert ranking(small, "backward_data")[0] != "direct"


@pytest.mark.skipif(runtime.level() == "generic", reason="vectors are as short as the sums")
def test_few_channels_are_direct() -> None:
    """Vectors lie along the taps, and filters of few pixels are not packed."""
    few = ConvProblem(16, 12, 12, 128, 1, 5)
    for p in (few, ConvProblem(1, 16, 16, 256, 16, 13), ConvProblem(16, 9, 9, 256, 16, 9)):
        assert ranking(p, "forward")[0] == "direct"
    assert ranking(few, "backward_weights")[0] == "direct"


@pytest.mark.parametrize("direction", ["forward", "backward_data"])
def test_strassen_is_for_matrices_that_are_large(direction: str) -> None:
    """Not where its sums cost more than an eighth of the products, and never in strict precision."""
    large = ConvProblem(64, 14, 14, 2048, 2048, 1)
    assert ranking(large, direction)[0] == "strassen"
    assert "strassen" not in ranking(large, direction, "strict")
    for small in (ConvProblem(64, 14, 14, 512, 512, 1), ConvProblem(8, 1, 1, 4096, 4096, 1)):
        assert ranking(small, direction)[0] != "strassen"
