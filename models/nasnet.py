"""NASNets as Keras has them (B. Zoph et al., "Learning Transferable Architectures", CVPR 2018, figure 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import (
    Arguments,
    batch_norm,
    before_stride,
    channel_axis,
    channels,
    dense_top,
    named,
    network,
    rows_and_columns,
)
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["NASNetLarge", "NASNetMobile", "decode_predictions", "preprocess_input"]


def _bn(x: Any, name: str) -> Any:
    return batch_norm(x, name, momentum=0.9997, epsilon=1e-3)


def _relu(x: Any, name: str | None = None) -> Any:
    return layers.Activation("relu", name=name)(x)


def _conv(x: Any, filters: int, name: str) -> Any:
    return layers.Conv2D(filters, 1, padding="same", use_bias=False, kernel_initializer="he_normal", name=name)(x)


def _separable(x: Any, filters: int, kernel: int, name: str, stride: int = 1) -> Any:
    """ReLU, separable convolution, normalization, twice; the first with the stride."""
    padding, x = "same", _relu(x)
    if stride == 2:
        x, padding = layers.ZeroPadding2D(before_stride(x, kernel), name=f"separable_conv_1_pad_{name}")(x), "valid"
    first = f"separable_conv_1_{name}"
    x = layers.SeparableConv2D(filters, kernel, strides=stride, padding=padding, use_bias=False, name=first)(x)
    x = _relu(_bn(x, f"separable_conv_1_bn_{name}"))
    x = layers.SeparableConv2D(filters, kernel, padding="same", use_bias=False, name=f"separable_conv_2_{name}")(x)
    return _bn(x, f"separable_conv_2_bn_{name}")


def _pool(x: Any, name: str, stride: int = 1, maximum: bool = False) -> Any:
    kind = layers.MaxPooling2D if maximum else layers.AveragePooling2D
    return kind(3, strides=stride, padding="same" if stride == 1 else "valid", name=name)(x)


def _adjusted(p: Any, x: Any, filters: int, name: str) -> Any:
    """The cell before the last one's result p with the rows of x and so many channels."""
    if p is None:
        return x
    if rows_and_columns(p.shape[1:])[0] != rows_and_columns(x.shape[1:])[0]:
        p = _relu(p, f"adjust_relu_1_{name}")
        a = layers.AveragePooling2D(1, strides=2, name=f"adjust_avg_pool_1_{name}")(p)
        a = _conv(a, filters // 2, f"adjust_conv_1_{name}")
        b = layers.Cropping2D(((1, 0), (1, 0)))(layers.ZeroPadding2D(((0, 1), (0, 1)))(p))
        b = layers.AveragePooling2D(1, strides=2, name=f"adjust_avg_pool_2_{name}")(b)
        b = _conv(b, filters // 2, f"adjust_conv_2_{name}")
        return _bn(layers.concatenate([a, b], axis=channel_axis()), f"adjust_bn_{name}")
    if channels(p) != filters:
        return _bn(_conv(_relu(p), filters, f"adjust_conv_projection_{name}"), f"adjust_bn_{name}")
    return p


def _normal(x: Any, p: Any, filters: int, name: str) -> tuple[Any, Any]:
    p = _adjusted(p, x, filters, name)
    h = _bn(_conv(_relu(x), filters, f"normal_conv_1_{name}"), f"normal_bn_1_{name}")
    parts = [p]
    pairs: tuple[tuple[Callable[[], Any], Callable[[], Any]], ...] = (
        (
            lambda: _separable(h, filters, 5, f"normal_left1_{name}"),
            lambda: _separable(p, filters, 3, f"normal_right1_{name}"),
        ),
        (
            lambda: _separable(p, filters, 5, f"normal_left2_{name}"),
            lambda: _separable(p, filters, 3, f"normal_right2_{name}"),
        ),
        (lambda: _pool(h, f"normal_left3_{name}"), lambda: p),
        (lambda: _pool(p, f"normal_left4_{name}"), lambda: _pool(p, f"normal_right4_{name}")),
        (lambda: _separable(h, filters, 3, f"normal_left5_{name}"), lambda: h),
    )
    for i, (left, right) in enumerate(pairs, 1):
        parts.append(layers.add([left(), right()], name=f"normal_add_{i}_{name}"))
    return layers.concatenate(parts, axis=channel_axis(), name=f"normal_concat_{name}"), x


def _reduction(x: Any, p: Any, filters: int, name: str) -> tuple[Any, Any]:
    p = _adjusted(p, x, filters, name)
    h = _bn(_conv(_relu(x), filters, f"reduction_conv_1_{name}"), f"reduction_bn_1_{name}")
    padded = layers.ZeroPadding2D(before_stride(h, 3), name=f"reduction_pad_1_{name}")(h)
    left = _separable(h, filters, 5, f"reduction_left1_{name}", 2)
    one = layers.add([left, _separable(p, filters, 7, f"reduction_right1_{name}", 2)], name=f"reduction_add_1_{name}")
    left = _pool(padded, f"reduction_left2_{name}", 2, maximum=True)
    two = layers.add([left, _separable(p, filters, 7, f"reduction_right2_{name}", 2)], name=f"reduction_add_2_{name}")
    left = _pool(padded, f"reduction_left3_{name}", 2)
    three = layers.add([left, _separable(p, filters, 5, f"reduction_right3_{name}", 2)], name=f"reduction_add3_{name}")
    four = layers.add([two, _pool(one, f"reduction_left4_{name}")])
    left = _separable(one, filters, 3, f"reduction_left4_{name}")
    right = _pool(padded, f"reduction_right5_{name}", 2, maximum=True)
    five = layers.add([left, right], name=f"reduction_add4_{name}")
    return layers.concatenate([two, three, four, five], axis=channel_axis(), name=f"reduction_concat_{name}"), x


def _features(last: int, blocks: int, stem: int, skips: bool) -> Callable[[Any], Any]:
    """last: channels of the result.  blocks: normal cells in each stage.  stem: filters of the first convolution.

    skips: whether cells behind a reduction take the result before it, not the one before that.
    """

    def features(x: Any) -> Any:
        filters = last // 24
        x = layers.Conv2D(stem, 3, 2, use_bias=False, kernel_initializer="he_normal", name="stem_conv1")(x)
        x, p = _reduction(_bn(x, "stem_bn1"), None, filters // 4, "stem_1")
        x, p = _reduction(x, p, filters // 2, "stem_2")
        for stage in range(3):
            if stage:
                x, before = _reduction(x, p, filters << stage, f"reduce_{stage * blocks}")
                p = p if skips else before
            for i in range(blocks):
                x, p = _normal(x, p, filters << stage, f"{stage * blocks + i + (stage > 0)}")
        return _relu(x)

    return features


def _nasnet(function: str, default: str, features: Callable[[Any], Any], size: int) -> Callable[..., Any]:
    def build(
        input_shape: Any = None,
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        name: str = default,
    ) -> Any:
        if function == "NASNetMobile" and not include_top and input_shape is None:
            input_shape = (224, 224, 3)
        given = Arguments(
            include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name
        )
        return network(features, given, size=size, top=dense_top(pool=None), pools=(None, None))

    return named(build, function, f"{function}, Keras's.", _nasnet)


NASNetMobile = _nasnet("NASNetMobile", "nasnet_mobile", _features(1056, 4, 32, skips=False), 224)
NASNetLarge = _nasnet("NASNetLarge", "nasnet_large", _features(4032, 6, 96, skips=True), 331)
preprocess_input = preprocessing("tf")
