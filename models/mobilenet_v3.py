"""MobileNetV3 as Keras has it (A. Howard et al., "Searching for MobileNetV3", ICCV 2019, tables 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydtconv import layers
from pydtconv.applications.assembly import (
    Arguments,
    batch_norm,
    before_stride,
    channels,
    make_divisible,
    named,
    network,
)
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["MobileNetV3Large", "MobileNetV3Small", "decode_predictions", "preprocess_input"]


class _Row(NamedTuple):
    """A block: channels inside over channels in, filters, 5x5 instead of 3x3, stride, squeeze, hard swish."""

    expansion: float
    filters: int
    large: bool
    stride: int
    squeeze: bool
    swish: bool


_T, _F = True, False
_SMALL = tuple(
    _Row(*row)
    for row in (
        (1, 16, _F, 2, _T, _F),
        (72 / 16, 24, _F, 2, _F, _F),
        (88 / 24, 24, _F, 1, _F, _F),
        (4, 40, _T, 2, _T, _T),
        (6, 40, _T, 1, _T, _T),
        (6, 40, _T, 1, _T, _T),
        (3, 48, _T, 1, _T, _T),
        (3, 48, _T, 1, _T, _T),
        (6, 96, _T, 2, _T, _T),
        (6, 96, _T, 1, _T, _T),
        (6, 96, _T, 1, _T, _T),
    )
)
_LARGE = tuple(
    _Row(*row)
    for row in (
        (1, 16, _F, 1, _F, _F),
        (4, 24, _F, 2, _F, _F),
        (3, 24, _F, 1, _F, _F),
        (3, 40, _T, 2, _T, _F),
        (3, 40, _T, 1, _T, _F),
        (3, 40, _T, 1, _T, _F),
        (6, 80, _F, 2, _F, _T),
        (2.5, 80, _F, 1, _F, _T),
        (2.3, 80, _F, 1, _F, _T),
        (2.3, 80, _F, 1, _F, _T),
        (6, 112, _F, 1, _T, _T),
        (6, 112, _F, 1, _T, _T),
        (6, 160, _T, 2, _T, _T),
        (6, 160, _T, 1, _T, _T),
        (6, 160, _T, 1, _T, _T),
    )
)


def _relu(x: Any) -> Any:
    return layers.ReLU()(x)


def _hard_swish(x: Any) -> Any:
    return layers.Activation("hard_swish")(x)


def _bn(x: Any, name: str) -> Any:
    return batch_norm(x, name, epsilon=1e-3, momentum=0.999)


def _conv(x: Any, filters: int, name: str, **options: Any) -> Any:
    return layers.Conv2D(filters, 1, padding="same", name=name, **options)(x)


def _squeeze(x: Any, filters: int, name: str) -> Any:
    """x times a number for each channel, which follows from the means of all."""
    y = layers.GlobalAveragePooling2D(keepdims=True, name=f"{name}squeeze_excite_avg_pool")(x)
    y = _conv(y, make_divisible(filters / 4), f"{name}squeeze_excite_conv")
    y = layers.ReLU(name=f"{name}squeeze_excite_relu")(y)
    y = _conv(y, filters, f"{name}squeeze_excite_conv_1")
    y = layers.ReLU(6.0)(y + 3.0) * (1.0 / 6.0)
    return layers.Multiply(name=f"{name}squeeze_excite_mul")([x, y])


def _block(x: Any, row: _Row, filters: int, block: int, plain: bool) -> Any:
    count, y, name = channels(x), x, f"expanded_conv_{block}_" if block else "expanded_conv_"
    inside = make_divisible(count * row.expansion)
    activation = _hard_swish if row.swish and not plain else _relu
    if block:
        y = activation(_bn(_conv(y, inside, f"{name}expand", use_bias=False), f"{name}expand_bn"))
    kernel = 5 if row.large and not plain else 3
    if row.stride == 2:
        y = layers.ZeroPadding2D(before_stride(y, kernel), name=f"{name}depthwise_pad")(y)
    padding = "same" if row.stride == 1 else "valid"
    y = layers.DepthwiseConv2D(kernel, row.stride, padding, use_bias=False, name=f"{name}depthwise")(y)
    y = activation(_bn(y, f"{name}depthwise_bn"))
    if row.squeeze and not plain:
        y = _squeeze(y, inside, name)
    y = _bn(_conv(y, filters, f"{name}project", use_bias=False), f"{name}project_bn")
    return layers.Add(name=f"{name}add")([x, y]) if row.stride == 1 and count == filters else y


def _mobilenet_v3(function: str, rows: tuple[_Row, ...], last: int) -> Callable[..., Any]:
    """The function of a network.  last: filters of the convolution before the classes."""

    def build(
        input_shape: Any = None,
        alpha: float = 1.0,
        minimalistic: bool = False,
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        classes: int = 1000,
        pooling: str | None = None,
        dropout_rate: float = 0.2,
        classifier_activation: Any = "softmax",
        include_preprocessing: bool = True,
        name: str = function,
    ) -> Any:
        given = Arguments(
            include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name
        )
        activation = _relu if minimalistic else _hard_swish

        def features(x: Any) -> Any:
            if include_preprocessing:
                x = layers.Rescaling(1 / 127.5, offset=-1.0)(x)
            x = layers.Conv2D(16, 3, 2, padding="same", use_bias=False, name="conv")(x)
            x = activation(_bn(x, "conv_bn"))
            for block, row in enumerate(rows):
                x = _block(x, row, make_divisible(row.filters * alpha), block, minimalistic)
            x = _conv(x, make_divisible(channels(x) * 6), "conv_1", use_bias=False)
            return activation(_bn(x, "conv_1_bn"))

        def top(x: Any, classes: int, softmax: Any) -> Any:
            x = layers.GlobalAveragePooling2D(keepdims=True)(x)
            x = activation(_conv(x, make_divisible(last * alpha) if alpha > 1 else last, "conv_2"))
            x = layers.Dropout(dropout_rate)(x) if dropout_rate > 0 else x
            x = layers.Flatten()(_conv(x, classes, "logits"))
            return layers.Activation(softmax, name="predictions")(x)

        return network(features, given, size=None, top=top, top_layers=2)

    about = (
        f"{function}, Keras's.\n\nalpha: multiplies the filters.  minimalistic: no squeezing, hard swish, 5x5.\n"
        "include_preprocessing: whether images of 0 to 255 are scaled first."
    )
    return named(build, function, about, _mobilenet_v3)


MobileNetV3Small = _mobilenet_v3("MobileNetV3Small", _SMALL, 1024)
MobileNetV3Large = _mobilenet_v3("MobileNetV3Large", _LARGE, 1280)
preprocess_input = preprocessing(None)
