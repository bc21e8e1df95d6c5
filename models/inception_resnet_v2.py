"""InceptionResNetV2 as Keras has it (C. Szegedy et al., "Inception-v4, Inception-ResNet", AAAI 2017)."""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import batch_norm, channel_axis, channels, standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing
from pydtconv.applications.inception_v3 import branch, inception_stem, pooled

__all__ = ["InceptionResNetV2", "decode_predictions", "preprocess_input"]

#: convolutions of the branches of each kind of block
_BRANCHES: dict[str, tuple[Any, ...]] = {
    "block35": (((32, 1),), ((32, 1), (32, 3)), ((32, 1), (48, 3), (64, 3))),
    "block17": (((192, 1),), ((128, 1), (160, (1, 7)), (192, (7, 1)))),
    "block8": (((192, 1),), ((192, 1), (224, (1, 3)), (256, (3, 1)))),
}


class CustomScaleLayer(layers.Layer):
    """x + y * scale."""

    def __init__(self, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def call(self, inputs: Any) -> Any:
        return inputs[0] + inputs[1] * self.scale


def _joined(name: str, *branches: Any) -> Any:
    return layers.Concatenate(axis=channel_axis(), name=name)(list(branches))


def _block(x: Any, kind: str, index: int, scale: float, active: bool = True) -> Any:
    name = f"{kind}_{index}"
    y = _joined(f"{name}_mixed", *(branch(x, *row) for row in _BRANCHES[kind]))
    y = layers.Conv2D(channels(x), 1, padding="same", name=f"{name}_conv")(y)
    x = CustomScaleLayer(scale)([x, y])
    return layers.Activation("relu", name=f"{name}_ac")(x) if active else x


def _features(x: Any) -> Any:
    x = inception_stem(x)
    x = _joined(
        "mixed_5b",
        branch(x, (96, 1)),
        branch(x, (48, 1), (64, 5)),
        branch(x, (64, 1), (96, 3), (96, 3)),
        pooled(x, 64),
    )
    for i in range(1, 11):
        x = _block(x, "block35", i, 0.17)
    x = _joined(
        "mixed_6a",
        branch(x, (384, 3, 2)),
        branch(x, (256, 1), (256, 3), (384, 3, 2)),
        layers.MaxPooling2D(3, strides=2)(x),
    )
    for i in range(1, 21):
        x = _block(x, "block17", i, 0.1)
    x = _joined(
        "mixed_7a",
        branch(x, (256, 1), (384, 3, 2)),
        branch(x, (256, 1), (288, 3, 2)),
        branch(x, (256, 1), (288, 3), (320, 3, 2)),
        layers.MaxPooling2D(3, strides=2)(x),
    )
    for i in range(1, 10):
        x = _block(x, "block8", i, 0.2)
    x = _block(x, "block8", 10, 1.0, active=False)
    x = layers.Conv2D(1536, 1, padding="same", use_bias=False, name="conv_7b")(x)
    return layers.Activation("relu", name="conv_7b_ac")(batch_norm(x, "conv_7b_bn", scale=False))


InceptionResNetV2 = standard(
    "InceptionResNetV2",
    "inception_resnet_v2",
    _features,
    "InceptionResNetV2, Keras's.",
    size=299,
    least=75,
    pools=(None, None),
)
preprocess_input = preprocessing("tf")
