"""What kernels for GPUs ask of memory, counted on this machine."""

from __future__ import annotations

import pytest

from benchmarks import gpu_convgemm, gpu_counts
from benchmarks.networks import Case
from pydtconv.conv import ConvProblem


def check(rows, count):
    assert len(rows) == count
    for row in rows:
        worst = max(row["bytes_to_least"], row["sectors_to_requested"], row["passes_to_least"])
        assert worst <= 1.1, row
        assert row["share_of_peak"] >= 0.75, row


@pytest.mark.slow
def test_transforms_ask_for_what_they_need():
    """Of one step and of two, rows and channels, real and complex: bytes, sectors and passes over shared memory."""
    check(list(gpu_counts.transforms((8, 32, 128))), 3 * 6)


@pytest.mark.slow
def test_squares_are_read_and_written_once():
    kinds = ((16, True), (64, True), (8, False))
    assert set(kinds) <= set(gpu_counts.SQUARES)
    check(list(gpu_counts.squares(kinds)), 3 * 2)


def test_the_roofline_is_the_longest_of_its_parts():
    roof = gpu_counts.Roof(nbytes=100.0, operations=1000.0, processors=2, cycles=10.0)
    none = gpu_counts.Counts(*[0] * len(gpu_counts.Counts._fields))
    assert roof.seconds(none._replace(fetched_sectors=100, operations=31_000)) == 32.0
    assert roof.seconds(none._replace(fetched_sectors=100, operations=33_000)) == 33.0
    assert roof.seconds(none._replace(load_sectors=400, shared_passes=300, exchanges=400)) == 40.0
    tensor = gpu_counts.Roof(100.0, 1000.0, 2, 10.0, products=2048.0, cache=200.0)
    assert tensor.seconds(none._replace(fetched_sectors=100, products=33)) == 33.0
    assert tensor.seconds(none._replace(fetched_sectors=100, products=33), least=3400.0) == 34.0
    assert tensor.seconds(none._replace(fetched_sectors=100, products=3), least=100.0) == 16.0
    assert tensor.seconds(none._replace(load_sectors=400, past_sectors=200, shared_passes=300)) == 17.5


def test_counts_of_a_pass_follow_from_one_block_of_few_channels():
    """The operations that all blocks have, by hand; whole sectors, no bank conflicts, and little beside arithmetic."""
    p = ConvProblem(16, 14, 14, 64, 64, (1, 3), padding="same")
    kernel, counts = gpu_convgemm.counts_of(p, "forward")
    assert kernel == "convgemm.forward_8x4x4"
    assert counts.operations == pytest.approx(p.flops, rel=0.03), "a tile of 64 x 32 fits, but for sums of slices"
    row = gpu_convgemm.row(Case("resnet34", 224, 16), p, "forward", 2)
    assert (row["sectors_to_requested"], row["passes_to_least"]) == (1.0, 1.0)
    assert 0.5 < row["share_of_peak"] < 0.9
    found = gpu_convgemm.shares([row, row | {"pass": "backward_data", "share_of_peak": 0.25}])
    assert found == {"resnet34": {"forward": pytest.approx(row["share_of_peak"]), "backward_data": 0.25}}


@pytest.mark.parametrize(
    ("direction", "file"), [("forward", "convgemm_lines_tf32"), ("backward_weights", "convgemm_weights_lines_tf32")]
)
def test_counts_of_a_pass_in_tf32(direction, file):
    """Products of tensor cores, as many as there are; no bank conflicts; a third of their peak or more."""
    p = ConvProblem(16, 28, 28, 128, 128, (1, 3), padding="same")
    row = gpu_convgemm.row_in_tf32(Case("resnet34", 224, 16), p, direction, 7)
    assert str(row["kernel"]).split(".")[0] == file
    assert row["operations_to_least"] == pytest.approx(1, abs=0.03)
    assert (row["sectors_to_requested"], row["passes_to_least"]) == (1.0, 1.0)
    assert 0.3 < row["share_of_peak"] < 0.8
    assert 0.5 < row["filled"] <= 1
