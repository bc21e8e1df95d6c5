"""Time lines: what is written, read again, and merged."""

import json

import pytest

from pydtconv.profiling import Trace
from pydtconv.profiling.trace import COMMUNICATION, WAIT


def spans(path):
    return {event["name"]: event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"}


def test_spans_in_microseconds_on_named_tracks(tmp_path):
    trace = Trace(rank=2)
    trace.add("conv", 5_000_000, 7_500_000, algorithm="winograd")
    trace.add("bucket 0", 6_000_000, 9_000_000, COMMUNICATION)
    path = trace.write(tmp_path / "trace.json")
    found = spans(path)
    assert (found["conv"]["ts"], found["conv"]["dur"], found["conv"]["pid"]) == (0, 2500, 2)
    assert found["conv"]["args"] == {"algorithm": "winograd"}
    assert (found["bucket 0"]["ts"], found["bucket 0"]["dur"]) == (1000, 3000)
    names = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "M"]
    assert {"rank 2"} == {event["args"]["name"] for event in names if event["name"] == "process_name"}
    tracks = {event["tid"]: event["args"]["name"] for event in names if event["name"] == "thread_name"}
    assert tracks == {0: "compute", 1: "communication"}


def test_files_of_ranks_are_merged_on_one_clock(tmp_path):
    for rank, start in ((0, 1_000_000), (1, 4_000_000)):
        trace = Trace(rank)
        trace._to_system_clock = 10**18 + 1  # as if both had been made at the same moment
        trace.add("step", start, start + 2_000_000)
        trace.add("wait", start, start + 1_000, WAIT)
        trace.profile = {"rank": rank}
        trace.write(tmp_path / f"{rank}.json")
    merged = Trace.merge(Trace.read(tmp_path / f"{rank}.json") for rank in (0, 1))
    assert len(merged) == 4
    contents = json.loads(merged.write(tmp_path / "all.json").read_text())
    steps = [(event["pid"], event["ts"], event["dur"]) for event in contents["traceEvents"] if event["name"] == "step"]
    assert steps == [(0, 0, 2000), (1, 3000, 2000)]
    assert contents["profile"] == {"rank": 0}


def test_an_empty_trace_and_other_files(tmp_path):
    assert len(Trace.read(Trace().write(tmp_path / "empty.json"))) == 0
    (tmp_path / "other.json").write_text('{"events": 1}')
    with pytest.raises(ValueError, match=r"other.json: expected a trace written by a profiler"):
        Trace.read(tmp_path / "other.json")
