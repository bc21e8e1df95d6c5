"""Trains small networks in mixed_bfloat16 and writes weights and losses: mixed FOLDER."""

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils

BATCH = 8


def built(normalized):
    utils.set_random_seed(7)
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(16, 3, padding="same", use_bias=not normalized)(inputs)
    x = layers.ReLU()(layers.BatchNormalization()(x) if normalized else x)
    x = layers.Conv2D(16, 3, 2, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(4, dtype="float32", activation="softmax")(x))


def main(folder):
    keras.config.set_dtype_policy("mixed_bfloat16")
    distribution.set_distribution(distribution.DataParallel())
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4 * BATCH, 8, 8, 3)), rng.integers(0, 4, 4 * BATCH)
    found = {}
    for name, normalized, samples in (("step", False, BATCH), ("steps", True, 4 * BATCH)):
        model = built(normalized)
        model.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy")
        history = model.fit(x[:samples], y[:samples], batch_size=BATCH, verbose=0, shuffle=False)
        found[f"{name} losses"] = np.array(history.history["loss"])
        found |= {f"{name} {i:02}": weight for i, weight in enumerate(model.get_weights())}
    np.savez(f"{folder}/{replica.current().rank}.npz", **found)
