"""Losses of samples, written as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import ops
from pydtconv.loops.rules.pulling import RULES, composed


def _cross_entropy(op: Any, prediction: Any, truth: Any) -> Any:
    axis = op.axis % len(prediction.shape)
    if op.kind == "binary":
        return ops.mean(_binary(op, prediction, truth), axis=axis)
    if op.from_logits:
        logarithm = ops.log_softmax(prediction, axis=axis)
    else:
        shares = prediction / ops.sum(prediction, axis=axis, keepdims=True)
        logarithm = ops.log(ops.clip(shares, op.epsilon, 1.0 - op.epsilon))
    if op.kind != "sparse":
        k = prediction.shape[axis]
        truth = truth * (1.0 - op.label_smoothing) + op.label_smoothing / k if op.label_smoothing else truth
        return -ops.sum(truth * logarithm, axis=axis)
    labels = ops.cast(truth, "int32")
    if len(labels.shape) == len(prediction.shape):
        labels = ops.squeeze(labels, axis=axis)
    counted = ops.not_equal(labels, -1 if op.ignore_class is None else op.ignore_class)
    hot = ops.one_hot(ops.where(counted, labels, 0), prediction.shape[axis], axis=axis, dtype=prediction.dtype)
    return ops.where(counted, -ops.sum(hot * logarithm, axis=axis), 0.0)


def _binary(op: Any, prediction: Any, truth: Any) -> Any:
    t = truth * (1.0 - op.label_smoothing) + op.label_smoothing / 2 if op.label_smoothing else truth
    if op.from_logits:
        return ops.softplus(prediction) - t * prediction
    q = ops.clip(prediction, op.epsilon, 1.0 - op.epsilon)
    return -(t * ops.log(q) + (1.0 - t) * ops.log(1.0 - q))


def _hinged(prediction: Any, truth: Any) -> Any:
    binary = ops.all(ops.logical_or(ops.equal(truth, 0.0), ops.equal(truth, 1.0)))
    return ops.maximum(1.0 - ops.where(binary, 2.0 * truth - 1.0, truth) * prediction, 0.0)


def _huber(e: Any, delta: float) -> Any:
    size = ops.abs(e)
    return ops.where(size > delta, delta * size - 0.5 * delta * delta, 0.5 * ops.square(e))


def _elementwise(op: Any, p: Any, t: Any) -> Any:
    least = op.epsilon
    e = p - t
    losses: dict[str, Callable[[], Any]] = {
        "mse": lambda: ops.square(e),
        "mae": lambda: ops.abs(e),
        "mape": lambda: 100.0 * ops.abs(e) / ops.maximum(ops.abs(t), least),
        "msle": lambda: ops.square(ops.log(ops.maximum(p, least) + 1.0) - ops.log(ops.maximum(t, least) + 1.0)),
        "huber": lambda: _huber(e, op.delta),
        "logcosh": lambda: e + ops.softplus(-2.0 * e) - ops.log(2.0),
        "hinge": lambda: _hinged(p, t),
        "squared_hinge": lambda: ops.square(_hinged(p, t)),
        "poisson": lambda: p - t * ops.log(p + least),
        "kl_divergence": lambda: (c := ops.clip(t, least, 1.0)) * (ops.log(c) - ops.log(ops.clip(p, least, 1.0))),
    }
    found = losses[op.kind]()
    return ops.sum(found, axis=op.axis) if op.kind == "kl_divergence" else ops.mean(found, axis=op.axis)


RULES.update({"CrossEntropy": composed(_cross_entropy), "ElementwiseLoss": composed(_elementwise)})
