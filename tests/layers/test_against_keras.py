"""Outputs and gradients of every layer against Keras's own, to the precision of its float32 kernels."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pydtconv import config, layers, ops
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.ops.base import Spec
from tests.real_keras import import_keras, output_and_gradients

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

IMAGES = (3, 9, 8, 4)
SIGNALS = (3, 11, 4)
VOLUMES = (2, 5, 6, 4, 2)


@dataclass
class Case:
    """A layer by name and arguments, and the shapes of its inputs (several for merging layers)."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = (IMAGES,)
    training: bool = False
    shift: float = 0.0
    rtol: float = 1e-5

    @property
    def id(self) -> str:
        values = [f"{key}={value}" for key, value in self.arguments.items()]
        return "-".join([self.name, *values, *(["training"] if self.training else [])]).replace(" ", "")


def images(name: str, *variants: dict[str, Any], shape: tuple[int, ...] = IMAGES, **kwargs: Any) -> list[Case]:
    """Each variant in channels_last and in channels_first."""
    first = ((shape[0], shape[-1], *shape[1:-1]),)
    found = []
    for arguments in variants:
        found.append(Case(name, arguments, (shape,), **kwargs))
        found.append(Case(name, {**arguments, "data_format": "channels_first"}, first, **kwargs))
    return found


