"""Losses that are a mean, or a sum, of a function of two elements, and binary cross-entropies
(cext/cuda/elementwise_loss.cu).
"""

from __future__ import annotations

from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.elementwise_loss import BINARY, BINARY_SCORES, CODES, SIGMOID
from pydtconv.kernels.gpu.arrays import aligned, around, part, register
from pydtconv.kernels.gpu.softmax import THREADS, dense
from pydtconv.ops.base import Spec
from pydtconv.ops.cross_entropy import CrossEntropy, SigmoidCrossEntropy
from pydtconv.ops.elementwise_loss import KINDS, ElementwiseLoss


def binary_code(op: CrossEntropy) -> int:
    return BINARY_SCORES if op.from_logits else BINARY


class Elementwise:
    """A loss bound to its arrays.  parameter: epsilon or delta; signs: see the kernels."""

    def __init__(self, p: Pass, axis: int, code: int, parameter: float, smoothing: float = 0.0, signs: Any = None):
        self.launcher, self.accumulates = p.launcher, p.adds(0)
        self.axis, self.given = axis, (code, float(parameter), float(smoothing), signs)

    def forward(self, x: Any, t: Any, q: Any, loss: Any) -> Call:
        outer, k, inner = around(x.shape, self.axis)
        samples = outer * inner
        if not samples:
            return nothing
        arrays = [None if array is None else dense(self.launcher, array) for array in (x, t, q, loss)]
        sizes, grid = (samples, k, inner), (-(-samples // (THREADS // 32)),)
        return self.launcher.launch(
            "elementwise_loss.loss_forward", x.dtype, grid, THREADS, *sizes, *self.given, *arrays
        )

    def backward(self, x: Any, t: Any, dloss: Any, dq: Any, dx: Any) -> Call:
        _, k, inner = around(x.shape, self.axis)
        before = [None if array is None else dense(self.launcher, array) for array in (x, t, dloss, dq)]
        arguments = (x.size, k, inner, *self.given, *before, self.accumulates, dense(self.launcher, dx))
        return self.launcher.each("elementwise_loss.loss_backward", x.dtype, x.size, *arguments)


@register(ElementwiseLoss)
class ElementwiseLossKernel(Kernel[ElementwiseLoss]):
    """A warp for each sample; of hinge losses labels are looked at first."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return aligned(8) if KINDS[self.op.kind].labelled else 0

    def _bound(self, p: Pass) -> tuple[Elementwise, list[Call]]:
        op, t, before, signs = self.op, p.x[1], [], None
        if KINDS[op.kind].labelled:
            signs = part(p.workspace, 0, (1,), t.dtype, t.itemsize)
            arguments = (t.size, dense(p.launcher, t), signs)
            before = [p.launcher.launch("elementwise_loss.count_others", t.dtype, (1,), 256, *arguments)]
        return Elementwise(p, op.axis, CODES[op.kind], op.parameter, 0.0, signs), before

    def forward(self, p: Pass) -> Call:
        loss, before = self._bound(p)
        return sequence([*before, loss.forward(p.x[0], p.x[1], None, p.y[0])])

    def backward(self, p: Pass) -> Call:
        loss, before = self._bound(p)
        return sequence([*before, loss.backward(p.x[0], p.x[1], p.dy[0], None, p.dx[0])])


@register(SigmoidCrossEntropy)
class SigmoidCrossEntropyKernel(Kernel[SigmoidCrossEntropy]):
    """Probabilities and losses in one kernel over the logits."""

    def _bound(self, p: Pass) -> Elementwise:
        return Elementwise(p, self.op.axis, SIGMOID, self.op.epsilon, self.op.label_smoothing)

    def forward(self, p: Pass) -> Call:
        return self._bound(p).forward(p.x[0], p.x[1], p.y[0], p.y[1])

    def backward(self, p: Pass) -> Call:
        return self._bound(p).backward(p.y[0], p.x[1], p.dy[1], p.dy[0], p.dx[0])
