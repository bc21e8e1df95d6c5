"""Normalizations in plain NumPy."""

import numpy as np

from tests.reference import elementwise

ACTIVATIONS = {
    "silu": lambda z, alpha: elementwise.ACTIVATIONS["silu"](z),
    "hard_silu": lambda z, alpha: elementwise.ACTIVATIONS["hard_silu"](z),
    None: lambda v, alpha: v,
    "relu": lambda v, alpha: np.maximum(v, 0),
    "relu6": lambda v, alpha: np.clip(v, 0, 6),
    "leaky_relu": lambda v, alpha: np.where(v < 0, alpha * v, v),
    "sigmoid": lambda v, alpha: 1 / (1 + np.exp(-v)),
    "tanh": lambda v, alpha: np.tanh(v),
}


def batch_norm(x, gamma, beta, mean, variance, epsilon=1e-3, activation=None, alpha=0.0):
    """act(gamma * (x - mean) / sqrt(variance + epsilon) + beta) over the last axis."""
    return ACTIVATIONS[activation]((x - mean) / np.sqrt(variance + epsilon) * gamma + beta, alpha)


def moments(x):
    """Mean and biased variance over everything but the last axis."""
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    return mean, ((x - mean) ** 2).mean(axes)


def layer_norm(x, gamma, beta, axes, epsilon=1e-3):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta with the moments over `axes`, which are the last ones."""
    mean = x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta
