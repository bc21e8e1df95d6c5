"""EfficientNets as Keras has them (M. Tan, Q. V. Le, "EfficientNet: Rethinking Model Scaling", ICML 2019, table 1)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pydtconv import initializers, layers
from pydtconv.applications.assembly import (
    batch_norm,
    before_stride,
    channel_axis,
    channels,
    dense_top,
    make_divisible,
    standard,
)
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = [f"EfficientNetB{i}" for i in range(8)] + ["decode_predictions", "preprocess_input"]

#: kernel, repeats, filters, channels inside over channels in, stride of the first
_GROUPS = (
    (3, 1, 16, 1, 1),
    (3, 2, 24, 6, 2),
    (5, 2, 40, 6, 2),
    (3, 3, 80, 6, 2),
    (5, 3, 112, 6, 1),
    (5, 4, 192, 6, 2),
    (3, 1, 320, 6, 1),
)


def initializer() -> Any:
    """That of convolutions: normal, by the number of outputs."""
    return initializers.VarianceScaling(2.0, "fan_out", "truncated_normal")


def dense_initializer() -> Any:
    return initializers.VarianceScaling(1 / 3, "fan_out", "uniform")


def conv(x: Any, filters: int, kernel: int, name: str, stride: int = 1, padding: str = "same", **options: Any) -> Any:
    options = {"use_bias": False, **options}
    return layers.Conv2D(filters, kernel, stride, padding, kernel_initializer=initializer(), name=name, **options)(x)


def swish(x: Any, name: str) -> Any:
    return layers.Activation("swish", name=f"{name}activation")(x)


def squeeze(x: Any, filters: int, name: str) -> Any:
    """x times a number for each channel, which follows from the means of all."""
    c = channels(x)
    y = layers.GlobalAveragePooling2D(name=f"{name}se_squeeze")(x)
    y = layers.Reshape((1, 1, c) if channel_axis() == 3 else (c, 1, 1), name=f"{name}se_reshape")(y)
    y = conv(y, filters, 1, f"{name}se_reduce", use_bias=True, activation="swish")
    y = conv(y, c, 1, f"{name}se_expand", use_bias=True, activation="sigmoid")
    return layers.multiply([x, y], name=f"{name}se_excite")


def beside(x: Any, shortcut: Any, drop: float, name: str) -> Any:
    """The sum with the shortcut, x being dropped for whole images now and then."""
    if drop:
        x = layers.Dropout(drop, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(x)
    return layers.add([x, shortcut], name=f"{name}add")


def _block(x: Any, kernel: int, filters: int, expansion: int, stride: int, drop: float, name: str) -> Any:
    shortcut, count = x, channels(x)
    if expansion != 1:
        x = conv(x, count * expansion, 1, f"{name}expand_conv")
        x = swish(batch_norm(x, f"{name}expand_bn"), f"{name}expand_")
    if stride == 2:
        x = layers.ZeroPadding2D(before_stride(x, kernel), name=f"{name}dwconv_pad")(x)
    padding = "valid" if stride == 2 else "same"
    x = layers.DepthwiseConv2D(
        kernel, stride, padding, use_bias=False, depthwise_initializer=initializer(), name=f"{name}dwconv"
    )(x)
    x = squeeze(swish(batch_norm(x, f"{name}bn"), name), max(1, count // 4), name)
    x = batch_norm(conv(x, filters, 1, f"{name}project_conv"), f"{name}project_bn")
    return beside(x, shortcut, drop, name) if stride == 1 and count == filters else x


def efficientnet_features(width: float, depth: float) -> Callable[[Any], Any]:
    """Groups of blocks, `width` times as wide and `depth` times as many."""

    def features(x: Any) -> Any:
        x = layers.Rescaling(1 / 255)(x)
        x = layers.Normalization(axis=channel_axis())(x)
        x = layers.ZeroPadding2D(before_stride(x, 3), name="stem_conv_pad")(x)
        x = conv(x, make_divisible(32 * width), 3, "stem_conv", 2, "valid")
        x = swish(batch_norm(x, "stem_bn"), "stem_")
        total, done = sum(math.ceil(depth * repeats) for _, repeats, *_ in _GROUPS), 0
        for group, (kernel, repeats, filters, expansion, stride) in enumerate(_GROUPS, 1):
            for i in range(math.ceil(depth * repeats)):
                name = f"block{group}{chr(ord('a') + i)}_"
                x = _block(
                    x, kernel, make_divisible(filters * width), expansion, 1 if i else stride, 0.2 * done / total, name
                )
                done += 1
        x = batch_norm(conv(x, make_divisible(1280 * width), 1, "top_conv"), "top_bn")
        return swish(x, "top_")

    return features


def _efficientnet(i: int, width: float, depth: float, size: int, dropout: float) -> Callable[..., Any]:
    return standard(
        f"EfficientNetB{i}",
        f"efficientnetb{i}",
        efficientnet_features(width, depth),
        f"EfficientNetB{i}, Keras's: it takes images of 0 to 255.",
        size=size,
        top=dense_top(dropout, make_initializer=dense_initializer),
    )


EfficientNetB0 = _efficientnet(0, 1.0, 1.0, 224, 0.2)
EfficientNetB1 = _efficientnet(1, 1.0, 1.1, 240, 0.2)
EfficientNetB2 = _efficientnet(2, 1.1, 1.2, 260, 0.3)
EfficientNetB3 = _efficientnet(3, 1.2, 1.4, 300, 0.3)
EfficientNetB4 = _efficientnet(4, 1.4, 1.8, 380, 0.4)
EfficientNetB5 = _efficientnet(5, 1.6, 2.2, 456, 0.4)
EfficientNetB6 = _efficientnet(6, 1.8, 2.6, 528, 0.5)
EfficientNetB7 = _efficientnet(7, 2.0, 3.1, 600, 0.5)
preprocess_input = preprocessing(None)
