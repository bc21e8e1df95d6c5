"""Xception as Keras has it (F. Chollet, "Xception: Depthwise Separable Convolutions", CVPR 2017, figure 5)."""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import batch_norm, standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["Xception", "decode_predictions", "preprocess_input"]


def _relu(x: Any, name: str) -> Any:
    return layers.Activation("relu", name=f"{name}_act")(x)


def _separable(x: Any, filters: int, name: str) -> Any:
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
    return batch_norm(x, f"{name}_bn")


def _entry(x: Any, block: int, first: int, second: int) -> Any:
    """Two separable convolutions and a pooling, beside a 1x1 convolution of stride 2."""
    shortcut = layers.Conv2D(second, 1, strides=2, padding="same", use_bias=False)(x)
    shortcut = batch_norm(shortcut)
    name = f"block{block}_sepconv"
    x = x if block == 2 else _relu(x, f"{name}1")
    x = _separable(_relu(_separable(x, first, f"{name}1"), f"{name}2"), second, f"{name}2")
    x = layers.MaxPooling2D(3, strides=2, padding="same", name=f"block{block}_pool")(x)
    return layers.add([x, shortcut])


def _features(x: Any) -> Any:
    for i, (filters, stride) in enumerate(((32, 2), (64, 1)), 1):
        name = f"block1_conv{i}"
        x = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=name)(x)
        x = _relu(batch_norm(x, f"{name}_bn"), name)
    for block, filters in ((2, 128), (3, 256), (4, 728)):
        x = _entry(x, block, filters, filters)
    for block in range(5, 13):
        shortcut = x
        for i in range(1, 4):
            name = f"block{block}_sepconv{i}"
            x = _separable(_relu(x, name), 728, name)
        x = layers.add([x, shortcut])
    x = _entry(x, 13, 728, 1024)
    for i, filters in enumerate((1536, 2048), 1):
        name = f"block14_sepconv{i}"
        x = _relu(_separable(x, filters, name), name)
    return x


Xception = standard("Xception", "xception", _features, "Xception, Keras's.", size=299, least=71, pools=(None, None))
preprocess_input = preprocessing("tf")
