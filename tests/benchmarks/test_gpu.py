"""The measurements for GPUs, on the device host beside PyTorch on this machine: that they run, not what they find."""

from __future__ import annotations

import argparse

import pytest

from benchmarks import gpu, gpu_peers, report
from benchmarks.networks import Case
from pydtconv import devices
from pydtconv.conv import ConvProblem
from pydtconv.devices.gpu import missing

torch = pytest.importorskip("torch")
PROBLEM = {"small": ConvProblem(1, 6, 6, 4, 2, (3, 3), padding="same")}


@pytest.fixture
def sides(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(gpu_peers, "SWEEP", ((1,), (1,), (2,), (3,), (2,)))
    monkeypatch.setattr(gpu, "_layers", lambda: PROBLEM)
    monkeypatch.setattr(gpu_peers, "table", lambda number: PROBLEM)
    monkeypatch.setattr(gpu_peers, "seconds_of", lambda call, wait, runs=1: (call(), wait(), 1e-3)[2])
    for name, values in (("transforms", {"lengths": (8,), "batches": (2,)}), ("phases", {"problems": PROBLEM})):
        whole = getattr(gpu_peers, name)
        monkeypatch.setattr(gpu_peers, name, lambda *given, whole=whole, values=values: whole(*given, **values))
    return devices.get("host"), gpu_peers.Peer(torch, "cpu", 0.0)


@pytest.mark.slow
def test_all_parts_but_training(sides, tmp_path, capsys):
    names = [name for name in gpu.PARTS if name != "train"]
    options = argparse.Namespace(parts=names, sample=1, seed=0, seconds=60.0, minutes=60.0)
    for name, rows in gpu.parts(*sides, options):
        assert len(rows) == (2 if name == "gpu_fft" else 3)
        gpu.keep(name, rows)
        assert len(report.read_csv(name)) == len(rows)
    written = {path.name for path in tmp_path.iterdir()}
    assert {f"gpu_{name}.csv" for name in names} <= written
    pictures = {"gpu_fft_1d.png", "gpu_fft_2d.png", "gpu_layers.png", "gpu_table4.png", "gpu_sweep_k3.png"}
    pytest.importorskip("matplotlib")
    assert pictures <= written
    assert "geometric mean to cuDNN" in capsys.readouterr().out


def test_minutes_that_are_over_leave_what_was_measured(sides, tmp_path):
    options = argparse.Namespace(parts=["fft", "table4"], sample=1, seed=0, seconds=60.0, minutes=0.0)
    ((name, rows),) = gpu.parts(*sides, options)
    assert (name, len(rows)) == ("gpu_fft", 1)
    assert len(report.read_csv(name)) == 1


@pytest.mark.slow
def test_training(sides):
    device, peer = sides
    (row,) = gpu_peers.training(device, peer, [Case("mnistconvnet", 12, 1)], runs=1)
    assert row["network"] == "mnistconvnet"
    gpu.keep("gpu_train", [row])


@pytest.mark.skipif(missing() is None, reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu", "--peer", "torch"])
    with pytest.raises(SystemExit) as caught:
        gpu.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err.startswith("device gpu: expected ")
