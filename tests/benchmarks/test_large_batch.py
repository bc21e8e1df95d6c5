"""The comparison of accuracy by size of the batch: rates, and the command."""

import numpy as np
import pytest

from benchmarks import large_batch, report


def test_rates():
    """By steps of a rank: an update is of eight."""
    fixed, scaled, lars = (large_batch.optimizer(way, 0.1, 8.0, 100, 20) for way in large_batch.WAYS)
    assert float(fixed.learning_rate) == float(scaled.learning_rate) == float(lars.learning_rate) == pytest.approx(0.1)
    for optimizer, factor in (fixed, 1), (scaled, 8), (lars, 8**0.5):
        optimizer._pydt_steps.assign(50)
        assert float(optimizer.learning_rate) == pytest.approx(0.05 * factor)
        assert optimizer.gradient_accumulation_steps == large_batch.RANKS


def test_the_command_trains_each_way(monkeypatch, tmp_path, capsys):
    rng = np.random.default_rng(0)
    images = rng.random((64, 8, 8, 3), np.float32), rng.integers(0, 10, 64)
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(large_batch, "cifar10", lambda samples: (images, images))
    large_batch.main(["--epochs", "1", "--warmup", "0.5", "--batches", "32", "64"])
    rows = report.read_csv("large_batch")
    cases = [("fixed", 32), ("fixed", 64), ("scaled", 64), ("lars", 32), ("lars", 64)]
    assert [(row["way"], row["batch"]) for row in rows] == cases
    assert "mean accuracy over seeds" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        large_batch.parse(["--batches", "12"])
    assert "expected multiples of 8, the ranks, got [12]" in capsys.readouterr().err
