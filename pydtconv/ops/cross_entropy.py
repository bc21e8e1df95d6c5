"""Cross-entropies of samples, and their fusion with softmax and sigmoid.

The values are Keras's.  Labels may be int32, int64, float32 or float64 (a float is cut to its integer); a label that is
no class raises ValueError when the loss runs, before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.extents import check
from pydtconv.ops.base import Op, Reasons, Retained, Spec, functions
from pydtconv.ops.checks import check_axis, check_float, fits

__all__ = ["CrossEntropy", "SigmoidCrossEntropy", "SoftmaxCrossEntropy"]

LABEL_TYPES = ("int32", "int64", "float32", "float64")


@dataclass(frozen=True)
class Targets(Op):
    """What the cross-entropies share: checks, and the targets that kernels read.

    kind: "categorical" (y_true like y_pred: distributions), "sparse" (labels: y_true without the axis, or 1 there) or
    "binary" (y_true like y_pred: of each element, how true it is).
    label_smoothing: distributions become t * (1 - s) + s / k, binary truths t * (1 - s) + s / 2.
    ignore_class: a label whose samples have loss 0.
    """

    kind: str = "categorical"
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    ignore_class: int | None = None
    epsilon: float = 1e-7

    nondifferentiable = (1,)
    accumulates = (0,)
    dense = True
    _kinds: ClassVar[tuple[str, ...]] = ("categorical", "sparse", "binary")
    mesh: ClassVar[str] = "loss_values"
    lacks: ClassVar[Reasons] = {"onnx": "exported networks have no losses"}

    @property
    def _op(self) -> str:
        return type(self).__name__

    @property
    def mixes_dtypes(self) -> bool:  # type: ignore[override]
        """Labels stay what they are, whatever predictions are."""
        return self.kind == "sparse"

    def __post_init__(self) -> None:
        if self.kind not in self._kinds:
            raise ValueError(f"{self._op}: expected kind {' or '.join(map(repr, self._kinds))}, got {self.kind!r}")
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"{self._op}: expected label_smoothing in [0, 1], got {self.label_smoothing}")
        if self.kind == "sparse" and self.label_smoothing:
            raise ValueError(f"{self._op}: label_smoothing needs kind 'categorical' or 'binary', got 'sparse'")
        check(f"{self._op}: ignore_class", self.ignore_class)
        if self.kind != "sparse" and self.ignore_class is not None:
            raise ValueError(f"{self._op}: ignore_class needs kind 'sparse', got {self.kind!r}")

    def _samples(self, y_pred: Spec, y_true: Spec) -> Spec:
        """Spec of the per-sample losses.  Raises ValueError where the inputs do not fit."""
        check_float(self._op, "y_pred", y_pred.dtype)
        axis = check_axis(self._op, self.axis, len(y_pred.shape))
        shape = y_pred.shape[:axis] + y_pred.shape[axis + 1 :]
        if self.kind == "sparse":
            one = (*shape[:axis], 1, *shape[axis:])
            if not (fits(y_true.shape, shape) or fits(y_true.shape, one)):
                raise ValueError(
                    f"{self._op}: y_true must have shape {shape} or {one} (labels) because y_pred has shape "
                    f"{y_pred.shape}, got {y_true.shape}"
                )
            if y_true.dtype not in LABEL_TYPES:
                raise ValueError(f"{self._op}: y_true must be one of {', '.join(LABEL_TYPES)}, got {y_true.dtype}")
        elif not fits(y_true.shape, y_pred.shape) or y_true.dtype != y_pred.dtype:
            raise ValueError(
                f"{self._op}: y_true must have y_pred's shape {y_pred.shape} and dtype {y_pred.dtype}, got "
                f"{y_true.shape} and {y_true.dtype}"
            )
        return Spec(shape, y_pred.dtype)


@dataclass(frozen=True)
class CrossEntropy(Targets):
    """Cross-entropy of each sample; (y_pred, y_true) -> losses, shaped like y_pred without `axis`.

    "categorical", "sparse": -sum(t * log(q)) over the axis; q = softmax(y_pred) if from_logits, else y_pred brought to
    sum 1 and clipped to [epsilon, 1 - epsilon], as Keras does.
    "binary": mean of -t * log(q) - (1 - t) * log(1 - q) over the axis; q = sigmoid(y_pred) if from_logits, else y_pred
    clipped likewise.  Nothing is kept for backward but the two inputs.
    """

    def infer(self, *inputs: Spec) -> Spec:
        return self._samples(*inputs)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0, 1))

    def formula(self, y_pred: Any, y_true: Any) -> Any:
        """With a gradient by y_true, too, where that is no label."""
        ops, axis, smoothing = functions, self.axis % len(y_pred.shape), self.label_smoothing
        t, q = y_true, y_pred
        if smoothing:
            t = t * (1.0 - smoothing) + smoothing / (2 if self.kind == "binary" else q.shape[axis])
        if self.kind == "binary":
            if self.from_logits:
                return ops.mean(ops.softplus(q) - t * q, axis=axis)
            q = ops.clip(q, self.epsilon, 1.0 - self.epsilon)
            return ops.mean(-(t * ops.log(q) + (1.0 - t) * ops.log(1.0 - q)), axis=axis)
        if self.from_logits:
            logarithm = ops.log_softmax(q, axis=axis)
        else:
            shares = q / ops.sum(q, axis=axis, keepdims=True)
            logarithm = ops.log(ops.clip(shares, self.epsilon, 1.0 - self.epsilon))
        if self.kind != "sparse":
            return -ops.sum(t * logarithm, axis=axis)
        labels = ops.cast(t, "int32")
        if len(labels.shape) == len(q.shape):
            labels = ops.squeeze(labels, axis=axis)
        counted = ops.not_equal(labels, -1 if self.ignore_class is None else self.ignore_class)
        hot = ops.one_hot(ops.where(counted, labels, 0), q.shape[axis], axis=axis, dtype=q.dtype)
        return ops.where(counted, -ops.sum(hot * logarithm, axis=axis), 0.0)

    def fused(self) -> SoftmaxCrossEntropy | SigmoidCrossEntropy:
        """The op that does the softmax (binary: sigmoid) before this one as well."""
        if self.kind == "binary":
            return SigmoidCrossEntropy(self.kind, True, self.label_smoothing, self.axis)
        return SoftmaxCrossEntropy(self.kind, True, self.label_smoothing, self.axis, self.ignore_class)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(Targets):
    """Softmax and cross-entropy in one: (logits, y_true) -> (probabilities, per-sample losses).

    Stands for Softmax -> CrossEntropy(from_logits=False), without the clipping that guards the logarithm: the loss
    comes from the logits and stays exact for probabilities near 0.  dx = (q * sum(t) - t) * dloss, plus what the
    probabilities' own gradient brings.
    """

    from_logits: bool = True

    _kinds: ClassVar[tuple[str, ...]] = ("categorical", "sparse")
    lacks: ClassVar[Reasons] = {"gradient": "plans alone make it", "onnx": "plans alone make it"}

    def infer(self, *inputs: Spec) -> tuple[Spec, Spec]:
        return inputs[0], self._samples(*inputs)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(1,), y=(0,))


@dataclass(frozen=True)
class SigmoidCrossEntropy(Targets):
    """Sigmoid and binary cross-entropy in one: (logits, y_true) -> (probabilities, per-sample losses).

    Stands for sigmoid -> CrossEntropy(kind="binary"), without its clipping: the loss comes from the logits.
    dx = (q - t) * dloss / k, plus what the probabilities' own gradient brings.
    """

    kind: str = "binary"
    from_logits: bool = True

    _kinds: ClassVar[tuple[str, ...]] = ("binary",)
    lacks: ClassVar[Reasons] = {"gradient": "plans alone make it", "onnx": "plans alone make it"}

    def infer(self, *inputs: Spec) -> tuple[Spec, Spec]:
        return inputs[0], self._samples(*inputs)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(1,), y=(0,))
