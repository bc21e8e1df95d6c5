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


def test_the_largest_batch_that_fits_is_found() -> None:
    for most in range(7):
        assert memory_wall.largest([1, 2, 3, 4, 6], lambda size, most=most: size <= most) == min(most, 6) - (most == 5)


def test_points_are_lost_seed_by_seed_as_it_is_and_refreshed() -> None:
    part = (0.5, 4, 0.2, "patch", 0)
    found = {
        (split.WHOLE, 1): [80.0, None, 0.5, 10.0],
        (split.WHOLE, 2): [82.0, None, 0.5, 10.0],
        (part, 2): [78.0, 81.0, 0.6, 20.0],
    }
    options = argparse.Namespace(network="resnet20", dataset="cifar10", samples=None, epochs=1, seeds=[1, 2])
    whole, patches = split.rows_of(options, found)
    assert (whole["accuracy %"], whole["refreshed %"], whole["points lost"]) == (81.0, 81.0, 0.0)
    assert (patches["points lost"], patches["points lost, refreshed"]) == (4.0, 1.0)
    assert (patches["patches"], patches["last epochs whole"], patches["seeds"]) == (4, 0, 1)


def test_the_whole_network_and_the_first_splits_are_trained_before_others() -> None:
    options = argparse.Namespace(depths=[0.25, 0.5], patches=[4], stochastic=[0.0, 0.2], statistics=["patch"])
    options.last_whole, options.seeds, options.first = [0, 1], [1, 2], ["0.5:2x2:0.2"]
    found = list(split.order(options))
    assert len(found) == len(set(found)) == 2 * 9
    first = [split.WHOLE, (0.5, 4, 0.2, "patch", 0)]
    assert found[:4] == [(case, seed) for seed in (1, 2) for case in first]
