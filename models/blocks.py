"""Pieces that several families share.  Batch normalization with momentum 0.9 and epsilon 1e-5, as in the papers."""

from __future__ import annotations

from typing import Any

from pydtconv import layers


def batch_norm(x: Any) -> Any:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def conv(x: Any, filters: int, size: int, stride: int = 1) -> Any:
    """A convolution without bias, whose output has 1 / stride of the rows and columns, rounded up."""
    return layers.Conv2D(filters, size, strides=stride, padding="same", use_bias=False, kernel_initializer="he_normal")(
        x
    )


def conv_bn_relu(x: Any, filters: int, size: int, stride: int = 1) -> Any:
    return layers.ReLU()(batch_norm(conv(x, filters, size, stride)))


def max_pool(x: Any) -> Any:
    """3x3 with stride 2."""
    return layers.MaxPooling2D(3, strides=2, padding="same")(x)


def stem(x: Any, small_filters: int = 64) -> Any:
    """3x3 with `small_filters` for images below 64 pixels; else 7x7 with stride 2, 64 filters, and a max-pooling."""
    if x.shape[1] < 64:
        return conv_bn_relu(x, small_filters, 3)
    return max_pool(conv_bn_relu(x, 64, 7, 2))


def classifier(x: Any, classes: int) -> Any:
    """The mean of each feature map and a dense softmax layer."""
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(classes, activation="softmax")(x)
