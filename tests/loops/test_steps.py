"""train_step and its kin: as fit's own step, traced once, with what Python code may do in them."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function, layers, ops

RNG = np.random.default_rng(0)
X, Y = RNG.random((40, 6, 6, 2)).astype("float32"), RNG.integers(0, 3, 40)


class Own(keras.Model):
    """Keras's documented step; `traces` counts the runs of the Python code."""

    traces = 0

    def train_step(self, data):
        type(self).traces += 1
        x, y = data
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


class Looking(Own):
    """The same, which asks for a value."""

    def train_step(self, data):
        results = super().train_step(data)
        self.last = float(results["loss"])
        return results


def network(kind, **options):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, kernel_regularizer="l2", activation="relu")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.ActivityRegularization(l2=0.01)(x)
    model = kind(inputs, layers.Dense(3)(layers.Flatten()(x)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], **options)
    return model


def trained(model):
    keras.utils.set_random_seed(1)
    return model.fit(X, Y, epochs=2, batch_size=16, validation_data=(X, Y), verbose=0).history


def test_a_step_of_ones_own_trains_as_fit_does_and_is_traced_once_for_each_shape():
    model, own = network(keras.Model), network(Own)
    expected = trained(model)
    Own.traces = 0
    found = trained(own)
    assert Own.traces == 2  # 16 samples, and the last 8
    assert found.keys() == expected.keys()
    for a, b in zip(model.weights, own.weights, strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["val_loss"], expected["val_loss"], rtol=1e-5)
    np.testing.assert_allclose(found["accuracy"], expected["accuracy"])


@pytest.mark.parametrize("how", ["run_eagerly", "asks for a value"])
def test_a_step_that_runs_as_python_trains_alike(how):
    model = network(keras.Model)
    own = network(Own, run_eagerly=True) if how == "run_eagerly" else network(Looking)
    trained(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained(own)
    told = [str(each.message) for each in caught if "runs as it is written" in str(each.message)]
    assert len(told) == (how != "run_eagerly")
    for a, b in zip(model.weights, own.weights, strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["run_eagerly", "train_step"])
def test_losses_of_single_outputs_are_those_of_the_planned_step(how):
    class Same(keras.Model):
        def train_step(self, data):
            return super().train_step(data)

    x, found = np.random.default_rng(0).random((10, 4), np.float32), []
    for kind, eager in ((keras.Model, False), (Same if how == "train_step" else keras.Model, how == "run_eagerly")):
        inputs = keras.Input((4,))
        outputs = [layers.Dense(n, name=f"out{n}", kernel_initializer="ones")(inputs) for n in (1, 2)]
        model = kind(inputs, outputs)
        model.compile(keras.optimizers.SGD(0.1), ["mse", "mae"], loss_weights=[1, 0.5], run_eagerly=eager)
        y = [x[:, :1], x[:, :2]]
        history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
        found.append((history, model.evaluate(x, y, batch_size=4, verbose=0)))
    (planned, evaluated), (history, others) = found
    assert list(history) == list(planned) == ["loss", "out1_loss", "out2_loss"]
    for name, values in planned.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-5)
    np.testing.assert_allclose(others, evaluated, rtol=1e-5)


def test_keras_own_step_can_be_extended_and_run_eagerly():
    class Extended(keras.Model):
        def train_step(self, data):
            return super().train_step(data) | {"twice": ops.convert_to_tensor(2.0)}

    model, eager, extended = network(keras.Model), network(keras.Model, run_eagerly=True), network(Extended)
    expected = trained(model)
    assert trained(eager).keys() == expected.keys()
    assert trained(extended)["twice"] == [2.0, 2.0]
    for other in eager, extended:
        for a, b in zip(model.weights, other.weights, strict=True):
            np.testing.assert_allclose(a.value, b.value, rtol=1e-5, atol=1e-6)


def test_evaluation_and_prediction_of_ones_own():
    class Steps(keras.Model):
        def test_step(self, data):
            x, _ = data
            return {"mean": ops.mean(self(x, training=False)), "count": float(x.shape[0])}

        def predict_step(self, data):
            return ops.softmax(self(data, training=False))

    model = network(Steps)
    scores = np.asarray(model(X))
    found = model.evaluate(X, Y, batch_size=40, verbose=0, return_dict=True)
    assert found == {"mean": pytest.approx(scores.mean(), rel=1e-4), "count": 40}
    assert model.evaluate(X, Y, batch_size=40, verbose=0) == [40, found["mean"]]  # by the alphabet, as in Keras
    predicted = model.predict(X, batch_size=16, verbose=0)
    np.testing.assert_allclose(predicted.sum(-1), np.ones(40), rtol=1e-5)
    assert predicted.shape == (40, 3)
    np.testing.assert_allclose(model.predict_on_batch(X[:4]), predicted[:4], rtol=1e-5)


