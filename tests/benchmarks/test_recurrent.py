"""The recurrent networks that are measured are the same in PyTorch, and the figures of a row."""

import numpy as np
import pytest

from benchmarks.recurrent import CASES, Case, gflops, network, row

NEXT = Case("NextFrame", 2, 1, 2, 3)


@pytest.mark.parametrize(
    "case", [Case("LSTM", 8, 2, 3, 2, 2), Case("GRU", 8, 2, 3), Case("ConvLSTM2D", 2, 2, 3, 2), NEXT]
)
def test_networks_are_pytorchs(case):
    pytest.importorskip("torch", reason="needs torch")
    from benchmarks.peers.torch_recurrent import Last, train

    ours, theirs = network(case), Last(case.cell, case.units, case.layers, case.directions)
    names = [name for name, _ in theirs.named_parameters()]
    biases = sum(p.numel() for name, p in theirs.named_parameters() if "bias_hh" in name)
    if case.cell == "LSTM":  # PyTorch has a second bias, GRU of both has
        assert sum(p.numel() for p in theirs.parameters()) - biases == ours.count_params(), names
    else:
        assert sum(p.numel() for p in theirs.parameters()) == ours.count_params(), names
    assert train(*case, 1)["peak MiB"] > 0


def test_rows():
    case = Case("LSTM", 128, 64, 100)
    assert case in CASES
    assert gflops(case) == pytest.approx(64 * 100 * 4 * 128 * 128 * 5 * 2e-9)
    taps = (64 * np.array([5, 3, 1])) ** 2
    assert gflops(NEXT) == pytest.approx(2e-9 * 2 * 8 * (taps * [2 + 6, 6 + 6, 6 + 6]).sum())
    results = {"": [{"seconds": [0.5, 1.0, 2.0], "peak MiB": 100.0}], "torch": [{"seconds": [2.0], "peak MiB": 400.0}]}
    found = row(case, results, "torch", 100.0)
    assert found["sequences/s"] == 64
    assert found["speed ratio"] == 2
    assert found["memory ratio"] == 0.25
    assert found["times floor"] == pytest.approx(100 / gflops(case))
