"""What a plan with offload tells: bytes kept, recomputed and offloaded, and the predicted time lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydtconv.devices.pinned import HOST
from pydtconv.graph.memory.storage import Storage
from pydtconv.graph.schedule.asynchronous import check_asynchronous
from pydtconv.graph.schedule.offload import Timeline, insert
from pydtconv.graph.schedule.offload_search import Offload
from pydtconv.graph.schedule.scheduler import Scheduler
from pydtconv.graph.schedule.steps import RecomputeStep
from pydtconv.graph.schedule.transfers import Disk

MIB = 1 << 20

Span = tuple[float, float]


@dataclass
class Offloaded:
    """What leaves memory between forward and backward.

    folder: of the scratch file, HOST for pinned memory, None for a plan that does not run.  disk: what the prediction
    takes for granted.  scratch_bytes: of the file.  kept_bytes: what forward leaves in memory for backward;
    recomputed_bytes: what backward computes again.  seconds: predicted of a step; waited: of them, without work.
    moved: (name, bytes, write, read), with the predicted spans of the transfers in seconds; starts: when steps of
    computing start.
    """

    folder: str | None
    disk: Disk
    scratch_bytes: int
    kept_bytes: int
    recomputed_bytes: int
    seconds: float
    waited: float
    backward: float
    moved: Sequence[tuple[str, int, Span, Span]]
    starts: Sequence[float]

    @classmethod
    def into(cls, scheduler: Scheduler, found: Timeline, offload: Offload) -> Offloaded:
        """Puts transfers into the steps of a scheduler, and tells about them."""
        steps, start = scheduler.steps, scheduler.backward_start
        kept = _kept_bytes(scheduler, {each.candidate.storage for each in found.moved})
        again = sum(
            view.spec.nbytes for step in steps if isinstance(step, RecomputeStep) for view in step.y if view is not None
        )
        first = steps[start] if start < len(steps) else None
        nbytes = insert(steps, found)
        if first is not None:
            scheduler.backward_start = steps.index(first)
        check_asynchronous(steps)
        scheduler.note_life_times()
        moved = [(each.candidate.storage.name, each.candidate.nbytes, each.write, each.read) for each in found.moved]
        backward = found.starts[start] if start < len(found.starts) else found.seconds
        return cls(
            offload.folder,
            offload.disk,
            nbytes,
            kept,
            again,
            found.seconds,
            found.waited,
            backward,
            moved,
            found.starts,
        )

    def lines(self) -> Iterator[str]:
        """As text: bytes, predicted times, and a time line of computing, writes and reads."""
        parts = {
            "kept for backward": self.kept_bytes,
            "recomputed": self.recomputed_bytes,
            "offloaded": self.scratch_bytes,
        }
        for name, value in parts.items():
            yield f"{name:>24}: {value / MIB:10.2f} MiB"
        where = "pinned memory" if self.folder == HOST else "the disk"
        yield (
            f"{'predicted time':>24}: {1e3 * self.seconds:10.1f} ms a step, {1e3 * self.waited:.1f} of them waiting "
            f"for {where} ({self.disk.write / 1e9:.2f} GB/s written, {self.disk.read / 1e9:.2f} read)"
        )
        yield from self._drawing()

    def _drawing(self, columns: int = 72) -> Iterator[str]:
        """Three tracks, a letter for each part of the time in which they have something to do."""
        scale = columns / max(self.seconds, 1e-12)
        turn = min(int(self.backward * scale), columns)
        tracks = {"compute": "f" * turn + "b" * (columns - turn)}
        for name, number, letter in (("writes", 2, "w"), ("reads", 3, "r")):
            cells = [" "] * columns
            for each in self.moved:
                begin, end = each[2] if number == 2 else each[3]
                for column in range(int(begin * scale), min(int(end * scale) + 1, columns)):
                    cells[column] = letter
            tracks[name] = "".join(cells)
        for name, line in tracks.items():
            yield f"{name:>24}: |{line}|"


def _kept_bytes(scheduler: Scheduler, moved: set[Storage]) -> int:
    """Bytes of storages that live from forward into backward."""
    start = scheduler.backward_start
    return sum(
        storage.nbytes
        for storage in scheduler.storages
        if storage not in moved and storage.first < start <= storage.last
    )
