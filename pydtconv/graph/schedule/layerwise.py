"""Offload layer by layer, without a schedule: the baseline that schedules are compared with.

Every storage that backward needs is written while the last layer of forward that reads it runs; that layer's end waits
for the write.  It is read back while the layer of backward runs that comes before the first one which needs it; that
one's beginning waits for the read.  No speed is asked for.  (M. Rhu et al., "vDNN: Virtualized Deep Neural Networks for
Scalable, Memory-Efficient Neural Network Design", MICRO 2016: its policy "all".)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pydtconv.graph.schedule.offload import Candidate, Demand, Moved, Timeline
from pydtconv.graph.schedule.steps import Step
from pydtconv.graph.schedule.transfers import Disk, Queues


def by_layers(needs: Demand, steps: Sequence[Step], disk: Disk) -> Timeline:
    """The schedule in which all that may leave leaves, with the times that this disk is likely to take."""
    moved = [_moved(each, steps) for each in sorted(needs.candidates, key=lambda each: each.last)]
    places = [(each.begins, each.gone, each.back, each.candidate.next) for each in moved]
    events = deque(sorted((at, what, i) for i, each in enumerate(places) for what, at in enumerate(each)))
    queues = Queues(disk)
    time = waited = 0.0
    starts = []
    for index, seconds in enumerate(needs.seconds):
        queues.advance(time)
        while events and events[0][0] == index:
            _, what, number = events.popleft()
            kind = "write" if what < 2 else "read"
            if what % 2 == 0:
                queues.add(kind, number, moved[number].candidate.nbytes)
                continue
            done = queues.finish(kind, number)
            waited, time = waited + max(done - time, 0.0), max(done, time)
        starts.append(time)
        time += seconds
    away = np.zeros(len(steps) + 1, np.int64)
    for each in moved:
        away[each.gone] += each.candidate.nbytes
        away[each.back] -= each.candidate.nbytes
    spans = queues.spans
    moved = [replace(each, write=spans["write", i], read=spans["read", i]) for i, each in enumerate(moved)]
    return Timeline(moved, time, waited, int((needs.live - np.cumsum(away)[:-1]).max(initial=0)), starts)


def _moved(each: Candidate, steps: Sequence[Step]) -> Moved:
    first, end = _layer(steps, each.last)
    written = any(view.buffer is each.storage for step in steps[first : each.last + 1] for view in step.writes())
    gone = min(end, each.next)
    back = max(gone, _layer(steps, each.next - 1)[0])
    return Moved(each, gone, back, begin=each.last + 1 if written else first)


def _layer(steps: Sequence[Step], index: int) -> tuple[int, int]:
    """The steps around this one that are of its node: the first, and the one behind them."""
    first, end = index, index + 1
    while first > 0 and steps[first - 1].node is steps[index].node:
        first -= 1
    while end < len(steps) and steps[end].node is steps[index].node:
        end += 1
    return first, end
