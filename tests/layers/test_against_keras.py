"""Outputs, gradients and configs of every layer against Keras's own, to the precision of its float32 kernels."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pydtconv import config, layers, ops
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.ops.base import Spec
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

IMAGES = (3, 9, 8, 4)


@dataclass
class Case:
    """A layer by name and arguments, and the shapes of its inputs (several for merging layers)."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    shapes: tuple[tuple[int, ...], ...] = (IMAGES,)
    training: bool = False
    shift: float = 0.0

    @property
    def id(self) -> str:
        values = [f"{key}={value}" for key, value in self.arguments.items()]
        return "-".join([self.name, *values, *(["training"] if self.training else [])]).replace(" ", "")


def images(name: str, *variants: dict[str, Any], **kwargs: Any) -> list[Case]:
    """Each variant in channels_last and in channels_first."""
    first = tuple((n, c, h, w) for n, h, w, c in [IMAGES])
    found = []
    for arguments in variants:
        found.append(Case(name, arguments, **kwargs))
        found.append(Case(name, {**arguments, "data_format": "channels_first"}, first, **kwargs))
    return found


VECTORS = ((5, 7),)
PAIRS = ((3, 4, 5), (3, 4, 5))
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


def run(layer: Any, xs: list[np.ndarray], weight: np.ndarray | None, training: bool) -> tuple[Any, list[np.ndarray]]:
    """The output, and the gradients of sum(weight * output) with respect to the inputs and the trainable weights."""
    variables = [Variable(x, dtype="float64", name=f"x{i}") for i, x in enumerate(xs)]
    memory = Memory()
    with Graph(training=True) as graph:
        tensors = [graph.parameter(variable) for variable in variables]
        y = layer(tensors if len(tensors) > 1 else tensors[0], training=training)
        graph.loss = ops.sum(y * graph.input("weight", Spec(tuple(y.shape), "float64")))
    graph.outputs["y"] = y
    weight = np.zeros(y.shape) if weight is None else weight
    found = Executor(build_plan(graph), memory).run({"weight": weight})["y"].copy()
    wanted = [*variables, *layer.trainable_weights]
    return found, [memory.store.gradient_of(v).reshape(v.shape).copy() for v in wanted]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_layer(case, request):
    keras = import_keras()
    import torch

    config.set_floatx("float64")
    keras.config.set_floatx("float64")
    request.addfinalizer(lambda: keras.config.set_floatx("float32"))
    rng = np.random.default_rng(1)
    xs = [rng.normal(0.5, 1, shape) for shape in case.shapes]
    ours = getattr(layers, case.name)(**case.arguments)
    theirs = getattr(keras.layers, case.name).from_config(ours.get_config())

    def joined(values):
        return values if len(values) > 1 else values[0]

    their_xs = [torch.tensor(x, requires_grad=True) for x in xs]
    shape = ours.compute_output_shape(joined([(None, *x.shape[1:]) for x in xs]))
    kwargs = {"training": case.training} if "training" in theirs.call.__code__.co_varnames else {}
    theirs.build(joined([x.shape for x in xs]))
    their_weights = [w for w in theirs.weights if w.name != "count"]
    values = [rng.uniform(0.2, 1.5, tuple(w.shape)) for w in their_weights]
    theirs.set_weights(values)
    ours.set_weights(values)
    expected = theirs(joined(their_xs), **kwargs)
    weight = rng.normal(size=tuple(expected.shape))
    y, gradients = run(ours, xs, weight, case.training)

    assert (y.shape[0], *shape[1:]) == y.shape
    np.testing.assert_allclose(y, expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    wanted = [*their_xs, *(w.value for w in theirs.trainable_weights)]
    expected_gradients = torch.autograd.grad((expected * torch.tensor(weight)).sum(), wanted)
    assert len(gradients) == len(expected_gradients)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, expected_gradient.numpy(), rtol=1e-5, atol=1e-5)
    for w, their_w in zip(ours.weights, their_weights, strict=True):
        np.testing.assert_allclose(w.value, their_w.value.detach().numpy(), rtol=1e-5, err_msg=w.name)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_config_is_equal_to_that_of_keras(case):
    keras = import_keras()
    ours = getattr(layers, case.name)(**case.arguments, name="x").get_config()
    theirs = getattr(keras.layers, case.name)(**case.arguments, name="x").get_config()
    theirs = {key: value for key, value in theirs.items() if key in ours and key != "dtype"}
    assert {key: _plain(value) for key, value in ours.items() if key in theirs} == {
        key: _plain(value) for key, value in theirs.items()
    }
    missing = {"dtype"}
    assert set(ours) - set(theirs) <= missing


def _plain(value: Any) -> Any:
    """Without what differs in form alone: tuples or lists, random seeds of Keras's own."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in ("registered_name", "seed")}
    return value
