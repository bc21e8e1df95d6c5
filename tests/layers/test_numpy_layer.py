"""Layers in NumPy: values, gradients by finite differences, errors for wrong results."""

import numpy as np
import pytest

from pydtconv import Input, Model, config, layers, ops
from pydtconv.graph import Executor, Graph, Memory, Variable, build_plan
from pydtconv.ops.base import Spec


class Swish(layers.NumpyLayer):
    def build(self, input_shape):
        self.beta = self.add_weight((input_shape[-1],), "ones", name="beta")
        self.shift = self.add_weight((), "zeros", trainable=False, name="shift")

    def forward(self, x, beta, shift):
        return x / (1 + np.exp(-beta * x)) + shift

    def backward(self, dy, x, beta, shift):
        s = 1 / (1 + np.exp(-beta * x))
        slope = x * s * (1 - s) * dy
        return s * dy + beta * slope, (x * slope).sum(axis=tuple(range(x.ndim - 1)))


def loss_and_gradients(layer, x, weight):
    """sum(weight * layer(x)), and its gradients with respect to x and to the layer's trainable weights."""
    variable = Variable(x, dtype=x.dtype.name, name="x")
    with Graph(training=True) as graph:
        y = layer(graph.parameter(variable), training=True)
        graph.loss = ops.sum(y * graph.input("weight", Spec(weight.shape, x.dtype.name)))
    graph.outputs["loss"] = graph.loss
    memory = Memory()
    executor = Executor(build_plan(graph), memory)
    loss = float(executor.run({"weight": weight})["loss"])
    wanted = [variable, *layer.trainable_weights]
    return loss, [memory.store.gradient_of(v).reshape(v.shape).copy() for v in wanted]


def test_values_and_symbolic_shape():
    x = Input((4, 3))
    model = Model(x, Swish()(x))
    a = np.random.default_rng(0).normal(size=(2, 4, 3))
    np.testing.assert_allclose(model(a), a / (1 + np.exp(-a)), rtol=1e-5)
    assert model.output_shape == (None, 4, 3)
    assert [w.name for w in model.weights] == ["beta", "shift"]


def test_gradients():
    config.set_floatx("float64")
    rng = np.random.default_rng(0)
    layer = Swish()
    layer.build((None, 3))
    layer.set_weights([rng.uniform(0.5, 2, 3), 0.3])
    x, weight = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    _, gradients = loss_and_gradients(layer, x, weight)

    def total(x, beta):
        return (weight * layer.forward(x, beta, 0.3)).sum()

    beta = layer.beta.value.copy()
    for which, gradient in enumerate(gradients):
        for index in np.ndindex(gradient.shape):
            step = np.zeros(gradient.shape)
            step[index] = 1e-6
            high = total(x + step, beta) if which == 0 else total(x, beta + step)
            low = total(x - step, beta) if which == 0 else total(x, beta - step)
            assert gradient[index] == pytest.approx((high - low) / 2e-6, rel=1e-6, abs=1e-8)


def test_several_inputs_another_shape_and_keywords():
    class Dot(layers.NumpyLayer):
        def compute_output_shape(self, input_shape):
            return (*input_shape[0][:-1], 1)

        def forward(self, a, b, training):
            self.seen = training
            return (a * b).sum(-1, keepdims=True)

        def backward(self, dy, a, b, y, training):
            assert y.shape == dy.shape
            return dy * b, dy * a

    layer = Dot()
    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    np.testing.assert_allclose(layer([a, b]), [[3], [12]])
    assert layer.seen is False
    assert layer.compute_output_shape([(None, 3), (None, 3)]) == (None, 1)
    with Graph(training=True) as graph:
        va, vb = Variable(a, name="a"), Variable(b, name="b")
        graph.loss = ops.sum(layer([graph.parameter(va), graph.parameter(vb)], training=True))
    memory = Memory()
    Executor(build_plan(graph), memory).run({})
    np.testing.assert_allclose(memory.store.gradient_of(va).reshape(a.shape), b)
    np.testing.assert_allclose(memory.store.gradient_of(vb).reshape(a.shape), a)
    assert layer.seen is True


def test_wrong_results_are_named():
    class Wrong(layers.NumpyLayer):
        def forward(self, x):
            return x[:, :-1]

    with pytest.raises(ValueError, match=r"Wrong 'wrong': forward: expected an array of shape \(2, 3\), got \(2, 2\)"):
        Wrong()(np.ones((2, 3)))

    class WrongGradient(layers.NumpyLayer):
        def build(self, input_shape):
            self.add_weight((1,), "ones", name="w")

        def forward(self, x, w):
            return x * w

        def backward(self, dy, x, w):
            return (dy,) if self.few else (dy, x)

    layer = WrongGradient()
    layer.build((None, 3))
    x = np.ones((2, 3), "float32")
    layer.few = True
    with pytest.raises(ValueError, match="expected 2 gradients"):
        loss_and_gradients(layer, x, x)
    layer.few = False
    with pytest.raises(ValueError, match=r"expected gradient 1 of shape \(1,\), got \(2, 3\)"):
        loss_and_gradients(layer, x, x)


def test_arrays_cannot_be_changed():
    class Greedy(layers.NumpyLayer):
        def forward(self, x):
            x += 1
            return x

    with pytest.raises(ValueError, match="read-only"):
        Greedy()(np.ones((2, 3)))


def test_missing_methods():
    with pytest.raises(NotImplementedError, match="forward"):
        layers.NumpyLayer()(np.ones((2, 3)))


def test_frozen_layer_gets_no_gradient():
    layer = Swish(trainable=False)
    layer.build((None, 3))
    x = np.ones((2, 3), "float32")
    _, gradients = loss_and_gradients(layer, x, x)
    assert len(gradients) == 1
