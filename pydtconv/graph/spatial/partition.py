"""The mesh of processes as one of them sees it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydtconv.ops.layout import balanced
from pydtconv.support.network import Network

#: image axes that a mesh may cut, in the order in which images have them: (n, depth, height, width, c)
SPATIAL = ("depth", "height", "width")
#: an axis along which images are whole, for columns of dense layers
MODEL = "model"
AXES = ("batch", *SPATIAL, MODEL)
#: stands for all axes along which processes share samples: that of columns, which all of these processes share
COLUMNS = "columns"


@dataclass(frozen=True)
class Partition:
    """names: of the mesh's axes; shape: their extents; ranks: of all processes in the mesh's order; rank: this one.

    Samples are shared out along "batch", images along the others, but for "model".  overlaps: whether exchanges go on
    while convolutions run.  network: between the processes, by which is decided where one wider halo pays; None:
    nowhere.  columns: names of dense layers, or patterns of them, whose columns are shared out.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    ranks: tuple[int, ...]
    rank: int
    overlaps: bool = True
    network: Network | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for what is no mesh of image axes."""
        for name in self.names:
            if name not in AXES:
                raise ValueError(f"mesh: expected axes among {', '.join(AXES)}, got {name!r}")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"mesh: expected each axis once, got {', '.join(self.names)}")
        if math.prod(self.shape) != len(self.ranks):
            raise ValueError(f"mesh: expected {math.prod(self.shape)} processes, got {len(self.ranks)}")

    def extent(self, name: str) -> int:
        """Processes along an axis; 1 for one that the mesh does not have."""
        if name == COLUMNS:
            return len(self.group)
        return self.shape[self.names.index(name)] if name in self.names else 1

    @functools.cached_property
    def _places(self) -> dict[int, tuple[int, ...]]:
        return dict(zip(self.ranks, itertools.product(*map(range, self.shape)), strict=True))

    def coordinate(self, name: str, rank: int | None = None) -> int:
        """The place of a process along an axis."""
        if name == COLUMNS:
            return self.group.index(self.rank if rank is None else rank)
        place = self._places[self.rank if rank is None else rank]
        return place[self.names.index(name)] if name in self.names else 0

    @functools.cached_property
    def group(self) -> tuple[int, ...]:
        """The ranks that share this one's samples, in the order of the image axes."""
        return self.groups[self.coordinate("batch")]

    @functools.cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Those of all processes, in the order of the batch axis."""
        by_place = sorted(self.ranks, key=self.place)
        every = range(self.extent("batch"))
        return tuple(tuple(rank for rank in by_place if self.coordinate("batch", rank) == i) for i in every)

    def place(self, rank: int | None = None) -> tuple[int, ...]:
        """The coordinates of a process along depth, height, width and model."""
        return tuple(self.coordinate(name, rank) for name in (*SPATIAL, MODEL))

    @property
    def index(self) -> int:
        """This process's place in its group."""
        return self.group.index(self.rank)

    @property
    def cut(self) -> tuple[str, ...]:
        """The image axes with more than one process."""
        return tuple(name for name in SPATIAL if self.extent(name) > 1)

    def sharing(self, used: Iterable[str]) -> tuple[str, ...]:
        """The axes along which processes with the same samples have the same of a tensor that is cut along these."""
        used = (*SPATIAL, MODEL) if COLUMNS in used else tuple(used)
        return tuple(name for name in (*SPATIAL, MODEL) if name not in used and self.extent(name) > 1)

    def window(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """This process's part of an image whose spatial axes have these extents: a slice of each.

        Raises ValueError for a mesh axis that the image has not, or that is longer than the image's.
        """
        found = [slice(0, extent) for extent in shape]
        for name in self.cut:
            axis, parts = axis_of(name, len(shape) + 2), self.extent(name)
            if axis is None or shape[axis - 1] < parts:
                raise ValueError(f"window: expected an image with at least {parts} elements of {name}, got {shape}")
            found[axis - 1] = slice(*balanced(shape[axis - 1], parts)[self.coordinate(name)])
        return tuple(found)

    def __str__(self) -> str:
        return ",".join(f"{name}={extent}" for name, extent in zip(self.names, self.shape, strict=True))


def axis_of(name: str, rank: int) -> int | None:
    """The axis of images (n, *spatial, c) of `rank` dimensions that a mesh axis cuts; None where they have none."""
    axis = rank - 1 - (len(SPATIAL) - SPATIAL.index(name))
    return axis if axis >= 1 and rank >= 3 else None
