"""MobileNetV2 as Keras has it (M. Sandler et al., "MobileNetV2: Inverted Residuals", CVPR 2018, table 2)."""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import (
    Arguments,
    batch_norm,
    before_stride,
    channels,
    dense_top,
    make_divisible,
    named,
    network,
    rows_and_columns,
    shape_of_images,
)
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["MobileNetV2", "decode_predictions", "preprocess_input"]

#: filters, repeats and stride of the first of each group of blocks
_GROUPS = ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))


def MobileNetV2(
    input_shape: Any = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: Any = "imagenet",
    input_tensor: Any = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Any = "softmax",
    name: str | None = None,
) -> Any:
    given = Arguments(include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name)
    if name is None:
        rows, _ = rows_and_columns(shape_of_images(given._replace(name="MobileNetV2"), 224, 32))
        given = given._replace(name=f"mobilenetv2_{alpha:0.2f}_{rows}")

    def features(x: Any) -> Any:
        x = layers.Conv2D(make_divisible(32 * alpha), 3, 2, padding="same", use_bias=False, name="Conv1")(x)
        x = layers.ReLU(6.0, name="Conv1_relu")(_bn(x, "bn_Conv1"))
        block = 0
        for filters, repeats, first in _GROUPS:
            for i in range(repeats):
                x = _block(x, make_divisible(int(filters * alpha)), 1 if i else first, block)
                block += 1
        last = make_divisible(1280 * alpha) if alpha > 1 else 1280
        x = layers.Conv2D(last, 1, use_bias=False, name="Conv_1")(x)
        return layers.ReLU(6.0, name="out_relu")(_bn(x, "Conv_1_bn"))

    return network(features, given, top=dense_top(pool=None), pools=(None, None))


def _bn(x: Any, name: str) -> Any:
    return batch_norm(x, name, epsilon=1e-3, momentum=0.999)


def _block(x: Any, filters: int, stride: int, block: int) -> Any:
    """1x1 to six times the channels, depthwise 3x3, 1x1 down, beside the input where shapes allow."""
    count, y, name = channels(x), x, f"block_{block}_" if block else "expanded_conv_"
    if block:
        y = layers.Conv2D(6 * count, 1, padding="same", use_bias=False, name=f"{name}expand")(y)
        y = layers.ReLU(6.0, name=f"{name}expand_relu")(_bn(y, f"{name}expand_BN"))
    if stride == 2:
        y = layers.ZeroPadding2D(before_stride(y, 3), name=f"{name}pad")(y)
    padding = "same" if stride == 1 else "valid"
    y = layers.DepthwiseConv2D(3, stride, padding, use_bias=False, name=f"{name}depthwise")(y)
    y = layers.ReLU(6.0, name=f"{name}depthwise_relu")(_bn(y, f"{name}depthwise_BN"))
    y = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=f"{name}project")(y)
    y = _bn(y, f"{name}project_BN")
    return layers.Add(name=f"{name}add")([x, y]) if count == filters and stride == 1 else y


named(MobileNetV2, "MobileNetV2", "MobileNetV2, Keras's.\n\nalpha: multiplies the filters.", MobileNetV2)
preprocess_input = preprocessing("tf")
