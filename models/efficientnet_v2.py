"""EfficientNetV2 as Keras has it (M. Tan, Q. V. Le, "EfficientNetV2: Smaller Models, Faster Training", ICML 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pydtconv import config, layers
from pydtconv.applications.assembly import Arguments, batch_norm, channel_axis, channels, dense_top, named, network
from pydtconv.applications.efficientnet import beside, conv, dense_initializer, initializer, squeeze, swish
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = [f"EfficientNetV2{size}" for size in ("B0", "B1", "B2", "B3", "L", "M", "S")] + [
    "decode_predictions",
    "preprocess_input",
]

#: fused 3x3 instead of depthwise, repeats, filters, channels inside over channels in, stride of the first
_Group = tuple[bool, int, int, int, int]
_T, _F = True, False
_GROUPS: dict[str, tuple[_Group, ...]] = {
    "b": (
        (_T, 1, 16, 1, 1),
        (_T, 2, 32, 4, 2),
        (_T, 2, 48, 4, 2),
        (_F, 3, 96, 4, 2),
        (_F, 5, 112, 6, 1),
        (_F, 8, 192, 6, 2),
    ),
    "s": (
        (_T, 2, 24, 1, 1),
        (_T, 4, 48, 4, 2),
        (_T, 4, 64, 4, 2),
        (_F, 6, 128, 4, 2),
        (_F, 9, 160, 6, 1),
        (_F, 15, 256, 6, 2),
    ),
    "m": (
        (_T, 3, 24, 1, 1),
        (_T, 5, 48, 4, 2),
        (_T, 5, 80, 4, 2),
        (_F, 7, 160, 4, 2),
        (_F, 14, 176, 6, 1),
        (_F, 18, 304, 6, 2),
        (_F, 5, 512, 6, 1),
    ),
    "l": (
        (_T, 4, 32, 1, 1),
        (_T, 7, 64, 4, 2),
        (_T, 7, 96, 4, 2),
        (_F, 10, 192, 4, 2),
        (_F, 19, 224, 6, 1),
        (_F, 25, 384, 6, 2),
        (_F, 7, 640, 6, 1),
    ),
}
#: filters of the first convolution
_STEM = {"b": 32, "s": 24, "m": 24, "l": 32}


def _bn(x: Any, name: str) -> Any:
    return batch_norm(x, name, momentum=0.9)


def _block(x: Any, fused: bool, filters: int, expansion: int, stride: int, drop: float, name: str) -> Any:
    """An inverted bottleneck; the fused kind has one 3x3 convolution in the place of two."""
    shortcut, count = x, channels(x)
    if expansion != 1:
        x = conv(x, count * expansion, 3 if fused else 1, f"{name}expand_conv", stride if fused else 1)
        x = swish(_bn(x, f"{name}expand_bn"), f"{name}expand_")
    if not fused:
        x = layers.DepthwiseConv2D(
            3, stride, "same", use_bias=False, depthwise_initializer=initializer(), name=f"{name}dwconv2"
        )(x)
        x = squeeze(swish(_bn(x, f"{name}bn"), name), max(1, count // 4), name)
    last = fused and expansion == 1
    x = conv(x, filters, 3 if last else 1, f"{name}project_conv", stride if last else 1)
    x = _bn(x, f"{name}project_bn")
    x = swish(x, f"{name}project_") if last else x
    return beside(x, shortcut, drop, name) if stride == 1 and count == filters else x


def _prepared(x: Any, normalized: bool) -> Any:
    """Images of 0 to 255 by mean and deviation of ImageNet's channels, or as -1 to 1."""
    if not normalized:
        return layers.Rescaling(1 / 128, offset=-1)(x)
    mean, variance = [0.485, 0.456, 0.406], [0.229**2, 0.224**2, 0.225**2]
    return layers.Normalization(mean=mean, variance=variance, axis=channel_axis())(layers.Rescaling(1 / 255)(x))


def _efficientnet_v2(kind: str, width: float, depth: float, size: int) -> Callable[..., Any]:
    groups = _GROUPS[kind[0].lower()]
    function, default = f"EfficientNetV2{kind}", f"efficientnetv2-{kind.lower()}"

    def scaled(filters: int) -> int:
        return max(8, int(filters * width + 4) // 8 * 8)

    def build(
        include_top: bool = True,
        weights: Any = "imagenet",
        input_tensor: Any = None,
        input_shape: Any = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Any = "softmax",
        include_preprocessing: bool = True,
        name: str = default,
    ) -> Any:
        given = Arguments(
            include_top, weights, input_tensor, input_shape, pooling, classes, classifier_activation, name
        )
        images = 3 if input_shape is None else input_shape[-1 if config.image_data_format() == "channels_last" else 0]

        def features(x: Any) -> Any:
            if include_preprocessing:
                x = _prepared(x, normalized=kind[0] == "B" and images == 3)
            x = conv(x, scaled(_STEM[kind[0].lower()]), 3, "stem_conv", 2)
            x = swish(_bn(x, "stem_bn"), "stem_")
            # Keras counts the blocks before scaling here
            total, done = sum(repeats for _, repeats, *_ in groups), 0
            for group, (fused, repeats, filters, expansion, stride) in enumerate(groups, 1):
                for i in range(math.ceil(depth * repeats)):
                    label = f"block{group}{chr(ord('a') + i)}_"
                    drop = 0.2 * done / total
                    x = _block(x, fused, scaled(filters), expansion, 1 if i else stride, drop, label)
                    done += 1
            return swish(_bn(conv(x, scaled(1280), 1, "top_conv"), "top_bn"), "top_")

        return network(features, given, size=size, top=dense_top(0.2, make_initializer=dense_initializer))

    about = f"{function}, Keras's.\n\ninclude_preprocessing: whether images of 0 to 255 are scaled first."
    return named(build, function, about, _efficientnet_v2)


EfficientNetV2B0 = _efficientnet_v2("B0", 1.0, 1.0, 224)
EfficientNetV2B1 = _efficientnet_v2("B1", 1.0, 1.1, 240)
EfficientNetV2B2 = _efficientnet_v2("B2", 1.1, 1.2, 260)
EfficientNetV2B3 = _efficientnet_v2("B3", 1.2, 1.4, 300)
EfficientNetV2S = _efficientnet_v2("S", 1.0, 1.0, 384)
EfficientNetV2M = _efficientnet_v2("M", 1.0, 1.0, 480)
EfficientNetV2L = _efficientnet_v2("L", 1.0, 1.0, 480)
preprocess_input = preprocessing(None)
