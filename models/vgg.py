"""VGG networks (K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks", ICLR 2015, table 1).

Images below 64 pixels get dense layers of 512 units, larger ones 4096.  As a script it trains VGG16 on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import Sequential, layers
from pydtconv.applications.script import train_on_cifar10

__all__ = ["VGG11", "VGG16", "VGG19"]


def VGG11(input_shape: tuple[int, int, int] = (224, 224, 3), classes: int = 1000) -> Any:
    """Column A.  input_shape: (height, width, channels).  Returns a Sequential model, not compiled."""
    return _vgg("vgg11", (1, 1, 2, 2, 2), input_shape, classes)


def VGG16(input_shape: tuple[int, int, int] = (224, 224, 3), classes: int = 1000) -> Any:
    """Column D.  input_shape: (height, width, channels).  Returns a Sequential model, not compiled."""
    return _vgg("vgg16", (2, 2, 3, 3, 3), input_shape, classes)


def VGG19(input_shape: tuple[int, int, int] = (224, 224, 3), classes: int = 1000) -> Any:
    """Column E.  input_shape: (height, width, channels).  Returns a Sequential model, not compiled."""
    return _vgg("vgg19", (2, 2, 4, 4, 4), input_shape, classes)


def _vgg(name: str, repeats: tuple[int, ...], input_shape: tuple[int, int, int], classes: int) -> Any:
    model = Sequential([layers.Input(shape=input_shape)], name=name)
    for repeat, filters in zip(repeats, (64, 128, 256, 512, 512), strict=True):
        for _ in range(repeat):
            model.add(layers.Conv2D(filters, 3, padding="same", activation="relu", kernel_initializer="he_normal"))
        model.add(layers.MaxPooling2D(2))
    model.add(layers.Flatten())
    for _ in range(2):
        model.add(layers.Dense(512 if input_shape[0] < 64 else 4096, activation="relu"))
        model.add(layers.Dropout(0.5))
    model.add(layers.Dense(classes, activation="softmax"))
    return model


if __name__ == "__main__":
    train_on_cifar10(VGG16, learning_rate=0.01)
