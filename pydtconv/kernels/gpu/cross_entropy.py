"""Cross-entropies over classes, alone and with softmax (cext/cuda/losses.cu); labels are checked as they are fed."""

from __future__ import annotations

from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.gpu.arrays import numbers_of, register
from pydtconv.kernels.gpu.elementwise_loss import Elementwise, binary_code
from pydtconv.kernels.gpu.softmax import by_samples
from pydtconv.ops.cross_entropy import CrossEntropy, SoftmaxCrossEntropy, Targets

_SCORES, _PROBABILITIES, _SOFTMAX = 0, 1, 2


def truth(op: Targets, y_true: Any) -> tuple[Any, ...]:
    """What is true, as the kernels take it: distributions or labels, and what changes them."""
    ignore = (op.ignore_class is not None, op.ignore_class or 0)
    if op.kind == "sparse":
        return None, *numbers_of(y_true), 0.0, *ignore
    return y_true, None, 0, float(op.label_smoothing), *ignore


@register(CrossEntropy)
class CrossEntropyKernel(Kernel[CrossEntropy]):
    """From scores or from probabilities."""

    def _binary(self, p: Pass) -> Elementwise:
        op = self.op
        return Elementwise(p, op.axis, binary_code(op), op.epsilon, op.label_smoothing)

    def _prediction(self) -> tuple[int, float]:
        return _SCORES if self.op.from_logits else _PROBABILITIES, float(self.op.epsilon)

    def forward(self, p: Pass) -> Call:
        x, loss = p.x[0], p.y[0]
        if self.op.kind == "binary":
            return self._binary(p).forward(x, p.x[1], None, loss)
        arguments = (*self._prediction(), x, *truth(self.op, p.x[1]), None, loss)
        return by_samples(p.launcher, "cross_entropy_forward", x, self.op.axis, *arguments)

    def backward(self, p: Pass) -> Call:
        x = p.x[0]
        if self.op.kind == "binary":
            return self._binary(p).backward(x, p.x[1], p.dy[0], None, p.dx[0])
        arguments = (*self._prediction(), x, *truth(self.op, p.x[1]), p.dy[0], None, p.adds(0), p.dx[0])
        return by_samples(p.launcher, "cross_entropy_backward", x, self.op.axis, *arguments)


@register(SoftmaxCrossEntropy)
class SoftmaxCrossEntropyKernel(Kernel[SoftmaxCrossEntropy]):
    """Probabilities and losses in one kernel over the logits."""

    def forward(self, p: Pass) -> Call:
        x, (q, loss) = p.x[0], p.y
        arguments = (_SOFTMAX, float(self.op.epsilon), x, *truth(self.op, p.x[1]), q, loss)
        return by_samples(p.launcher, "cross_entropy_forward", x, self.op.axis, *arguments)

    def backward(self, p: Pass) -> Call:
        q, (dq, dloss) = p.y[0], p.dy
        arguments = (_SOFTMAX, float(self.op.epsilon), q, *truth(self.op, p.x[1]), dloss, dq, p.adds(0), p.dx[0])
        return by_samples(p.launcher, "cross_entropy_backward", q, self.op.axis, *arguments)
