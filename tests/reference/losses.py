"""Losses in plain NumPy, as Keras 3 defines them."""

import numpy as np

from tests.reference.softmax import log_softmax


def one_hot(labels, classes, axis=-1):
    return np.moveaxis(np.eye(classes)[labels.astype(int)], -1, axis)


def categorical(y_pred, t, from_logits, axis=-1, epsilon=1e-7):
    if from_logits:
        return -(t * log_softmax(y_pred, axis)).sum(axis)
    q = np.clip(y_pred / y_pred.sum(axis, keepdims=True), epsilon, 1 - epsilon)
    return -(t * np.log(q)).sum(axis)


def binary(y_pred, t, from_logits, axis=-1, epsilon=1e-7):
    if from_logits:
        return (np.logaddexp(0, y_pred) - t * y_pred).mean(axis)
    q = np.clip(y_pred, epsilon, 1 - epsilon)
    return -(t * np.log(q) + (1 - t) * np.log(1 - q)).mean(axis)


def huber(e, delta):
    return np.where(np.abs(e) <= delta, e**2 / 2, delta * np.abs(e) - delta**2 / 2)


def signs(t):
    return 2 * t - 1 if np.isin(t, (0, 1)).all() else t


EPSILON = 1e-7
ELEMENTWISE = {
    "mse": lambda x, t, delta: ((x - t) ** 2).mean(-1),
    "mae": lambda x, t, delta: np.abs(x - t).mean(-1),
    "mape": lambda x, t, delta: 100 * (np.abs(x - t) / np.maximum(np.abs(t), EPSILON)).mean(-1),
    "msle": lambda x, t, delta: ((np.log(np.maximum(x, EPSILON) + 1) - np.log(np.maximum(t, EPSILON) + 1)) ** 2).mean(
        -1
    ),
    "huber": lambda x, t, delta: huber(x - t, delta).mean(-1),
    "logcosh": lambda x, t, delta: np.log(np.cosh(x - t)).mean(-1),
    "hinge": lambda x, t, delta: np.maximum(1 - signs(t) * x, 0).mean(-1),
    "squared_hinge": lambda x, t, delta: (np.maximum(1 - signs(t) * x, 0) ** 2).mean(-1),
    "poisson": lambda x, t, delta: (x - t * np.log(x + EPSILON)).mean(-1),
    "kl_divergence": lambda x, t, delta: (
        np.clip(t, EPSILON, 1) * np.log(np.clip(t, EPSILON, 1) / np.clip(x, EPSILON, 1))
    ).sum(-1),
}
