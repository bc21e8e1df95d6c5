"""Attention: for each head the device's products, and what is between them (cext/cuda/attention.cu).

The scores of one head of some images are in the workspace, and nothing of them is kept: backward multiplies again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pydtconv import dtypes
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arrays import aligned, numbers_of, part, pixel_stride, register
from pydtconv.kernels.gpu.random import bind_key, dropped
from pydtconv.ops.attention import Attention
from pydtconv.ops.base import Spec

#: bytes of the scores of some images, more only where one image has more
SCORES = 256 << 20
THREADS = 256


def images_at_once(n: int, tq: int, tk: int, itemsize: int) -> int:
    return max(1, min(n, SCORES // max(tq * tk * itemsize, 1)))


class Bound:
    """What both passes share: the parts of the work, and the arguments of the kernels."""

    def __init__(self, op: Attention, p: Pass) -> None:
        q, k, v = p.x[:3]
        self.op, self.launcher, self.q, self.k, self.v = op, p.launcher, q, k, v
        self.n, self.tq, self.heads, self.d = q.shape
        self.tk, self.group = k.shape[1], self.heads // k.shape[2]
        self.step = images_at_once(self.n, self.tq, self.tk, q.itemsize)
        self.mask: tuple[Any, list[int]] = (None, [0] * 5)
        if len(p.x) > 3:
            shape = p.x[3].shape
            found, code = numbers_of(p.x[3])
            strides = [math.prod(shape[d + 1 :]) if extent > 1 else 0 for d, extent in enumerate(shape)]
            self.mask = (found, [code, *strides])
        rate = op.rate if p.training or op.always else 0.0
        key = bind_key(p, op.seed, self.heads * self.tq * self.tk) if rate else None
        self.dropout = (key, *dropped(rate))

    def parts(self) -> Iterator[tuple[slice, int, int]]:
        """Images, head, and head of k and v of each part."""
        for start in range(0, self.n, self.step):
            for head in range(self.heads):
                yield slice(start, min(start + self.step, self.n)), head, head // self.group

    def scores(self, workspace: Any, images: slice, number: int = 0) -> Any:
        """Where the scores of a part lie, or their gradient."""
        start = number * aligned(self.step * self.tq * self.tk * self.q.itemsize)
        shape = (images.stop - images.start, self.tq, self.tk)
        return part(workspace, start, shape, self.q.dtype, self.q.itemsize)

    def launch(self, kernel: str, images: slice, head: int, *arguments: Any) -> Call:
        rows = (images.stop - images.start) * self.tq
        sizes = [self.n, self.heads, self.tq, self.tk, head, images.start, *self.mask[1]]
        given = (
            *(rows, self.launcher.constant(sizes, "int64"), float(self.op.factor(self.d))),
            *(self.op.causal, self.op.zero_empty, self.mask[0], *self.dropout),
        )
        blocks = -(-rows // (THREADS // 32))
        return self.launcher.launch(f"attention.{kernel}", self.q.dtype, (blocks,), THREADS, *given, *arguments)


@register(Attention)
class AttentionKernel(Kernel[Attention]):
    """Heads are read where they lie; dropout is drawn anew in backward."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        n, _, _, tq, tk, _, _ = self.op.sizes(*inputs)
        itemsize = dtypes.itemsize(inputs[0].dtype)
        each = aligned(images_at_once(n, tq, tk, itemsize) * tq * tk * itemsize)
        return each * (1 if direction == "forward" else 2)

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        if min(y.size, p.x[0].size, p.x[1].size) == 0:
            return p.launcher.fill(y, 0.0) if y.size else nothing
        bound, launcher, calls = Bound(self.op, p), p.launcher, []
        for images, head, own in bound.parts():
            scores = bound.scores(p.workspace, images)
            q, k, v = bound.q[images, :, head], bound.k[images, :, own], bound.v[images, :, own]
            calls.append(launcher.gemm_batched(q, k.transpose(0, 2, 1), scores))
            calls.append(bound.launch("forward", images, head, scores, p.saved["sums"]))
            calls.append(launcher.gemm_batched(scores, v, y[images, :, head]))
        return sequence(calls)

    def backward(self, p: Pass) -> Call:
        launcher, y, dy, calls = p.launcher, p.y[0], p.dy[0], []
        if min(y.size, p.x[0].size, p.x[1].size) == 0:
            unused = [dx for i, dx in enumerate(p.dx[:3]) if dx is not None and dx.size and not p.adds(i)]
            return sequence([launcher.fill(dx, 0.0) for dx in unused])
        bound = Bound(self.op, p)
        rows = (y.shape[3], y, pixel_stride(y), dy, pixel_stride(dy))
        for images, head, own in bound.parts():
            scores, slopes = (bound.scores(p.workspace, images, i) for i in (0, 1))
            q, k, v = bound.q[images, :, head], bound.k[images, :, own], bound.v[images, :, own]
            slope = dy[images, :, head]
            calls.append(launcher.gemm_batched(q, k.transpose(0, 2, 1), scores))
            calls.append(launcher.gemm_batched(slope, v.transpose(0, 2, 1), slopes))
            calls.append(bound.launch("backward", images, head, p.saved["sums"], *rows, scores, slopes))
            later = head % bound.group > 0  # heads that share k and v add to their gradients
            for i, (left, right, at, adds) in enumerate(
                (
                    (slopes, k, head, False),
                    (slopes.transpose(0, 2, 1), q, own, later),
                    (scores.transpose(0, 2, 1), slope, own, later),
                )
            ):
                if p.dx[i] is not None:
                    calls.append(launcher.gemm_batched(left, right, p.dx[i][images, :, at], adds or p.adds(i)))
        return sequence(calls)
