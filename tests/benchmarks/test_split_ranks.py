"""The benchmark of larger batches over a network: what is trained either way, and what an epoch takes."""

import dataclasses

import numpy as np
import pytest

from benchmarks import report, split_ranks, weak_scaling
from tests.simulation.test_scaling import profile


@pytest.fixture(autouse=True)
def _results(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "RESULTS", tmp_path)


def options(tmp_path, *words):
    some = ["--batch", "8", "--factors", "1", "2", "4096", "--folder", str(tmp_path), "--ranks", "1", "2"]
    return split_ranks.parse([*some, "--simulated", "4", *words])


def test_the_split_way_has_the_largest_batch_within_the_memory_of_the_plain_one(tmp_path):
    chosen = options(tmp_path)
    ways = split_ranks.trainings("mnistconvnet", chosen)
    plain, split = ways["plain"], ways["split"]
    assert plain == ("mnistconvnet", 8, None, None, None)
    assert split.batch == 16
    assert (split.split, split.offload) == ("0.5:2x2", str(tmp_path))
    assert split_ranks.peak(split) <= split.memory_limit == split_ranks.peak(plain)


def test_an_epoch_has_fewer_updates_by_larger_batches(tmp_path, monkeypatch, capsys):
    """A step of 8 images takes a second, of 16 two; on two ranks, the network another one."""
    network = {"alpha": 0.0, "beta": 0.0025, "gamma": 1e-12, "delta": 0.0}
    asked = []

    def measured(training, ranks, link, _):
        asked.append((training.batch, ranks, link))
        seconds = training.batch / 8
        one = dataclasses.replace(profile(), step_seconds=[seconds])
        return {"seconds": seconds + ranks - 1, "profile": one.to_dict(), "network": network, "reductions": [1.0]}

    monkeypatch.setattr(weak_scaling, "measured", measured)
    monkeypatch.setattr(weak_scaling, "check_hosts", lambda name: None)
    words = ["--batch", "8", "--factors", "2", "--folder", str(tmp_path), "--ranks", "1", "2", "--simulated", "4"]
    split_ranks.main(
        ["--models", "mnistconvnet", *words, "--images", "100", "--seeds", "0", "--keep", str(tmp_path / "kept.json")]
    )
    rows = {(row["way"], row["ranks"]): row for row in report.read_csv("split_ranks")}
    assert {place: row["updates"] for place, row in rows.items() if place[1] < 4} == {
        ("plain", 1): 13, ("plain", 2): 7, ("split", 1): 7, ("split", 2): 4,
    }  # fmt: skip
    assert rows["plain", 2]["epoch s"] == pytest.approx(100 / 8)
    assert rows["split", 1]["speed-up"] == pytest.approx(1.0)
    assert rows["split", 2]["speed-up"] == pytest.approx((100 / 8) / (100 / (32 / 3)), rel=1e-3)
    assert rows["split", 4]["source"] == "simulate"
    first = len(asked)
    split_ranks.main(
        ["--models", "mnistconvnet", *words, "--images", "100", "--seeds", "0", "--keep", str(tmp_path / "kept.json")]
    )
    assert len(asked) == first == 4


def test_both_ways_are_trained_and_tested_whole(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    images = rng.random((32, 32, 32, 3), np.float32), rng.integers(0, 10, 32)
    chosen = options(tmp_path, "--epochs", "1", "--samples", "32")
    kept = split_ranks.Kept(None)
    plain, split = split_ranks.trained("mnistconvnet", (images, images), chosen, kept)
    assert (plain["batch of all ranks"], split["batch of all ranks"]) == (16, 32)
    assert plain["refreshed %"] is None
    assert 0 <= split["refreshed %"] <= 100


def test_what_cannot_be_measured_is_refused(capsys):
    with pytest.raises(SystemExit):
        split_ranks.parse(["--factors", "0"])
    assert "--factors" in capsys.readouterr().err
