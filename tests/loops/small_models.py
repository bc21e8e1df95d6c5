"""Small models and data that the tests of loops share."""

import numpy as np

import pydtconv as keras
from pydtconv import GradientTape, layers

X = np.random.default_rng(0).random((4, 3)).astype("float32")


def dense():
    layer = layers.Dense(1, kernel_initializer="ones", use_bias=False)
    layer.build((None, 3))
    return layer


def model_of(kind, rate=0.1):
    inputs = keras.Input((3,))
    model = kind(inputs, layers.Dense(1)(inputs))
    model.compile(keras.optimizers.SGD(rate), "mse")
    return model


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(keras.config.floatx())


def small_model(*more):
    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(3, 3, padding="same", activation="tanh"),
            *more,
            layers.Flatten(),
            layers.Dense(2),
        ]
    )


RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.random((40, 6, 6, 2)).astype("float32"), RNG.integers(0, 3, 40)


class Own(keras.Model):
    """Keras's documented step; `traces` counts the runs of the Python code."""

    traces = 0

    def train_step(self, data):
        type(self).traces += 1
        x, y = data
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def network(kind, **options):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, kernel_regularizer="l2", activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.ActivityRegularization(l2=0.01)(x)
    model = kind(inputs, layers.Dense(3)(layers.Flatten()(x)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], **options)
    return model


def trained(model):
    keras.utils.set_random_seed(1)
    return model.fit(IMAGES, LABELS, epochs=2, batch_size=16, validation_data=(IMAGES, LABELS), verbose=0).history
