"""Random operators: dropout, noise, flips and crops.  They are active in training, and elsewhere where `always`.

The numbers come from a counter-based generator (cext/nn/random.c): they depend on the seed, the node, the step and the
place in the global batch, so they are drawn anew in backward instead of being kept, and no number of threads changes
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from pydtconv._ext import elem
from pydtconv.ops.base import Call, Op, Pass, Spec
from pydtconv.ops.resize import pixel_distance
from pydtconv.ops.rows import rows_of
from pydtconv.ops.shape import bind_fill
from pydtconv.ops.strided import BINARY_MULTIPLY, adds, bind_copy, flat, kernel, layout, nothing, same_float, sequence

_MASK64 = (1 << 64) - 1
_MASK32 = (1 << 32) - 1


def bind_random(function: Callable[..., None], p: Pass, seed: int | None, per_sample: int, *arguments: Any) -> Call:
    """A call with the key of this run in front: seed, stream, step, index of the first element."""
    run, stream = p.run, p.stream & _MASK32

    def call() -> None:
        key = run.seed if seed is None else seed
        function(key & _MASK64, stream, run.step & _MASK32, run.sample_offset * per_sample, *arguments)

    def call_outside_of_training() -> None:
        key = run.seed if seed is None else seed
        run.draws += 1
        function(key & _MASK64, stream, run.draws & _MASK32, run.sample_offset * per_sample, *arguments)

    return call if p.training else call_outside_of_training


def matrix(x: np.ndarray) -> np.ndarray:
    """x as rows of contiguous elements: one row where it is dense."""
    return x.reshape(1, -1) if x.flags.c_contiguous else rows_of(x)


@dataclass(frozen=True)
class Dropout(Op):
    """Each element is 0 with probability `rate`, else divided by 1 - rate (Srivastava et al., 2014).

    noise_shape: shape of the mask, with 1 where it is shared along an axis ((n, 1, 1, c) drops whole channels).
    seed: of this operator alone; None takes the run's.  always: outside of training, too.
    """

    rate: float
    noise_shape: tuple[int | None, ...] | None = None
    seed: int | None = None
    always: bool = False

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1:
            raise ValueError(f"Dropout: expected a rate from 0 to 1, got {self.rate}")
        if self.noise_shape is not None:
            object.__setattr__(self, "noise_shape", tuple(self.noise_shape))

    def infer(self, *inputs: Spec) -> Spec:
        same_float("Dropout", *inputs)
        self._mask_shape(inputs[0].shape)
        return inputs[0]

    def _mask_shape(self, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        if self.noise_shape is None:
            return shape
        noise = tuple(n if m is None else m for n, m in zip(shape, self.noise_shape, strict=False))
        if len(self.noise_shape) != len(shape) or any(
            m not in (1, n) and n is not None for n, m in zip(shape, noise, strict=True)
        ):
            raise ValueError(f"Dropout: expected a noise_shape of 1 or the extents of {shape}, got {self.noise_shape}")
        return noise

    def workspace(self, direction: str, *inputs: Spec) -> int:
        mask = self._mask_shape(inputs[0].shape)
        return 0 if mask == inputs[0].shape or None in mask else Spec(mask, inputs[0].dtype).nbytes

    def _bind(self, p: Pass, x: np.ndarray, y: np.ndarray, accumulate: bool) -> Call:
        if not (p.training or self.always) or x.size == 0 or self.rate == 0:
            return bind_copy(x, y, accumulate=accumulate)
        draw = kernel(elem.dropout, x.dtype)
        shape = self._mask_shape(x.shape)
        if shape == x.shape:
            rows = (matrix(x), matrix(y))
            if rows[0].shape != rows[1].shape:
                rows = (rows_of(x), rows_of(y))
            per_sample = math.prod(x.shape[1:])
            return bind_random(draw, p, self.seed, per_sample, self.rate, accumulate, *rows)
        assert p.workspace is not None
        extents = tuple(n or 1 for n in shape)
        mask = p.workspace[: math.prod(extents) * x.itemsize].view(x.dtype).reshape(extents)
        per_sample = math.prod(extents[1:]) if extents[0] == x.shape[0] else 0
        multiply = partial(
            kernel(elem.binary_backward, x.dtype),
            BINARY_MULTIPLY,
            0,
            accumulate,
            layout(x.shape, x, None, mask, None, y),
            flat(x),
            None,
            flat(mask),
            None,
            flat(y),
        )
        fill = bind_random(draw, p, self.seed, per_sample, self.rate, False, None, mask.reshape(1, -1))
        return sequence([fill, multiply])

    def forward(self, p: Pass) -> Call:
        return self._bind(p, p.x[0], p.y[0], False)

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else self._bind(p, p.dy[0], p.dx[0], adds(p, 0))


@dataclass(frozen=True)
class GaussianNoise(Op):
    """x plus normal noise of standard deviation `stddev`."""

    stddev: float
    seed: int | None = None
    always: bool = False

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    passes_dy: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        if not self.stddev >= 0:
            raise ValueError(f"GaussianNoise: expected a stddev of 0 or more, got {self.stddev}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("GaussianNoise", *inputs)
        return inputs[0]

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if not (p.training or self.always) or x.size == 0:
            return bind_copy(x, y)
        rows = (matrix(x), matrix(y))
        if rows[0].shape != rows[1].shape:
            rows = (rows_of(x), rows_of(y))
        return bind_random(
            kernel(elem.gaussian_noise, x.dtype), p, self.seed, math.prod(x.shape[1:]), self.stddev, *rows
        )

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else bind_copy(p.dy[0], p.dx[0], accumulate=adds(p, 0))


class _Window(Op):
    """Images (n, h, w, c): a window of each, at a random place, mirrored at random."""

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    seed: int | None
    always: bool

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

    @staticmethod
    def _centre(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        top, left = ((x.shape[d] - y.shape[d]) // 2 for d in (1, 2))
        return x[:, top : top + y.shape[1], left : left + y.shape[2]]

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if not (p.training or self.always) or y.size == 0:
            return bind_copy(self._centre(x, y), y)
        return bind_random(
            kernel(elem.random_window_forward, x.dtype),
            p,
            self.seed,
            1,
            self.flips(),
            x,
            y,
            pixel_distance(x),
            pixel_distance(y),
        )

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None:
            return nothing
        if not (p.training or self.always) or dy.size == 0:
            clear = nothing if adds(p, 0) else bind_fill(dx, 0)
            return sequence([clear, bind_copy(dy, self._centre(dx, dy), accumulate=adds(p, 0))])
        return bind_random(
            kernel(elem.random_window_backward, dx.dtype),
            p,
            self.seed,
            1,
            self.flips(),
            adds(p, 0),
            dy,
            dx,
            pixel_distance(dy),
            pixel_distance(dx),
        )


@dataclass(frozen=True)
class RandomFlip(_Window):
    """Each image mirrored with probability 1/2: "horizontal" (columns), "vertical" (rows), or each on its own."""

    mode: str = "horizontal_and_vertical"
    seed: int | None = None
    always: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(
                f"RandomFlip: expected mode 'horizontal', 'vertical' or 'horizontal_and_vertical', got {self.mode!r}"
            )

    def flips(self) -> int:
        return {"horizontal": 1, "vertical": 2}.get(self.mode, 3)


@dataclass(frozen=True)
class RandomCrop(_Window):
    """A window of height x width at a random place of each image; at inference the middle."""

    height: int
    width: int
    seed: int | None = None
    always: bool = False

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise ValueError(
                f"RandomCrop: expected a height and width of 1 or more, got {self.height} and {self.width}"
            )

    def extent(self, h: int | None, w: int | None) -> tuple[int | None, int | None]:
        return self.height, self.width
