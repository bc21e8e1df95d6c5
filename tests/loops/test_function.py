"""`function`: traced once for each signature, run from plans after that."""

import copy

import numpy as np

import pydtconv as keras
from pydtconv import GradientTape, function, ops
from tests.loops.small_models import IMAGES, LABELS, RNG, X, dense, model_of, network, trained


def test_a_function_of_an_iterator_may_be_ones_own():
    class Counted(keras.Model):
        steps = 0

        def make_train_function(self, force=False):
            step = super().make_train_function(force)

            def counted(iterator):
                type(self).steps += 1
                return step(iterator)

            return counted

    model, plain = network(Counted), network(keras.Model)
    expected = trained(plain)
    np.testing.assert_allclose(trained(model)["loss"], expected["loss"], rtol=1e-5)
    assert Counted.steps == 6


def test_a_function_is_traced_for_each_signature():
    calls = []

    @function(jit_compile=True)
    def scaled(x, factor=2.0):
        calls.append(x.shape)
        return {"y": ops.exp(x) * factor}

    a, b = RNG.random((2, 3)).astype("float32"), RNG.random((2, 3)).astype("float32")
    np.testing.assert_allclose(scaled(a)["y"], np.exp(a) * 2, rtol=1e-6)
    np.testing.assert_allclose(scaled(b)["y"], np.exp(b) * 2, rtol=1e-6)
    np.testing.assert_allclose(scaled(b, 3.0)["y"], np.exp(b) * 3, rtol=1e-6)
    np.testing.assert_allclose(scaled(b[:1])["y"], np.exp(b[:1]) * 2, rtol=1e-6)
    assert calls == [(2, 3), (2, 3), (1, 3)]


def test_a_function_draws_other_numbers_at_each_run():
    @function
    def drawn():
        return keras.random.normal((4,)), keras.random.normal((4,))

    first, second = drawn(), drawn()
    values = np.concatenate([*first, *second])
    assert len(np.unique(values)) == 16


def test_a_loop_in_a_function_trains():
    model = network(keras.Model)
    optimizer = keras.optimizers.Adam(0.01)
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @function
    def step(x, y):
        with GradientTape() as tape:
            scores = model(x, training=True)
            loss = loss_fn(y, scores) + sum(model.losses)
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
        accuracy.update_state(y, scores)
        return loss

    losses = [float(step(IMAGES, LABELS)) for _ in range(8)]
    assert losses[-1] < losses[0]
    expected = network(keras.Model)
    ours = [expected.train_on_batch(IMAGES, LABELS, return_dict=True)["loss"] for _ in range(8)]
    np.testing.assert_allclose(losses, ours, rtol=1e-4)
    assert 0 < float(accuracy.result()) <= 1


def test_arguments_that_are_equal_but_not_alike_are_traced_each():
    @function
    def scaled(x, by):
        return x * float(sum(by)) if isinstance(by, set) else x * (4.0 if isinstance(by, bool) else float(by) + 1)

    x = np.ones(2, "float32")
    assert [float(scaled(x, {i})[0]) for i in (1, 2, 3)] == [1, 2, 3]
    assert [float(scaled(x, by)[0]) for by in (True, 1, 1.0)] == [4, 2, 2]


def test_a_function_of_a_subclass_calls_that_of_its_parent():
    class Parent(keras.Model):
        @function
        def step(self, x):
            return self(x) * 2.0

    class Child(Parent):
        @function
        def step(self, x):
            return super().step(x) + 1.0

    model = model_of(Child)
    expected = np.asarray(model(X)) * 2 + 1
    np.testing.assert_allclose(model.step(X), expected, rtol=1e-6)
    other = copy.deepcopy(model)
    other.layers[-1].set_weights([np.zeros((3, 1)), np.zeros(1)])
    np.testing.assert_array_equal(other.step(X), np.ones((4, 1)))
    np.testing.assert_allclose(model.step(X), expected, rtol=1e-6)


def test_a_watched_array_of_a_traced_function_has_a_gradient():
    layer, image = dense(), np.ones((2, 3), "float32")

    @function
    def slope():
        with GradientTape() as tape:
            tape.watch(image)
            y = ops.sum(layer(image) * 2.0)
        return tape.gradient(y, image)

    np.testing.assert_array_equal(slope(), np.full((2, 3), 2.0))
