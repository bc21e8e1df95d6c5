"""VGG16 as Keras has it (K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks", ICLR 2015, column D)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["VGG16", "decode_predictions", "preprocess_input"]


def vgg_features(repeats: tuple[int, ...]) -> Callable[[Any], Any]:
    """Five blocks of so many convolutions and a pooling."""

    def features(x: Any) -> Any:
        for block, (repeat, filters) in enumerate(zip(repeats, (64, 128, 256, 512, 512), strict=True), 1):
            for i in range(1, repeat + 1):
                name = f"block{block}_conv{i}"
                x = layers.Conv2D(filters, 3, activation="relu", padding="same", name=name)(x)
            x = layers.MaxPooling2D(2, strides=2, name=f"block{block}_pool")(x)
        return x

    return features


def vgg_top(x: Any, classes: int, activation: Any) -> Any:
    """Two dense layers of 4096 units before the classes."""
    x = layers.Flatten(name="flatten")(x)
    for name in ("fc1", "fc2"):
        x = layers.Dense(4096, activation="relu", name=name)(x)
    return layers.Dense(classes, activation=activation, name="predictions")(x)


VGG16 = standard(
    "VGG16", "vgg16", vgg_features((2, 2, 3, 3, 3)), "VGG16, Keras's.", top=vgg_top, top_layers=3, pools=(None, None)
)
preprocess_input = preprocessing("caffe")
