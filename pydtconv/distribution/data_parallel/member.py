"""One of the processes that train a model together: the files, signals, data and errors that it shares with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.mpi.clocks import clock_offset
from pydtconv.support.uninterrupted import ENDING
from pydtconv.trainers.strategy import Strategy


class Member(Strategy):
    """A process among `size`."""

    def __init__(self, channels: Channels) -> None:
        self.channels = channels
        self.world = channels.world
        self.rank, self.size = self.world.rank, self.world.size
        self.departures = channels.departures
        self.small, self.large = channels.small, channels.large
        self.files = channels.files
        self._noticed: int | None = None

    def clock_offset(self) -> int:
        return clock_offset(self.small)

    def collected(self, value: Any, what: str) -> list[Any]:
        return [self.small.bcast_object(value, what, root) for root in range(self.size)]

    # --- files -----------------------------------------------------------------------------------------------------
    def writes(self, path: Path) -> bool:
        return self.is_main or self.files.expect(path)

    def done(self, path: Path) -> None:
        self.files.announce(path)

    def wait_for(self, path: Path) -> None:
        self.files.wait_for(path)

    def broadcast(self, value: Any, what: str) -> Any:
        return self.small.bcast_object(value, what)

    def meet(self, what: str) -> None:
        self.small.allreduce(np.zeros(1), what)

    def ask_to_end(self, number: int | None) -> None:
        self._noticed = number
        if number is None:
            self.asked = None

    def share_signals(self, what: str) -> None:
        self._note_signals(self.small.allreduce(self._signals(), what))

    def _signals(self) -> np.ndarray:
        """For each of ENDING whether it asks this process to end."""
        return np.array([self._noticed == number for number in ENDING], np.float64)

    def _note_signals(self, ranks: np.ndarray) -> None:
        """ranks: for each of ENDING, how many processes it asks."""
        self.asked = next((number for number, count in zip(ENDING, ranks, strict=True) if count), None)

    def left(self, method: str, error: BaseException) -> None:
        self.departures.leave(method, error)

    def any(self, value: bool, what: str) -> bool:
        return bool(self.small.allreduce(np.array([float(value)]), what)[0])

    # --- data ------------------------------------------------------------------------------------------------------
    def share(self, count: int) -> slice:
        """Contiguous, in the order of ranks; sizes differ by one at most, and the first ranks have the larger ones."""
        each, more = divmod(count, self.size)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def counted(self, size: int | None, whole: int | None) -> tuple[int, int] | None:
        own = np.array([-1 if size is None else size, -1 if whole is None else whole])
        sizes, wholes = self.small.allgather(own, "the sizes of the shares of a batch").T
        if (sizes < 0).all():
            return None
        if wholes.max() >= 0 and (wholes != wholes[0]).any():
            told = ", ".join("none" if n < 0 else str(n) for n in wholes)
            raise RuntimeError(f"the batch: expected the same number of samples from the data of all ranks, got {told}")
        sizes = np.maximum(sizes, 0)
        return int(sizes[: self.rank].sum()), int(sizes.sum())
