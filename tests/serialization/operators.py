"""Fields and inputs with which the operators work, as a file may hold them."""

from __future__ import annotations

from typing import Any

from tests.serialization.calls import IMAGES, VECTORS, array

#: fields that operators need
FIELDS: dict[str, dict[str, Any]] = {
    "Activation": {"kind": "relu"}, "Cast": {"dtype": "float64"}, "MaxPool": {"pool_size": [2, 2]},
    "AveragePool": {"pool_size": [2, 2]}, "Reshape": {"shape": [None, 144]}, "Transpose": {"axes": [0, 2, 1, 3]},
    "Pad": {"padding": [[0, 0], [1, 1], [1, 1], [0, 0]]}, "Upsample": {"size": [2, 2]},
    "Separable": {"axes": [1, 2], "filters": [["resize", 3, "linear", False], ["filter", [0.5, 0.5]]]},
    "Slice": {"start": [0, 1, 1, 0], "stop": [None, 3, 3, 4]}, "AdaptiveAveragePool": {"output_size": [2, 2]},
    "AdaptiveMaxPool": {"output_size": [2, 2]}, "Dropout": {"rate": 0.5}, "GaussianNoise": {"stddev": 0.5},
    "RandomCrop": {"height": 3, "width": 3},
    "Augment": {"kind": "brightness", "settings": [["factor", [0.1, 0.2]], ["value_range", [0, 255]]]},
    "Contract": {"a": "bijc", "b": "bijc", "c": "bij"}, "ArgMax": {"axis": 1}, "WeightedSum": {"weights": [1.0]},
    "Recurrence": {"cell": "simple"},
}  # fmt: skip
TWO = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Power", "Concatenate", "Contract")
_OF_CHANNELS = array([1.0] * 4)
#: shapes of inputs, and arrays behind them, where they are not one image, or two
INPUTS: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[Any, ...]]] = {
    "Attention": (((6, 2, 4),) * 3, ()),
    "MatMul": (((4, 4),) * 2, ()),
    "TakeRows": ((VECTORS,), (array([[1.0]] * 9),)),
    "Dense": ((VECTORS,), (array([[1.0] * 3] * 6),)),
    "Bias": ((IMAGES,), (_OF_CHANNELS,)),
    "Recurrence": (((5, 3),), (array([[1.0] * 3] * 3),)),
    "LayerNorm": ((IMAGES,), (_OF_CHANNELS,) * 2),
    "BatchNorm": ((IMAGES,), (_OF_CHANNELS,) * 4),
    **dict.fromkeys(("Conv", "DepthwiseConv"), ((IMAGES,), (array([[[[1.0]] * 4]]),))),
    "ConvTranspose": ((IMAGES,), (array([[[[1.0] * 4]]]),)),
    **dict.fromkeys(
        ("CrossEntropy", "SigmoidCrossEntropy", "SoftmaxCrossEntropy", "ElementwiseLoss"), ((VECTORS, VECTORS), ())
    ),
}
STATIC = {
    "one_hot": {"num_classes": 3, "axis": -1, "dtype": "float32", "sparse": False},
    "repeat": {"repeats": 2, "axis": 1},
    "tile": {"repeats": [1, 1, 1, 2]},
}
