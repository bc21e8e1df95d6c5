"""Time lines in Chrome's trace format (JSON; open in chrome://tracing or ui.perfetto.dev).

One process of the time line is one rank; its tracks are COMPUTE, COMMUNICATION, WAIT, HOST, WRITES and READS.  Times
are those of the system's clock, so that traces of several ranks can be merged; the ranks' clocks must agree for that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydtconv.files.reading import parsing, read_json
from pydtconv.files.whole_file import write_whole

COMPUTE, COMMUNICATION, WAIT, HOST, WRITES, READS = range(6)
TRACKS = ("compute", "communication", "wait", "host", "writes", "reads")


class Trace:
    """Spans of time on the tracks of ranks.

    Spans are given in nanoseconds of `time.perf_counter_ns`; the trace keeps them in those of `time.time_ns`.
    profile: a mapping that is stored beside the events (see `Profile.load`).
    """

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank
        self.profile: Mapping[str, Any] | None = None
        self._to_system_clock = time.time_ns() - time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []  # "ts" and "dur" in nanoseconds, "ts" by the system's clock

    def __len__(self) -> int:
        return len(self._events)

    def add(
        self, name: str, start: int, stop: int, track: int = COMPUTE, rank: int | None = None, **details: Any
    ) -> None:
        """A span.  track: COMPUTE, COMMUNICATION, WAIT, HOST, WRITES or READS; rank: the trace's own by default."""
        event = {"name": name, "ph": "X", "cat": TRACKS[track], "ts": start + self._to_system_clock}
        event |= {"dur": stop - start, "pid": self.rank if rank is None else rank, "tid": track}
        self._events.append(event | ({"args": details} if details else {}))

    def write(self, path: str | Path) -> Path:
        """Writes the trace; times in the file count from its earliest span.  Returns the path."""
        origin = min((event["ts"] for event in self._events), default=0)
        lines = sorted({(event["pid"], event["tid"]) for event in self._events})
        events: list[dict[str, Any]] = []
        for rank in sorted({rank for rank, _ in lines}):
            events.append({"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}})
        for rank, track in lines:
            names = {"name": "thread_name", "ph": "M", "pid": rank, "tid": track, "args": {"name": TRACKS[track]}}
            events += [names, {**names, "name": "thread_sort_index", "args": {"sort_index": track}}]
        for event in sorted(self._events, key=lambda event: event["ts"]):
            events.append({**event, "ts": (event["ts"] - origin) / 1e3, "dur": event["dur"] / 1e3})
        contents: dict[str, Any] = {"displayTimeUnit": "ms", "origin_ns": origin, "traceEvents": events}
        if self.profile is not None:
            contents["profile"] = self.profile
        target = Path(path)
        write_whole(target, lambda file: file.write(json.dumps(contents).encode()))
        return target

    @classmethod
    def read(cls, path: str | Path) -> Trace:
        """The trace of a file that `write` made.  Raises ValueError naming the file for another one, or OSError."""
        trace = cls()
        contents = read_json(path, "a trace written by a profiler")
        with parsing(path, "a trace written by a profiler"):
            origin = contents["origin_ns"]
            for event in contents["traceEvents"]:
                if event["ph"] == "X":
                    times = {"ts": round(event["ts"] * 1e3) + origin, "dur": round(event["dur"] * 1e3)}
                    trace._events.append({**event, **times})
            trace.profile = contents.get("profile")
        return trace

    @classmethod
    def merge(cls, traces: Iterable[Trace]) -> Trace:
        """One trace with the spans of all; the profile is the first one's that has any."""
        merged = cls()
        for trace in traces:
            merged._events += trace._events
            merged.profile = merged.profile or trace.profile
        return merged
