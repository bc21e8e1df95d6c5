"""Cross-entropies, alone and with softmax or sigmoid (cext/nn/cross_entropy.c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from pydtconv._ext import losses as ext
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.cpu.elementwise_loss import (
    BINARY,
    BINARY_SCORES,
    SIGMOID,
    elementwise_backward,
    elementwise_forward,
)
from pydtconv.kernels.cpu.rows import around, bytes_of, flat_of
from pydtconv.kernels.registry import register
from pydtconv.ops.cross_entropy import CrossEntropy, SigmoidCrossEntropy, SoftmaxCrossEntropy, Targets

_SCORES, _PROBABILITIES, _SOFTMAX = 0, 1, 2
_LABEL_TYPES = {"int32": 0, "int64": 1, "float32": 2, "float64": 3}

TargetsType = TypeVar("TargetsType", bound=Targets)


class TargetsKernel(Kernel[TargetsType]):
    """What the cross-entropies share: how targets are handed to C, and the error for a wrong label."""

    def _targets(self, y_true: np.ndarray) -> ext.Targets:
        sparse = self.op.kind == "sparse"
        label_type = _LABEL_TYPES[y_true.dtype.name] if sparse else 0
        return ext.Targets(y_true, bytes_of(y_true), sparse, label_type, self.op.label_smoothing, self.op.ignore_class)

    def _checked(self, call: Callable[[], None], y_true: np.ndarray, classes: int) -> Call:
        """The call, with an error for a wrong label that says what came."""

        def run() -> None:
            try:
                call()
            except ext.LabelError:
                ignored = "" if self.op.ignore_class is None else f" (or ignore_class {self.op.ignore_class})"
                raise ValueError(
                    f"{type(self.op).__name__}: expected labels from 0 to {classes - 1}{ignored} in y_true, "
                    f"got values from {y_true.min()} to {y_true.max()}"
                ) from None

        return run


@register(CrossEntropy)
class CrossEntropyKernel(TargetsKernel[CrossEntropy]):
    """From scores or from probabilities."""

    def forward(self, p: Pass) -> Call:
        sizes, x, loss = around(p.x[0].shape, self.op.axis), flat_of(p.x[0]), flat_of(p.y[0])
        if self.op.kind == "binary":
            code = BINARY_SCORES if self.op.from_logits else BINARY
            return elementwise_forward(sizes, code, self.op.epsilon, self.op.label_smoothing, x, p.x[1], None, loss)
        targets, code = self._targets(p.x[1]), _SCORES if self.op.from_logits else _PROBABILITIES

        def run() -> None:
            ext.cross_entropy_forward(*sizes, code, self.op.epsilon, x, targets, None, loss)

        return self._checked(run, p.x[1], sizes[1])

    def backward(self, p: Pass) -> Call:
        sizes, x, accumulate = around(p.x[0].shape, self.op.axis), flat_of(p.x[0]), p.adds(0)
        dloss, dx = flat_of(p.dy[0]), flat_of(p.dx[0])
        if self.op.kind == "binary":
            code = BINARY_SCORES if self.op.from_logits else BINARY
            return elementwise_backward(
                sizes, code, self.op.epsilon, self.op.label_smoothing, x, p.x[1], dloss, None, accumulate, dx
            )
        targets, code = self._targets(p.x[1]), _SCORES if self.op.from_logits else _PROBABILITIES

        def run() -> None:
            ext.cross_entropy_backward(*sizes, code, self.op.epsilon, x, targets, dloss, None, accumulate, dx)

        return self._checked(run, p.x[1], sizes[1])


@register(SoftmaxCrossEntropy)
class SoftmaxCrossEntropyKernel(TargetsKernel[SoftmaxCrossEntropy]):
    """Probabilities and losses in one pass over the logits."""

    def forward(self, p: Pass) -> Call:
        sizes, targets = around(p.x[0].shape, self.op.axis), self._targets(p.x[1])
        x, q, loss = flat_of(p.x[0]), flat_of(p.y[0]), flat_of(p.y[1])

        def run() -> None:
            ext.cross_entropy_forward(*sizes, _SOFTMAX, self.op.epsilon, x, targets, q, loss)

        return self._checked(run, p.x[1], sizes[1])

    def backward(self, p: Pass) -> Call:
        sizes, targets = around(p.y[0].shape, self.op.axis), self._targets(p.x[1])
        q, dq, dloss, dx = flat_of(p.y[0]), flat_of(p.dy[0]), flat_of(p.dy[1]), flat_of(p.dx[0])
        accumulate = p.adds(0)

        def run() -> None:
            ext.cross_entropy_backward(*sizes, _SOFTMAX, self.op.epsilon, q, targets, dloss, dq, accumulate, dx)

        return self._checked(run, p.x[1], sizes[1])


@register(SigmoidCrossEntropy)
class SigmoidCrossEntropyKernel(Kernel[SigmoidCrossEntropy]):
    """Probabilities and losses in one pass over the logits."""

    def forward(self, p: Pass) -> Call:
        sizes = around(p.x[0].shape, self.op.axis)
        q, loss = flat_of(p.y[0]), flat_of(p.y[1])
        return elementwise_forward(
            sizes, SIGMOID, self.op.epsilon, self.op.label_smoothing, flat_of(p.x[0]), p.x[1], q, loss
        )

    def backward(self, p: Pass) -> Call:
        sizes, accumulate = around(p.y[0].shape, self.op.axis), p.adds(0)
        q, dq, dloss, dx = flat_of(p.y[0]), flat_of(p.dy[0]), flat_of(p.dy[1]), flat_of(p.dx[0])
        return elementwise_backward(
            sizes, SIGMOID, self.op.epsilon, self.op.label_smoothing, q, p.x[1], dloss, dq, accumulate, dx
        )
