"""What a step of one's own cannot do on several ranks is an error on each of them, before a rank waits for another."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import distribution, ops


class Model(keras.Model):
    def __init__(self, step):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.seen = keras.Variable(0.0, trainable=False, name="seen")
        self.step = step

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        with keras.GradientTape() as tape:
            loss = ops.mean(ops.square(self(data[0])))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return self.step(self, data[0], loss)


def asks(model, x, loss):
    return {"loss": loss if float(loss) > 1 else -loss}


def assigns(model, x, loss):
    model.seen.assign(ops.max(x))
    return {"loss": loss}


def by_samples(model, x, loss):
    for _ in range(x.shape[0]):
        model.seen.assign_add(1.0)
    return {"loss": loss}


def whole(model, x, loss):
    return {"loss": loss, "samples": ops.mean(ops.sum(x, axis=1))}


def trained(step, **options):
    model = Model(step)
    model.compile("sgd", **options)
    rng = np.random.default_rng(3)
    return model.fit(iter([(rng.normal(size=(3, 4)), {"unused": np.zeros((3, 2))})] * 2), verbose=0, epochs=1)


def main():
    distribution.set_distribution(distribution.DataParallel())
    with pytest.raises(NotImplementedError, match="a step that runs from a plan where several processes share a batch"):
        trained(asks)
    with pytest.raises(ValueError, match=r"'seen' is assigned other values on other ranks.*expected an aggregation"):
        trained(assigns)
    with pytest.raises(RuntimeError, match="the same gradients, updates and assignments on all ranks, got others on r"):
        trained(by_samples)
    with pytest.raises(NotImplementedError, match="run_eagerly expects one process, got 2"):
        trained(whole, run_eagerly=True)
    x = np.random.default_rng(3).normal(size=(3, 4)).astype("float32")
    np.testing.assert_allclose(trained(whole).history["samples"], [x.sum(1).mean()], rtol=1e-5)
