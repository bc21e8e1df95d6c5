"""Losses of sequences of labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.losses.loss import FunctionLoss, as_operands
from pydtconv.naming import defined_in


def ctc(y_true: Any, y_pred: Any) -> Any:
    """-log of the probability of labels, summed over their alignments with steps; shape (n,).

    Connectionist temporal classification: labels come in order, at steps that are not known.
    y_true: classes (n, labels), where 0 is the blank, which fills rows up; y_pred: logits (n, steps, classes).  Raises
    ValueError for other shapes.  Source: Graves et al., ICML 2006.
    """
    y_true, y_pred = as_operands(y_true, y_pred, labels=True)
    if len(y_true.shape) != 2 or len(y_pred.shape) != 3:
        raise ValueError(
            "ctc: expected y_true (n, labels) and y_pred (n, steps, classes), got shapes "
            f"{tuple(y_true.shape)} and {tuple(y_pred.shape)}"
        )
    labels = ops.sum(ops.cast(ops.not_equal(y_true, 0), "int32"), axis=-1)
    steps = ops.add(ops.multiply(labels, 0), int(y_pred.shape[1]))
    return ops.ctc_loss(y_true, y_pred, labels, steps, mask_index=0)


class CTC(FunctionLoss, of=ctc):
    """Connectionist temporal classification: sequences of labels without their places, such as text in images."""

    takes_labels = True

    def check_targets(self, y_true: np.ndarray, y_pred_shape: tuple[int | None, ...]) -> None:
        classes = y_pred_shape[-1]
        if y_true.ndim != 2 or len(y_pred_shape) != 3:
            raise ValueError(
                f"{self.name}: expected classes (n, labels) for outputs (n, steps, classes), got shapes {y_true.shape} "
                f"and {tuple(y_pred_shape)}"
            )
        if y_true.size and classes is not None and not (y_true.min() >= 0 and y_true.max() < classes):
            raise ValueError(
                f"{self.name}: expected classes from 0 (the blank) to {classes - 1}, got {y_true.min()} to "
                f"{y_true.max()}"
            )


__all__ = defined_in(globals())
