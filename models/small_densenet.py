"""DenseNets with bottlenecks and compression (G. Huang et al., "Densely Connected Convolutional Networks", CVPR 2017).

Images below 64 pixels get a plain 3x3 convolution as stem.  As a script it trains SmallDenseNet121 on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.blocks import SMALL, batch_norm, conv, stem
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10

__all__ = ["SmallDenseNet121", "SmallDenseNet169", "SmallDenseNet201"]


@own((224, 224, 3))
def SmallDenseNet121(images: Any, growth: int = 32) -> Any:
    """6, 12, 24, 16 layers.  input_shape: (height, width, channels)."""
    return _densenet(images, (6, 12, 24, 16), growth)


@own((224, 224, 3))
def SmallDenseNet169(images: Any, growth: int = 32) -> Any:
    """6, 12, 32, 32 layers.  input_shape: (height, width, channels)."""
    return _densenet(images, (6, 12, 32, 32), growth)


@own((224, 224, 3))
def SmallDenseNet201(images: Any, growth: int = 32) -> Any:
    """6, 12, 48, 32 layers.  input_shape: (height, width, channels)."""
    return _densenet(images, (6, 12, 48, 32), growth)


def _densenet(images: Any, repeats: tuple[int, ...], growth: int) -> Any:
    x = conv(images, 2 * growth, 3) if images.shape[1] < SMALL else stem(images)
    for stage, repeat in enumerate(repeats):
        for _ in range(repeat):
            y = conv(_bn_relu(x), 4 * growth, 1)
            y = conv(_bn_relu(y), growth, 3)
            x = layers.Concatenate()([x, y])
        if stage < len(repeats) - 1:
            x = conv(_bn_relu(x), x.shape[-1] // 2, 1)
            x = layers.AveragePooling2D(2)(x)
    return _bn_relu(x)


def _bn_relu(x: Any) -> Any:
    return layers.ReLU()(batch_norm(x))


if __name__ == "__main__":
    train_on_cifar10(SmallDenseNet121)
