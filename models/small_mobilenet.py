"""MobileNet, its first version (A. G. Howard et al., "MobileNets: Efficient CNNs for Mobile Vision", 2017, table 1).

Images below 64 pixels get a first convolution without stride.  As a script it trains on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.blocks import SMALL, batch_norm, conv
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10

__all__ = ["SmallMobileNet"]

#: filters and stride of each pair of a depthwise and a 1x1 convolution
_PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


@own((224, 224, 3), order=("input_shape", "alpha", "dropout", "weights", "classes"))
def SmallMobileNet(images: Any, alpha: float = 1.0, dropout: float = 0.001) -> Any:
    """Thirteen pairs of a depthwise and a 1x1 convolution.

    input_shape: (height, width, channels).  alpha: multiplies the filters of every layer.  dropout: before the dense
    layer.
    """
    x = _bn_relu6(conv(images, int(32 * alpha), 3, 1 if images.shape[1] < SMALL else 2))
    for filters, stride in _PAIRS:
        x = _depthwise(x, stride)
        x = _bn_relu6(conv(x, int(filters * alpha), 1))
    return x, [layers.GlobalAveragePooling2D(), *([layers.Dropout(dropout)] if dropout else [])]


def _depthwise(x: Any, stride: int) -> Any:
    if stride > 1:
        x = layers.ZeroPadding2D(1)(x)
    x = layers.DepthwiseConv2D(
        3, stride, "valid" if stride > 1 else "same", use_bias=False, depthwise_initializer="he_normal"
    )(x)
    return _bn_relu6(x)


def _bn_relu6(x: Any) -> Any:
    return layers.ReLU(6.0)(batch_norm(x))


if __name__ == "__main__":
    train_on_cifar10(SmallMobileNet, learning_rate=0.05)
