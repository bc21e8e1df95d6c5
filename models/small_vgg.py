"""VGG networks (K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks", ICLR 2015, table 1).

Images below 64 pixels get dense layers of 512 units, larger ones 4096.  The functions that end in BN put a batch
normalization behind each convolution, in the place of its bias.  As a script it trains VGG16BN on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import Sequential, layers
from pydtconv.applications.blocks import SMALL, with_weights
from pydtconv.applications.script import train_on_cifar10

__all__ = ["VGG11", "VGG11BN", "VGG16BN", "VGG19BN", "SmallVGG16", "SmallVGG19"]

#: convolutions before each of the five poolings, by depth: columns A, D and E of the table
REPEATS = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
Shape = tuple[int, int, int]


def VGG11(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, dropout: float = 0.5
) -> Any:
    """Column A.  input_shape: (height, width, channels).  Returns a Sequential model, not compiled."""
    return with_weights(vgg("vgg11", 11, False, input_shape, classes, dropout), weights)


def SmallVGG16(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, dropout: float = 0.5
) -> Any:
    """Column D.  input_shape: (height, width, channels).  Returns a Sequential model, not compiled."""
    return with_weights(vgg("smallvgg16", 16, False, input_shape, classes, dropout), weights)


def SmallVGG19(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, dropout: float = 0.5
) -> Any:
    """Column E.  input_shape: (height, width, channels).  Returns a Sequential model, not compiled."""
    return with_weights(vgg("smallvgg19", 19, False, input_shape, classes, dropout), weights)


def VGG11BN(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, dropout: float = 0.5
) -> Any:
    """Column A with batch normalization.  input_shape: (height, width, channels).  Returns a Sequential model."""
    return with_weights(vgg("vgg11bn", 11, True, input_shape, classes, dropout), weights)


def VGG16BN(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, dropout: float = 0.5
) -> Any:
    """Column D with batch normalization.  input_shape: (height, width, channels).  Returns a Sequential model."""
    return with_weights(vgg("vgg16bn", 16, True, input_shape, classes, dropout), weights)


def VGG19BN(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, dropout: float = 0.5
) -> Any:
    """Column E with batch normalization.  input_shape: (height, width, channels).  Returns a Sequential model."""
    return with_weights(vgg("vgg19bn", 19, True, input_shape, classes, dropout), weights)


def vgg(name: str, depth: int, normalized: bool, input_shape: Shape, classes: int, dropout: float) -> Any:
    """depth: a key of REPEATS.  dropout: share of the dense layers' outputs, 0 for none."""
    model = Sequential([layers.Input(shape=input_shape)], name=name)
    for repeat, filters in zip(REPEATS[depth], (64, 128, 256, 512, 512), strict=True):
        for _ in range(repeat):
            model.add(
                layers.Conv2D(filters, 3, padding="same", use_bias=not normalized, kernel_initializer="he_normal")
            )
            if normalized:
                model.add(layers.BatchNormalization(momentum=0.9, epsilon=1e-5))
            model.add(layers.ReLU())
        model.add(layers.MaxPooling2D(2))
    model.add(layers.Flatten())
    for _ in range(2):
        model.add(layers.Dense(512 if input_shape[0] < SMALL else 4096, activation="relu"))
        if dropout:
            model.add(layers.Dropout(dropout))
    model.add(layers.Dense(classes, activation="softmax"))
    return model


if __name__ == "__main__":
    train_on_cifar10(VGG16BN, learning_rate=0.05)
