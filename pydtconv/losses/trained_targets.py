"""Losses whose targets are trained, too, such as the distance of two embeddings or what a teacher that learns says.

The operators of losses take targets as given and have no gradient by them; here the same values are written in
operators that have.  `trains` tells where that is needed: other losses stay one operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir import tracing


def trains(y_true: Any) -> bool:
    """Whether targets follow from a trainable variable, or from an array that a `GradientTape` watches."""
    recording: Any = tracing.current()
    if not getattr(recording, "records", False):
        recording = None
    elif id(y_true) in recording.watched:
        return True
    rest, seen = [y_true], set()
    while rest:
        tensor = rest.pop()
        if id(tensor) in seen or not hasattr(tensor, "apply_op"):
            continue
        seen.add(id(tensor))
        variable = tensor if hasattr(tensor, "trainable") else getattr(tensor, "variable", None)
        if variable is not None:
            if variable.trainable:
                return True
            continue
        node = getattr(tensor, "node", None)
        if node is None:
            if recording is not None and recording.watches(tensor):
                return True
            continue
        excluded = (*node.op.updates, *node.op.nondifferentiable)
        rest.extend(x for i, x in enumerate(node.inputs) if i not in excluded)
    return False


def _tensors(*operands: Any) -> Any:
    """Operands that a recording sees, where they are arrays."""
    recording: Any = tracing.current()
    return [
        recording.fed(x) if isinstance(x, np.ndarray) and getattr(recording, "records", False) else x for x in operands
    ]


def elementwise(kind: str, t: Any, p: Any, delta: float, epsilon: float) -> Any:
    """The values of `ops.ElementwiseLoss` on the last axis, for the kinds in KINDS."""
    t, p = _tensors(t, p)
    if kind == "kl_divergence":
        t, p = ops.clip(t, epsilon, 1.0), ops.clip(p, epsilon, 1.0)
        return ops.sum(t * ops.log(t / p), axis=-1)
    if kind == "huber":
        size = ops.abs(p - t)
        values = ops.where(size <= delta, 0.5 * ops.square(size), delta * size - 0.5 * delta * delta)
    else:
        values = KINDS[kind](t, p, epsilon)
    return ops.mean(values, axis=-1)


def _logcosh(t: Any, p: Any, epsilon: float) -> Any:
    return (p - t) + ops.softplus(-2.0 * (p - t)) - math.log(2.0)


def _msle(t: Any, p: Any, epsilon: float) -> Any:
    return ops.square(ops.log(ops.maximum(p, epsilon) + 1.0) - ops.log(ops.maximum(t, epsilon) + 1.0))


def _hinge(t: Any, p: Any, epsilon: float) -> Any:
    only_labels = ops.all(ops.logical_or(ops.equal(t, 0.0), ops.equal(t, 1.0)))
    return ops.relu(1.0 - ops.where(only_labels, 2.0 * t - 1.0, t) * p)


KINDS: dict[str, Callable[[Any, Any, float], Any]] = {
    "mse": lambda t, p, _: ops.square(p - t),
    "mae": lambda t, p, _: ops.abs(p - t),
    "mape": lambda t, p, epsilon: 100.0 * ops.abs((p - t) / ops.maximum(ops.abs(t), epsilon)),
    "msle": _msle,
    "huber": lambda t, p, _: t,
    "logcosh": _logcosh,
    "poisson": lambda t, p, epsilon: p - t * ops.log(p + epsilon),
    "kl_divergence": lambda t, p, _: t,
    "hinge": _hinge,
    "squared_hinge": lambda t, p, epsilon: ops.square(_hinge(t, p, epsilon)),
}


def categorical(t: Any, p: Any, from_logits: bool, smoothing: float, axis: int, epsilon: float) -> Any:
    """The values of `ops.CrossEntropy` of kind "categorical"."""
    t, p = _tensors(t, p)
    if smoothing:
        t = t * (1.0 - smoothing) + smoothing / p.shape[axis]
    if from_logits:
        logs = ops.log_softmax(p, axis=axis)
    else:
        logs = ops.log(ops.clip(p / ops.sum(p, axis=axis, keepdims=True), epsilon, 1.0 - epsilon))
    return -ops.sum(t * logs, axis=axis)


def binary(t: Any, p: Any, from_logits: bool, smoothing: float, axis: int, epsilon: float) -> Any:
    """The values of `ops.CrossEntropy` of kind "binary"."""
    t, p = _tensors(t, p)
    if smoothing:
        t = t * (1.0 - smoothing) + 0.5 * smoothing
    if from_logits:
        values = ops.softplus(p) - t * p
    else:
        p = ops.clip(p, epsilon, 1.0 - epsilon)
        values = -(t * ops.log(p) + (1.0 - t) * ops.log(1.0 - p))
    return ops.mean(values, axis=axis)
