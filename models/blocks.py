"""Pieces that several families share.  Batch normalization with momentum 0.9 and epsilon 1e-5, as in the papers.

Windows with a stride are padded alike on all sides, as in the papers' own networks ("same" would put the odd pixel
below and to the right); the plan makes such a padding part of the convolution.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers, ops

#: images with fewer rows get the stems and classifiers for CIFAR
SMALL = 64


def batch_norm(x: Any) -> Any:
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def conv(x: Any, filters: int, size: int, stride: int = 1, use_bias: bool = False) -> Any:
    """A convolution of odd size, whose output has 1 / stride of the rows and columns, rounded up."""
    padding = "same"
    if stride > 1 and size > 1:
        x, padding = layers.ZeroPadding2D(size // 2)(x), "valid"
    return layers.Conv2D(
        filters, size, strides=stride, padding=padding, use_bias=use_bias, kernel_initializer="he_normal"
    )(x)


def conv_bn_relu(x: Any, filters: int, size: int, stride: int = 1) -> Any:
    return layers.ReLU()(batch_norm(conv(x, filters, size, stride)))


def max_pool(x: Any) -> Any:
    """3x3 with stride 2; the padding of one pixel on each side never is the maximum."""
    return ops.max_pool(x, 3, 2, ((1, 1), (1, 1)), "channels_last")


def stem(x: Any, small_filters: int = 64) -> Any:
    """3x3 with `small_filters` for images below 64 pixels; else 7x7 with stride 2, 64 filters, and a max-pooling."""
    if x.shape[1] < SMALL:
        return conv_bn_relu(x, small_filters, 3)
    return max_pool(conv_bn_relu(x, 64, 7, 2))
