"""What benchmarks.weak_scaling makes of real ranks and of predicted ones, and the parts of cores that they have."""

import dataclasses
import os
import subprocess
import sys

import pytest

from benchmarks import weak_scaling
from benchmarks.hosts import quotas
from tests.simulation.test_scaling import profile


def test_real_ranks_stand_beside_the_prediction_and_others_are_predicted():
    one = dataclasses.replace(profile(), step_seconds=[10.0, 11.5])
    network = {"alpha": 0.0, "beta": 0.01, "gamma": 1e-12, "delta": 0.0}
    found = {
        1: {"seconds": 10.75, "profile": one.to_dict()},
        2: {"seconds": 16.0, "network": network, "reductions": [1.0, 1.0]},
        4: {"seconds": 20.0},
    }
    rows = weak_scaling.table(found, [2, 8], batch=8)
    assert [(row["ranks"], row["source"]) for row in rows] == [
        (1, "hosts"),
        (2, "hosts"),
        (4, "hosts"),
        (8, "simulate"),
    ]
    assert [row["images/s"] for row in rows[:3]] == pytest.approx([8 / 10.75, 1.0, 1.6])
    assert [row["efficiency %"] for row in rows[:3]] == pytest.approx([100, 1075 / 16, 1075 / 20])
    assert rows[1]["simulated images/s"] == pytest.approx(16 / (11.125 + 4.0))  # slower of two steps, and 400 bytes
    assert rows[1]["measured / simulated"] == pytest.approx(15.125 / 16)
    assert rows[3]["measured / simulated"] is None
    assert rows[3]["images/s"] == rows[3]["simulated images/s"]
    lost = [rows[3][f"lost to {name} %"] for name in ("spread", "link", "waiting")]
    assert 100 - sum(lost) == pytest.approx(rows[3]["efficiency %"])


@pytest.mark.parametrize("words", [["--ranks", "1", "4"], ["--quota", "0"], ["--simulated", "0"]])
def test_what_cannot_be_measured_is_refused(words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["weak_scaling", *words])
    with pytest.raises(SystemExit):
        weak_scaling.parse()
    assert words[0] in capsys.readouterr().err


@pytest.mark.parametrize("part", [0.2, 0.05])
def test_a_process_has_its_part_of_a_core(part):
    reason = quotas.missing()
    if reason:
        pytest.skip(reason)
    code = "import sys, time; sys.stdin.readline(); start = time.time()\n"
    code += "while time.time() < start + 0.5: pass\nprint(time.process_time())"
    pipe = subprocess.PIPE
    with quotas.Quotas(1, part) as quota:
        with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=pipe, stdout=pipe, text=True) as process:
            quotas.place(quota.paths[0], 1, process.pid)
            assert len(os.sched_getaffinity(process.pid)) == 1
            taken, _ = process.communicate("\n")
        assert float(taken) < 0.5 * part + 0.1
    assert not quota.paths[0].exists()
