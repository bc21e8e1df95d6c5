"""The comparison of accuracy with peers: what sides share, sums over seeds, and the command."""

import importlib.util
import sys

import numpy as np
import pytest

from benchmarks import parity, report
from benchmarks.peers.epochs import Run


def images(n):
    rng = np.random.default_rng(n)
    y = rng.integers(0, 10, n)
    return rng.standard_normal((n, 32, 32, 3), np.float32) + y[:, None, None, None].astype(np.float32) / 5, y


def test_an_epoch_has_each_image_once_and_the_rate_falls_to_zero(tmp_path):
    parity.write_data(tmp_path, (images(10), images(4)))
    run = Run.parse([str(tmp_path), "", "3", "4", "0.6", "1"])
    orders = [run.order(epoch).tolist() for epoch in range(2)]
    assert [sorted(order) for order in orders] == [list(range(10))] * 2
    assert orders[0] != orders[1] != run._replace(seed=2).order(1).tolist()
    np.testing.assert_allclose(run.rates(), 0.6 * np.arange(9, 0, -1) / 9)


def test_differences_are_of_the_same_seed():
    found = {("pydtconv", 0): 60.0, ("PyTorch", 0): 61.0, ("pydtconv", 1): 62.0, ("PyTorch", 1): 59.0}
    rows = [
        {"network": "n", "side": side, "seed": seed, "epoch": epoch, "accuracy %": value if epoch == 2 else 0.0}
        for (side, seed), value in found.items()
        for epoch in (1, 2)
    ]
    ours, theirs = parity.summary(rows)
    assert ours["from ours"] == ours["furthest"] == 0
    assert theirs | {"accuracy %": 60, "from ours": -1, "furthest": -3, "seeds": 2} == theirs


MISSING = [name for name in ("torch", "keras", "matplotlib") if importlib.util.find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}")
def test_sides_train_from_the_same_weights_on_the_same_images(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(parity, "cifar10", lambda samples: (images(64), images(20)))
    words = ["--networks", "resnet20", "--peer", "torch", "--peer", "keras-torch", "--peer-python", sys.executable]
    parity.main([*words, "--epochs", "2", "--seeds", "1", "--batch", "16", "--threads", "1", "--name", "other"])
    rows = report.read_csv("other")
    assert [(row["side"], row["epoch"]) for row in rows] == [
        (side, epoch) for side in ("pydtconv", "PyTorch", "Keras on PyTorch") for epoch in (1, 2)
    ]
    for epoch in (0, 1):
        losses = [row["loss"] for row in rows[epoch::2]]
        assert losses == pytest.approx([losses[0]] * 3, rel=5e-3)
    assert (tmp_path / "other.png").exists()
    assert "after the last epoch, over seeds" in capsys.readouterr().out
