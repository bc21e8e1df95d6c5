"""Softmax and its kin along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.custom import NumpyOp
from pydtconv.ops.functions.operands import as_operand
from pydtconv.ops.functions.shape import with_axis_last
from pydtconv.ops.softmax import LogSoftmax, Softmax

__all__ = ["log_softmax", "softmax", "sparsemax"]


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis."""
    return Softmax(axis)(as_operand(x))


def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(softmax(x))."""
    return LogSoftmax(axis)(as_operand(x))


def sparsemax(x: Any, axis: int = -1) -> Any:
    """The point of the probability simplex that is nearest to x along an axis (Martins and Astudillo, 2016)."""
    op = NumpyOp(_sparsemax_forward, _sparsemax_backward, label="sparsemax")
    return with_axis_last(op, as_operand(x), axis)


def _sparsemax_forward(x: np.ndarray) -> np.ndarray:
    """max(x - tau, 0): tau makes the k largest, those that stay positive, sum to 1."""
    ordered = np.sort(x, axis=-1)[..., ::-1]
    sums = np.cumsum(ordered, axis=-1)
    counts = np.arange(1, x.shape[-1] + 1)
    k = (1 + counts * ordered > sums).sum(-1, keepdims=True)
    tau = (np.take_along_axis(sums, k - 1, -1) - 1) / k
    return np.maximum(x - tau, 0).astype(x.dtype)


def _sparsemax_backward(dy: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """dy less its mean over the support, there."""
    support = y > 0
    mean = np.where(support, dy, 0).sum(-1, keepdims=True) / support.sum(-1, keepdims=True)
    return np.where(support, dy - mean, 0)
