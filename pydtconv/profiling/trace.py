"""Time lines of ranks, in Chrome's trace format (JSON; open in chrome://tracing or ui.perfetto.dev) or Paraver's.

One process of the time line is one rank.  Its threads are the main one, and lanes of what goes on beside it:
communication, writes and reads of a scratch file.  Spans of a thread nest.

Format: "Trace Event Format", Google, of the catapult project.
"""

from __future__ import annotations

import json
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from pydtconv.files.reading import parsing, read_json
from pydtconv.files.whole_file import check_writable, write_whole
from pydtconv.profiling import paraver

COMPUTE, COMMUNICATION, WAIT, HOST, WRITES, READS, DATA, STEP = range(8)
TRACKS = ("compute", "communication", "wait", "host", "writes", "reads", "data", "step")
#: tracks that go on beside the main thread
_BESIDE = ("communication", "writes", "reads")
#: numbers of threads from one of these to the next
_LANES = 100


def files_of(path: str | Path) -> list[Path]:
    """The files of a time line: one of JSON, or where it ends in .prv Paraver's three."""
    target = Path(path)
    paravers = target.suffix.lower() == ".prv"
    return [target, target.with_suffix(".pcf"), target.with_suffix(".row")] if paravers else [target]


def check_path(path: str | Path) -> None:
    """Raises OSError, naming the file, where a time line cannot be written now."""
    for target in files_of(path):
        check_writable(target)


class Trace:
    """Spans of time on the tracks of ranks.

    Spans are given in nanoseconds of `time.perf_counter_ns`; the trace keeps them in those of `time.time_ns`.
    profile: a mapping that is stored beside the events (see `Profile.load`).  offset: nanoseconds from this process's
    `time.perf_counter_ns` to that of the first of several processes, as measured; None where it is not known.
    """

    def __init__(self, rank: int = 0) -> None:
        self.rank = rank
        self.profile: Mapping[str, Any] | None = None
        self.offset: int | None = None
        self._hosts: dict[int, str] = {}
        self._host = socket.gethostname()
        self._to_system_clock = time.time_ns() - time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []  # "ts" and "dur" in nanoseconds, "ts" by the system's clock

    def __len__(self) -> int:
        return len(self._events)

    def add(
        self, name: str, start: int, stop: int, track: int = COMPUTE, rank: int | None = None, **details: Any
    ) -> None:
        """A span.  track: COMPUTE, COMMUNICATION, WAIT, HOST, WRITES, READS, DATA or STEP; rank: the trace's own by
        default."""
        event = {"name": name, "ph": "X", "cat": TRACKS[track], "ts": start + self._to_system_clock}
        event |= {"dur": stop - start, "pid": self.rank if rank is None else rank}
        self._events.append(event | ({"args": details} if details else {}))

    def write(self, path: str | Path) -> Path:
        """Writes the trace; times in the file count from its earliest span.  Returns the path.

        A path that ends in .prv gets Paraver's records, files of the same name that end in .pcf and .row the names.
        """
        origin = min((event["ts"] for event in self._events), default=0)
        files = files_of(path)
        texts = [self._json(origin)] if len(files) == 1 else self._paraver(origin)
        for target, text in zip(files, texts, strict=True):
            write_whole(target, partial(_put, text))
        return files[0]

    def _json(self, origin: int) -> str:
        threads = self._threads()
        events: list[dict[str, Any]] = []
        for rank in sorted({rank for rank, _ in threads}):
            events.append({"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"rank {rank}"}})
        for (rank, number), (name, _) in threads.items():
            names = {"name": "thread_name", "ph": "M", "pid": rank, "tid": number, "args": {"name": name}}
            events += [names, {**names, "name": "thread_sort_index", "args": {"sort_index": number}}]
        spans = [{**event, "tid": number} for (_, number), (_, found) in threads.items() for event in found]
        for event in sorted(spans, key=lambda event: (event["ts"], -event["dur"])):
            events.append({**event, "ts": (event["ts"] - origin) / 1e3, "dur": event["dur"] / 1e3})
        contents: dict[str, Any] = {"displayTimeUnit": "ms", "origin_ns": origin, "traceEvents": events}
        if self.profile is not None:
            contents["profile"] = self.profile
        return json.dumps(contents)

    def _paraver(self, origin: int) -> list[str]:
        spans: dict[paraver.Thread, tuple[str, list[paraver.Span]]] = {}
        for thread, (name, events) in self._threads().items():
            starts = [event["ts"] - origin for event in events]
            found = zip(starts, events, strict=True)
            spans[thread] = name, [paraver.Span(at, at + e["dur"], e["cat"], e["name"]) for at, e in found]
        spans = spans or {(self.rank, 0): ("main", [])}
        hosts = {rank: self._hosts.get(rank, self._host) for rank in sorted({rank for rank, _ in spans})}
        return paraver.texts(spans, hosts, datetime.fromtimestamp(origin / 1e9))

    def _threads(self) -> dict[tuple[int, int], tuple[str, list[dict[str, Any]]]]:
        """Name and events of each thread, by rank and number.  Events of one lane do not overlap."""
        found: dict[tuple[int, int], tuple[str, list[dict[str, Any]]]] = {}
        free: dict[tuple[int, str], list[int]] = defaultdict(list)  # when each lane's last event is over
        for event in sorted(self._events, key=lambda event: (event["ts"], -event["dur"])):
            number, name, track = 0, "main", event["cat"]
            if track in _BESIDE:
                ends = free[event["pid"], track]
                lane = next((i for i, end in enumerate(ends) if end <= event["ts"]), len(ends))
                ends[lane : lane + 1] = [event["ts"] + event["dur"]]
                number, name = _LANES * (1 + _BESIDE.index(track)) + lane, f"{track} {lane + 1}" if lane else track
            found.setdefault((event["pid"], number), (name, []))[1].append(event)
        return dict(sorted(found.items()))

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
                    trace._events.append({**event, **times, **{key: event[key] for key in ("name", "cat", "pid")}})
            trace.profile = contents.get("profile")
        return trace

    @classmethod
    def merge(cls, traces: Iterable[Trace]) -> Trace:
        """One trace with the spans of all, by the first one's clock where offsets are known; else the systems' clocks
        are taken to agree.  The profile is the first one's that has any."""
        merged, clock = cls(), None
        for trace in traces:
            clock = trace._to_system_clock if clock is None else clock
            shift = 0 if trace.offset is None else clock + trace.offset - trace._to_system_clock
            merged._events += [{**event, "ts": event["ts"] + shift} for event in trace._events]
            merged._hosts |= {trace.rank: trace._host, **trace._hosts}
            merged.profile = merged.profile or trace.profile
        return merged


def _put(text: str, file: IO[bytes]) -> None:
    file.write(text.encode())
