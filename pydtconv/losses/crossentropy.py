"""Cross-entropies.  The functions give a value for each sample.

With probabilities, what is minimised is -sum t log(p); a softmax (or sigmoid) in front of it is found in the graph and
computed together with it, so that models with and without `from_logits` are equally stable.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.dtypes import real
from pydtconv.losses import trained_targets
from pydtconv.losses.loss import LossFunctionWrapper, as_operands, check_classes, check_numbers, match_ranks
from pydtconv.naming import defined_in


def _warn_of_one_class(name: str, y_pred: Any, axis: int) -> None:
    """Warns, as Keras does, of predictions that are 1 whatever they are."""
    if y_pred.shape[axis] == 1:
        told = (
            f"{name}: expected y_pred.shape to be (batch_size, num_classes) with num_classes above 1, got "
            f"{tuple(y_pred.shape)}; for two classes there is binary_crossentropy"
        )
        warnings.warn(told, SyntaxWarning, stacklevel=3)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Any:
    """-sum over the classes on `axis` of y_true log(y_pred); y_true, y_pred: (n, ..., classes)."""
    y_true, y_pred = as_operands(y_true, y_pred)
    _warn_of_one_class("categorical_crossentropy", y_pred, axis)
    check_classes(y_true, y_pred, axis)
    op = ops.CrossEntropy("categorical", from_logits, float(label_smoothing), axis, None, config.epsilon())
    return trained_targets.values(op, y_true, y_pred) if trained_targets.trains(y_true) else op(y_pred, y_true)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> Any:
    """-log of y_pred at the class y_true, 0 where it is ignore_class; y_true (n, ...) or (n, ..., 1)."""
    y_true, y_pred = as_operands(y_true, y_pred, labels=True)
    check_numbers(y_true, y_pred, axis)
    return ops.CrossEntropy("sparse", from_logits, 0.0, axis, ignore_class, config.epsilon())(y_pred, y_true)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> Any:
    """The mean over `axis` of -y_true log(y_pred) - (1 - y_true) log(1 - y_pred)."""
    y_true, y_pred = match_ranks(*as_operands(y_true, y_pred))
    op = ops.CrossEntropy("binary", from_logits, float(label_smoothing), axis, None, config.epsilon())
    return trained_targets.values(op, y_true, y_pred) if trained_targets.trains(y_true) else op(y_pred, y_true)


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """Binary cross-entropy times (1 - probability of the truth)^gamma (Lin et al., ICCV 2017)."""
    t, p = match_ranks(*as_operands(y_true, y_pred))
    if from_logits:
        p = ops.sigmoid(p)
    if label_smoothing:
        t = ops.add(ops.multiply(t, 1 - label_smoothing), 0.5 * label_smoothing)
    clipped = ops.clip(p, config.epsilon(), 1 - config.epsilon())
    other, rest = ops.subtract(1.0, t), ops.subtract(1.0, clipped)
    values = ops.negative(ops.add(ops.multiply(t, ops.log(clipped)), ops.multiply(other, ops.log(rest))))
    truth = ops.add(ops.multiply(t, p), ops.multiply(other, ops.subtract(1.0, p)))
    values = ops.multiply(ops.power(ops.subtract(1.0, truth), float(gamma)), values)
    if apply_class_balancing:
        values = ops.multiply(ops.add(ops.multiply(t, alpha), ops.multiply(other, 1 - alpha)), values)
    return ops.mean(values, axis=axis)


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: float | Sequence[float] = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Any:
    """The sum over the classes of alpha (1 - p)^gamma times the cross-entropy (Lin et al., ICCV 2017).

    alpha: a number, or one for each class.
    """
    t, p = as_operands(y_true, y_pred)
    _warn_of_one_class("categorical_focal_crossentropy", p, axis)
    check_classes(t, p, axis)
    if label_smoothing:
        t = ops.add(ops.multiply(t, 1 - label_smoothing), label_smoothing / t.shape[axis])
    if from_logits:
        p = ops.softmax(p, axis=axis)
    p = ops.divide(p, ops.sum(p, axis=axis, keepdims=True))
    p = ops.clip(p, config.epsilon(), 1 - config.epsilon())
    factor = ops.multiply(ops.power(ops.subtract(1.0, p), float(gamma)), -_weights_along(axis, alpha, p))
    return ops.sum(ops.multiply(factor, ops.multiply(t, ops.log(p))), axis=axis)


def _weights_along(axis: int, alpha: Any, p: Any) -> Any:
    """alpha, which is a number or one for each class on an axis of p, to multiply p with."""
    weights = np.asarray(alpha, real(str(p.dtype)))
    if not weights.ndim:
        return float(alpha)
    classes, shape = p.shape[axis], [1] * len(p.shape)
    if weights.shape != (classes,):
        raise ValueError(f"alpha: expected a number, or one for each of {classes} classes, got {alpha!r}")
    shape[axis] = classes
    return weights.reshape(shape)


class CategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy of distributions over classes, such as one-hot labels."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_crossentropy",
        dtype: str | None = None,
    ) -> None:
        _check_smoothing(type(self).__name__, label_smoothing)
        super().__init__(
            categorical_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class SparseCategoricalCrossentropy(LossFunctionWrapper):
    """Cross-entropy of class numbers.  Samples of ignore_class have loss 0 and do not count where a mean is taken."""

    takes_labels = True

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: str | None = None,
    ) -> None:
        super().__init__(
            sparse_categorical_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            ignore_class=ignore_class,
            axis=axis,
        )

    def counted(self, y_true: Any, values: Any) -> Any:
        ignored = self._pydt_fn_kwargs["ignore_class"]
        if ignored is None:
            return None
        return ops.cast(ops.not_equal(ops.reshape(y_true, values.shape), ignored), values.dtype)

    def check_targets(self, y_true: np.ndarray, y_pred_shape: tuple[int | None, ...]) -> None:
        axis = self._pydt_fn_kwargs["axis"] % len(y_pred_shape)
        classes = y_pred_shape[axis]
        ignored = self._pydt_fn_kwargs["ignore_class"]
        labels = y_true if ignored is None else y_true[y_true != ignored]
        if labels.dtype.kind == "f" and not (labels == np.rint(labels)).all():
            wrong = labels[labels != np.rint(labels)].flat[0]
            if not np.isfinite(labels).all():
                raise ValueError(f"{self.name}: expected class numbers, got {wrong}")
            warnings.warn(f"{self.name}: expected class numbers, got {wrong}: fractions are cut off", stacklevel=2)
            labels = np.trunc(labels)
        if classes is not None and labels.size and not (labels.min() >= 0 and labels.max() < classes):
            raise ValueError(
                f"{self.name}: expected class numbers from 0 to {classes - 1}, got {labels.min()} to {labels.max()}: "
                f"the output has {classes} classes"
            )


class BinaryCrossentropy(LossFunctionWrapper):
    """Cross-entropy of yes-or-no labels."""

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_crossentropy",
        dtype: str | None = None,
    ) -> None:
        _check_smoothing(type(self).__name__, label_smoothing)
        super().__init__(
            binary_crossentropy,
            reduction,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class BinaryFocalCrossentropy(LossFunctionWrapper):
    """Binary cross-entropy that gives easy samples less weight."""

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_focal_crossentropy",
        dtype: str | None = None,
    ) -> None:
        _check_smoothing(type(self).__name__, label_smoothing)
        super().__init__(
            binary_focal_crossentropy,
            reduction,
            name,
            dtype,
            apply_class_balancing=apply_class_balancing,
            alpha=alpha,
            gamma=gamma,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class CategoricalFocalCrossentropy(LossFunctionWrapper):
    """Cross-entropy over classes that gives easy samples less weight."""

    def __init__(
        self,
        alpha: float | Sequence[float] = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_focal_crossentropy",
        dtype: str | None = None,
    ) -> None:
        _check_smoothing(type(self).__name__, label_smoothing)
        super().__init__(
            categorical_focal_crossentropy,
            reduction,
            name,
            dtype,
            alpha=alpha,
            gamma=gamma,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


def _check_smoothing(kind: str, label_smoothing: float) -> None:
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"{kind}: expected label_smoothing between 0 and 1, got {label_smoothing!r}")


__all__ = defined_in(globals())
