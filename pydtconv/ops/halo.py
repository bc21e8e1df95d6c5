"""What a window operator reads of images beyond this process's part, and the outputs that are made of it.

The operator computes all of y on its own part as if zeros were around it, and then the rims: the outputs whose windows
reach beyond the part, each box of them on a small image of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pydtconv.ops.base import Op, Spec
from pydtconv.ops.layout import Box, Interval, any_empty, window_padding, window_reads


@dataclass(frozen=True)
class Halo:
    """The last input of an operator: boxes of an image beyond its first input, packed one after the other.

    Boxes are of the image axes, and count from the start of what is read in all.  image: the first input.  own: its
    box.  extents: of what is read in all.  pieces: the boxes that the halo has, in its order.  whole: the operator on
    all of it.
    """

    image: Spec
    own: Box
    extents: tuple[int, ...]
    pieces: tuple[Box, ...]
    whole: Op

    @property
    def read(self) -> Spec:
        """All that is read."""
        return Spec((self.image.shape[0], *self.extents, self.image.shape[-1]), self.image.dtype)

    @property
    def spec(self) -> Spec:
        """Of the halo itself, a vector."""
        return Spec((sum(math.prod(self.shape(box)) for box in self.pieces),), self.image.dtype)

    def shape(self, box: Box) -> tuple[int, ...]:
        """Of the images that a box cuts out."""
        return (self.image.shape[0] or 1, *(stop - start for start, stop in box), self.image.shape[-1] or 1)

    def check(self, kind: str, inputs: Sequence[Spec]) -> None:
        """Raises ValueError where the first and the last input are not what belongs together."""
        for name, given, expected in (("x", inputs[0], self.image), ("halo", inputs[-1], self.spec)):
            if given != expected:
                raise ValueError(
                    f"{kind}: {name}: expected shape {expected.shape} of {expected.dtype}, got {given.shape} of "
                    f"{given.dtype}"
                )


def packed(vector: np.ndarray, shapes: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Images of these shapes that lie in a vector one after the other."""
    found, at = [], 0
    for shape in shapes:
        count = math.prod(shape)
        found.append(vector[at : at + count].reshape(tuple(shape)))
        at += count
    return found


@dataclass(frozen=True)
class Rim:
    """A box of outputs that read halos, by image axes: what they read of the whole, and the padding there."""

    out: Box
    read: Box
    padding: tuple[Interval, ...]


def inside(halo: Halo, outputs: Sequence[int], *filters: Spec) -> Box | None:
    """The box of outputs that read nothing of the halo; None where there is none.

    outputs: the extents of y's image axes.  filters: those of a convolution.
    """
    found: list[Interval] = []
    for axis, (own, count, extent) in enumerate(zip(halo.own, outputs, halo.extents, strict=True), 1):
        walk = halo.whole.window(axis, halo.read, *filters)
        assert walk is not None
        reads = (window_reads(walk, (i, i + 1), extent) for i in range(count))
        within = [i for i, (start, stop) in enumerate(reads) if own[0] <= start < stop <= own[1]]
        if not within:
            return None
        found.append((within[0], within[-1] + 1))
    return tuple(found)


def rims(halo: Halo, outputs: Sequence[int], *filters: Spec) -> tuple[Rim, ...] | None:
    """The outputs that are not `inside`, in boxes without overlap: along the first axis, then what is left of others.

    None where nothing is inside, or a rim is no operator of its own: it reads padding alone, or would read less than
    none of it.
    """
    kept = inside(halo, outputs, *filters)
    if kept is None:
        return None
    walks = [halo.whole.window(axis, halo.read, *filters) for axis in range(1, len(outputs) + 1)]
    found = []
    for axis, (start, stop) in enumerate(kept):
        for part in ((0, start), (stop, outputs[axis])):
            if part[0] >= part[1]:
                continue
            out = (*kept[:axis], part, *((0, count) for count in outputs[axis + 1 :]))
            read, padding = [], []
            for walk, interval, extent in zip(walks, out, halo.extents, strict=True):
                assert walk is not None
                read.append(window_reads(walk, interval, extent))
                padding.append(window_padding(walk, interval, read[-1]))
            if any_empty(tuple(read)) or min(map(min, padding)) < 0:
                return None
            found.append(Rim(out, tuple(read), tuple(padding)))
    return tuple(found)
