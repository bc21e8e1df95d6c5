"""Custom loops beside `fit`."""

import pytest

from benchmarks import loops


def test_all_ways_train():
    found = loops.row("mnist_convnet", steps=2, turns=1)
    assert list(found) == [
        "network",
        "batch",
        "fit, ms",
        "train_step, ms",
        "loop, ms",
        "train_step / fit",
        "loop / fit",
    ]
    assert found["train_step, ms"] == pytest.approx(found["train_step / fit"] * found["fit, ms"])
    assert found["fit, ms"] > 0
