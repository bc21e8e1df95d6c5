"""Trains with tuning at first use on all ranks; writes the algorithms that each took: tuned FOLDER."""

import json
from pathlib import Path

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica


def main(folder):
    distribution.initialize()
    distribution.set_distribution(distribution.DataParallel())
    inputs = keras.Input((8, 8, 3))
    x = layers.Conv2D(8, 3, padding="same")(layers.Conv2D(8, 3, padding="same", activation="relu")(inputs))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(layers.GlobalAveragePooling2D()(x)))
    model.compile("sgd", "sparse_categorical_crossentropy")
    images = np.random.default_rng(0).normal(size=(16, 8, 8, 3)).astype("float32")
    model.fit(images, np.arange(16) % 4, batch_size=8, verbose=0)
    taken = {node.name: algorithms for node, algorithms in model.plan(4).algorithms.items()}
    (Path(folder) / f"{replica.current().rank}.json").write_text(json.dumps(taken))
