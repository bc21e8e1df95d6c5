"""Another part of a tensor that is cut over several processes: halos, gathering, another partition.

Each process of a group holds a box of a tensor and reads another one.  What it reads and does not hold comes from the
processes that hold it; the adjoint sends gradients back, where they are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from pydtconv.ops.base import Op, Spec

Boxes = tuple[tuple[tuple[int, int], ...], ...]


class Transfer(Protocol):
    """Messages between fixed buffers, again and again."""

    def start(self) -> None:
        """Begins; buffers to be sent are filled, those to be received into are free."""

    def wait(self) -> None:
        """Returns when all has arrived, and the buffers that were sent may be filled again."""


class Exchanger(Protocol):
    """What carries messages between the processes of a group, by their place in it."""

    def transfer(
        self, sends: Sequence[tuple[int, np.ndarray]], receives: Sequence[tuple[int, np.ndarray]], what: str
    ) -> Transfer: ...


@dataclass(frozen=True)
class Exchange(Op):
    """x, this process's `held` box, -> y, its `need` box, both of one tensor that is cut along `axes`.

    held, need: an interval of each of the axes, for each process of the group; index: this process's place in it.
    producer: of x, for messages.
    """

    axes: tuple[int, ...]
    held: Boxes
    need: Boxes
    index: int
    label: str = "exchange"
    producer: str = "images"

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    replayable: ClassVar[bool] = False  # all processes take part, or none

    @property
    def name(self) -> str:
        return self.label

    def place_of_input(self, x: Spec) -> int | None:
        """Halos along one axis, in front of which nothing repeats: of a single image, its rows."""
        held, need = self.held[self.index], self.need[self.index]
        wider = [i for i, (mine, read) in enumerate(zip(held, need, strict=True)) if mine != read]
        if len(wider) != 1 or any(
            read[0] > mine[0] or read[1] < mine[1] for mine, read in zip(held, need, strict=True)
        ):
            return None
        axis = self.axes[wider[0]]
        if any(extent != 1 for extent in x.shape[:axis]):
            return None
        return (held[wider[0]][0] - need[wider[0]][0]) * Spec(x.shape[axis + 1 :], x.dtype).nbytes

    def infer(self, *inputs: Spec) -> Spec:
        shape = list(inputs[0].shape)
        for axis, held, need in zip(self.axes, self.held[self.index], self.need[self.index], strict=True):
            if shape[axis] != held[1] - held[0]:
                raise ValueError(f"{self.name}: expected {held[1] - held[0]} elements along axis {axis}, got {shape}")
            shape[axis] = need[1] - need[0]
        return Spec(tuple(shape), inputs[0].dtype)
