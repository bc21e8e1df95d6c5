"""Random operators: dropout, noise, flips and crops.  They are active in training, and elsewhere where `always`.

The numbers come from a counter-based generator (cext/nn/random.c): they depend on the seed, the node, the step and the
place in the global batch, so they are drawn anew in backward instead of being kept, and no number of threads changes
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv.ops.base import Op, Reasons, Spec, functions
from pydtconv.ops.checks import same_float

__all__ = ["Dropout", "GaussianNoise", "RandomCrop", "RandomFlip"]

#: of each axis along which a tensor is a part of a larger one: the axis, the part's first element, the whole's extent
Within = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Dropout(Op):
    """Each element is 0 with probability `rate`, else divided by 1 - rate (Srivastava et al., 2014).

    noise_shape: shape of the mask, with 1 where it is shared along an axis ((n, 1, 1, c) drops whole channels).
    seed: of this operator alone; None takes the run's.  always: outside of training, too.
    within: where x lies in a larger tensor, the numbers of whose elements it draws; not along axes with a shared mask.
    shared: whether all samples have one mask, which its shape does not tell of a process that has one sample.
    """

    rate: float
    noise_shape: tuple[int | None, ...] | None = None
    seed: int | None = None
    always: bool = False
    within: Within = ()
    shared: bool = False

    draws: ClassVar[bool] = True
    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)
    mesh: ClassVar[str] = "random_elements"
    onnx: ClassVar[str] = "Identity"

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ValueError(f"Dropout: expected a rate from 0 to 1, got {self.rate}")
        if self.noise_shape is not None:
            object.__setattr__(self, "noise_shape", tuple(self.noise_shape))

    def infer(self, *inputs: Spec) -> Spec:
        same_float("Dropout", *inputs)
        self.mask_shape(inputs[0].shape)
        return inputs[0]

    def mask_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        if self.noise_shape is None:
            return shape
        noise = tuple(n if m is None else m for n, m in zip(shape, self.noise_shape, strict=False))
        if len(self.noise_shape) != len(shape) or any(
            m not in (1, n) and n is not None for n, m in zip(shape, noise, strict=True)
        ):
            raise ValueError(f"Dropout: expected a noise_shape of 1 or the extents of {shape}, got {self.noise_shape}")
        return noise

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        """dy times the mask, which the same operator makes of ones: its numbers depend on its stream and the step."""
        shape = tuple(x[0].shape)
        mask = self(dy.graph.constant(np.ones(shape), x[0].dtype, shape))
        mask.node.stream = y.node.stream
        return [functions.where(functions.equal(mask, 0.0), 0.0, dy * mask)]


@dataclass(frozen=True)
class GaussianNoise(Op):
    """x plus normal noise of standard deviation `stddev`; within: as for dropout."""

    stddev: float
    seed: int | None = None
    always: bool = False
    within: Within = ()

    draws: ClassVar[bool] = True
    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    passes_dy: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)
    mesh: ClassVar[str] = "random_elements"
    onnx: ClassVar[str] = "Identity"

    def __post_init__(self) -> None:
        if not self.stddev >= 0:
            raise ValueError(f"GaussianNoise: expected a stddev of 0 or more, got {self.stddev}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("GaussianNoise", *inputs)
        return inputs[0]

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [dy]


class RandomWindow(Op):
    """Images (n, h, w, c): a window of each, at a random place, mirrored at random."""

    draws: ClassVar[bool] = True
    accumulates: ClassVar[tuple[int, ...]] = (0,)
    seed: int | None
    always: bool
    lacks: ClassVar[Reasons] = {"gradient": "random images are input, not what is learned"}

    def flips(self) -> int:
        """Bit 0: along the columns, bit 1: along the rows."""
        return 0

    def extent(self, h: int | None, w: int | None) -> tuple[int | None, int | None]:
        return h, w

    def infer(self, *inputs: Spec) -> Spec:
        same_float(type(self).__name__, *inputs)
        if len(inputs[0].shape) != 4:
            raise ValueError(f"{type(self).__name__}: expected images (n, h, w, c), got shape {inputs[0].shape}")
        n, h, w, c = inputs[0].shape
        oh, ow = self.extent(h, w)
        if (h is not None and oh is not None and oh > h) or (w is not None and ow is not None and ow > w):
            raise ValueError(f"{type(self).__name__}: expected images of at least {oh} x {ow} pixels, got {h} x {w}")
        return Spec((n, oh, ow, c), inputs[0].dtype)


@dataclass(frozen=True)
class RandomFlip(RandomWindow):
    """Each image mirrored with probability 1/2: "horizontal" (columns), "vertical" (rows), or each on its own."""

    mode: str = "horizontal_and_vertical"
    seed: int | None = None
    always: bool = False
    onnx: ClassVar[str] = "Identity"

    def __post_init__(self) -> None:
        if self.mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(
                f"RandomFlip: expected mode 'horizontal', 'vertical' or 'horizontal_and_vertical', got {self.mode!r}"
            )

    def flips(self) -> int:
        return {"horizontal": 1, "vertical": 2}.get(self.mode, 3)


@dataclass(frozen=True)
class RandomCrop(RandomWindow):
    """A window of height x width at a random place of each image; at inference the middle."""

    height: int
    width: int
    seed: int | None = None
    always: bool = False

    extent_fields: ClassVar[tuple[str, ...]] = ("height", "width")

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise ValueError(
                f"RandomCrop: expected a height and width of 1 or more, got {self.height} and {self.width}"
            )

    def extent(self, h: int | None, w: int | None) -> tuple[int | None, int | None]:
        return self.height, self.width
