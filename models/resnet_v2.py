"""ResNets with normalization before the convolutions, as Keras has them (K. He et al., ECCV 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing
from pydtconv.applications.resnet import bn_relu, stem

__all__ = ["ResNet50V2", "ResNet101V2", "ResNet152V2", "decode_predictions", "preprocess_input"]


def resnet_v2_features(repeats: tuple[int, ...]) -> Callable[[Any], Any]:
    """Four stages of so many bottlenecks; the last of each of the first three has the stride."""

    def features(x: Any) -> Any:
        x = stem(x, normalized=False)
        for stage, repeat in enumerate(repeats):
            for i in range(repeat):
                stride = 2 if i == repeat - 1 and stage < 3 else 1
                x = _bottleneck(x, 64 << stage, stride, not i, f"conv{stage + 2}_block{i + 1}")
        return bn_relu(x, "post")

    return features


def _bottleneck(x: Any, filters: int, stride: int, projected: bool, name: str) -> Any:
    active = bn_relu(x, f"{name}_preact")
    shortcut = x
    if projected:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(active)
    elif stride > 1:
        shortcut = layers.MaxPooling2D(1, strides=stride)(x)
    y = layers.Conv2D(filters, 1, use_bias=False, name=f"{name}_1_conv")(active)
    y = layers.ZeroPadding2D(1, name=f"{name}_2_pad")(bn_relu(y, f"{name}_1"))
    y = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(y)
    y = layers.Conv2D(4 * filters, 1, name=f"{name}_3_conv")(bn_relu(y, f"{name}_2"))
    return layers.Add(name=f"{name}_out")([shortcut, y])


ResNet50V2 = standard("ResNet50V2", "resnet50v2", resnet_v2_features((3, 4, 6, 3)), "ResNet50V2, Keras's.")
ResNet101V2 = standard("ResNet101V2", "resnet101v2", resnet_v2_features((3, 4, 23, 3)), "ResNet101V2, Keras's.")
ResNet152V2 = standard("ResNet152V2", "resnet152v2", resnet_v2_features((3, 8, 36, 3)), "ResNet152V2, Keras's.")
preprocess_input = preprocessing("tf")
