"""MobileNet as Keras has it (A. G. Howard et al., "MobileNets", 2017, table 1)."""

from __future__ import annotations

from typing import Any

from pydtconv import layers
from pydtconv.applications.assembly import Arguments, batch_norm, named, network, rows_and_columns, shape_of_images
from pydtconv.applications.imagenet_utils import decode_predictions, preprocessing

__all__ = ["MobileNet", "decode_predictions", "preprocess_input"]

#: filters and stride of each pair of a depthwise and a 1x1 convolution
_PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def MobileNet(
    input_shape: Any = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 0.001,
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
        rows, _ = rows_and_columns(shape_of_images(given._replace(name="MobileNet"), 224, 32))
        given = given._replace(name=f"mobilenet_{alpha:0.2f}_{rows}")

    def features(x: Any) -> Any:
        x = layers.Conv2D(int(32 * alpha), 3, 2, padding="same", use_bias=False, name="conv1")(x)
        x = _bn_relu6(x, "conv1")
        for i, (filters, stride) in enumerate(_PAIRS, 1):
            if stride > 1:
                x = layers.ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{i}")(x)
            padding = "same" if stride == 1 else "valid"
            x = layers.DepthwiseConv2D(3, stride, padding, depth_multiplier, use_bias=False, name=f"conv_dw_{i}")(x)
            x = _bn_relu6(x, f"conv_dw_{i}")
            x = layers.Conv2D(int(filters * alpha), 1, padding="same", use_bias=False, name=f"conv_pw_{i}")(x)
            x = _bn_relu6(x, f"conv_pw_{i}")
        return x

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = layers.GlobalAveragePooling2D(keepdims=True)(x)
        x = layers.Dropout(dropout, name="dropout")(x)
        x = layers.Conv2D(classes, 1, padding="same", name="conv_preds")(x)
        x = layers.Reshape((classes,), name="reshape_2")(x)
        return layers.Activation(activation, name="predictions")(x)

    return network(features, given, top=top, pools=(None, None))


def _bn_relu6(x: Any, name: str) -> Any:
    return layers.ReLU(6.0, name=f"{name}_relu")(batch_norm(x, f"{name}_bn"))


named(
    MobileNet,
    "MobileNet",
    "MobileNet, Keras's.\n\nalpha: multiplies the filters.  depth_multiplier: of the depthwise convolutions.",
    MobileNet,
)
preprocess_input = preprocessing("tf")
