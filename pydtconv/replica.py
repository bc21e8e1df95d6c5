"""This process among those that train one model together: which samples and files are its own, what all know.

The one here is alone: everything is its own, and nothing is communicated.  `pydtconv.distribution` puts another one in
its place; models, layers and callbacks know of nothing else.  How batches are run and updates are made together is said
one floor up, in `pydtconv.trainers.strategy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol


class Observer(Protocol):
    """Who is told how long communication took; times are of `time.perf_counter_ns`."""

    def communicated(self, what: str, start: int, stop: int) -> None:
        """An operation that went on beside others was done, or found to be."""

    def waited(self, what: str, start: int, stop: int) -> None:
        """This process did nothing but wait."""


class Replica:
    """A process that trains alone.  observer: told of communication."""

    rank = 0
    size = 1
    #: whether sources of data give the batches of all processes, of which each takes its share
    shards = True
    #: whether it reads the flat array of gradients; otherwise steps may apply each one as soon as it is complete
    reads_gradients = False
    #: how many processes have one copy of weights and optimizer slots, of which each updates a part
    sharers = 1
    #: the mesh over which images are cut, as graphs know it (`Graph.partition`); None where they are whole
    partition: Any = None
    #: how the processes that share samples share the columns of variables, as `graph.memory.columns` knows it
    columns: Any = None
    #: the signal that asks to end training, the same in all processes after each step; None without one
    asked: int | None = None
    observer: Observer | None = None
    #: "optimizer" where each process has a part of the optimizer's state alone, "gradients" where of these, too
    shard: str | None = None
    #: how the last step's gradients of several processes came together, for people; empty where there are none
    way_of_gradients = ""
    #: while metrics are updated: what part of the batch is this process's, by which one number for all of it counts
    portion = 1.0

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    @property
    def parts(self) -> int:
        """Into how many parts the samples of a batch are shared out."""
        return self.size if self.partition is None else self.partition.extent("batch")

    def share(self, count: int) -> slice:
        """The part of so many samples that is this process's own; it may be empty."""
        return slice(0, count)

    def counted(self, size: int | None, whole: int | None) -> tuple[int, int] | None:
        """(first own sample, samples) of a global batch of which this process holds `size`; None where its data ended.

        whole: samples of the global batch where the source gives that.  Returns None where all data has ended.
        """
        return None if size is None else (0, size)

    def any(self, value: bool, what: str) -> bool:
        """Whether it is true in any process; what: for messages."""
        return value

    def clock_offset(self) -> int:
        """Nanoseconds from this process's `time.perf_counter_ns` to the first one's; all processes must call it."""
        return 0

    def collected(self, value: Any, what: str) -> list[Any]:
        """The values of all processes, by rank; what: for messages."""
        return [value]

    def writes(self, path: Path) -> bool:
        """Whether this process writes the file; otherwise another one does, for which `wait_for` waits."""
        return True

    def done(self, path: Path) -> None:
        """Says that this process has written the file, or has failed to."""

    def wait_for(self, path: Path) -> None:
        """Waits until the file that another process was to write for this one is there."""

    def broadcast(self, value: Any, what: str) -> Any:
        """The first process's value; what: what it is for, in messages."""
        return value

    def meet(self, what: str) -> None:
        """Waits until all processes have come here; what: what they wait for, in messages."""

    def updater(self, optimizer: Any) -> Any:
        """What applies the gradients of a plan while backward runs, by an optimizer."""
        return optimizer

    def settle(self, state: bool = True, columns: bool | None = None) -> None:
        """Makes what processes have accumulated by themselves between two updates that of all; all must call it.

        state: gives each process all of the optimizer's state, where each has a part.
        columns: the same of variables of which each has some columns, until the next step; by default as state.
        """

    def ask_to_end(self, number: int | None) -> None:
        """Notes that a signal asks this process to end; `asked` follows when all know of it.  None: forgets it."""
        self.asked = number

    def share_signals(self, what: str) -> None:
        """Lets all processes know now, not after the next step, what signals ask any of them; what: for messages."""


_current = Replica()
_was_set = False


def current() -> Replica:
    """The active replica."""
    return _current


def was_set() -> bool:
    """Whether the program has made a replica active, be it that of a process that is alone."""
    return _was_set


@contextmanager
def one_of(size: int, **attributes: Any) -> Iterator[None]:
    """While plans are made as in one of so many processes that train together; attributes: of its `Replica`."""
    before, here = current(), Replica()
    for name, value in {"size": size, "reads_gradients": True, **attributes}.items():
        setattr(here, name, value)
    set_current(here)
    try:
        yield
    finally:
        set_current(before)


def set_current(replica: Replica | None) -> None:
    """Makes a replica active; None stands for a process that is alone."""
    global _current, _was_set
    _current, _was_set = Replica() if replica is None else replica, True
