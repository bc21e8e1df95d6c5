"""GoogLeNet with batch normalization and two 3x3 convolutions in the place of each 5x5.

C. Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, table 1; the changes are those of S. Ioffe, C. Szegedy,
"Batch Normalization", ICML 2015.  Images below 64 pixels get a 3x3 stem.  As a script it trains it on CIFAR-10.
"""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.blocks import SMALL, conv_bn_relu, max_pool, stem
from pydtconv.applications.own import own
from pydtconv.applications.script import train_on_cifar10

__all__ = ["GoogLeNet"]

# filters: 1x1, 3x3 reduce, 3x3, double-3x3 reduce, double-3x3, pool projection; None: a 3x3 max-pooling of stride 2
_MODULES = (
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    None,
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    None,
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
)


@own((224, 224, 3))
def GoogLeNet(images: Any) -> Any:
    """Nine inception modules.  input_shape: (height, width, channels)."""
    x = stem(images, small_filters=192)
    if images.shape[1] >= SMALL:
        x = max_pool(conv_bn_relu(conv_bn_relu(x, 64, 1), 192, 3))
    for row in _MODULES:
        x = max_pool(x) if row is None else _inception(x, *row)
    return x


def _inception(x: Any, one: int, reduce3: int, three: int, reduce33: int, double3: int, pool: int) -> Any:
    branches = [
        conv_bn_relu(x, one, 1),
        conv_bn_relu(conv_bn_relu(x, reduce3, 1), three, 3),
        conv_bn_relu(conv_bn_relu(conv_bn_relu(x, reduce33, 1), double3, 3), double3, 3),
        conv_bn_relu(layers.MaxPooling2D(3, strides=1, padding="same")(x), pool, 1),
    ]
    return layers.Concatenate()(branches)


if __name__ == "__main__":
    train_on_cifar10(GoogLeNet)
