"""Trains one network on digits with each way of reducing; writes weights and accuracy.

usage: options FOLDER [EPOCHS WAY ...]   all ways without
"""

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils
from pydtconv.datasets import digits

WAYS = {
    "plain": {},
    "again": {},
    "blocking": {"overlap": False},
    "sent": {"shared_memory": False},
    "sent_again": {"shared_memory": False},
    "sent_blocking": {"shared_memory": False, "overlap": False},
    "bfloat16": {"wire": "bfloat16"},
    "bfloat16_again": {"wire": "bfloat16"},
    "bfloat16_blocking": {"wire": "bfloat16", "overlap": False},
    "tuned": {"bucket_size": "tune"},
}


def trained(options, epochs):
    distribution.set_distribution(distribution.DataParallel(**{"bucket_size": 0.01} | options))
    utils.set_random_seed(3)
    (x, y), (x_test, y_test) = digits.load_data()
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.Dropout(0.2),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.003), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x[..., None] / 255, y, 50, epochs, 0)
    accuracy = model.evaluate(x_test[..., None] / 255, y_test, verbose=0)[1]
    return {"accuracy": accuracy, **{f"weight{i}": weight for i, weight in enumerate(model.get_weights())}}


def main(folder, epochs=5, *ways):
    distribution.initialize()
    for way in ways or WAYS:
        found = trained(WAYS[way], int(epochs))
        np.savez(f"{folder}/{way}.{replica.current().rank}.npz", **found)
