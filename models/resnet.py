"""ResNets as Keras has them: stride in the first 1x1 convolution, convolutions with bias.

K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.  The second version of the blocks
(`resnet_v2.py`) is from "Identity Mappings in Deep Residual Networks", ECCV 2016, by the same authors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import batch_norm, standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["ResNet50", "ResNet101", "ResNet152", "decode_predictions", "preprocess_input"]


def bn(x: Any, name: str) -> Any:
    return batch_norm(x, name, epsilon=1.001e-5)


def bn_relu(x: Any, name: str) -> Any:
    return layers.Activation("relu", name=f"{name}_relu")(bn(x, f"{name}_bn"))


def stem(x: Any, normalized: bool) -> Any:
    """7x7 of stride 2 and a pooling."""
    x = layers.ZeroPadding2D(3, name="conv1_pad")(x)
    x = layers.Conv2D(64, 7, strides=2, name="conv1_conv")(x)
    x = bn_relu(x, "conv1") if normalized else x
    x = layers.ZeroPadding2D(1, name="pool1_pad")(x)
    return layers.MaxPooling2D(3, strides=2, name="pool1_pool")(x)


def resnet_features(repeats: tuple[int, ...]) -> Callable[[Any], Any]:
    """Four stages of so many bottlenecks."""

    def features(x: Any) -> Any:
        x = stem(x, normalized=True)
        for stage, repeat in enumerate(repeats):
            for i in range(repeat):
                x = _bottleneck(x, 64 << stage, 2 if stage and not i else 1, not i, f"conv{stage + 2}_block{i + 1}")
        return x

    return features


def _bottleneck(x: Any, filters: int, stride: int, projected: bool, name: str) -> Any:
    shortcut = x
    if projected:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x)
        shortcut = bn(shortcut, f"{name}_0_bn")
    y = bn_relu(layers.Conv2D(filters, 1, strides=stride, name=f"{name}_1_conv")(x), f"{name}_1")
    y = bn_relu(layers.Conv2D(filters, 3, padding="same", name=f"{name}_2_conv")(y), f"{name}_2")
    y = bn(layers.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(y), f"{name}_3_bn")
    y = layers.Add(name=f"{name}_add")([shortcut, y])
    return layers.Activation("relu", name=f"{name}_out")(y)


ResNet50 = standard("ResNet50", "resnet50", resnet_features((3, 4, 6, 3)), "ResNet50, Keras's.")
ResNet101 = standard("ResNet101", "resnet101", resnet_features((3, 4, 23, 3)), "ResNet101, Keras's.")
ResNet152 = standard("ResNet152", "resnet152", resnet_features((3, 8, 36, 3)), "ResNet152, Keras's.")
preprocess_input = preprocessing("caffe")
