"""Another part of a tensor that is cut over several processes: halos, gathering, another partition.

Each process of a group holds a box of a tensor and reads another one.  What it reads and does not hold comes from the
processes that hold it; the adjoint sends gradients back, where they are summed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from pydtconv.ops.base import Op, Reasons, Spec
from pydtconv.ops.layout import Box, pieces

__all__ = ["Exchange"]

Boxes = tuple[tuple[tuple[int, int], ...], ...]


class Transfer(Protocol):
    """Messages between fixed buffers, again and again; between their elements there may be gaps."""

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
    producer: of x, for messages.  packed: y has what comes from others alone, box after box, as a vector.
    """

    axes: tuple[int, ...]
    held: Boxes
    need: Boxes
    index: int
    label: str = "exchange"
    producer: str = "images"
    packed: bool = False

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    replayable: ClassVar[bool] = False  # all processes take part, or none
    lacks: ClassVar[Reasons] = {
        "gradient": "ranks that cut images have no tapes",
        "gpu": "ranks cut images on CPUs",
        "onnx": "exported networks are whole",
    }

    @property
    def name(self) -> str:
        return self.label

    @property
    def received(self) -> list[tuple[int, Box]]:
        """What comes from whom: (process, box), without overlap; what this process holds itself comes from itself."""
        return pieces(self.need[self.index], self.held, self.index)

    def shape_of(self, box: Box, x: Spec) -> tuple[int, ...]:
        """Of a box's elements, where x is what a process holds."""
        extents = dict(zip(self.axes, (stop - start for start, stop in box), strict=True))
        return tuple(extents.get(axis, extent or 0) for axis, extent in enumerate(x.shape))

    def place_of_input(self, x: Spec) -> int | None:
        """Halos along one axis, in front of which nothing repeats: of a single image, its rows; or no halo at all."""
        if self.packed:
            return None
        held, need = self.held[self.index], self.need[self.index]
        wider = [i for i, (mine, read) in enumerate(zip(held, need, strict=True)) if mine != read]
        if len(wider) > 1 or any(read[0] > mine[0] or read[1] < mine[1] for mine, read in zip(held, need, strict=True)):
            return None
        if not wider:
            return 0
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
        if self.packed:
            others = [box for other, box in self.received if other != self.index]
            return Spec((sum(math.prod(self.shape_of(box, inputs[0])) for box in others),), inputs[0].dtype)
        return Spec(tuple(shape), inputs[0].dtype)
