"""ResNets of basic blocks (K. He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, table 1).

Images below 64 pixels get a 3x3 stem without pooling.  As a script it trains ResNet34 on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import Input, Model, layers
from pydtconv.applications.blocks import batch_norm, classifier, conv, conv_bn_relu, stem
from pydtconv.applications.script import train_on_cifar10

__all__ = ["ResNet18", "ResNet34"]


def ResNet18(input_shape: tuple[int, int, int] = (224, 224, 3), classes: int = 1000) -> Any:
    """2, 2, 2, 2 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return _resnet("resnet18", (2, 2, 2, 2), input_shape, classes)


def ResNet34(input_shape: tuple[int, int, int] = (224, 224, 3), classes: int = 1000) -> Any:
    """3, 4, 6, 3 blocks.  input_shape: (height, width, channels).  Returns a functional model, not compiled."""
    return _resnet("resnet34", (3, 4, 6, 3), input_shape, classes)


def _resnet(name: str, repeats: tuple[int, ...], input_shape: tuple[int, int, int], classes: int) -> Any:
    inputs = Input(shape=input_shape)
    x = stem(inputs)
    for stage, repeat in enumerate(repeats):
        for block in range(repeat):
            x = _basic_block(x, 64 * 2**stage, stride=2 if stage > 0 and block == 0 else 1)
    return Model(inputs, classifier(x, classes), name=name)


def _basic_block(x: Any, filters: int, stride: int) -> Any:
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where the shape changes."""
    y = conv_bn_relu(x, filters, 3, stride)
    y = batch_norm(conv(y, filters, 3))
    if stride != 1 or x.shape[-1] != filters:
        x = batch_norm(conv(x, filters, 1, stride))
    return layers.ReLU()(layers.Add()([y, x]))


if __name__ == "__main__":
    train_on_cifar10(ResNet34)
