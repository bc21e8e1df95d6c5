"""Plain float64 formulas of activations and arithmetic."""

import math

import numpy as np

erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "elu": lambda x: elu(x, 1.0),
    "exponential": np.exp,
    "softplus": softplus,
    "clip": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
    "affine": lambda x: x,
    "relu_general": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "silu": lambda x: x * sigmoid(x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hard_silu": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "log_sigmoid": lambda x: -softplus(-x),
    "threshold": lambda x: np.where(x > 0, x, 0),
    "tanh_shrink": lambda x: x - np.tanh(x),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x < 1, 0.25 * (x + 1) ** 2, x)),
    "abs": np.abs,
    "square": np.square,
    "log": np.log,
    "power": lambda x: x,
    "sign": np.sign,
}

#: slopes of what may follow a normalization
SLOPES = {
    "linear": np.ones_like,
    "relu": lambda x: x > 0,
    "relu6": lambda x: (x > 0) & (x < 6),
    "silu": lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),
    "hard_silu": lambda x: np.where(x < -3, 0, np.where(x > 3, 1, (2 * x + 3) / 6)),
}
