"""VGG networks (K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks", ICLR 2015, table 1).

Images below 64 pixels get dense layers of 512 units, larger ones 4096.  The functions that end in BN put a batch
normalization behind each convolution, in the place of its bias.  As a script it trains VGG16BN on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.blocks import SMALL
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10

__all__ = ["VGG11", "VGG11BN", "VGG16BN", "VGG19BN", "SmallVGG16", "SmallVGG19"]

#: convolutions before each of the five poolings, by depth: columns A, D and E of the table
REPEATS = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


@own((224, 224, 3))
def VGG11(images: Any, dropout: float = 0.5) -> Any:
    """Column A.  input_shape: (height, width, channels)."""
    return _vgg(images, 11, False, dropout)


@own((224, 224, 3))
def SmallVGG16(images: Any, dropout: float = 0.5) -> Any:
    """Column D.  input_shape: (height, width, channels)."""
    return _vgg(images, 16, False, dropout)


@own((224, 224, 3))
def SmallVGG19(images: Any, dropout: float = 0.5) -> Any:
    """Column E.  input_shape: (height, width, channels)."""
    return _vgg(images, 19, False, dropout)


@own((224, 224, 3))
def VGG11BN(images: Any, dropout: float = 0.5) -> Any:
    """Column A with batch normalization.  input_shape: (height, width, channels)."""
    return _vgg(images, 11, True, dropout)


@own((224, 224, 3))
def VGG16BN(images: Any, dropout: float = 0.5) -> Any:
    """Column D with batch normalization.  input_shape: (height, width, channels)."""
    return _vgg(images, 16, True, dropout)


@own((224, 224, 3))
def VGG19BN(images: Any, dropout: float = 0.5) -> Any:
    """Column E with batch normalization.  input_shape: (height, width, channels)."""
    return _vgg(images, 19, True, dropout)


def _vgg(images: Any, depth: int, normalized: bool, dropout: float) -> Any:
    """depth: a key of REPEATS.  dropout: share of the dense layers' outputs, 0 for none."""
    features: list[Any] = []
    for repeat, filters in zip(REPEATS[depth], (64, 128, 256, 512, 512), strict=True):
        for _ in range(repeat):
            features.append(
                layers.Conv2D(filters, 3, padding="same", use_bias=not normalized, kernel_initializer="he_normal")
            )
            if normalized:
                features.append(layers.BatchNormalization(momentum=0.9, epsilon=1e-5))
            features.append(layers.ReLU())
        features.append(layers.MaxPooling2D(2))
    top: list[Any] = [layers.Flatten()]
    for _ in range(2):
        top.append(layers.Dense(512 if images.shape[1] < SMALL else 4096, activation="relu"))
        top += [layers.Dropout(dropout)] if dropout else []
    return features, top


if __name__ == "__main__":
    train_on_cifar10(VGG16BN, learning_rate=0.05)
