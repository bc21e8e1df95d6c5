"""What benchmarks.ranks makes of the turns of threads and ranks."""

import argparse

import pytest

from benchmarks import ranks
from benchmarks.networks import Case


def result(seconds):
    return {"seconds": seconds, "MiB": 100.0, "compute": 1.0, "optimizer": 2.0, "wait": 3.0, "rest": 4.0}


def test_both_sides_take_turns(monkeypatch):
    turns = []

    def run(case, processes, threads, options):
        turns.append((processes, threads))
        return result([1.0, 2.0, 3.0] if processes == 1 else [1.0, 1.0, 1.0 + len(turns)])

    monkeypatch.setattr(ranks, "run", run)
    found = ranks.row(Case("vgg16", 32, 64), argparse.Namespace(cores=2, rounds=2))
    assert turns == [(1, 2), (2, 1), (2, 1), (1, 2)]
    assert found["1x2 images/s"] == 32
    assert found["2x1 images/s"] == 64
    assert found["ratio"] == found["lowest"] == found["highest"] == pytest.approx(2)
    assert found["2x1 wait ms"] == 3.0
    assert "1x2 wait ms" not in found
