"""DenseNets with bottlenecks and compression (G. Huang et al., "Densely Connected Convolutional Networks", CVPR 2017).

Images below 64 pixels get a plain 3x3 convolution as stem.  As a script it trains SmallDenseNet121 on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import Input, Model, layers
from pydtconv.applications.blocks import SMALL, batch_norm, classifier, conv, stem, with_weights
from pydtconv.applications.script import train_on_cifar10

__all__ = ["SmallDenseNet121", "SmallDenseNet169", "SmallDenseNet201"]

Shape = tuple[int, int, int]


def SmallDenseNet121(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, growth: int = 32
) -> Any:
    """6, 12, 24, 16 layers.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_densenet("smalldensenet121", (6, 12, 24, 16), input_shape, classes, growth), weights)


def SmallDenseNet169(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, growth: int = 32
) -> Any:
    """6, 12, 32, 32 layers.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_densenet("smalldensenet169", (6, 12, 32, 32), input_shape, classes, growth), weights)


def SmallDenseNet201(
    input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None, growth: int = 32
) -> Any:
    """6, 12, 48, 32 layers.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_densenet("smalldensenet201", (6, 12, 48, 32), input_shape, classes, growth), weights)


def _densenet(name: str, repeats: tuple[int, ...], input_shape: Shape, classes: int, growth: int) -> Any:
    inputs = Input(shape=input_shape)
    x = conv(inputs, 2 * growth, 3) if input_shape[0] < SMALL else stem(inputs)
    for stage, repeat in enumerate(repeats):
        for _ in range(repeat):
            y = conv(_bn_relu(x), 4 * growth, 1)
            y = conv(_bn_relu(y), growth, 3)
            x = layers.Concatenate()([x, y])
        if stage < len(repeats) - 1:
            x = conv(_bn_relu(x), x.shape[-1] // 2, 1)
            x = layers.AveragePooling2D(2)(x)
    return Model(inputs, classifier(_bn_relu(x), classes), name=name)


def _bn_relu(x: Any) -> Any:
    return layers.ReLU()(batch_norm(x))


if __name__ == "__main__":
    train_on_cifar10(SmallDenseNet121)
