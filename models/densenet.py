"""DenseNets as Keras has them (G. Huang et al., "Densely Connected Convolutional Networks", CVPR 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import channel_axis, channels, standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing
from pydtconv.applications.resnet import bn, bn_relu

__all__ = ["DenseNet121", "DenseNet169", "DenseNet201", "decode_predictions", "preprocess_input"]

_GROWTH = 32


def densenet_features(repeats: tuple[int, ...]) -> Callable[[Any], Any]:
    """Four dense blocks of so many layers, with transitions that halve the channels between them."""

    def features(x: Any) -> Any:
        x = layers.ZeroPadding2D(3)(x)
        x = bn_relu(layers.Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x), "conv1")
        x = layers.MaxPooling2D(3, strides=2, name="pool1")(layers.ZeroPadding2D(1)(x))
        for stage, repeat in enumerate(repeats, 2):
            for i in range(1, repeat + 1):
                x = _layer(x, f"conv{stage}_block{i}")
            if stage < 5:
                name = f"pool{stage}"
                x = bn_relu(x, name)
                x = layers.Conv2D(channels(x) // 2, 1, use_bias=False, name=f"{name}_conv")(x)
                x = layers.AveragePooling2D(2, strides=2, name=f"{name}_pool")(x)
        return layers.Activation("relu", name="relu")(bn(x, "bn"))

    return features


def _layer(x: Any, name: str) -> Any:
    y = layers.Conv2D(4 * _GROWTH, 1, use_bias=False, name=f"{name}_1_conv")(bn_relu(x, f"{name}_0"))
    y = layers.Conv2D(_GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(bn_relu(y, f"{name}_1"))
    return layers.Concatenate(axis=channel_axis(), name=f"{name}_concat")([x, y])


DenseNet121 = standard("DenseNet121", "densenet121", densenet_features((6, 12, 24, 16)), "DenseNet121, Keras's.")
DenseNet169 = standard("DenseNet169", "densenet169", densenet_features((6, 12, 32, 32)), "DenseNet169, Keras's.")
DenseNet201 = standard("DenseNet201", "densenet201", densenet_features((6, 12, 48, 32)), "DenseNet201, Keras's.")
preprocess_input = preprocessing("torch")
