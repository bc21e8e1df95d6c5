"""The comparison of accuracy by precision: sums over seeds, and the command."""

import numpy as np
import pytest

from benchmarks import accuracy, report


def test_differences_are_of_the_same_seed():
    found = {("float32", 0): 60.0, ("mixed_bfloat16", 0): 61.0, ("float32", 1): 62.0, ("mixed_bfloat16", 1): 60.0}
    rows = [{"precision": name, "seed": seed, "accuracy %": value} for (name, seed), value in found.items()]
    plain, mixed = accuracy.summary(rows)
    assert plain["from float32"] == plain["furthest"] == 0
    assert mixed == {
        "precision": "mixed_bfloat16",
        "seeds": 2,
        "accuracy %": pytest.approx(60.5),
        "from float32": pytest.approx(-0.5),
        "furthest": pytest.approx(-2),
    }


def test_the_command_trains_each_precision_from_the_same_weights(monkeypatch, tmp_path, capsys):
    rng = np.random.default_rng(0)
    images = rng.random((32, 8, 8, 3), np.float32), rng.integers(0, 10, 32)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(accuracy, "cifar10", lambda samples: (images, images))
    accuracy.main(["--epochs", "1", "--seeds", "1", "--batch", "16"])
    rows = report.read_csv("accuracy")
    assert [(row["precision"], row["samples"]) for row in rows] == [("float32", 32), ("mixed_bfloat16", 32)]
    assert rows[0]["loss"] == pytest.approx(rows[1]["loss"], rel=0.05)
    assert "means over seeds" in capsys.readouterr().out
