"""Operators that move elements: reshape, transpose, concatenate, slice, cast.

Most are copies between strided views, bound once; permutations whose innermost dimension changes go through tiles
(cext/nn/permute.c).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.dtypes import name_of
from pydtconv.extents import SizeError
from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import normalize_axes, same_float

__all__ = ["Cast", "Concatenate", "Reshape", "Slice", "Transpose"]


@dataclass(frozen=True)
class Reshape(Op):
    """The same elements in another shape; -1 stands for what is left, None (only the batch) for what is not known."""

    shape: tuple[int | None, ...]

    is_view: ClassVar[bool] = True
    mesh: ClassVar[str] = "reshape"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        if self.shape.count(-1) > 1 or any(n is not None and n < -1 for n in self.shape):
            raise ValueError(f"reshape: expected extents of 0 or more and at most one -1, got {self.shape}")

    def infer(self, *inputs: Spec) -> Spec:
        old = inputs[0].shape
        if None in old:
            return Spec(self._with_unknown_batch(old), inputs[0].dtype)
        size = inputs[0].size
        new: tuple[int, ...] = tuple(-1 if n is None else n for n in self.shape)
        known = math.prod(n for n in new if n != -1)
        if new.count(-1) == 1 and known and size % known == 0:
            new = tuple(size // known if n == -1 else n for n in new)
        if -1 in new or math.prod(new) != size:
            told = f"reshape: expected a shape of {size} elements as {old} has, got {self.shape}"
            raise ValueError(told) if -1 in new else SizeError(told, math.prod(new))
        return Spec(new, inputs[0].dtype)

    def _with_unknown_batch(self, old: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The new shape when the old batch is None: the batch must stay, or be what -1 stands for."""
        known = math.prod(n for n in old if n is not None)
        rest = math.prod(n for n in self.shape if n is not None and n != -1)
        if None in self.shape:
            if rest and known % rest == 0 and (-1 in self.shape or known == rest):
                return tuple(known // rest if n == -1 else n for n in self.shape)
        elif -1 in self.shape and rest == known:
            return tuple(None if n == -1 else n for n in self.shape)
        elif -1 in self.shape and self.shape[0] == -1:
            return (None, *self.shape[1:])
        raise ValueError(f"reshape: expected a shape that keeps the batch of {old}, got {self.shape}")

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [functions.reshape(dy, tuple(x[0].shape))]


@dataclass(frozen=True)
class Transpose(Op):
    """The axes in another order; axes None reverses them."""

    axes: tuple[int, ...] | None = None

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    mesh: ClassVar[str] = "transpose"

    def __post_init__(self) -> None:
        if self.axes is not None:
            object.__setattr__(self, "axes", tuple(self.axes))

    def order(self, rank: int) -> tuple[int, ...]:
        order = tuple(range(rank))[::-1] if self.axes is None else tuple(a % rank if rank else a for a in self.axes)
        if sorted(order) != list(range(rank)):
            raise ValueError(f"transpose: expected a permutation of {rank} axes, got {self.axes}")
        return order

    def infer(self, *inputs: Spec) -> Spec:
        same_float("transpose", *inputs)
        return Spec(tuple(inputs[0].shape[a] for a in self.order(len(inputs[0].shape))), inputs[0].dtype)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        order = self.order(len(x[0].shape))
        return [functions.transpose(dy, tuple(order.index(i) for i in range(len(order))))]


@dataclass(frozen=True)
class Concatenate(Op):
    """Inputs one behind the other along `axis`.  The plan lets them lie in the output where it can."""

    axis: int = -1

    concatenates: ClassVar[bool] = True
    accumulates: ClassVar[tuple[int, ...]] = tuple(range(256))
    mesh: ClassVar[str] = "concatenate"

    def infer(self, *inputs: Spec) -> Spec:
        if not inputs:
            raise ValueError("concatenate: expected at least one input, got none")
        dtype = same_float("concatenate", *inputs)
        first = inputs[0].shape
        (axis,) = normalize_axes("concatenate", self.axis, len(first))
        for spec in inputs[1:]:
            if len(spec.shape) != len(first) or any(
                d != axis and None not in (a, b) and a != b
                for d, (a, b) in enumerate(zip(first, spec.shape, strict=True))
            ):
                raise ValueError(
                    f"concatenate: expected shapes that differ along axis {self.axis} alone, got {first} and "
                    f"{spec.shape}"
                )
        extents = [spec.shape[axis] for spec in inputs]
        total = None if None in extents else sum(extents)  # type: ignore[arg-type]
        return Spec((*first[:axis], total, *first[axis + 1 :]), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        """The inputs without a gradient, for their extents alone."""
        return Retained(x=tuple(i for i, need in enumerate(needs) if not need))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        axis, at, parts = self.axis % len(dy.shape), 0, []
        for each in x:
            key = tuple(slice(at, at + each.shape[axis]) if i == axis else slice(None) for i in range(len(dy.shape)))
            parts.append(dy[key])
            at += each.shape[axis]
        return parts


@dataclass(frozen=True)
class Slice(Op):
    """x[start:stop] along each axis; None as the stop is the end, negative numbers count from it."""

    start: tuple[int, ...]
    stop: tuple[int | None, ...]

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    mesh: ClassVar[str] = "crop"

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", tuple(self.start))
        object.__setattr__(self, "stop", tuple(self.stop))

    def bounds(self, shape: Sequence[int | None]) -> tuple[slice, ...]:
        if len(self.start) != len(shape) or len(self.stop) != len(shape):
            raise ValueError(
                f"{self.name}: expected {len(shape)} starts and stops for shape {tuple(shape)}, got {self.start} "
                f"and {self.stop}"
            )
        return tuple(
            slice(None) if n is None else slice(*slice(a, b).indices(n)[:2])
            for n, a, b in zip(shape, self.start, self.stop, strict=True)
        )

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.name, *inputs)
        shape = inputs[0].shape
        extents = tuple(n if n is None else w.stop - w.start for n, w in zip(shape, self.bounds(shape), strict=True))
        if any(n is not None and n <= 0 for n in extents):
            raise ValueError(f"{self.name}: nothing is left of shape {shape} between {self.start} and {self.stop}")
        return Spec(extents, inputs[0].dtype)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        sides = [(a, e - a - g) for a, e, g in zip(self.start, x[0].shape, dy.shape, strict=True)]
        return [functions.pad(dy, tuple(sides))]


@dataclass(frozen=True)
class Cast(Op):
    """x in another dtype; between float types the gradient is cast back.  Raises TypeError for what is no dtype."""

    dtype: str
    mesh: ClassVar[str] = "elementwise"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", name_of(self.dtype))

    def infer(self, *inputs: Spec) -> Spec:
        return Spec(inputs[0].shape, self.dtype)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [functions.cast(dy, x[0].dtype)]
