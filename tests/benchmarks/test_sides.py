"""The commands that run both sides in turns, with the processes replaced by their results."""

import sys
from contextlib import nullcontext

import pytest

from benchmarks import busy, odd, train
from benchmarks.peers import table


@pytest.fixture
def rows(monkeypatch):
    """What a command writes to its CSV file; each process takes a second for two steps, the peer's twice that."""
    written = []

    def process(module, words, threads, python="", env=None):
        seconds = [0.5, 0.5] if module == "benchmarks.train" else [1.0, 1.0]
        return {"first": 3.0, "seconds": seconds, "peak MiB": 100.0}

    for module in (train, table):
        monkeypatch.setattr(module, "in_own_process", process)
    monkeypatch.setattr(table.Peer, "missing", lambda self, python: [])
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
    monkeypatch.setattr(train, "draw", lambda name, peer, found: None)
    monkeypatch.setenv("PYDTCONV_DTYPE", "float32")
    case = ("--networks", "resnet20", "--sizes", "32", "--batch", "8", "--cpu-time")
    run(monkeypatch, train, *case, "--peer", "tensorflow", "--peer", "keras-jax")
    assert [row["speed ratio"] for row in rows] == [2.0] * 3
    assert [row.get("PyTorch mode") for row in rows] == ["channels_last", None, None]
    assert rows[1]["Keras on TensorFlow first step s"] == rows[2]["first step s"] == 3.0


def test_files_of_peers_have_their_names(monkeypatch):
    names = []
    monkeypatch.setattr(train.report, "write_csv", lambda name, rows: names.append(name))
    monkeypatch.setattr(train, "draw", lambda name, peer, rows: None)
    row = {"speed ratio": 1.0, "memory ratio": 1.0}
    for peer in ("", *table.TRAINING):
        train.written("train", peer, [row])
    assert names == ["train", "train", "train_tensorflow", "train_keras_torch", "train_keras_jax"]
