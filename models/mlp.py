"""A plain network of dense layers, the least that can be trained on images.

As a script it trains on the digits of the package: `python mlp.py [epochs]`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pydtconv import datasets, layers
from pydtconv.applications.own import own

__all__ = ["MLP"]


@own((28, 28, 1), 10)
def MLP(images: Any, hidden: Sequence[int] = (512, 512), dropout: float = 0.2) -> Any:
    """Dense layers of `hidden` units with ReLU and dropout, and a dense softmax layer.

    input_shape: (height, width, channels).  Its features are vectors: there is no pooling of them.
    """
    features: list[Any] = [layers.Flatten()]
    for units in hidden:
        features += [layers.Dense(units, activation="relu"), layers.Dropout(dropout)]
    return features, []


def main(epochs: int = 20) -> None:
    (x_train, y_train), (x_test, y_test) = datasets.digits.load_data()
    x_train = x_train[..., None].astype("float32") / 255
    x_test = x_test[..., None].astype("float32") / 255

    model = MLP(input_shape=(8, 8, 1), hidden=(128, 128))
    model.summary()
    model.compile(optimizer="rmsprop", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, batch_size=64, epochs=epochs, validation_data=(x_test, y_test))
    loss, accuracy = model.evaluate(x_test, y_test, verbose=0)
    print(f"test loss {loss:.4f}, test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