def test_variables_and_two_optimizers_in_a_step():
    class Averaging(keras.Model):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.count = self.add_weight((), "zeros", trainable=False, name="count")
            self.average = self.add_weight((64, 3), "zeros", trainable=False, name="average")

        def train_step(self, data):
            x, y = data
            first, last = self.layers[1], self.layers[-1]
            with GradientTape(persistent=True) as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            a = tape.gradient(loss, first.trainable_variables)
            b = tape.gradient(loss, last.trainable_variables)
            self.first.apply(a, first.trainable_variables)
            self.last.apply_gradients(zip(b, last.trainable_variables, strict=True))
            self.count.assign_add(1.0)
            self.average.assign(0.9 * self.average + 0.1 * last.kernel)
            return {"loss": loss, "count": self.count * 1.0}

    model, rates = network(Averaging), (0.1, 0.2)
    model.first, model.last = (keras.optimizers.SGD(rate) for rate in rates)
    kernel, start = model.layers[-1].kernel, model.layers[-1].kernel.numpy()
    other = network(keras.Model)
    with GradientTape() as tape:
        loss = other.compute_loss(y=Y[:16], y_pred=other(X[:16], training=True))
    gradient = np.asarray(tape.gradient(loss, other.layers[-1].kernel))
    found = model.train_on_batch(X[:16], Y[:16], return_dict=True)
    assert found == {"loss": pytest.approx(float(loss), rel=1e-5), "count": 1.0}
    np.testing.assert_allclose(kernel.value, start - rates[1] * gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.average.value, 0.1 * kernel.value, rtol=1e-5)
    assert model.train_on_batch(X[:16], Y[:16], return_dict=True)["count"] == 2.0
    assert model.first.iterations == model.last.iterations == 2


def test_freezing_traces_anew():
    model = network(Own)
    trained(model)
    model.layers[1].trainable = False
    frozen, last = model.layers[1].get_weights(), model.layers[-1].get_weights()
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(frozen[0], model.layers[1].get_weights()[0])
    assert np.abs(last[0] - model.layers[-1].get_weights()[0]).max() > 0


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


def test_slots_are_in_the_order_in_which_variables_are_given():
    """As files keep them, which are read into an optimizer that was built with the trainable variables."""
    orders = []
    for kind, eager in ((keras.Model, False), (Own, False), (Own, True)):
        model = network(kind, run_eagerly=eager)
        model.fit(X, Y, verbose=0)
        orders.append([variable.shape for variable in model.optimizer.variables])
    assert orders[1] == orders[2] == orders[0]


def test_a_model_with_a_step_of_its_own_is_copied_and_pickled():
    model = network(Own)
    trained(model)
    for other in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
        np.testing.assert_array_equal(other.predict(X[:2], verbose=0), model.predict(X[:2], verbose=0))
        trained(other)


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

    losses = [float(step(X, Y)) for _ in range(8)]
    assert losses[-1] < losses[0]
    expected = network(keras.Model)
    ours = [expected.train_on_batch(X, Y, return_dict=True)["loss"] for _ in range(8)]
    np.testing.assert_allclose(losses, ours, rtol=1e-4)
    assert 0 < float(accuracy.result()) <= 1


def test_what_a_step_returns_and_applies_is_checked():
    class Wrong(keras.Model):
        def train_step(self, data):
            return 3

    with pytest.raises(ValueError, match="train_step: expected a dict of results"):
        network(Wrong).fit(X, Y, verbose=0)
    optimizer, variable = keras.optimizers.SGD(), keras.Variable(np.zeros((2, 3), "float32"))
    with pytest.raises(ValueError, match=r"expected shape \(2, 3\), got \(3,\)"):
        optimizer.apply([np.zeros(3, "float32")], [variable])
    with pytest.raises(ValueError, match="a gradient for each of 1 variables, got 2"):
        optimizer.apply([np.zeros(3), np.zeros(3)], [variable])
    optimizer.apply([np.ones((2, 3), "float32")], [variable])
    np.testing.assert_allclose(variable.value, np.full((2, 3), -0.01), rtol=1e-6)


def test_numbers_that_are_equal_and_not_the_same_are_traced_apart():
    divided = keras.function(lambda a, b: ops.divide(a, b))
    assert np.asarray(divided(np.ones(2, "float32"), 0.0)).tolist() == [np.inf] * 2
    assert np.asarray(divided(np.ones(2, "float32"), -0.0)).tolist() == [-np.inf] * 2


class Pair(keras.Model):
    """A model that its step does not call, like a GAN."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first = keras.Sequential([keras.Input((3,)), layers.Dense(4)])
        self.second = keras.Sequential([keras.Input((4,)), layers.Dense(2)])

    def train_step(self, data):
        with GradientTape() as tape:
            size = ops.mean(ops.square(self.second(self.first(data))))
        self.optimizer.apply(tape.gradient(size, self.trainable_variables), self.trainable_variables)
        return {"size": size}


def test_a_model_that_its_step_does_not_call_is_built_where_its_layers_are(tmp_path):
    model, x = Pair(), np.ones((4, 3), "float32")
    model.compile()
    saved = keras.callbacks.ModelCheckpoint(str(tmp_path / "pair.weights.h5"), save_weights_only=True)
    model.fit(x, verbose=0, callbacks=[saved])
    assert model.built
    assert model.count_params() == 26
    expected = model.get_weights()
    model.set_weights([0 * w for w in expected])
    model.load_weights(tmp_path / "pair.weights.h5")
    for found, wanted in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


class WithLoss(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)
        self.loss = keras.losses.MeanAbsoluteError()

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return self.loss(y, y_pred)


def test_a_loss_that_is_an_attribute_stays_where_compile_is_given_none():
    model, x, y = WithLoss(), np.ones((4, 3), "float32"), np.ones((4, 2), "float32")
    model.compile("sgd")
    expected = np.abs(np.asarray(model(x)) - y).mean()
    np.testing.assert_allclose(model.fit(x, y, verbose=0).history["loss"], [expected], rtol=1e-5)
    model.compile("sgd", "mse")
    assert model.loss == "mse"
