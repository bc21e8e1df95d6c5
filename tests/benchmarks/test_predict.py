"""Predictions beside other libraries: what is measured, with processes replaced by their results, and once as it is."""

import json
import sys

import pytest

from benchmarks import predict, timing
from benchmarks.networks import Case
from benchmarks.peers import table


def test_both_ways_are_timed():
    found = json.loads(json.dumps(predict.ours(Case("resnet20", 32, 2), 4, 60)))
    assert {way: len(seconds) for way, seconds in found.items()} == {"predict_on_batch": 4, "model(x)": 4}


def test_long_calls_are_fewer():
    seen = []
    found = timing.calls_of({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 100, 0.0)
    assert [len(seconds) for seconds in found.values()] == [timing.LEAST] * 2
    assert seen[:4] == ["a", "b"] * 2


def test_the_slow_one_of_a_hundred():
    assert predict.slow_call([float(i) for i in range(100, 0, -1)]) == 99
    assert predict.slow_call([3.0, 1.0]) == 3.0


def test_the_zoo_is_whole():
    from pydtconv import applications

    assert dict(predict.chosen(["all"], None)).keys() == set(applications.names())
    assert predict.chosen(["unet3d", "vgg16"], None) == [("unet3d", 64), ("vgg16", 224)]
    assert predict.chosen(None, [32]) == [("resnet34", 32)]


def test_rows(monkeypatch):
    """A call takes 10 ms, the same by model(x) 12; PyTorch is faster when it is compiled."""
    written, made = [], []

    def process(module, words, threads, python="", env=None):
        made.append(module)
        if module == "benchmarks.predict":
            return {"predict_on_batch": [0.01] * 99 + [0.5], "model(x)": [0.0125] * 100}
        return {"seconds": [0.02 if module.endswith("torch_predict") and "compile" in words else 0.04]}

    for module in (predict, table):
        monkeypatch.setattr(module, "in_own_process", process)
    monkeypatch.setattr(table.Peer, "missing", lambda self, python: [])
    monkeypatch.setattr(predict.report, "write_csv", lambda name, rows: written.extend(rows))
    monkeypatch.setattr(predict.report, "plot_bars", lambda *_: None)
    words = ["--peer", "torch", "--peer", "onnxruntime", "--networks", "resnet20", "--sizes", "32", "--batches", "2"]
    monkeypatch.setattr(predict.Sides, "__init__", _without_files)
    monkeypatch.setattr(sys, "argv", ["predict", *words])
    predict.main()
    (row,) = written
    assert row["PyTorch mode"] == "compile"
    assert row["images/s"] == pytest.approx(200)
    assert row["99th ms"] == pytest.approx(10)
    assert row["model(x) share"] == pytest.approx(0.8)
    assert row["PyTorch ratio"] == pytest.approx(2)
    assert row["onnxruntime ratio"] == pytest.approx(4)
    assert made[-2:] == ["benchmarks.peers.torch_predict", "benchmarks.peers.onnxruntime_predict"]


def _without_files(self, network, size, folder, options):
    self.network, self.size, self.options, self.pythons = network, size, options, options.pythons
    self.files = dict.fromkeys(self.pythons, "")


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["torch", "onnxruntime"])
def test_peers_predict(peer, tmp_path):
    if table.PEERS[peer].missing(sys.executable):
        pytest.skip(f"needs {peer}")
    options = predict.argparse.Namespace(pythons={peer: sys.executable}, calls=2, seconds=60.0, threads=1)
    sides = predict.Sides("resnet20", 32, tmp_path, options)
    for mode in predict.MODES[:2] if peer == "torch" else ("",):
        assert len(sides.run_peer(peer, 2, mode)) == 2
