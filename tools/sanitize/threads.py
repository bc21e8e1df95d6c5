"""Python threads that train and predict at once, as one after the other; threads.sh runs it under ThreadSanitizer."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import pydtconv as keras
from pydtconv import config, layers

IMAGES = np.random.default_rng(0).standard_normal((16, 16, 16, 3)).astype("float32")
LABELS = np.arange(16) % 4
STEPS = 4


def network(seed: int) -> Any:
    """Convolutions, depthwise and strided ones, normalization, pooling, attention, dropout."""
    keras.utils.set_random_seed(seed)
    x = inputs = keras.Input((16, 16, 3))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(x)))
    x = layers.Add()([x, layers.Conv2D(16, 1, activation="gelu")(layers.DepthwiseConv2D(3, padding="same")(x))])
    x = layers.MaxPooling2D()(layers.Concatenate()([x, layers.Conv2D(16, 5, padding="same")(x)]))
    x = layers.LayerNormalization()(layers.Reshape((16, 32))(layers.Conv2D(32, 3, strides=2, padding="same")(x)))
    x = layers.Dropout(0.2)(layers.Flatten()(layers.MultiHeadAttention(2, 8)(x, x)))
    model = keras.Model(inputs, layers.Dense(4, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy")
    return model


def trained(seed: int) -> list[np.ndarray]:
    """The weights after some steps."""
    model = network(seed)
    for _ in range(STEPS):
        model.train_on_batch(IMAGES, LABELS)
    weights: list[np.ndarray] = model.get_weights()
    return weights


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each returns, in a thread of its own."""
    found: list[Any] = [None] * len(calls)

    def put(index: int) -> None:
        found[index] = calls[index]()

    threads = [threading.Thread(target=put, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def main() -> int:
    alone = [trained(seed) for seed in (1, 2)]
    together = at_once([lambda: trained(1), lambda: trained(2)])
    equal = all(map(np.array_equal, itertools.chain(*alone), itertools.chain(*together)))
    model = network(3)
    sizes = (1, 5, 16)
    want = {n: model.predict_on_batch(IMAGES[:n]) for n in sizes}
    over = threading.Event()

    def set_often() -> bool:
        """Sets the number of threads, until the others are through."""
        before = config.num_threads()
        while not over.wait(1e-3):
            for threads in (1, 3, 2):
                config.set_num_threads(threads)
        config.set_num_threads(before)
        return True

    def predicts() -> bool:
        """The values of several shapes in turn."""
        found = [np.allclose(model.predict_on_batch(IMAGES[:n]), want[n], atol=1e-5) for n in sizes * 4]
        return all(found)

    def both() -> bool:
        """Requests of two threads to one model."""
        try:
            return all(at_once([predicts, predicts]))
        finally:
            over.set()

    right = all(at_once([both, set_often]))
    if not equal or not right:
        sys.exit(f"expected the values of one after the other, got others: training {equal}, prediction {right}")
    print(f"{config.num_threads()} threads: two models trained at once, one asked by two while a third sets the number")
    return 0


if __name__ == "__main__":
    sys.exit(main())
