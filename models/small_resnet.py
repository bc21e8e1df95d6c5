"""ResNets (K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016).

ResNet18 to ResNet152 are those of table 1; images below 64 pixels get a 3x3 stem without pooling.  Those with
bottlenecks have the stride in the 3x3 convolution (P. Goyal et al., "Accurate, Large Minibatch SGD", 2017).
ResNet20 to ResNet110 are those for CIFAR of section 4.2.  As a script it trains ResNet20 on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers, ops
from pydtconv.applications.blocks import batch_norm, conv, conv_bn_relu, stem
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10

__all__ = [
    "ResNet18",
    "ResNet20",
    "ResNet32",
    "ResNet34",
    "ResNet44",
    "ResNet56",
    "ResNet110",
    "SmallResNet50",
    "SmallResNet101",
    "SmallResNet152",
]


@own((224, 224, 3))
def ResNet18(images: Any) -> Any:
    """2, 2, 2, 2 blocks.  input_shape: (height, width, channels)."""
    return _resnet(images, _basic_block, (2, 2, 2, 2))


@own((224, 224, 3))
def ResNet34(images: Any) -> Any:
    """3, 4, 6, 3 blocks.  input_shape: (height, width, channels)."""
    return _resnet(images, _basic_block, (3, 4, 6, 3))


@own((224, 224, 3))
def SmallResNet50(images: Any) -> Any:
    """3, 4, 6, 3 bottlenecks.  input_shape: (height, width, channels)."""
    return _resnet(images, _bottleneck, (3, 4, 6, 3))


@own((224, 224, 3))
def SmallResNet101(images: Any) -> Any:
    """3, 4, 23, 3 bottlenecks.  input_shape: (height, width, channels)."""
    return _resnet(images, _bottleneck, (3, 4, 23, 3))


@own((224, 224, 3))
def SmallResNet152(images: Any) -> Any:
    """3, 8, 36, 3 bottlenecks.  input_shape: (height, width, channels)."""
    return _resnet(images, _bottleneck, (3, 8, 36, 3))


@own((32, 32, 3), 10)
def ResNet20(images: Any) -> Any:
    """Three stages of 3 blocks.  input_shape: (height, width, channels)."""
    return _cifar_resnet(images, 20)


@own((32, 32, 3), 10)
def ResNet32(images: Any) -> Any:
    """Three stages of 5 blocks.  input_shape: (height, width, channels)."""
    return _cifar_resnet(images, 32)


@own((32, 32, 3), 10)
def ResNet44(images: Any) -> Any:
    """Three stages of 7 blocks.  input_shape: (height, width, channels)."""
    return _cifar_resnet(images, 44)


@own((32, 32, 3), 10)
def ResNet56(images: Any) -> Any:
    """Three stages of 9 blocks.  input_shape: (height, width, channels)."""
    return _cifar_resnet(images, 56)


@own((32, 32, 3), 10)
def ResNet110(images: Any) -> Any:
    """Three stages of 18 blocks.  input_shape: (height, width, channels)."""
    return _cifar_resnet(images, 110)


def _resnet(images: Any, block: Any, repeats: tuple[int, ...]) -> Any:
    x = stem(images)
    for stage, repeat in enumerate(repeats):
        for i in range(repeat):
            x = block(x, 64 << stage, stride=2 if stage > 0 and i == 0 else 1)
    return x


def _basic_block(x: Any, filters: int, stride: int) -> Any:
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""
    y = conv_bn_relu(x, filters, 3, stride)
    y = batch_norm(conv(y, filters, 3))
    if stride != 1 or x.shape[-1] != filters:
        x = batch_norm(conv(x, filters, 1, stride))
    return layers.ReLU()(layers.Add()([y, x]))


def _bottleneck(x: Any, filters: int, stride: int) -> Any:
    """1x1, 3x3 and 1x1 convolutions, the last with 4 * filters, beside a shortcut."""
    y = conv_bn_relu(x, filters, 1)
    y = conv_bn_relu(y, filters, 3, stride)
    y = batch_norm(conv(y, 4 * filters, 1))
    if stride != 1 or x.shape[-1] != 4 * filters:
        x = batch_norm(conv(x, 4 * filters, 1, stride))
    return layers.ReLU()(layers.Add()([y, x]))


def _cifar_resnet(images: Any, depth: int) -> Any:
    x = conv_bn_relu(images, 16, 3)
    for stage in range(3):
        for i in range((depth - 2) // 6):
            x = _cifar_block(x, 16 << stage, stride=2 if stage > 0 and i == 0 else 1)
    return x


def _cifar_block(x: Any, filters: int, stride: int) -> Any:
    """A basic block whose shortcut has no parameters: every other pixel, and zeros for the new channels (option A)."""
    y = conv_bn_relu(x, filters, 3, stride)
    y = batch_norm(conv(y, filters, 3))
    if stride != 1:
        new = (filters - x.shape[-1]) // 2
        x = layers.AveragePooling2D(1, strides=stride)(x)
        x = ops.pad(x, ((0, 0), (0, 0), (0, 0), (new, new)))
    return layers.ReLU()(layers.Add()([y, x]))


if __name__ == "__main__":
    train_on_cifar10(ResNet20)
