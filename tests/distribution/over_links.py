"""Trains a small network by `fit` and writes its weights: over_links FOLDER [overlapped|blocking]; alone without."""

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils


def main(folder, mode="alone"):
    if mode != "alone":
        overlap = mode == "overlapped"
        distribution.set_distribution(distribution.DataParallel(bucket_size=0.05, overlap=overlap))
    utils.set_random_seed(3)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((26, 8, 8, 3)), rng.integers(0, 4, 26)
    inputs = keras.Input((8, 8, 3))
    hidden = layers.Conv2D(32, 3, activation="relu")(inputs)
    hidden = layers.Dense(64, activation="relu")(layers.Flatten()(hidden))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(hidden))
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), "sparse_categorical_crossentropy")
    history = model.fit(x, y, 8, 2, 0).history["loss"]
    weights = {f"weight{i}": weight for i, weight in enumerate(model.get_weights())}
    np.savez(f"{folder}/{mode}.{replica.current().rank}.npz", loss=history, **weights)
