"""What benchmarks.ddp makes of both sides' seconds and bytes; it runs once, with a small network."""

import argparse

import pytest

from benchmarks import ddp, hosts
from tests.distribution.ranks import needs_mpi


def test_columns_are_those_of_seconds_and_bytes():
    ours = {"alone s": 1.0, "step s": 1.5, "reduce s": 2.0, "step MB": 3.0, "update MB": 3.0}
    peer = {"alone s": 2.0, "step s": 3.0, "reduce s": 2.0, "step MB": 3.0, "update MB": 12.0}
    row = ddp.figures({"ours": ours, "ddp": peer, "cap": 25.0, "peer": "PyTorch", "link": "8Mbps:1us"}, 64)
    assert row["link s"] == pytest.approx(3)
    assert (row["ours images/s"], row["DDP images/s"], row["ratio"]) == pytest.approx((64 / 1.5, 64 / 3, 2))
    assert (row["ours hidden %"], row["DDP hidden %"]) == pytest.approx((75, 50))
    assert (row["ours reductions"], row["DDP reductions"]) == pytest.approx((1, 4))


@pytest.mark.parametrize("words", [["--ranks", "1"], ["--turns", "0"], ["--caps", "0.5"]])
def test_what_cannot_be_measured_is_refused(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["ddp", *words])
    with pytest.raises(SystemExit):
        ddp.parse()
    assert f"{words[0]}: expected {'2' if words[0] == '--ranks' else '1'} or more, got" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(needs_mpi[1].args[0], reason=needs_mpi[1].kwargs["reason"])
def test_both_sides_reduce_once_for_an_update():
    pytest.importorskip("torch")
    reason = hosts.missing()
    if reason:
        pytest.skip(reason)
    options = argparse.Namespace(batch=4, turns=1, seconds=0.0, links=["1Gbps:100us"], half=True)
    (found,) = ddp.measured("resnet20", 2, [25.0], options)
    row = ddp.figures(found, 8)
    gradients = 1.08 / 2  # MB of ResNet20 in 16 bits
    for label in ddp.SIDES.values():
        assert 0.9 * gradients < row[f"{label} sent MB"] < 1.3 * gradients
        assert row[f"{label} reductions"] == pytest.approx(1, abs=0.2)
