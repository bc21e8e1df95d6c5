"""Dropout, noise, flips and crops from a counter-based generator (cext/nn/random.c)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv._ext import elem
from pydtconv.kernels.base import OUTSIDE_OF_TRAINING, Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.arithmetic import bind_binary_backward
from pydtconv.kernels.cpu.resize import pixel_distance
from pydtconv.kernels.cpu.rows import rows_of
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.cpu.strided import bind_copy, typed
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.random import Dropout, GaussianNoise, RandomCrop, RandomFlip, RandomWindow, Within

_MASK64 = (1 << 64) - 1
_MASK32 = (1 << 32) - 1


def bind_random(function: Callable[..., None], p: Pass, seed: int | None, per_sample: int, *arguments: Any) -> Call:
    """A call with the key of this run in front: seed, stream, step, index of the first element."""
    run, stream = p.run, p.stream & _MASK32
    shape = next(array for array in (*p.x, *p.dy) if array is not None).shape
    rows = shape[0] if shape else 0

    def call() -> None:
        key = run.seed if seed is None else seed
        function(key & _MASK64, stream, run.step & _MASK32, run.first_row(rows) * per_sample, *arguments)

    def call_outside_of_training() -> None:
        key = run.seed if seed is None else seed
        run.draws += 1
        first = run.first_row(rows) * per_sample
        function(key & _MASK64, stream ^ OUTSIDE_OF_TRAINING, run.draws & _MASK32, first, *arguments)

    return call if p.training else call_outside_of_training


def bind_random_part(
    function: Callable[..., None],
    p: Pass,
    seed: int | None,
    within: Within,
    parameters: tuple[Any, ...],
    *arrays: Any,
    shared: bool = False,
) -> Call:
    """As `bind_random`, for arrays of one shape that are a part of larger ones, along the axes of `within`.

    Elements that lie one after the other in the whole are drawn by one call.  shared: whether all samples, of which
    this process has one, have the same numbers.
    """
    part = arrays[0].shape
    whole, start = list(part), [0] * len(part)
    for axis, first, extent in within:
        whole[axis], start[axis] = extent, first
    steps = [math.prod(whole[axis + 1 :]) for axis in range(len(whole))]
    inner = max(axis for axis, _, _ in within)
    runs = []
    for place in np.ndindex(*part[:inner]):
        first = sum((i + at) * step for i, at, step in zip((*place, 0), start, steps, strict=False))
        runs.append((first, *(rows_of(array[place]) for array in arrays)))

    def draw(seed: int, stream: int, step: int, first: int) -> None:
        for offset, *rows in runs:
            function(seed, stream, step, first + offset, *parameters, *rows)

    return bind_random(draw, p, seed, 0 if shared else math.prod(whole[1:]))


def matrix(x: np.ndarray) -> np.ndarray:
    """x as rows of contiguous elements: one row where it is dense."""
    return x.reshape(1, -1) if x.flags.c_contiguous else rows_of(x)


@register(Dropout, dtypes=IMAGES)
class DropoutKernel(Kernel[Dropout]):
    """The mask is drawn anew in backward; one that is shared along axes lies in the workspace."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        mask = self.op.mask_shape(inputs[0].shape)
        return 0 if mask == inputs[0].shape or None in mask else Spec(mask, inputs[0].dtype).nbytes

    def _bind(self, p: Pass, x: np.ndarray, y: np.ndarray, accumulate: bool) -> Call:
        if not (p.training or self.op.always) or x.size == 0 or self.op.rate == 0:
            return bind_copy(x, y, accumulate=accumulate)
        draw = typed(elem.dropout, x.dtype)
        shape = self.op.mask_shape(x.shape)
        if shape == x.shape and self.op.within:
            within, parameters = self.op.within, (self.op.rate, accumulate)
            return bind_random_part(draw, p, self.op.seed, within, parameters, x, y, shared=self.op.shared)
        if shape == x.shape:
            rows = (matrix(x), matrix(y))
            if rows[0].shape != rows[1].shape:
                rows = (rows_of(x), rows_of(y))
            per_sample = 0 if self.op.shared else math.prod(x.shape[1:])
            return bind_random(draw, p, self.op.seed, per_sample, self.op.rate, accumulate, *rows)
        assert p.workspace is not None
        extents = tuple(n or 1 for n in shape)
        mask = p.workspace[: math.prod(extents) * x.itemsize].view(x.dtype).reshape(extents)
        per_sample = math.prod(extents[1:]) if extents[0] == x.shape[0] and not self.op.shared else 0
        multiply = bind_binary_backward("multiply", 0, x, (None, mask, None), y, accumulate)
        fill = bind_random(draw, p, self.op.seed, per_sample, self.op.rate, False, None, mask.reshape(1, -1))
        return sequence([fill, multiply])

    def forward(self, p: Pass) -> Call:
        return self._bind(p, p.x[0], p.y[0], False)

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else self._bind(p, p.dy[0], p.dx[0], p.adds(0))


@register(GaussianNoise, dtypes=IMAGES)
class GaussianNoiseKernel(Kernel[GaussianNoise]):
    """Noise is added as it is drawn."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if not (p.training or self.op.always) or x.size == 0:
            return bind_copy(x, y)
        if self.op.within:
            noise = typed(elem.gaussian_noise, x.dtype)
            return bind_random_part(noise, p, self.op.seed, self.op.within, (self.op.stddev,), x, y)
        rows = (matrix(x), matrix(y))
        if rows[0].shape != rows[1].shape:
            rows = (rows_of(x), rows_of(y))
        return bind_random(
            typed(elem.gaussian_noise, x.dtype), p, self.op.seed, math.prod(x.shape[1:]), self.op.stddev, *rows
        )

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else bind_copy(p.dy[0], p.dx[0], accumulate=p.adds(0))


@register(RandomFlip, RandomCrop, dtypes=IMAGES)
class RandomWindowKernel(Kernel[RandomWindow]):
    """Windows are copied from, and added to, where the same draw puts them; outside of training the middle."""

    @staticmethod
    def _centre(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        top, left = ((x.shape[d] - y.shape[d]) // 2 for d in (1, 2))
        return x[:, top : top + y.shape[1], left : left + y.shape[2]]

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if not (p.training or self.op.always) or y.size == 0:
            return bind_copy(self._centre(x, y), y)
        return bind_random(
            typed(elem.random_window_forward, x.dtype),
            p,
            self.op.seed,
            1,
            self.op.flips(),
            x,
            y,
            pixel_distance(x),
            pixel_distance(y),
        )

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None:
            return nothing
        if not (p.training or self.op.always) or dy.size == 0:
            clear = nothing if p.adds(0) else bind_fill(dx, 0)
            return sequence([clear, bind_copy(dy, self._centre(dx, dy), accumulate=p.adds(0))])
        return bind_random(
            typed(elem.random_window_backward, dx.dtype),
            p,
            self.op.seed,
            1,
            self.op.flips(),
            p.adds(0),
            dy,
            dx,
            pixel_distance(dy),
            pixel_distance(dx),
        )
