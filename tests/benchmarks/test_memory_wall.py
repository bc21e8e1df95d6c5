"""The benchmarks of memory and of splits: what is compared with what."""

from __future__ import annotations

import argparse

import pytest

from benchmarks import memory_wall, split


def test_losses_are_told_against_the_mean_of_both_plain_runs() -> None:
    rows = [{"way": "plain", "batch": 4, "images/s": 9.0}, {"way": "offload", "batch": 24, "images/s": 9.5}]
    rows.append({"way": "recompute", "batch": None})
    memory_wall.compare(rows, 11.0)
    assert [row.get("lost %") for row in rows] == [pytest.approx(10), pytest.approx(5), None]
    assert rows[1]["plain apart %"] == pytest.approx(20)
    assert [row.get("times layerwise") for row in rows] == [None] * 3


def test_speeds_are_told_against_offload_layer_by_layer() -> None:
    rows = [
        {"way": way, "batch": 4, "images/s": rate} for way, rate in (("plain", 9), ("layerwise", 6), ("offload", 9))
    ]
    memory_wall.compare(rows, 9.0)
    assert [row["times layerwise"] for row in rows] == [1.5, 1, 1.5]


def test_the_largest_batch_that_fits_is_found() -> None:
    for most in range(7):
        assert memory_wall.largest([1, 2, 3, 4, 6], lambda size, most=most: size <= most) == min(most, 6) - (most == 5)


@pytest.mark.parametrize(("most", "fast", "found"), [(100, 200, 100), (101, 61, 60), (7, 9, 8), (9999, 9999, 1022)])
def test_the_largest_batch_that_keeps_its_speed_is_searched(most: int, fast: int, found: int) -> None:
    """In quarters of 8, up to 128 times 8."""
    asked: list[int] = []

    def keeps_speed(batch: int) -> bool:
        asked.append(batch)
        return batch <= fast

    assert memory_wall.searched(8, lambda batch: batch <= most, keeps_speed) == found
    assert len(asked) <= 9


def test_points_are_lost_seed_by_seed_as_it_is_and_refreshed() -> None:
    part = (0.5, 4, 0.2, "patch", 0)

    def result(accuracies: list[float], refreshed: float | None) -> dict[str, object]:
        return {"accuracy %": accuracies, "refreshed %": refreshed, "loss": [0.9, 0.5], "seconds": 10.0}

    found = {
        (split.WHOLE, 1): result([60.0, 80.0], None),
        (split.WHOLE, 2): result([70.0, 82.0], None),
        (part, 2): result([50.0, 78.0], 81.0),
    }
    options = argparse.Namespace(network="resnet20", dataset="cifar10", samples=None, epochs=1, seeds=[1, 2])
    whole, patches = split.rows_of(options, found)
    assert (whole["accuracy %"], whole["refreshed %"], whole["points lost"]) == (81.0, 81.0, 0.0)
    assert (patches["points lost"], patches["points lost, refreshed"]) == (4.0, 1.0)
    assert (patches["patches"], patches["last epochs whole"], patches["seeds"]) == (4, 0, 1)
    assert whole["accuracy by epochs %"] == "65.00 81.00"


def test_the_whole_network_and_the_first_splits_are_trained_before_others() -> None:
    options = argparse.Namespace(depths=[0.25, 0.5], patches=[4], stochastic=[0.0, 0.2], statistics=["patch"])
    options.last_whole, options.seeds, options.first = [0, 1], [1, 2], ["0.5:2x2:0.2"]
    found = list(split.order(options))
    assert len(found) == len(set(found)) == 2 * 9
    first = [split.WHOLE, (0.5, 4, 0.2, "patch", 0)]
    assert found[:4] == [(case, seed) for seed in (1, 2) for case in first]
