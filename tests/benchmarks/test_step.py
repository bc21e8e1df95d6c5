"""The breakdown of a step: floors, sums, and the command."""

import csv
import sys

import pytest

from benchmarks import report, step
from pydtconv.profiling import Profile, Timing


def profile_of(*timings):
    return Profile("net", 8, 2, "float32", "AUTO", "cpu", 3, 0.1, 0, list(timings))


MACHINE = step.Machine(threads=2, peak=100.0, bandwidth=10.0)


def test_the_floor_is_the_larger_of_arithmetic_and_bytes():
    bound_by_peak = Timing(0, "a", "conv", "forward", 0.05, multiplications=10**9, bytes=10**8)
    bound_by_memory = Timing(1, "b", "add", "forward", 0.03, bytes=2 * 10**8)
    assert MACHINE.floor(bound_by_peak) == pytest.approx(0.02)
    assert MACHINE.floor(bound_by_memory) == pytest.approx(0.02)
    rows = step.part_rows(profile_of(bound_by_memory, bound_by_peak), MACHINE)
    assert [row["node"] for row in rows] == ["a", "b"]
    assert rows[0]["above ms"] == pytest.approx(30)
    assert rows[1]["times floor"] == pytest.approx(1.5)
    assert rows[0]["share %"] == pytest.approx(50)


def test_parts_of_one_kind_are_added():
    parts = [Timing(i, f"n{i}", "conv", "forward", 0.01, flops=10**9, multiplications=5 * 10**8) for i in range(3)]
    other = Timing(3, "m", "maxpool", "forward", 0.02, bytes=10**8)
    rows = step.kind_rows(profile_of(*parts, other), MACHINE, "kind", "direction")
    assert [(row["kind"], row["parts"]) for row in rows] == [("maxpool", 1), ("conv", 3)]
    assert rows[1]["ms"] == pytest.approx(30)
    assert rows[1]["GFLOPS"] == pytest.approx(100)
    assert rows[1]["above ms"] == pytest.approx(0)


def test_the_command_writes_table_csv_and_time_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(step, "memory_bandwidth", lambda threads: 10.0)
    trace = tmp_path / "step.json"
    words = ["--model", "resnet20", "--size", "8", "--batch", "4", "--steps", "2", "--threads", "1", "--trace", trace]
    monkeypatch.setattr(sys, "argv", ["step", *map(str, words)])
    step.main()
    text = capsys.readouterr().out
    assert "images/s; floor" in text
    assert "memory 10.0 GB/s, 1 threads" in text
    lines = (tmp_path / "step_resnet20_8.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert {row["pass"] for row in rows} >= {"forward", "backward_data", "backward_weights", "outside"}
    assert sum(row["operator"] == "conv" and row["pass"] == "forward" for row in rows) == 19
    assert Profile.load(trace).samples == 2
