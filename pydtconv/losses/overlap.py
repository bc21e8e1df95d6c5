"""Losses of overlap (dice, tversky), of noisy labels (generalized cross-entropy) and of pairs (circle)."""

from __future__ import annotations

from typing import Any

from pydtconv import config, ops, replica
from pydtconv.losses.loss import LossFunctionWrapper, as_operands
from pydtconv.naming import defined_in
from pydtconv.ops.checks import normalize_axes


def _check_samples(name: str, y_pred: Any, axis: Any = None) -> None:
    """Raises ValueError where a loss of samples taken together, along axis, is traced for a share of them alone."""
    parts = replica.current().parts
    if parts == 1 or not hasattr(y_pred, "apply_op"):
        return
    if axis is None or 0 in normalize_axes(name, axis, len(y_pred.shape)):
        raise ValueError(
            f"{name}: expected all samples of a batch in one process, since it is no mean over them, got them shared "
            f"out over {parts}"
        )


def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Any:
    """1 - 2 |A and B| / (|A| + |B|) over axes (None: all)."""
    y_true, y_pred = as_operands(y_true, y_pred)
    _check_samples("dice", y_pred, axis)
    both = ops.sum(ops.multiply(y_true, y_pred), axis)
    total = ops.add(ops.add(ops.sum(y_true, axis), ops.sum(y_pred, axis)), config.epsilon())
    return ops.subtract(1.0, ops.divide(ops.multiply(both, 2.0), total))


def tversky(y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None) -> Any:
    """1 - |A and B| / (|A and B| + alpha |A without B| + beta |B without A|); Salehi et al. (2017)."""
    y_true, y_pred = as_operands(y_true, y_pred)
    _check_samples("tversky", y_pred, axis)
    both = ops.sum(ops.multiply(y_true, y_pred), axis)
    missed = ops.sum(ops.multiply(ops.subtract(1.0, y_pred), y_true), axis)
    wrong = ops.sum(ops.multiply(y_pred, ops.subtract(1.0, y_true)), axis)
    total = ops.add(ops.add(both, ops.multiply(missed, alpha)), ops.add(ops.multiply(wrong, beta), config.epsilon()))
    return ops.subtract(1.0, ops.divide(both, total))


def categorical_generalized_cross_entropy(y_true: Any, y_pred: Any, q: float) -> Any:
    """(1 - p^q) / q for the probability p of the label; Zhang and Sabuncu (2018)."""
    y_true, y_pred = as_operands(y_true, y_pred, labels=True)
    hot = ops.one_hot(ops.cast(y_true, "int32"), y_pred.shape[-1], dtype=str(y_pred.dtype))
    p = ops.sum(ops.multiply(y_pred, hot), -1)
    return ops.divide(ops.subtract(1.0, ops.power(p, q)), q)


def circle(
    y_true: Any,
    y_pred: Any,
    ref_labels: Any = None,
    ref_embeddings: Any = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Any:
    """Pulls embeddings of unit length and one label together, others apart; Sun et al. (2020)."""
    y_true, y_pred = as_operands(y_true, y_pred, labels=True)
    _check_samples("circle", y_pred)
    labels = ops.reshape(ops.cast(y_true, "int32"), (-1, 1))
    others = labels if ref_labels is None else ops.reshape(ops.cast(ref_labels, "int32"), (-1, 1))
    reference = y_pred if ref_embeddings is None else ref_embeddings
    distance = ops.maximum(ops.subtract(1.0, ops.matmul(y_pred, ops.transpose(reference))), 0.0)
    same = ops.equal(labels, ops.reshape(others, (1, -1)))
    different = ops.logical_not(same)
    if remove_diagonal:
        same = ops.logical_and(same, ops.equal(ops.eye(*distance.shape), 0.0))
    near = ops.multiply(ops.add(distance, margin), ops.subtract(distance, margin))
    far = ops.multiply(ops.maximum(ops.subtract(1 + margin, distance), 0.0), ops.subtract(1 - margin, distance))
    parts = [
        ops.logsumexp(ops.where(mask, ops.multiply(term, gamma), -float("inf")), axis=1)
        for mask, term in ((same, near), (different, far))
    ]
    return ops.softplus(ops.add(*parts))


class Dice(LossFunctionWrapper):
    """The mean of `dice`."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "dice",
        axis: Any = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(dice, reduction, name, dtype, axis=axis)


class Tversky(LossFunctionWrapper):
    """The mean of `tversky`."""

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "tversky",
        axis: Any = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(tversky, reduction, name, dtype, alpha=alpha, beta=beta, axis=axis)


class CategoricalGeneralizedCrossEntropy(LossFunctionWrapper):
    """The mean of `categorical_generalized_cross_entropy`; q between 0 and 1."""

    takes_labels = True

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_generalized_cross_entropy",
        dtype: str | None = None,
    ) -> None:
        if not 0 < q < 1:
            raise ValueError(f"CategoricalGeneralizedCrossEntropy: q: expected a number between 0 and 1, got {q}")
        super().__init__(categorical_generalized_cross_entropy, reduction, name, dtype, q=q)


class Circle(LossFunctionWrapper):
    """The mean of `circle` over the samples that have a value: one without others of its label has none."""

    takes_labels = True

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "circle",
        dtype: str | None = None,
    ) -> None:
        super().__init__(circle, reduction, name, dtype, gamma=gamma, margin=margin, remove_diagonal=remove_diagonal)

    def counted(self, y_true: Any, values: Any) -> Any:
        return ops.cast(ops.greater(values, 0.0), values.dtype)


__all__ = defined_in(globals())
