"""AlexNet in one column (A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014).

Without response normalization.  Images below 64 pixels get a first convolution of 5x5 without stride and dense layers
of 512 units.  As a script it trains on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.blocks import SMALL
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10

__all__ = ["AlexNet"]


@own((224, 224, 3))
def AlexNet(images: Any, dropout: float = 0.5) -> Any:
    """Five convolutions and three dense layers.  input_shape: (height, width, channels), at least 15x15."""
    small = images.shape[1] < SMALL
    first = [_conv(64, 5)] if small else [layers.ZeroPadding2D(2), _conv(64, 11, strides=4, padding="valid")]
    features = [*first, layers.MaxPooling2D(3, strides=2), _conv(192, 5), layers.MaxPooling2D(3, strides=2)]
    features += [_conv(filters, 3) for filters in (384, 256, 256)]
    features.append(layers.MaxPooling2D(3, strides=2))
    top: list[Any] = [layers.Flatten()]
    for _ in range(2):
        top += [layers.Dropout(dropout)] if dropout else []
        top.append(layers.Dense(512 if small else 4096, activation="relu"))
    return features, top


def _conv(filters: int, size: int, strides: int = 1, padding: str = "same") -> Any:
    return layers.Conv2D(filters, size, strides, padding, activation="relu", kernel_initializer="he_normal")


if __name__ == "__main__":
    train_on_cifar10(AlexNet, learning_rate=0.01)
