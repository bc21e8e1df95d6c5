"""Convolutions that normalize their results by moving statistics."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import config, layers, ops
from pydtconv.graph import Executor, Graph, Memory, build_plan
from pydtconv.ops.base import Spec
from tests.graph.tables import without


def chain(x):
    """Convolutions of all kinds, with a bias or none, batch normalization of all kinds, what may follow it."""
    kinds = (
        lambda bias: layers.Conv2D(8, 1, use_bias=bias),
        lambda bias: layers.Conv2D(8, 3, padding="same", use_bias=bias),
        lambda bias: layers.Conv2D(8, 3, padding="same", groups=8, use_bias=bias),
        lambda bias: layers.Conv2D(8, 5, padding="same", groups=2, use_bias=bias),
        lambda bias: layers.DepthwiseConv2D(3, padding="same", use_bias=bias),
    )
    for i, kind in enumerate(kinds):
        for j, activation in enumerate(("relu", None, "relu6", "tanh")):
            y = kind((i + j) % 2 > 0)(x)
            y = layers.BatchNormalization(scale=j != 1, center=i != 2)(y, training=False)
            y = layers.Add()([y, x]) if j != 2 else y
            x = y if activation is None else layers.Activation(activation)(y)
    return x


def planned(make, passes=None, shape=(2, 9, 8, 8)):
    keras.utils.set_random_seed(3)
    graph = Graph()
    with graph:
        x = graph.input("x", Spec(shape, keras.config.floatx()))
        graph.outputs = {"y": make(x)}
    return graph, Executor(build_plan(graph, passes=passes), Memory())


def of(executor, name="BatchNorm"):
    return [node for node in executor.plan.graph.nodes if type(node.op).__name__ == name]


def normalizing(executor):
    return [node for node in executor.plan.graph.nodes if getattr(node.op, "normalization", None) is not None]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_follow_weights_and_statistics(dtype):
    keras.config.set_floatx(dtype)
    sides = [planned(chain, passes) for passes in (None, without("normalized-results"))]
    assert len(normalizing(sides[0][1])) == 15  # relu6 is left to who reads
    assert len(of(sides[0][1])) == 5
    assert len(of(sides[1][1])) == 20
    assert any(node.op.residual for node in normalizing(sides[0][1]))
    rtol, images, found = (
        {"float32": 1e-4, "float64": 1e-11}[dtype],
        np.random.default_rng(1).normal(size=(2, 9, 8, 8)),
        [],
    )
    for turn in range(2):
        for graph, _ in sides:
            rng = np.random.default_rng(turn)
            for tensor in graph.parameters:
                low, high = (0.5, 1.5) if len(tensor.shape) == 1 else (-0.3, 0.3)
                tensor.variable.assign(rng.uniform(low, high, tensor.shape))
        ours, plain = (executor.run({"x": images})["y"].copy() for _, executor in sides)
        np.testing.assert_allclose(ours, plain, rtol=rtol, atol=rtol * np.abs(plain).max())
        found.append(ours)
    assert np.abs(found[0] - found[1]).max() > 0.1


def block(x):
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x), training=False)
    return layers.ReLU()(layers.Add()([y, x]))


def test_one_operator_is_left():
    _, executor = planned(block)
    (node,) = executor.plan.graph.nodes
    assert node.op.residual
    assert node.op.activation == "relu"


def test_training_and_gradients_keep_their_statistics():
    for training in (True, False):
        graph = Graph(training=training)
        with graph:
            x = graph.input("x", Spec((2, 9, 8, 8), "float32"))
            y = layers.BatchNormalization()(layers.Conv2D(8, 3)(x), training=training)
            graph.outputs = {"y": y}
            graph.loss = ops.Mean()(y)
        assert not any(getattr(node.op, "normalization", None) for node in build_plan(graph).graph.nodes)


@pytest.fixture
def usual():
    """Puts the precisions back."""
    yield
    config.set_conv_precision("fast")
    config.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("usual")
def test_values_stay_where_they_were_asked_for():
    """In bfloat16, by products of it, in strict precision, and where what is not normalized is read, too."""

    def twice(x):
        y = layers.Conv2D(8, 3, padding="same")(x)
        return layers.Add()([layers.BatchNormalization()(y, training=False), y])

    assert not normalizing(planned(twice)[1])
    keras.config.set_dtype_policy("mixed_bfloat16")
    assert not normalizing(planned(block)[1])
    keras.config.set_dtype_policy("float32")
    config.set_float32_matmul_precision("high")
    assert not normalizing(planned(block)[1])
    config.set_float32_matmul_precision("highest")
    config.set_conv_precision("strict")
    strict, plain = (planned(block, passes)[1] for passes in (None, without("normalized-results")))
    images = np.random.default_rng(1).normal(size=(2, 9, 8, 8))
    assert (strict.run({"x": images})["y"] == plain.run({"x": images})["y"]).all()


def test_a_residual_that_lies_beside_the_result_in_a_concatenation():
    x = layers.Input((8, 8, 16))
    a = layers.Conv2D(16, 3, padding="same")(x)
    b = layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", use_bias=False)(a))
    model = keras.Model(x, layers.Concatenate()([a, layers.Add()([b, a])]))
    images = np.random.default_rng(0).normal(size=(2, 8, 8, 16)).astype("float32")
    first, second = np.split(model.predict(images, verbose=0), 2, -1)
    inner = keras.Model(x, [a, b])
    expected = inner.predict(images, verbose=0)
    np.testing.assert_allclose(first, expected[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second, expected[0] + expected[1], rtol=1e-5, atol=1e-5)


class Twice(keras.Model):
    """A normalization that a first call changes before a second one uses it."""

    def __init__(self):
        super().__init__()
        self.convolution = layers.Conv2D(8, 1, use_bias=False)
        self.normalization = layers.BatchNormalization(momentum=0.0)

    def call(self, x, training=False):
        first, second = self.convolution(x), self.convolution(x * 3 + 1)
        changing = self.normalization(first, training=True)
        return self.normalization(second, training=False) + 0 * changing


def test_statistics_that_change_within_the_graph_are_those_at_the_call():
    model, x = Twice(), np.random.default_rng(0).normal(size=(2, 4, 4, 8)).astype("float32")
    model.predict(x, verbose=0)
    model.normalization.moving_mean.assign(np.zeros(8))
    model.normalization.moving_variance.assign(np.ones(8))
    found = model.predict(x, verbose=0)
    first, second = (np.asarray(model.convolution(each)) for each in (x, x * 3 + 1))
    mean, variance = first.mean((0, 1, 2)), first.var((0, 1, 2))
    np.testing.assert_allclose(found, (second - mean) / np.sqrt(variance + 1e-3), rtol=1e-4, atol=1e-4)
