"""Dot: products of two inputs, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.layers.group_normalization import unit_length
from pydtconv.layers.merging import Merge
from pydtconv.serialization.configurable import builtin


@builtin
class Dot(Merge):
    """The sums of products of two inputs (n, ...) along an axis of each; (n, rest of the first, rest of the second).

    axes: of both, or of each; not that of the batch.  normalize: both are brought to unit length along their axis
    first, which makes the product the cosine.
    """

    def __init__(self, axes: int | Sequence[int], normalize: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        pair = (axes, axes) if isinstance(axes, int) else axes
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(axis, int) for axis in pair):
            raise ValueError(f"Dot: axes: expected an integer or two of them, got {axes!r}")
        self.axes = axes
        self.normalize = normalize

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None

    def call(self, inputs: Any) -> Any:
        xs = self._checked(inputs)
        if len(xs) != 2 or any(len(x.shape) < 2 for x in xs):
            raise ValueError(
                f"Dot {self.name!r}: expected two inputs (n, ...), got shapes {[tuple(x.shape) for x in xs]}"
            )
        pair = (self.axes, self.axes) if isinstance(self.axes, int) else tuple(self.axes)
        axes = [axis % len(x.shape) for axis, x in zip(pair, xs, strict=True)]
        there = all(-len(x.shape) <= axis < len(x.shape) for axis, x in zip(pair, xs, strict=True))
        if not there or 0 in axes or xs[0].shape[axes[0]] != xs[1].shape[axes[1]]:
            raise ValueError(
                f"Dot {self.name!r}: axes: expected axes of one extent, not that of the batch, got {self.axes} for "
                f"shapes {[tuple(x.shape) for x in xs]}"
            )
        if self.normalize:
            xs = [unit_length(x, axis) for x, axis in zip(xs, axes, strict=True)]
        left = ["b", *"cdefgh"[: len(xs[0].shape) - 1]]
        right = ["b", *"ijklmn"[: len(xs[1].shape) - 1]]
        left[axes[0]] = right[axes[1]] = "z"
        rest = [letter for letter in [*left, *right[1:]] if letter != "z"]
        y = ops.einsum(f"{''.join(left)},{''.join(right)}->{''.join(rest)}", *xs)
        return ops.reshape(y, (y.shape[0], 1)) if len(y.shape) == 1 else y


def dot(inputs: Sequence[Any], axes: int | Sequence[int] = -1, **kwargs: Any) -> Any:
    """The sums of products of two inputs along an axis of each."""
    return Dot(axes=axes, **kwargs)(inputs)
