"""ResNets (K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016).

ResNet18 to ResNet152 are those of table 1; images below 64 pixels get a 3x3 stem without pooling.  Those with
bottlenecks have the stride in the 3x3 convolution (P. Goyal et al., "Accurate, Large Minibatch SGD", 2017).
ResNet20 to ResNet110 are those for CIFAR of section 4.2.  As a script it trains ResNet20 on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import Input, Model, layers, ops
from pydtconv.applications.blocks import batch_norm, classifier, conv, conv_bn_relu, stem, with_weights
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

Shape = tuple[int, int, int]


def ResNet18(input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None) -> Any:
    """2, 2, 2, 2 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_resnet("resnet18", _basic_block, (2, 2, 2, 2), input_shape, classes), weights)


def ResNet34(input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None) -> Any:
    """3, 4, 6, 3 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_resnet("resnet34", _basic_block, (3, 4, 6, 3), input_shape, classes), weights)


def SmallResNet50(input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None) -> Any:
    """3, 4, 6, 3 bottlenecks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_resnet("smallresnet50", _bottleneck, (3, 4, 6, 3), input_shape, classes), weights)


def SmallResNet101(input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None) -> Any:
    """3, 4, 23, 3 bottlenecks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_resnet("smallresnet101", _bottleneck, (3, 4, 23, 3), input_shape, classes), weights)


def SmallResNet152(input_shape: Shape = (224, 224, 3), classes: int = 1000, weights: str | None = None) -> Any:
    """3, 8, 36, 3 bottlenecks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_resnet("smallresnet152", _bottleneck, (3, 8, 36, 3), input_shape, classes), weights)


def ResNet20(input_shape: Shape = (32, 32, 3), classes: int = 10, weights: str | None = None) -> Any:
    """Three stages of 3 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_cifar_resnet(20, input_shape, classes), weights)


def ResNet32(input_shape: Shape = (32, 32, 3), classes: int = 10, weights: str | None = None) -> Any:
    """Three stages of 5 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_cifar_resnet(32, input_shape, classes), weights)


def ResNet44(input_shape: Shape = (32, 32, 3), classes: int = 10, weights: str | None = None) -> Any:
    """Three stages of 7 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_cifar_resnet(44, input_shape, classes), weights)


def ResNet56(input_shape: Shape = (32, 32, 3), classes: int = 10, weights: str | None = None) -> Any:
    """Three stages of 9 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_cifar_resnet(56, input_shape, classes), weights)


def ResNet110(input_shape: Shape = (32, 32, 3), classes: int = 10, weights: str | None = None) -> Any:
    """Three stages of 18 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return with_weights(_cifar_resnet(110, input_shape, classes), weights)


def _resnet(name: str, block: Any, repeats: tuple[int, ...], input_shape: Shape, classes: int) -> Any:
    inputs = Input(shape=input_shape)
    x = stem(inputs)
    for stage, repeat in enumerate(repeats):
        for i in range(repeat):
            x = block(x, 64 << stage, stride=2 if stage > 0 and i == 0 else 1)
    return Model(inputs, classifier(x, classes), name=name)


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


def _cifar_resnet(depth: int, input_shape: Shape, classes: int) -> Any:
    inputs = Input(shape=input_shape)
    x = conv_bn_relu(inputs, 16, 3)
    for stage in range(3):
        for i in range((depth - 2) // 6):
            x = _cifar_block(x, 16 << stage, stride=2 if stage > 0 and i == 0 else 1)
    return Model(inputs, classifier(x, classes), name=f"resnet{depth}")


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