VECTORS = ((5, 7),)
PAIRS = ((3, 4, 5), (3, 4, 5))
SEQUENCES = ((2, 4, 5), (2, 6, 5))
#: where Keras exports a class by another name
KERAS_NAMES = {"GroupedQueryAttention": "GroupQueryAttention"}
#: layers whose inputs are arguments, not a list
SEPARATE = ("MultiHeadAttention", "GroupedQueryAttention")
CASES = [
    Case("Dense", {"units": 6}, VECTORS),
    Case("Dense", {"units": 6, "activation": "tanh", "use_bias": False}, ((2, 3, 7),)),
    *images(
        "Conv2D",
        {"filters": 6, "kernel_size": 3},
        {"filters": 6, "kernel_size": (2, 3), "strides": (2, 2), "padding": "same", "activation": "relu"},
        {"filters": 6, "kernel_size": 3, "dilation_rate": 2, "use_bias": False},
        {"filters": 6, "kernel_size": 1, "groups": 2},
    ),
    Case("Conv1D", {"filters": 6, "kernel_size": 3, "padding": "same", "strides": 2}, ((3, 9, 4),)),
    Case("Conv1D", {"filters": 6, "kernel_size": 3, "padding": "causal", "dilation_rate": 2}, ((3, 9, 4),)),
    *images(
        "DepthwiseConv2D",
        {"kernel_size": 3},
        {"kernel_size": 3, "strides": 2, "padding": "same", "depth_multiplier": 2},
    ),
    *images("SeparableConv2D", {"filters": 5, "kernel_size": 3, "padding": "same"}),
    *images(
        "Conv2DTranspose",
        {"filters": 5, "kernel_size": 3},
        {"filters": 5, "kernel_size": 3, "strides": 2, "padding": "same"},
        {"filters": 5, "kernel_size": 2, "strides": 3, "activation": "sigmoid"},
        {"filters": 5, "kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 1},
    ),
    *images("Conv1D", {"filters": 6, "kernel_size": 3, "strides": 2, "groups": 2}, shape=SIGNALS),
    *images(
        "Conv3D",
        {"filters": 3, "kernel_size": 3, "padding": "same", "activation": "relu"},
        {"filters": 4, "kernel_size": (2, 3, 1), "strides": (2, 1, 3), "groups": 2},
        {"filters": 3, "kernel_size": 2, "dilation_rate": (1, 2, 3), "use_bias": False},
        shape=VOLUMES,
    ),
    Case("DepthwiseConv1D", {"kernel_size": 3, "strides": 2, "padding": "same", "depth_multiplier": 2}, (SIGNALS,)),
    *images("SeparableConv1D", {"filters": 5, "kernel_size": 3, "padding": "same"}, shape=SIGNALS),
    *images(
        "Conv1DTranspose",
        {"filters": 5, "kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 1},
        {"filters": 5, "kernel_size": 2, "strides": 3},
        shape=SIGNALS,
    ),
    *images(
        "Conv3DTranspose",
        {"filters": 3, "kernel_size": (2, 3, 1), "strides": (1, 2, 2), "padding": "same"},
        {"filters": 3, "kernel_size": 2, "activation": "tanh"},
        shape=VOLUMES,
    ),
    *images("MaxPooling1D", {}, {"pool_size": 3, "strides": 2, "padding": "same"}, shape=SIGNALS),
    *images("MaxPooling3D", {}, {"pool_size": (3, 2, 1), "strides": (2, 1, 1), "padding": "same"}, shape=VOLUMES),
    *images("AveragePooling1D", {"pool_size": 3, "strides": 2, "padding": "same"}, shape=SIGNALS),
    *images("AveragePooling3D", {"pool_size": (3, 1, 3), "strides": 1, "padding": "same"}, shape=VOLUMES),
    *images("GlobalAveragePooling1D", {"keepdims": True}, shape=SIGNALS),
    *images("GlobalMaxPooling1D", {}, shape=SIGNALS),
    *images("GlobalAveragePooling3D", {}, shape=VOLUMES),
    *images("GlobalMaxPooling3D", {"keepdims": True}, shape=VOLUMES),
    *images("ZeroPadding1D", {"padding": (2, 1)}, shape=SIGNALS),
    *images("ZeroPadding3D", {"padding": ((1, 0), (2, 3), (0, 1))}, shape=VOLUMES),
    Case("Cropping1D", {"cropping": (2, 1)}, (SIGNALS,)),
    *images("Cropping3D", {"cropping": ((1, 0), (2, 1), (0, 1))}, shape=VOLUMES),
    Case("UpSampling1D", {"size": 3}, (SIGNALS,)),
    *images("UpSampling3D", {"size": (2, 1, 3)}, shape=VOLUMES),
    Case("SpatialDropout1D", {"rate": 0.5}, (SIGNALS,)),
    Case("SpatialDropout3D", {"rate": 0.5}, (VOLUMES,)),
    *(
        case
        for kind in ("Average", "Max")
        for size, shape in (((3,), SIGNALS), ((3, 4), IMAGES), ((2, 4, 3), VOLUMES))
        for case in images(f"Adaptive{kind}Pooling{len(size)}D", {"output_size": size}, shape=shape)
    ),
    *images("MaxPooling2D", {}, {"pool_size": 3, "strides": 2, "padding": "same"}),
    *images("AveragePooling2D", {"pool_size": 2}, {"pool_size": 3, "strides": 1, "padding": "same"}),
    *images("GlobalAveragePooling2D", {}, {"keepdims": True}),
    *images("GlobalMaxPooling2D", {}, {"keepdims": True}),
    Case("BatchNormalization"),
    Case("BatchNormalization", training=True),
    Case("BatchNormalization", {"axis": 1, "momentum": 0.5, "scale": False}, training=True),
    Case("BatchNormalization", {"center": False, "epsilon": 0.1}, VECTORS, training=True),
    Case("LayerNormalization"),
    Case("LayerNormalization", {"axis": [1, 2, 3]}),
    Case("LayerNormalization", {"center": False, "scale": False}, VECTORS),
    Case("GroupNormalization", {"groups": 2}),
    Case("GroupNormalization", {"groups": -1, "axis": 1, "center": False}),
    Case("RMSNormalization"),
    Case("RMSNormalization", {"axis": [2, 3]}),
    Case("UnitNormalization", {"axis": [1, 3]}),
    Case("EinsumDense", {"equation": "abc,cde->abde", "output_shape": (None, 2, 3), "bias_axes": "de"}, ((3, 4, 5),)),
    Case(
        "EinsumDense",
        {"equation": "abc,bcd->abd", "output_shape": (4, 6), "bias_axes": "b", "activation": "tanh"},
        ((3, 4, 5),),
    ),
    *(
        Case("EinsumDense", {"equation": "bc...,cde->bde...", "output_shape": (2, 3), "bias_axes": axes}, ((3, 4, 5),))
        for axes in ("d", "e", "de")
    ),
    Case("EinsumDense", {"equation": "...x,xy->...y", "output_shape": 6, "bias_axes": "y"}, ((3, 4, 5),)),
    Case("Attention", {"use_scale": True}, SEQUENCES),
    Case("Attention", {"score_mode": "concat"}, (*SEQUENCES, (2, 6, 5))),
    Case("AdditiveAttention", {}, SEQUENCES),
    Case("MultiHeadAttention", {"num_heads": 2, "key_dim": 3}, SEQUENCES, rtol=1e-4),
    Case(
        "MultiHeadAttention",
        {"num_heads": 2, "key_dim": 3, "value_dim": 4, "output_shape": (6,), "use_gate": True, "sliding_window": 3},
        (*SEQUENCES, (2, 6, 7)),
        rtol=1e-4,
    ),
    Case("MultiHeadAttention", {"num_heads": 2, "key_dim": 3, "dropout": 0.5, "use_bias": False}, SEQUENCES),
    Case("MultiHeadAttention", {"num_heads": 2, "key_dim": 3}, ((2, 3, 4, 5), (2, 2, 3, 5))),
    Case("MultiHeadAttention", {"num_heads": 2, "key_dim": 3, "attention_axes": 2}, ((2, 3, 4, 5), (2, 3, 6, 5))),
    Case(
        "GroupedQueryAttention",
        {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2, "use_gate": True},
        SEQUENCES,
        rtol=1e-4,
    ),
    Case("Dot", {"axes": 2}, SEQUENCES),
    Case("Dot", {"axes": (1, -1), "normalize": True}, ((3, 4, 5), (3, 2, 4))),
    Case("Dot", {"axes": 1}, ((3, 4), (3, 4))),
    Case("Masking", {"mask_value": 0.5}, ((3, 4, 5),)),
    Case("Dropout", {"rate": 0.5}),
    Case("SpatialDropout2D", {"rate": 0.5}),
    Case("GaussianNoise", {"stddev": 0.5}),
    Case("Dropout", {"rate": 0.0}, training=True),
    *images("Flatten", {}),
    Case("Reshape", {"target_shape": (6, -1)}),
    Case("Permute", {"dims": (3, 1, 2)}),
    Case("RepeatVector", {"n": 3}, VECTORS),
    Case("Activation", {"activation": "gelu"}),
    Case("ReLU"),
    Case("ReLU", {"max_value": 1.0, "negative_slope": 0.1, "threshold": 0.2}),
    Case("LeakyReLU"),
    Case("ELU", {"alpha": 0.5}),
    Case("PReLU", {"shared_axes": [1, 2], "alpha_initializer": "random_normal"}),
    Case("Softmax"),
    Case("Softmax", {"axis": 1}),
    Case("Add", {}, PAIRS),
    Case("Add", {}, (*PAIRS, (3, 4, 5))),
    Case("Add", {}, ((3, 4, 5), (3, 1, 5))),
    Case("Subtract", {}, PAIRS),
    Case("Multiply", {}, PAIRS),
    Case("Average", {}, (*PAIRS, (3, 4, 5))),
    Case("Maximum", {}, PAIRS),
    Case("Minimum", {}, PAIRS),
    Case("Concatenate", {}, (*PAIRS, (3, 4, 2))),
    Case("Concatenate", {"axis": 1}, ((3, 4, 5), (3, 2, 5))),
    *images("ZeroPadding2D", {"padding": ((1, 0), (2, 3))}),
    *images("Cropping2D", {"cropping": ((1, 0), (2, 3))}),
    *images("UpSampling2D", {"size": (2, 3)}, {"interpolation": "bilinear"}),
    Case("Rescaling", {"scale": 0.5, "offset": -1.0}),
    Case("Normalization", {"mean": [1.0, 2, 3, 4], "variance": [4.0, 3, 2, 1]}),
    Case("Normalization", {"axis": None, "mean": 1.0, "variance": 4.0, "invert": True}),
    Case("Identity"),
    Case("RandomFlip", {"mode": "horizontal"}),
]


def arguments_of(layer: Any, values: list[Any]) -> list[Any]:
    """What a layer is called with, or built with: its inputs, a list of them, or the only one."""
    if type(layer).__name__ in SEPARATE:
        return list(values)
    return [list(values) if len(values) > 1 else values[0]]


def run(layer: Any, xs: list[np.ndarray], weight: np.ndarray | None, training: bool) -> tuple[Any, list[np.ndarray]]:
    """The output, and the gradients of sum(weight * output) with respect to the inputs and the trainable weights."""
    variables = [Variable(x, dtype="float64", name=f"x{i}") for i, x in enumerate(xs)]
    memory = Memory()
    with Graph(training=True) as graph:
        tensors = [graph.parameter(variable) for variable in variables]
        y = layer(*arguments_of(layer, tensors), training=training)
        graph.loss = ops.sum(y * graph.input("weight", Spec(tuple(y.shape), "float64")))
    graph.outputs["y"] = y
    weight = np.zeros(y.shape) if weight is None else weight
    found = Executor(build_plan(graph), memory).run({"weight": weight})["y"].copy()
    wanted = [*variables, *layer.trainable_weights]
    return found, [memory.store.gradient_of(v).reshape(v.shape).copy() for v in wanted]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_layer(case, request):
    keras = import_keras("jax")
    if keras.backend.backend() == "jax" and "value_dim" in case.arguments:
        pytest.skip("Keras on JAX has attention of values as wide as keys only")
    config.set_floatx("float64")
    keras.config.set_floatx("float64")
    request.addfinalizer(lambda: keras.config.set_floatx("float32"))
    rng = np.random.default_rng(1)
    xs = [rng.normal(0.5, 1, shape) for shape in case.shapes]
    ours = getattr(layers, case.name)(**case.arguments)
    theirs = getattr(keras.layers, KERAS_NAMES.get(case.name, case.name)).from_config(ours.get_config())

    shape = ours.compute_output_shape(*arguments_of(ours, [(None, *x.shape[1:]) for x in xs]))
    kwargs = {"training": case.training} if "training" in theirs.call.__code__.co_varnames else {}
    theirs.build(*arguments_of(theirs, [x.shape for x in xs]))
    their_weights = [w for w in theirs.weights if w.name != "count"]
    values = [rng.uniform(0.2, 1.5, tuple(w.shape)) for w in their_weights]
    theirs.set_weights(values)
    if not ours.built:
        ours.build(*arguments_of(ours, [x.shape for x in xs]))
    ours.set_weights(values)
    arguments = arguments_of(theirs, xs)
    expected, weight, expected_gradients = output_and_gradients(
        keras, theirs, arguments, lambda shape: rng.normal(size=shape), **kwargs
    )
    y, gradients = run(ours, xs, weight, case.training)

    assert (y.shape[0], *shape[1:]) == y.shape
    np.testing.assert_allclose(y, expected, rtol=case.rtol, atol=case.rtol)
    assert len(gradients) == len(expected_gradients)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, expected_gradient, rtol=case.rtol, atol=case.rtol)
    for w, their_w in zip(ours.weights, their_weights, strict=True):
        np.testing.assert_allclose(w.value, keras.ops.convert_to_numpy(their_w.value), rtol=1e-5, err_msg=w.name)
