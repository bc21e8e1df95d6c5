"""Runs through data: epoch by epoch, and by groups of batches within one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pydtconv.trainers.data_adapters.arrays import ArrayData, Batch
from pydtconv.trainers.data_adapters.streams import StreamData


class Epochs:
    """Runs through data epoch by epoch, each of `steps` batches where that is given, else of all of them.

    execution: batches between two calls of callbacks; as in Keras, an epoch of `steps` takes whole groups of so many.
    Epochs with `steps` go on where the last one stopped, or, if anew, begin with the first batch wherever data can.
    Where data ends within an epoch, a warning says so.
    done: batches of this epoch that were given, 0 between epochs.  seen: batches of the longest epoch so far.
    """

    def __init__(self, data: ArrayData | StreamData, steps: int | None, execution: int, anew: bool = False) -> None:
        if steps is not None and (not isinstance(steps, (int, np.integer)) or steps < 1):
            raise ValueError(f"steps: expected an integer of 1 or more, got {steps!r}")
        self.data = data
        self.execution = execution
        self.asked = steps or 0
        self.steps = None if steps is None else self._whole(steps)
        self.anew = anew
        self.done = 0
        self.seen: int | None = None
        self.ran_dry = False
        self._taken = 0
        self._going: Iterator[Batch] | None = None
        self._resumed: Mapping[str, Any] | None = None

    @property
    def num_batches(self) -> int | None:
        """Batches of an epoch, as far as it is known."""
        return self.steps or self.data.num_batches or self.seen

    @property
    def _begins_anew(self) -> bool:
        return self.anew and self.data.restarts

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        self.data.on_epoch_begin()
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            self.data.set_state(resumed["data"], going=True)
        else:
            self.done = 0
            if self._going is None or self.steps is None or self._begins_anew:
                self._begin()
        while self.steps is None or self.done < self.steps:
            batch = self.next_batch()
            if batch is None and self.done == 0 and self.steps is not None and self.data.restarts:
                self._begin()
                batch = self.next_batch()
            if batch is None:
                self._going = None
                if self._whole(self.done) < self.asked or self.done == 0:
                    self.ran_dry = self.done == 0 or not self.data.restarts
                    self._warn()
                break
            self.done += 1
            self._taken += 1
            self.seen = max(self.done, self.seen or 0)
            yield self.done - 1, batch
        self.data.on_epoch_end()

    def _whole(self, count: int) -> int:
        """So many batches, as whole groups."""
        return -(-count // self.execution) * self.execution

    def _begin(self) -> None:
        self._going, self._taken = self.data.epoch(), 0

    def next_batch(self) -> Batch | None:
        """The next batch of the run over the data that is going on, None where there is none."""
        return None if self._going is None else next(self._going, None)

    def take_back(self) -> None:
        """The last batch counts as not given."""
        self.done -= 1
        self._taken -= 1

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the position in the epoch and in the data, and the data's order."""
        on = self._going is not None and self.steps is not None and not self._begins_anew
        going = self.done > 0 or on  # the data may be used up within the last group of batches
        return {
            "steps": self.steps,
            "done": self.done,
            "taken": self._taken if going else None,
            "seen": self.seen,
            "data": self.data.get_state(going),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `get_state` gave.  Raises ValueError where an epoch going on was of other batches."""
        going = state["taken"] is not None and (state["done"] > 0 or not self._begins_anew)
        if state["done"] and state["steps"] != self.steps:
            raise ValueError(f"steps of an epoch: expected {state['steps']}, as in the epoch begun, got {self.steps}")
        self.data.set_state(state["data"], going)
        self.done, self.seen, self._taken = state["done"], state["seen"], state["taken"] or 0
        self._going = self.data.rest(self._taken) if going else None
        self._resumed = state if self.done and going else None

    def _warn(self) -> None:
        warnings.warn(
            f"the input ran out of data; {'validation has fewer batches' if self.anew else 'training is interrupted'}: "
            f"expected the generator or data set to give {self.asked or 'at least one'} batch(es) for each epoch",
            UserWarning,
            stacklevel=5,
        )


def groups(batches: Iterable[tuple[int, Batch]], count: int) -> Iterator[tuple[int, int, Iterator[Batch]]]:
    """Batches by steps_per_execution: (first step, last step, batches).  A group must be used up before the next."""
    source = iter(batches)
    for step, batch in source:
        yield step, step + count - 1, _group(batch, source, count)


def _group(first: Batch, source: Iterator[tuple[int, Batch]], count: int) -> Iterator[Batch]:
    yield first
    for _ in range(count - 1):
        item = next(source, None)
        if item is None:
            return
        yield item[1]
