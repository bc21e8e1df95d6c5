"""Trains on a folder of images and on shares of a rank's own: folder IMAGES OUTPUT."""

import numpy as np

import pydtconv as keras
from pydtconv import distribution, layers, replica, utils
from pydtconv.files import image_decoding

read = []
decoded = image_decoding.Decoder.__call__


def counted(self, path, out):
    read.append(path)
    return decoded(self, path, out)


image_decoding.Decoder.__call__ = counted


def model():
    inputs = keras.Input((8, 8, 3))
    x = layers.Flatten()(layers.Rescaling(1 / 255)(inputs))
    found = keras.Model(inputs, layers.Dense(2, activation="softmax")(x))
    found.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return found


def from_folder(images):
    utils.set_random_seed(4)
    options = {"image_size": (8, 8), "batch_size": 5, "verbose": False, "on_error": "skip"}
    data = utils.image_dataset_from_directory(images, **options)
    network = model()
    read.clear()
    history = network.fit(data, epochs=2, verbose=0).history
    return {"folder": network.get_weights()[0], "loss": history["loss"], "read": len(read)}


def from_shares():
    """Each rank gives batches of its own, and not equally many: together they are those of one rank."""
    utils.set_random_seed(4)
    here = replica.current()
    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=(n, 8, 8, 3)), rng.integers(0, 2, n)) for n in (4, 6, 2)]
    if here.size > 1:
        *shared, last = batches
        batches = [(x[here.rank :: here.size], y[here.rank :: here.size]) for x, y in shared]
        batches += [last] * (here.rank == 0)
    network = model()
    network.fit(iter(batches), epochs=1, verbose=0)
    return {"shares": network.get_weights()[0]}


def main(images, output):
    distribution.set_distribution(distribution.DataParallel())
    found = from_folder(images)
    distribution.set_distribution(distribution.DataParallel(auto_shard_dataset=False))
    np.savez(f"{output}.{replica.current().rank}.npz", **found, **from_shares())
