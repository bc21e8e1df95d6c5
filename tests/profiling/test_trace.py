"""Time lines: what is written, read again, and merged."""

import json
import re
from collections import Counter, defaultdict

import pytest

from pydtconv.profiling import Trace
from pydtconv.profiling.trace import COMMUNICATION, DATA, HOST, STEP, WAIT


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
    assert tracks == {0: "main", 100: "communication"}


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


def test_clocks_are_aligned_where_offsets_were_measured(tmp_path):
    traces = []
    for rank, (offset, start) in enumerate([(0, 1_000_000), (-7_000_000_000, 7_001_500_000)]):
        trace = Trace(rank)
        trace._to_system_clock = 10**18 * (rank + 1)  # systems' clocks that do not agree
        trace.offset = offset
        trace.add("step", start, start + 1_000_000)
        traces.append(trace)
    found = json.loads(Trace.merge(traces).write(tmp_path / "all.json").read_text())["traceEvents"]
    assert [(event["pid"], event["ts"]) for event in found if event["ph"] == "X"] == [(0, 0), (1, 500)]


def example():
    """Two ranks; rank 0 has two messages under way at a time."""
    traces = [Trace(0), Trace(1)]
    for rank, trace in enumerate(traces):
        trace._to_system_clock = 1_700_000_000_000_000_000
        trace.add("next batch", 0, 100, DATA)
        trace.add("step 1", 200, 1000, STEP)
        trace.add("conv forward", 250, 600)
        trace.add("conv backward", 600, 800)
        trace.add("optimizer", 850, 950, HOST)
        trace.add("bucket 1", 860, 900, WAIT)
        trace.add("bucket 1", 500, 900, COMMUNICATION)
        if rank == 0:
            trace.add("bucket 2", 550, 950, COMMUNICATION)
            trace.add("bucket 3", 900, 960, COMMUNICATION)
    return Trace.merge(traces)


def test_what_is_under_way_at_a_time_is_on_several_threads(tmp_path):
    events = json.loads(example().write(tmp_path / "all.json").read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = [
        (e["name"], names[e["pid"], e["tid"]]) for e in events if e.get("cat") == "communication" and e["pid"] == 0
    ]
    assert found == [("bucket 1", "communication"), ("bucket 2", "communication 2"), ("bucket 3", "communication")]


def test_paraver(tmp_path):
    """The format of "Paraver: Tracefile Description" (Barcelona Supercomputing Center)."""
    path = example().write(tmp_path / "all.prv")
    head, *records = path.read_text().splitlines()
    date = r"\(\d\d/\d\d/\d{4} at \d\d:\d\d\)"
    assert re.fullmatch(rf"#Paraver {date}:1000_ns:1\(5\):1:2\(3:1,2:1\)", head), head
    states, events, times = defaultdict(list), defaultdict(list), []
    for record in records:
        kind, *fields = map(int, record.split(":"))
        cpu, application, task, thread, start, *rest = fields
        assert (application, cpu) == (1, (task - 1) * 3 + thread)
        times.append(start)
        if kind == 1:
            stop, state = rest
            states[task, thread].append((start, stop, state))
        else:
            assert kind == 2
            events[task, thread].append((start, *rest))
    assert times == sorted(times)
    assert set(states) == {(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)}
    for found in states.values():  # one state at any time
        assert [start for start, _, _ in found] == [0, *(stop for _, stop, _ in found[:-1])]
        assert found[-1][1] == 1000
    seconds = Counter()
    for start, stop, state in states[1, 1]:
        seconds[state] += stop - start
    assert seconds == {0: 100, 1: 550, 3: 40, 12: 100, 15: 210}

    names = path.with_suffix(".pcf").read_text()
    types = {}
    for block in names.split("EVENT_TYPE\n")[1:]:
        kind, values = block.split("VALUES\n")
        _, number, track = kind.split()
        types[int(number)] = track, dict(line.split(" ", 1) for line in values.strip().splitlines())
    told = [(start, types[kind][0], types[kind][1][str(value)]) for start, kind, value in events[1, 1]]
    assert [event for event in told if event[1] in ("compute", "step")] == [
        (200, "step", "step 1"),
        (250, "compute", "conv forward"),
        (600, "compute", "conv backward"),
        (800, "compute", "End"),
        (1000, "step", "End"),
    ]
    assert {str(state) for state in seconds} <= set(re.findall(r"^(\d+) \w", names, re.M))
    row = path.with_suffix(".row").read_text()
    assert [int(size) for size in re.findall(r"LEVEL \w+ SIZE (\d+)\n", row)] == [5, 1, 2, 5]
    assert row.endswith("rank 1 main\nrank 1 communication\n\n")
    assert Trace().write(tmp_path / "empty.prv").read_text().count("\n") == 1
