"""Layers that assign to variables of theirs in `call`: each step does it, and what follows reads what was assigned."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops, optimizers
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

X = np.random.default_rng(0).random((24, 3), np.float32)


def moving(keras):
    class Moving(keras.layers.Layer):
        def build(self, shape):
            weight = {"initializer": "zeros", "trainable": False}
            self.mean = self.add_weight(shape=(shape[-1],), name="mean", **weight)
            self.calls = self.add_weight(shape=(), name="calls", **weight)
            self.calls.assign(1.0)
            self.steps = self.add_weight(shape=(), dtype="int32", name="steps", **weight)

        def call(self, x, training=False):
            if training:
                self.mean.assign(0.9 * self.mean + 0.1 * keras.ops.mean(x, axis=0))
                self.calls.assign_add(1)
                self.calls.assign_sub(self.calls / 2)
                self.steps.assign_add(1)
            return (x - self.mean) * keras.ops.sqrt(self.calls + 1.0)

    return Moving()


def results(keras, functional, **compiled):
    layer, ones = moving(keras), {"kernel_initializer": "ones"}
    parts = [keras.layers.Dense(4, **ones), layer, keras.layers.Dense(1, **ones)]
    if functional:
        x = inputs = keras.layers.Input((3,))
        for part in parts:
            x = part(x)
        model = keras.Model(inputs, x)
    else:
        model = keras.Sequential([keras.layers.Input((3,)), *parts])
    model.compile(keras.optimizers.SGD(1e-4), "mse", **compiled)
    history = model.fit(X, X[:, :1], batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    model(X[:2], training=True)
    called = model(X[:2])
    model.train_on_batch(X, X[:, :1])
    found = [history, np.asarray(called.detach() if hasattr(called, "detach") else called)]
    found += [np.asarray(v.numpy()) for v in (layer.mean, layer.calls, layer.steps)]
    return [*found, model.predict(X[:2], verbose=0), parts[0].get_weights()[0]]


@pytest.mark.parametrize("functional", [True, False], ids=["functional", "sequential"])
def test_what_is_assigned_is_that_of_keras(functional):
    for ours, theirs in zip(results(pydtconv, functional), results(import_keras(), functional), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_steps_that_run_as_python_assign_the_same():
    for eager, planned in zip(results(pydtconv, True, run_eagerly=True), results(pydtconv, True), strict=True):
        np.testing.assert_allclose(eager, planned, rtol=1e-6)


def test_gradients_go_past_what_was_assigned_before_and_after_it_was_read():
    class Both(layers.Layer):
        def build(self, shape):
            self.mean = self.add_weight(shape=(), initializer="ones", trainable=False, name="mean")

        def call(self, x):
            before = x * self.mean
            self.mean.assign_add(ops.mean(x))
            return before + x * x * self.mean

    layer, x = Both(), np.array([2.0, 4.0], "float32")
    with pydtconv.GradientTape() as tape:
        tape.watch(x)
        y = layer(layer(x))
        kept = layer.mean.numpy()
    first = 1 * x + x * x * 4  # the mean is 1, then 4
    np.testing.assert_allclose(y, 4 * first + first**2 * (4 + first.mean()), rtol=1e-6)
    assert kept == 4 + first.mean()
    with pydtconv.GradientTape() as tape:
        tape.watch(x)
        y = Both()(x)
    np.testing.assert_allclose(tape.gradient(y, x), 1 + 2 * x * 4, rtol=1e-6)


class Counting(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.count = self.add_weight(shape=(), initializer="zeros", trainable=False, name="count")

    def call(self, x):
        self.count.assign_add(1.0)
        return x * self.count


def test_each_call_counts():
    layer = Counting()
    inputs = pydtconv.Input((2,))
    model = pydtconv.Model(inputs, layer(layer(inputs)))
    assert layer.count.numpy() == 0  # the trace of the shapes has no values
    np.testing.assert_array_equal(model.predict(np.ones((4, 2)), batch_size=2, verbose=0)[:, 0], [2, 2, 12, 12])
    np.testing.assert_array_equal(model(np.ones((1, 2))), [[30, 30]])
    np.testing.assert_array_equal(layer(np.ones((1, 2))), [[7, 7]])
    assert layer.count.numpy() == 7


def test_in_a_step_of_ones_own():
    class Model(pydtconv.Model):
        def train_step(self, data):
            self(data[0], training=True)
            return {}

    layer = Counting()
    inputs = pydtconv.Input((2,))
    model = Model(inputs, layer(inputs))
    model.compile("sgd")
    model.fit(np.ones((6, 2)), np.ones((6, 2)), batch_size=2, verbose=0)
    assert layer.count.numpy() == 3


def test_no_gradient_goes_through_what_was_assigned():
    class Last(layers.Layer):
        def build(self, shape):
            self.last = self.add_weight(shape=shape[1:], initializer="zeros", trainable=False, name="last")

        def call(self, x):
            self.last.assign(ops.sum(x, axis=0))
            return x * self.last

    first = layers.Dense(1, kernel_initializer="ones", use_bias=False)
    model = pydtconv.Sequential([pydtconv.Input((1,)), first, Last()])
    model.compile(optimizers.SGD(1.0), lambda y, p: p)
    model.train_on_batch(np.ones((1, 1)), np.ones((1, 1)))
    np.testing.assert_allclose(first.kernel.numpy(), [[0.0]])  # 1 - 1, not 1 - 2


def test_what_cannot_be_assigned_is_refused():
    class Wrong(Counting):
        def call(self, x):
            self.count.assign(ops.mean(x, axis=0))
            return x

    with pytest.raises(ValueError, match=r"count.*expected shape \(\), got \(2,\)"):
        Wrong()(pydtconv.Input((2,)))


@pytest.mark.parametrize("own_step", [False, True], ids=["fit", "train_step"])
def test_the_value_of_a_weight_in_a_call_is_trained(own_step):
    class Product(layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], 2), initializer="ones", name="kernel")

        def call(self, x):
            return ops.matmul(x, self.kernel.value) * self.kernel.value.shape[1]

    class Model(pydtconv.Sequential):
        def train_step(self, data):
            return super().train_step(data)

    layer = Product()
    kind = Model if own_step else pydtconv.Sequential
    model = kind([pydtconv.Input((3,)), layer])
    model.compile(optimizers.SGD(0.1), "mse")
    losses = model.fit(X, np.zeros((24, 2)), epochs=3, verbose=0).history["loss"]
    assert losses[2] < losses[0] / 2
    x = X[:2]
    np.testing.assert_allclose(model.predict(x, verbose=0), 2 * x @ layer.kernel.value, rtol=1e-5)
    np.testing.assert_allclose(model(x), 2 * x @ layer.kernel.value, rtol=1e-5)
    assert isinstance(layer.kernel.value, np.ndarray)


MASK = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], "float32")


def masked(keras, optimizer, **compiled):
    """A trained kernel with a mask, as PixelCNN has it, and a trained table that follows its inputs, as a codebook."""

    class Masked(keras.layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(3, 4), initializer="ones", name="kernel")
            self.table = self.add_weight(shape=(3,), initializer="ones", name="table")

        def call(self, x):
            self.kernel.assign(self.kernel * MASK)
            self.kernel.assign_add(0.01 * self.kernel)
            self.table.assign(0.9 * self.table + 0.1 * keras.ops.mean(x, axis=0))
            return keras.ops.matmul(x * self.table, self.kernel)

    layer = Masked()
    model = keras.Sequential([keras.layers.Input((3,)), layer])
    model.compile(optimizer(keras), "mse", **compiled)
    targets = np.concatenate([X, X[:, :1]], axis=1)
    history = model.fit(X, targets, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    trained = [np.asarray(v.numpy()) for v in (layer.kernel, layer.table)]
    return [history, *trained, model.predict(X[:2], verbose=0), np.asarray(layer.kernel.numpy())]


@pytest.mark.parametrize("eager", [False, True], ids=["planned", "eager"])
@pytest.mark.parametrize(
    ("optimizer", "arguments"),
    [
        ("SGD", {}),
        ("Adam", {}),
        ("AdamW", {"weight_decay": 0.5}),
        ("Ftrl", {}),
        ("SGD", {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}),
    ],
    ids=lambda value: value if isinstance(value, str) else "_".join(value),
)
def test_trained_weights_are_assigned_as_in_keras(optimizer, arguments, eager):
    def make(keras):
        return getattr(keras.optimizers, optimizer)(0.01, **arguments)

    ours, theirs = masked(pydtconv, make, run_eagerly=eager), masked(import_keras(), make)
    for each, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(each, expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(ours[-1] == 0, MASK == 0)


def test_a_constraint_holds_behind_an_assigned_weight():
    class Halved(layers.Layer):
        def build(self, shape):
            self.kernel = self.add_weight(shape=(3, 4), initializer="ones", constraint="non_neg", name="kernel")

        def call(self, x):
            self.kernel.assign(0.5 * self.kernel)
            return ops.matmul(x, self.kernel)

    layer = Halved()
    model = pydtconv.Sequential([layers.Input((3,)), layer])
    model.compile(pydtconv.optimizers.SGD(0.5), "mse")
    model.fit(X, -np.ones((len(X), 4), "float32"), batch_size=8, epochs=2, verbose=0)
    kernel = np.asarray(layer.kernel.value)
    assert (kernel >= 0).all()
    assert (kernel == 0).any()
