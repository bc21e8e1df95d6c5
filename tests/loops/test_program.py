"""`train_step`, `test_step` and `predict_step` as programs: traced once, with what Python code may do in them."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function, layers, ops
from pydtconv.loops import program
from tests.loops.small_models import IMAGES, LABELS, Own, network, trained


class Looking(Own):
    """The same, which asks for a value."""

    def train_step(self, data):
        results = super().train_step(data)
        self.last = float(results["loss"])
        return results


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
    scores = np.asarray(model(IMAGES))
    found = model.evaluate(IMAGES, LABELS, batch_size=40, verbose=0, return_dict=True)
    assert found == {"mean": pytest.approx(scores.mean(), rel=1e-4), "count": 40}
    assert model.evaluate(IMAGES, LABELS, batch_size=40, verbose=0) == [
        40,
        found["mean"],
    ]  # by the alphabet, as in Keras
    predicted = model.predict(IMAGES, batch_size=16, verbose=0)
    np.testing.assert_allclose(predicted.sum(-1), np.ones(40), rtol=1e-5)
    assert predicted.shape == (40, 3)
    np.testing.assert_allclose(model.predict_on_batch(IMAGES[:4]), predicted[:4], rtol=1e-5)


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
        loss = other.compute_loss(y=LABELS[:16], y_pred=other(IMAGES[:16], training=True))
    gradient = np.asarray(tape.gradient(loss, other.layers[-1].kernel))
    found = model.train_on_batch(IMAGES[:16], LABELS[:16], return_dict=True)
    assert found == {"loss": pytest.approx(float(loss), rel=1e-5), "count": 1.0}
    np.testing.assert_allclose(kernel.value, start - rates[1] * gradient, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.average.value, 0.1 * kernel.value, rtol=1e-5)
    assert model.train_on_batch(IMAGES[:16], LABELS[:16], return_dict=True)["count"] == 2.0
    assert model.first.iterations == model.last.iterations == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("parts", [(slice(None), slice(None)), (slice(None), slice(2)), (slice(2), slice(None))])
def test_two_optimizers_by_two_gradients_of_the_same_variables(parts, order):
    """Each takes its own gradients, whichever comes first, and all variables are changed by both."""
    found = []
    for wrap in (function, lambda step: step):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((6,)), layers.Dense(4, "tanh"), layers.Dense(3)])
        made = (keras.optimizers.SGD(0.1, momentum=0.9), keras.optimizers.Adam(0.05))

        @wrap
        def step(x, model=model, made=made):
            with GradientTape(persistent=True) as tape:
                y = model(x)
                losses = ops.mean(ops.square(y - 1.0)), ops.mean(ops.abs(y))
            own = [model.trainable_variables[part] for part in parts]
            gradients = [tape.gradient(loss, variables) for loss, variables in zip(losses, own, strict=True)]
            for each in order:
                made[each].apply(gradients[each], own[each])
            return losses[0] + losses[1]

        x = np.random.default_rng(0).normal(size=(8, 6)).astype("float32")
        found.append([*(float(step(x)) for _ in range(3)), *model.get_weights()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrap", [function, lambda step: step])
def test_values_of_variables_are_those_of_each_run(wrap):
    """Also what is assigned in the step itself, and where a gradient is made of them."""
    count, kernel = keras.Variable([0.0, 2.0], trainable=False), keras.Variable([0.0, 0.0])
    optimizer = keras.optimizers.SGD(1.0)

    @wrap
    def step():
        before = count.value * 2
        with GradientTape():
            count.assign_add(ops.ones(2))
            after = count.value + 1
        optimizer.apply([count.value / 2], [kernel])
        count.assign(count.value * 3)
        return before, after, count.value[1:], ops.stack([count.value, kernel.value])

    found = step()
    for result, want in zip(found, ([0, 4], [2, 4], [9], [[3, 9], [-0.5, -1.5]]), strict=True):
        np.testing.assert_array_equal(result, want)
    count.assign([1.0, 1.0])
    for result, want in zip(step(), ([2, 2], [3, 3], [6], [[6, 6], [-1.5, -2.5]]), strict=True):
        np.testing.assert_array_equal(result, want)


def test_freezing_traces_anew():
    model = network(Own)
    trained(model)
    model.layers[1].trainable = False
    frozen, last = model.layers[1].get_weights(), model.layers[-1].get_weights()
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(IMAGES, LABELS, verbose=0)
    np.testing.assert_array_equal(frozen[0], model.layers[1].get_weights()[0])
    assert np.abs(last[0] - model.layers[-1].get_weights()[0]).max() > 0


def test_a_model_with_a_step_of_its_own_is_copied_and_pickled():
    model = network(Own)
    trained(model)
    for other in copy.deepcopy(model), pickle.loads(pickle.dumps(model)):
        np.testing.assert_array_equal(other.predict(IMAGES[:2], verbose=0), model.predict(IMAGES[:2], verbose=0))
        trained(other)


def test_what_a_step_returns_and_applies_is_checked():
    class Wrong(keras.Model):
        def train_step(self, data):
            return 3

    with pytest.raises(ValueError, match="train_step: expected a dict of results"):
        network(Wrong).fit(IMAGES, LABELS, verbose=0)
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


def test_results_are_asked_for_in_their_order(monkeypatch):
    """Processes with parts of images put them together one after the other."""
    asked, parts_of = [], program.parts_of
    monkeypatch.setattr(program, "parts_of", lambda *args: (asked.append(args[2]), parts_of(*args))[1])
    found = function(lambda x: [x[:n] * 2.0 for n in range(1, 40)])(np.ones((40, 2), "float32"))
    assert [len(each) for each in found] == list(range(1, 40))
    assert [tensor.shape[0] for tensor in asked[0]] == list(range(1, 40))
