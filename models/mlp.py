"""A plain network of dense layers, the least that can be trained on images.

As a script it trains on the digits of the package: `python mlp.py [epochs]`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from pydtconv import Sequential, datasets, layers
from pydtconv.applications.blocks import with_weights

__all__ = ["MLP"]


def MLP(
    input_shape: tuple[int, int, int] = (28, 28, 1),
    classes: int = 10,
    weights: str | None = None,
    hidden: Sequence[int] = (512, 512),
    dropout: float = 0.2,
) -> Any:
    """Dense layers of `hidden` units with ReLU and dropout, and a dense softmax layer.

    input_shape: (height, width, channels).  Returns a Sequential model, not compiled.
    """
    model = Sequential([layers.Input(shape=input_shape), layers.Flatten()], name="mlp")
    for units in hidden:
        model.add(layers.Dense(units, activation="relu"))
        model.add(layers.Dropout(dropout))
    model.add(layers.Dense(classes, activation="softmax"))
    return with_weights(model, weights)


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
