"""Time lines in Paraver's format, as Extrae writes it: records (.prv), names of numbers (.pcf), names of rows (.row).

A rank is a task.  Its main thread, and each lane of what goes on beside it, is a thread on a CPU of its own.  States
say what a thread does at any time, events which operator, reduction or step it is at.  Messages have no records.

Format: "Paraver: Parallel Program Visualization and Analysis tool, Tracefile Description", Barcelona Supercomputing
Center, tools.bsc.es/paraver/trace_generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple


class Span(NamedTuple):
    """Nanoseconds [start, stop) of a thread.  track: the kind of work."""

    start: int
    stop: int
    track: str
    name: str


#: (rank, number of a thread)
Thread = tuple[int, int]
#: state of a track, as Extrae numbers them, with its name and color
_STATES = {
    "idle": (0, "Idle", "117,195,255"),
    "compute": (1, "Running", "0,0,255"),
    "wait": (3, "Waiting a message", "255,0,0"),
    "communication": (13, "Group Communication", "255,144,26"),
    **dict.fromkeys(("data", "writes", "reads"), (12, "I/O", "66,66,66")),
    **dict.fromkeys(("step", "host"), (15, "Others", "192,224,0")),
}
#: type of a track's events: this one and the number of the track
_FIRST_TYPE = 60000100


def innermost(spans: Sequence[Span]) -> Iterator[Span]:
    """Spans of a thread, which nest, cut into pieces that follow each other: always the one that lies in all others."""
    inside: list[Span] = []
    at = 0

    def closed(until: int | None) -> Iterator[Span]:
        nonlocal at
        while inside and (until is None or inside[-1].stop <= until):
            span = inside.pop()
            if at < span.stop:
                yield span._replace(start=at)
                at = span.stop

    for span in sorted(spans, key=lambda span: (span.start, -span.stop)):
        yield from closed(span.start)
        if inside and at < span.start:
            yield inside[-1]._replace(start=at, stop=span.start)
        at = span.start
        inside.append(span)
    yield from closed(None)


def texts(
    threads: Mapping[Thread, tuple[str, Sequence[Span]]], hosts: Mapping[int, str], origin: datetime
) -> list[str]:
    """The texts of .prv, .pcf and .row.  threads: name and spans.  hosts: of ranks.  origin: what time 0 stands for."""
    nodes = list(dict.fromkeys(hosts.values()))
    cpus = sorted(threads, key=lambda thread: (nodes.index(hosts[thread[0]]), thread))
    end = max((span.stop for _, spans in threads.values() for span in spans), default=0)
    names: dict[str, dict[str, int]] = {track: {} for track in _STATES}
    records: list[tuple[int, str]] = []
    for thread, (_, spans) in sorted(threads.items()):
        task = list(hosts).index(thread[0]) + 1
        number = [other for other in sorted(threads) if other[0] == thread[0]].index(thread) + 1
        place = f"{cpus.index(thread) + 1}:1:{task}:{number}"
        records += _states(spans, place, end)
        for track in dict.fromkeys(span.track for span in spans):
            records += _events([span for span in spans if span.track == track], place, names[track])
    counts = [sum(hosts[rank] == node for rank, _ in threads) for node in nodes]
    tasks = [f"{sum(other == rank for other, _ in threads)}:{nodes.index(host) + 1}" for rank, host in hosts.items()]
    head = f"#Paraver ({origin:%d/%m/%Y at %H:%M}):{end}_ns:{len(nodes)}({','.join(map(str, counts))})"
    lines = [f"{head}:1:{len(tasks)}({','.join(tasks)})", *(text for _, text in sorted(records))]
    rows = {
        "CPU": [f"{i + 1}.{hosts[rank]}" for i, (rank, _) in enumerate(cpus)],
        "NODE": nodes,
        "TASK": [f"rank {rank}" for rank in hosts],
        "THREAD": [f"rank {thread[0]} {name}" for thread, (name, _) in sorted(threads.items())],
    }
    row = [line for level, found in rows.items() for line in (f"LEVEL {level} SIZE {len(found)}", *found, "")]
    return ["\n".join(part) + "\n" for part in (lines, _names(names), row)]


def _states(spans: Sequence[Span], place: str, end: int) -> Iterator[tuple[int, str]]:
    """Records that follow each other from 0 to the end."""
    at = 0
    for piece in [*innermost(spans), Span(end, end, "idle", "")]:
        for start, stop, track in ((at, piece.start, "idle"), (piece.start, piece.stop, piece.track)):
            if start < stop:
                yield start, f"1:{place}:{start}:{stop}:{_STATES[track][0]}"
        at = piece.stop


def _events(spans: Sequence[Span], place: str, names: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Where each span of a track begins, its name's number, counted from 1; where nothing follows at once, 0."""
    kind = _FIRST_TYPE + list(_STATES).index(spans[0].track)
    at: int | None = None
    for piece in innermost(spans):
        if at is not None and at < piece.start:
            yield at, f"2:{place}:{at}:{kind}:0"
        yield piece.start, f"2:{place}:{piece.start}:{kind}:{names.setdefault(piece.name, len(names) + 1)}"
        at = piece.stop
    if at is not None:
        yield at, f"2:{place}:{at}:{kind}:0"


def _names(names: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield from ("DEFAULT_OPTIONS", "", "LEVEL THREAD", "UNITS NANOSEC", "", "DEFAULT_SEMANTIC", "")
    yield from ("THREAD_FUNC State As Is", "", "STATES")
    states = {number: (name, color) for number, name, color in _STATES.values()}
    yield from (f"{number} {name}" for number, (name, _) in states.items())
    yield from ("", "STATES_COLOR", *(f"{number} {{{color}}}" for number, (_, color) in states.items()))
    for i, (track, found) in enumerate(names.items()):
        if found:
            yield from ("", "EVENT_TYPE", f"0 {_FIRST_TYPE + i} {track}", "VALUES", "0 End")
            yield from (f"{number} {name}" for name, number in found.items())
