"""Dropout, noise, flips and crops with the bits of a CPU (cext/cuda/random.cu)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.kernels.base import OUTSIDE_OF_TRAINING, Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.arithmetic import BINARY
from pydtconv.kernels.gpu.arrays import part, pixel_stride, register, size_of
from pydtconv.kernels.registry import MissingKernelError
from pydtconv.ops.base import Spec
from pydtconv.ops.random import Dropout, GaussianNoise, RandomCrop, RandomFlip, RandomWindow

_MASK64, _MASK32 = (1 << 64) - 1, (1 << 32) - 1


def bind_key(p: Pass, seed: int | None, per_sample: int) -> Any:
    """The key of each run, where the kernels read it: seed, stream, step, index of the first element."""
    run, stream = p.run, p.stream & _MASK32

    def fill() -> list[int]:
        if not p.training:
            run.draws += 1
        key = (run.seed if seed is None else seed) & _MASK64
        step, part = (run.step, stream) if p.training else (run.draws, stream ^ OUTSIDE_OF_TRAINING)
        return [key - (1 << 64) if key >> 63 else key, part, step & _MASK32, run.sample_offset * per_sample]

    return p.launcher.varying(4, fill, np.int64)


def dropped(rate: float) -> tuple[int, float]:
    """The word below which an element is dropped, and the factor of the others."""
    return min(int(rate * 4294967296.0), 4294967295), 1 / (1 - rate) if rate < 1 else 0.0


def _drop(p: Pass, rate: float, key: Any, x: Any, y: Any, accumulate: bool) -> Call:
    rows, channels, ldy = size_of(y)
    ldx = 0 if x is None else size_of(x)[2]
    arguments = (rows, channels, key, *dropped(rate), accumulate, x, ldx, y, ldy)
    return p.launcher.each("random.dropout", y.dtype, y.size, *arguments)


@register(Dropout)
class DropoutKernel(Kernel[Dropout]):
    """The mask is drawn anew in backward; one that is shared along axes lies in the workspace."""

    def __init__(self, op: Dropout) -> None:
        _check_whole(op)
        super().__init__(op)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        mask = self.op.mask_shape(inputs[0].shape)
        return 0 if mask == inputs[0].shape or None in mask else Spec(mask, inputs[0].dtype).nbytes

    def _bind(self, p: Pass, x: Any, y: Any, accumulate: bool) -> Call:
        if not (p.training or self.op.always) or x.size == 0 or self.op.rate == 0:
            return p.launcher.copy(x, y, accumulate=accumulate)
        shape = self.op.mask_shape(x.shape)
        if shape == x.shape:
            key = bind_key(p, self.op.seed, math.prod(x.shape[1:]))
            return _drop(p, self.op.rate, key, x, y, accumulate)
        extents = tuple(n or 1 for n in shape)
        key = bind_key(p, self.op.seed, math.prod(extents[1:]) if extents[0] == x.shape[0] else 0)
        mask = part(p.workspace, 0, extents, x.dtype, x.itemsize)
        layout = p.launcher.layout(x.shape, x, x, mask, x, y)
        arguments = (BINARY["multiply"], 0, accumulate, x.size, layout, x, None, mask, None, y)
        multiply = p.launcher.each("elementwise.binary_backward", x.dtype, x.size, *arguments)
        return sequence([_drop(p, self.op.rate, key, None, mask.reshape(1, -1), False), multiply])

    def forward(self, p: Pass) -> Call:
        return self._bind(p, p.x[0], p.y[0], False)

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else self._bind(p, p.dy[0], p.dx[0], p.adds(0))


@register(GaussianNoise)
class GaussianNoiseKernel(Kernel[GaussianNoise]):
    """Noise is added as it is drawn."""

    def __init__(self, op: GaussianNoise) -> None:
        _check_whole(op)
        super().__init__(op)

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if not (p.training or self.op.always) or x.size == 0:
            return p.launcher.copy(x, y)
        rows, channels, ldx = size_of(x)
        key = bind_key(p, self.op.seed, math.prod(x.shape[1:]))
        arguments = (rows, channels, key, float(self.op.stddev), x, ldx, y, size_of(y)[2])
        return p.launcher.each("random.gaussian_noise", y.dtype, y.size, *arguments)

    def backward(self, p: Pass) -> Call:
        return nothing if p.dx[0] is None else p.launcher.copy(p.dy[0], p.dx[0], accumulate=p.adds(0))


@register(RandomFlip, RandomCrop)
class RandomWindowKernel(Kernel[RandomWindow]):
    """Windows are drawn anew in backward; outside of training they are the middle."""

    @staticmethod
    def _centre(x: Any, y: Any) -> Any:
        top, left = ((x.shape[d] - y.shape[d]) // 2 for d in (1, 2))
        return x[:, top : top + y.shape[1], left : left + y.shape[2]]

    def _drawn(self, p: Pass, large: Any, small: Any) -> tuple[Any, ...] | None:
        """What both kernels are told; None where nothing is drawn."""
        if not (p.training or self.op.always) or small.size == 0:
            return None
        return *large.shape[:3], *small.shape[1:], bind_key(p, self.op.seed, 1), self.op.flips()

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        drawn = self._drawn(p, x, y)
        if drawn is None:
            return p.launcher.copy(self._centre(x, y), y)
        arguments = (*drawn, x, pixel_stride(x), y, pixel_stride(y))
        return p.launcher.each("random.window_forward", y.dtype, y.size, *arguments)

    def backward(self, p: Pass) -> Call:
        dy, dx, launcher = p.dy[0], p.dx[0], p.launcher
        if dx is None:
            return nothing
        drawn = self._drawn(p, dx, dy)
        if drawn is None:
            clear = nothing if p.adds(0) or not dx.size else launcher.fill(dx, 0.0)
            return sequence([clear, launcher.copy(dy, self._centre(dx, dy), accumulate=p.adds(0))])
        arguments = (*drawn, p.adds(0), dy, pixel_stride(dy), dx, pixel_stride(dx))
        return launcher.each("random.window_backward", dx.dtype, dx.size, *arguments)


def _check_whole(op: Any) -> None:
    if op.within:
        raise MissingKernelError(
            f"operator {type(op).__name__} on a part of a tensor: expected a kernel for a GPU, got none"
        )
