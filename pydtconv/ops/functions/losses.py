"""Cross-entropies of each sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.cross_entropy import CrossEntropy
from pydtconv.ops.functions.operands import as_operand, of_one_dtype
from pydtconv.ops.parts import exported

__all__ = exported(nn="categorical_crossentropy sparse_categorical_crossentropy")


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """-sum(target * log(output)) along an axis; see `CrossEntropy`."""
    return CrossEntropy("categorical", from_logits, axis=axis, epsilon=config.epsilon())(*of_one_dtype(output, target))


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """-log(output[target]) along an axis, for integer targets; see `CrossEntropy`."""
    labels = target if hasattr(target, "apply_op") else np.asarray(target)
    if isinstance(labels, np.ndarray) and labels.dtype.name not in ("int32", "int64", "float32", "float64"):
        labels = labels.astype("int64")
    return CrossEntropy("sparse", from_logits, axis=axis, epsilon=config.epsilon())(as_operand(output), labels)
