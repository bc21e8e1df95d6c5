"""Small models and data whose steps can be followed by hand."""

import numpy as np

from pydtconv import layers, losses, models, optimizers
from pydtconv.utils import set_random_seed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(22, 4)).astype("float32")
Y = RNG.integers(0, 3, 22)


def classifier(**compiled):
    set_random_seed(5)
    model = models.Sequential([layers.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(3)])
    arguments = {"optimizer": optimizers.SGD(0.1), "loss": losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile(**arguments | compiled)
    return model


def line(**compiled):
    """y = w * x + b from w = 0, b = 0: steps can be followed by hand."""
    model = models.Sequential([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(**{"optimizer": optimizers.SGD(0.5), "loss": "mse"} | compiled)
    return model


def followed(x, y, batches, weights=None, rate=0.5, w=0.0, b=0.0):
    """w, b and the losses after plain gradient descent on the mean squared error over these batches."""
    weights = np.ones(len(x)) if weights is None else weights
    seen = []
    for batch in batches:
        error = w * x[batch] + b - y[batch]
        seen.append((weights[batch] * error**2).mean())
        slope = 2 * weights[batch] * error / len(error)
        w, b = w - rate * (slope * x[batch]).sum(), b - rate * slope.sum()
    return w, b, np.array(seen)


XS = np.linspace(-1, 1, 10)
YS = 3 * XS + 1
