"""InceptionV3 as Keras has it (C. Szegedy et al., "Rethinking the Inception Architecture", CVPR 2016)."""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import batch_norm, channel_axis, standard
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["InceptionV3", "decode_predictions", "preprocess_input"]

#: a convolution of a branch: filters, kernel, and stride 2 without padding
_Conv = tuple[int, Any] | tuple[int, Any, int]


def conv(x: Any, filters: int, kernel: Any, stride: int = 1, padding: str = "same") -> Any:
    """A convolution without bias, normalization without scale, ReLU."""
    x = layers.Conv2D(filters, kernel, stride, padding, use_bias=False)(x)
    return layers.Activation("relu")(batch_norm(x, scale=False))


def branch(x: Any, *convolutions: _Conv) -> Any:
    """Convolutions one behind the other; those with a stride have no padding."""
    for convolution in convolutions:
        x = conv(x, *convolution, *(("valid",) if len(convolution) == 3 else ()))
    return x


def pooled(x: Any, filters: int) -> Any:
    """The mean of 3x3 pixels and a 1x1 convolution."""
    return conv(layers.AveragePooling2D(3, strides=1, padding="same")(x), filters, 1)


def joined(name: str | None, *branches: Any) -> Any:
    return layers.concatenate(list(branches), axis=channel_axis(), name=name)


def inception_stem(x: Any) -> Any:
    """Two thirds of a 35x35 image's way from 299x299."""
    x = branch(x, (32, 3, 2))
    x = conv(conv(x, 32, 3, padding="valid"), 64, 3)
    x = layers.MaxPooling2D(3, strides=2)(x)
    x = conv(conv(x, 80, 1, padding="valid"), 192, 3, padding="valid")
    return layers.MaxPooling2D(3, strides=2)(x)


def _features(x: Any) -> Any:
    x = inception_stem(x)
    for i, filters in enumerate((32, 64, 64)):
        x = joined(
            f"mixed{i}",
            branch(x, (64, 1)),
            branch(x, (48, 1), (64, 5)),
            branch(x, (64, 1), (96, 3), (96, 3)),
            pooled(x, filters),
        )
    x = joined(
        "mixed3",
        branch(x, (384, 3, 2)),
        branch(x, (64, 1), (96, 3), (96, 3, 2)),
        layers.MaxPooling2D(3, strides=2)(x),
    )
    for i, inside in enumerate((128, 160, 160, 192), 4):
        row, column = (1, 7), (7, 1)
        x = joined(
            f"mixed{i}",
            branch(x, (192, 1)),
            branch(x, (inside, 1), (inside, row), (192, column)),
            branch(x, (inside, 1), (inside, column), (inside, row), (inside, column), (192, row)),
            pooled(x, 192),
        )
    x = joined(
        "mixed8",
        branch(x, (192, 1), (320, 3, 2)),
        branch(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2)),
        layers.MaxPooling2D(3, strides=2)(x),
    )
    for i in range(2):
        one = branch(x, (320, 1))
        three = branch(x, (384, 1))
        three = joined(f"mixed9_{i}", branch(three, (384, (1, 3))), branch(three, (384, (3, 1))))
        double = branch(x, (448, 1), (384, 3))
        double = joined(None, branch(double, (384, (1, 3))), branch(double, (384, (3, 1))))
        x = joined(f"mixed{9 + i}", one, three, double, pooled(x, 192))
    return x


InceptionV3 = standard(
    "InceptionV3", "inception_v3", _features, "InceptionV3, Keras's.", size=299, least=75, pools=(None, None)
)
preprocess_input = preprocessing("tf")
