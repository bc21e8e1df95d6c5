"""Which storages leave memory between forward and backward, when they have left, and when they begin to come back.

A storage is written after its last use in forward.  It must have left before the first step that needs its memory: the
executor waits for it there and not earlier.  It begins to come back as soon as there is room for it until backward uses
it.  So a plan fills the memory it may take, and transfers have all the time that this leaves them.  Where storages do
not fit without gaps then, transfers get a multiple of the time that they are likely to take.  (T. Jin, S. Hong,
"Split-CNN: Splitting Window-based Operations in Convolutional Neural Networks for Memory System Optimization", 2019.)
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from pydtconv.graph.memory.storage import Storage
from pydtconv.graph.schedule.asynchronous import WaitStep
from pydtconv.graph.schedule.redirect import redirect
from pydtconv.graph.schedule.steps import Step
from pydtconv.graph.schedule.transfers import PAGE, Disk, Queues, ReadStep, WriteStep


@dataclass(frozen=True, eq=False)
class Candidate:
    """A storage that may leave.  last: the step of forward that uses it last; next: the first one of backward."""

    storage: Storage
    last: int
    next: int

    @property
    def nbytes(self) -> int:
        return -(-self.storage.nbytes // PAGE) * PAGE


@dataclass
class Demand:
    """What a schedule without transfers needs: bytes in use and seconds of each step, and what may leave."""

    live: np.ndarray
    seconds: Sequence[float]
    candidates: list[Candidate]

    @property
    def least(self) -> int:
        """The fewest bytes with which all steps can run, waiting for every transfer."""
        away = np.zeros(len(self.live) + 1, np.int64)
        for each in self.candidates:
            away[each.last + 1] += each.nbytes
            away[each.next] -= each.nbytes
        return int((self.live - np.cumsum(away)[:-1]).max(initial=0))


@dataclass(frozen=True)
class Moved:
    """A storage that leaves, and the steps before which what happens.

    gone: a wait until it is written.  back: reading begins.  write, read: spans of the transfers, in predicted seconds
    from the start of the step.  begin: writing begins; None: after its last use.
    """

    candidate: Candidate
    gone: int
    back: int
    write: tuple[float, float] = (0.0, 0.0)
    read: tuple[float, float] = (0.0, 0.0)
    begin: int | None = None

    @property
    def begins(self) -> int:
        return self.candidate.last + 1 if self.begin is None else self.begin


@dataclass
class Timeline:
    """A schedule with transfers.  seconds: predicted of the whole; waited: of them, those without work.

    most: bytes in use at most.  starts: when each step without transfers starts.
    """

    moved: list[Moved]
    seconds: float
    waited: float
    most: int
    starts: list[float] = field(default_factory=list)


def demand(
    steps: Sequence[Step],
    storages: Collection[Storage],
    kept: Collection[Storage],
    backward: int,
    seconds: list[float],
    least: int,
) -> Demand:
    """What steps need.  kept, and those below `least` bytes: storages that stay.  backward: its first step."""
    last: dict[Storage, int] = {}
    following: dict[Storage, int] = {}
    for index, step in enumerate(steps):
        for view in step.views():
            if not isinstance(view.buffer, Storage):
                continue
            if index < backward:
                last[view.buffer] = index
            else:
                following.setdefault(view.buffer, index)
    change = np.zeros(len(steps) + 2, np.int64)
    for storage in storages:
        for first, end in storage.lives:
            change[first] += storage.nbytes
            change[min(end, len(steps)) + 1] -= storage.nbytes
    found = [
        Candidate(storage, last[storage], following[storage])
        for storage in storages
        if storage in last and storage in following and storage not in kept and storage.nbytes >= least
    ]
    found = [each for each in found if each.next > each.last + 1]
    return Demand(np.cumsum(change)[: len(steps)], seconds, sorted(found, key=lambda each: (-each.next, each.last)))


def chosen(needs: Demand, budget: int) -> list[Candidate]:
    """What has to leave so that no step uses more than `budget` bytes; where that cannot be, all that may.

    At each step in turn, what is used again last goes first (L. Belady, 1966).
    """
    away = np.zeros(len(needs.live), np.int64)
    result: dict[Candidate, None] = {}
    for index in range(len(needs.live)):
        if needs.live[index] - away[index] <= budget:
            continue
        for each in needs.candidates:
            if each.last < index < each.next and each not in result:
                result[each] = None
                away[each.last + 1 : each.next] += each.nbytes
                if needs.live[index] - away[index] <= budget:
                    break
    return sorted(result, key=lambda each: each.last)


def timeline(needs: Demand, leaving: Sequence[Candidate], budget: int, disk: Disk) -> Timeline:
    """The schedule in which these leave, within `budget` bytes where that can be."""
    while True:
        found, stayed = _simulate(needs, leaving, budget, disk)
        if not stayed:
            return found
        leaving = [each for each in leaving if each not in stayed]


def _simulate(needs: Demand, leaving: Sequence[Candidate], budget: int, disk: Disk) -> tuple[Timeline, set[Candidate]]:
    """A run of the step with these transfers; and those that would not have had to leave."""
    numbers = {each: number for number, each in enumerate(leaving)}
    queues = Queues(disk)
    ends_at = {
        index: list(group)
        for index, group in itertools.groupby(sorted(leaving, key=lambda each: each.last), key=lambda each: each.last)
    }
    under_way: list[Candidate] = []
    gone: dict[Candidate, int] = {}
    back: dict[Candidate, int] = {}
    unread = sorted(leaving, key=lambda each: each.next)
    stayed: set[Candidate] = set()
    time, waited, away, most = 0.0, 0.0, 0, 0
    starts = []
    for index, seconds in enumerate(needs.seconds):
        queues.advance(time)
        while under_way and needs.live[index] - away > budget:
            each = under_way.pop(0)
            if each.next <= index:
                continue
            gone[each] = index
            away += each.nbytes
            done = queues.finish("write", numbers[each])
            waited, time = waited + max(done - time, 0.0), max(done, time)
        while unread:
            each = unread[0]
            due = each.next <= index
            if each not in gone:
                if not due:
                    break
                stayed.add(each)  # nothing has needed its memory
                under_way = [other for other in under_way if other is not each]
                unread.pop(0)
                continue
            later = int(needs.live[index : max(each.next, index + 1)].max())
            if not due and later - away + each.nbytes > budget:
                break
            queues.add("read", numbers[each], each.nbytes)
            back[each] = index
            away -= each.nbytes
            unread.pop(0)
        for each in back:
            if each.next == index:
                done = queues.finish("read", numbers[each])
                waited, time = waited + max(done - time, 0.0), max(done, time)
        most = max(most, int(needs.live[index] - away))
        queues.advance(time)
        starts.append(time)
        time += seconds
        queues.advance(time)
        for each in ends_at.get(index, ()):
            queues.add("write", numbers[each], each.nbytes)
            under_way.append(each)
    moved = [
        Moved(each, gone[each], back[each], queues.spans["write", number], queues.spans["read", number])
        for each, number in numbers.items()
        if each in back
    ]
    return Timeline(moved, time, waited, most, starts), stayed


def just_in_time(found: Timeline, margin: float) -> Timeline:
    """The same with less in use: memory is free once a write is likely to be done, and reads begin later.

    margin: how many times the predicted time of a transfer it is given.  Within the same memory storages that live for
    a shorter time are easier to place.
    """
    starts, end = found.starts, found.seconds
    gone, back, read = {}, {}, {}
    following = float("inf")  # when the next read begins: they are done one after the other
    for each in sorted(found.moved, key=lambda each: (each.candidate.next, each.back), reverse=True):
        takes = each.read[1] - each.read[0]
        needed = starts[each.candidate.next] if each.candidate.next < len(starts) else end
        begin = min(needed, following) - margin * takes
        back[each] = max(each.back, min(bisect.bisect_right(starts, begin) - 1, each.candidate.next))
        following = starts[back[each]] if back[each] < len(starts) else end
        later = max(following, each.read[0])
        read[each] = (later, later + takes)
    for each in found.moved:
        begin, done = each.write
        free = bisect.bisect_left(starts, begin + margin * (done - begin))
        gone[each] = max(min(each.gone, free), each.candidate.last + 1)
    moved = [Moved(each.candidate, gone[each], back[each], each.write, read[each]) for each in found.moved]
    return dataclasses.replace(found, moved=moved)


def insert(steps: list[Step], found: Timeline) -> int:
    """Puts the transfers into the steps; returns the bytes of the scratch file that they need.

    What comes back is a storage of its own, so that it may lie elsewhere than it did.  After it, life times have to be
    noted anew.
    """
    before: dict[int, list[Step]] = {}
    place = 0  # in the scratch file
    begins: list[tuple[int, WriteStep]] = []
    writes_done: list[tuple[int, Step]] = []
    reads: list[tuple[int, Step]] = []
    reads_done: list[tuple[int, Step]] = []
    for each in sorted(found.moved, key=lambda each: each.candidate.last):
        storage, last = each.candidate.storage, each.candidate.last
        storage.nbytes = each.candidate.nbytes
        storage.alignment = PAGE
        write = WriteStep(steps[last].node, storage, place)
        begins.append((each.begins, write))
        writes_done.append((each.gone, WaitStep(write.node, write, ends_lives=[write.view])))
        place += storage.nbytes
    places = {step.storage: step.place for _, step in begins}
    returned: dict[object, object] = {}
    for each in sorted(found.moved, key=lambda each: (each.back, each.candidate.next)):
        storage, following = each.candidate.storage, each.candidate.next
        again = Storage(f"{storage.name} back", storage.kind, storage.nbytes, alignment=PAGE)
        read = ReadStep(steps[following].node, again, places[storage])
        returned[storage] = again
        reads.append((each.back, read))
        reads_done.append((following, WaitStep(read.node, read)))
    first = min((each.candidate.next for each in found.moved), default=len(steps))
    for step in steps[first:]:
        redirect(step, returned)
    for group in (begins, writes_done, reads, reads_done):
        for index, step in group:
            before.setdefault(index, []).append(step)
    steps[:] = [each for index, step in enumerate(steps) for each in (*before.get(index, ()), step)]
    return place
