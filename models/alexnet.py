"""AlexNet in one column (A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014).

Without response normalization.  Images below 64 pixels get a first convolution of 5x5 without stride and dense layers
of 512 units.  As a script it trains on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import Sequential, layers
from pydtconv.applications.blocks import SMALL, with_weights
from pydtconv.applications.script import train_on_cifar10

__all__ = ["AlexNet"]


def AlexNet(
    input_shape: tuple[int, int, int] = (224, 224, 3),
    classes: int = 1000,
    weights: str | None = None,
    dropout: float = 0.5,
) -> Any:
    """Five convolutions and three dense layers.

    input_shape: (height, width, channels), at least 15x15.  Returns a Sequential model, not compiled.
    """
    small = input_shape[0] < SMALL
    model = Sequential([layers.Input(shape=input_shape)], name="alexnet")
    if small:
        model.add(_conv(64, 5))
    else:
        model.add(layers.ZeroPadding2D(2))
        model.add(_conv(64, 11, strides=4, padding="valid"))
    model.add(layers.MaxPooling2D(3, strides=2))
    model.add(_conv(192, 5))
    model.add(layers.MaxPooling2D(3, strides=2))
    for filters in (384, 256, 256):
        model.add(_conv(filters, 3))
    model.add(layers.MaxPooling2D(3, strides=2))
    model.add(layers.Flatten())
    for _ in range(2):
        if dropout:
            model.add(layers.Dropout(dropout))
        model.add(layers.Dense(512 if small else 4096, activation="relu"))
    model.add(layers.Dense(classes, activation="softmax"))
    return with_weights(model, weights)


def _conv(filters: int, size: int, strides: int = 1, padding: str = "same") -> Any:
    return layers.Conv2D(filters, size, strides, padding, activation="relu", kernel_initializer="he_normal")


if __name__ == "__main__":
    train_on_cifar10(AlexNet, learning_rate=0.01)
