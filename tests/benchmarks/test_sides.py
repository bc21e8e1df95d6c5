"""The commands that run both sides in turns, with the processes replaced by their results."""

import sys
from contextlib import nullcontext

import pytest

from benchmarks import busy, odd, train


@pytest.fixture
def rows(monkeypatch):
    """What a command writes to its CSV file; each process takes a second for two steps, the peer's twice that."""
    written = []

    def process(module, words, threads):
        return {"seconds": [0.5, 0.5] if module == "benchmarks.train" else [1.0, 1.0], "peak MiB": 100.0}

    monkeypatch.setattr(train, "in_own_process", process)
    monkeypatch.setattr(busy, "one_core_busy", nullcontext)
    for module in (busy, odd, train):
        monkeypatch.setattr(module.report, "write_csv", lambda name, found: written.extend(found))
    return written


def run(monkeypatch, command, *arguments):
    monkeypatch.setattr(sys, "argv", ["benchmark", "--peer", "torch", *arguments])
    command.main()


def test_busy(rows, monkeypatch):
    run(monkeypatch, busy, "--networks", "resnet20", "--rounds", "1")
    assert [row["busy / idle"] for row in rows] == [1.0]
    assert rows[0]["PyTorch busy ms"] == pytest.approx(1000)


def test_odd(rows, monkeypatch):
    monkeypatch.setattr(odd, "GROUPS", (((32, 8), (32, 7)),))
    run(monkeypatch, odd, "--networks", "resnet20")
    assert [row["speed ratio"] for row in rows] == [2.0, 2.0]


def test_train(rows, monkeypatch):
    monkeypatch.setattr(train, "draw", lambda name, found: None)
    monkeypatch.setenv("PYDTCONV_DTYPE", "float32")
    run(monkeypatch, train, "--networks", "resnet20", "--sizes", "32", "--batch", "8", "--cpu-time")
    assert [(row["speed ratio"], row["PyTorch mode"]) for row in rows] == [(2.0, "channels_last")]
