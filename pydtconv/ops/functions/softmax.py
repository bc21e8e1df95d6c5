"""Softmax and its kin along an axis."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.ops.custom import NumpyOp
from pydtconv.ops.functions.arithmetic import exp, subtract
from pydtconv.ops.functions.operands import as_float, in_reals
from pydtconv.ops.functions.shape import with_axis_last
from pydtconv.ops.parts import exported
from pydtconv.ops.softmax import LogSoftmax, Softmax

__all__ = exported(nn="log_softmax softmax sparsemax")


def softmax(x: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis, or along several together; None: along all."""
    x, axes = as_float(x), _axes(axis)
    if not isinstance(axes, int):
        return _softmax_along(x, axes)
    y = Softmax(axes)(x)
    if y.shape[axes] == 1:
        told = f"axis {axes} of shape {tuple(y.shape)} has the extent 1: softmax is 1 everywhere, sigmoid is not"
        warnings.warn(told, stacklevel=3)
    return y


def log_softmax(x: Any, axis: int | Sequence[int] | None = -1) -> Any:
    """log(softmax(x))."""
    x, axes = as_float(x), _axes(axis)
    return LogSoftmax(axes)(x) if isinstance(axes, int) else _less_sum(x, axes)


def _axes(axis: int | Sequence[int] | None) -> int | tuple[int, ...] | None:
    if axis is None or isinstance(axis, int):
        return axis
    return tuple(axis) if len(axis) != 1 else axis[0]


@in_reals
def _softmax_along(x: Any, axes: tuple[int, ...] | None) -> Any:
    return exp(_less_sum(x, axes))


@in_reals
def _less_sum(x: Any, axes: tuple[int, ...] | None) -> Any:
    from pydtconv.ops.functions.tables.composed_reductions import logsumexp  # which is made of functions of many files

    return subtract(x, logsumexp(x, axis=axes, keepdims=True))


def sparsemax(x: Any, axis: int = -1) -> Any:
    """The point of the probability simplex that is nearest to x along an axis (Martins and Astudillo, 2016)."""
    op = NumpyOp(_sparsemax_forward, _sparsemax_backward, label="sparsemax")
    return with_axis_last(op, as_float(x), axis)


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
