"""Plans are made anew where anything changes that a step depends on, and what one call leaves does not reach others."""

import warnings

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(24, 6)).astype("float32"), rng.normal(size=(24, 3)).astype("float32")


def test_inputs_by_place_and_by_name_take_turns():
    b, a = keras.Input((2,), name="b"), keras.Input((2,), name="a")
    model = keras.Model([b, a], layers.Subtract()([b, a]))
    one, zero = np.ones((4, 2), "float32"), np.zeros((4, 2), "float32")
    for given in ({"a": one, "b": zero}, [zero, one], {"b": zero, "a": one}, [zero, one]):
        np.testing.assert_array_equal(model.predict(given, verbose=0), -1)


def two_outputs(**options):
    inputs = keras.Input((6,))
    made = [layers.Dense(3, name=name, kernel_initializer="ones", **options)(inputs) for name in "ab"]
    model = keras.Model(inputs, made)
    model.compile("sgd", ["mse", "mse"])
    return model


def test_weights_of_one_output_and_of_all_take_turns():
    model, weights = two_outputs(), np.arange(24.0, dtype="float32")
    by_name, for_all = {"b": weights}, weights
    expected = [two_outputs().evaluate(X, [Y, Y], sample_weight=each, verbose=0) for each in (by_name, for_all)]
    for each, want in zip((by_name, for_all, by_name), [*expected, expected[0]], strict=True):
        np.testing.assert_allclose(model.evaluate(X, [Y, Y], sample_weight=each, verbose=0), want, rtol=1e-6)


def test_outputs_of_one_layer_have_losses_of_their_own():
    a, b = keras.Input((6,)), keras.Input((6,))
    head = layers.Dense(3, name="head")
    model = keras.Model([a, b], [head(a), head(b)])
    model.compile(keras.optimizers.SGD(0.1), ["mse", "mae"], loss_weights=[1.0, 2.0], metrics=[["mse"], ["mae"]])
    found = model.evaluate([X, 2 * X], [Y, Y], return_dict=True, verbose=0)
    first, second = model.predict([X, 2 * X], verbose=0)
    want = {"head_mse": ((first - Y) ** 2).mean(), "head_1_mae": abs(second - Y).mean()}
    want |= {"head_loss": want["head_mse"], "head_1_loss": want["head_1_mae"]}
    want["loss"] = want["head_mse"] + 2 * want["head_1_mae"]
    assert found == pytest.approx(want, rel=1e-5)
    before = head.kernel.numpy()
    model.train_on_batch([X, 2 * X], [Y, Y])
    slope = X.T @ (2 * (first - Y)) / Y.size + 2 * (2 * X).T @ np.sign(second - Y) / Y.size
    np.testing.assert_allclose(head.kernel.numpy(), before - 0.1 * slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("refused", [{"a": Y, "bb": Y}, [Y, None]], ids=["unknown", "missing"])
def test_refused_targets_leave_no_losses_behind(refused):
    model, other = two_outputs(kernel_regularizer="l2"), two_outputs(kernel_regularizer="l2")
    with pytest.raises(ValueError, match="y: "):
        model.fit(X, refused, verbose=0)
    options = {"shuffle": False, "verbose": 0}
    assert model.fit(X, [Y, Y], **options).history == other.fit(X, [Y, Y], **options).history


class Collected(keras.metrics.Metric):
    """The sum of all that it was given, which it keeps until then."""

    def __init__(self):
        super().__init__(name="collected")
        self.kept = []

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.kept.append((y_true, y_pred))

    def result(self):
        return float(sum(each.sum() for pair in self.kept for each in pair))

    def reset_state(self):
        self.kept = []


class OwnStep(keras.Model):
    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        for metric in self.metrics:
            metric.update_state(y, y_pred)
        return {metric.name: metric.result() for metric in self.metrics}


class OwnMetrics(keras.Model):
    kept = ()

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        self.kept = (*self.kept, (y, y_pred))
        return {"collected": float(sum(each.sum() for pair in self.kept for each in pair))}


@pytest.mark.parametrize("kind", [keras.Model, OwnStep, OwnMetrics])
def test_metrics_may_keep_what_they_are_given(kind):
    inputs = keras.Input((6,))
    model = kind(inputs, layers.Dense(3)(inputs))
    if kind is OwnStep:
        model.collected = Collected()
    model.compile("sgd", "mse", metrics=[Collected()] if kind is keras.Model else None)
    found = model.evaluate(X, Y, batch_size=8, verbose=0, return_dict=True)["collected"]
    assert found == pytest.approx(float(model.predict(X, verbose=0).sum() + Y.sum()), rel=1e-4)


def test_statistics_frozen_between_fits_stay():
    inputs = keras.Input((6,))
    norm = layers.BatchNormalization(center=False, scale=False)
    model = keras.Model(inputs, layers.Dense(3)(norm(inputs)))
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    norm.trainable = False
    before = norm.moving_mean.numpy()
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(norm.moving_mean.numpy(), before)


class Freezes(keras.callbacks.Callback):
    """Says before each epoch which layers are trained."""

    def __init__(self, *trained):
        super().__init__()
        self.trained, self.weights = trained, []

    def on_epoch_begin(self, epoch, logs=None):
        self.weights.append(self.model.get_weights())
        for layer, trains in zip(self.model.layers, self.trained[epoch], strict=True):
            layer.trainable = trains


ALL, LAST, NONE = (True, True), (False, True), (False, False)


@pytest.mark.parametrize("order", [(ALL, LAST, ALL), (LAST, ALL, LAST), (ALL, NONE, LAST), (NONE, LAST, ALL)])
@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_layers_that_callbacks_freeze_and_thaw(order, optimizer):
    """As in fits of one epoch, and not by the gradients of the epoch before."""
    found = []
    for fits in (1, 3):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((6,)), layers.Dense(4, "tanh"), layers.Dense(3)])
        model.compile(optimizer, "mse")
        freezes = Freezes(*order)
        for first in range(fits):
            last = 3 if fits == 1 else first + 1
            options = {"initial_epoch": first, "epochs": last, "shuffle": False, "verbose": 0}
            if fits > 1:
                for layer, trains in zip(model.layers, order[first], strict=True):
                    layer.trainable = trains
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "the model has no trainable variables")
                model.fit(X, Y, 8, callbacks=[freezes], **options)
        freezes.weights.append(model.get_weights())
        for epoch, trained in enumerate(order):
            for place, trains in enumerate(trained):
                before, after = (freezes.weights[each][2 * place] for each in (epoch, epoch + 1))
                assert np.array_equal(before, after) != trains, (epoch, place)
        found.append([*model.get_weights(), *(variable.numpy() for variable in model.optimizer.variables)])
    for one, several in zip(*found, strict=True):
        np.testing.assert_allclose(one, several, rtol=1e-5, atol=1e-6)


class Deeper(keras.Model):
    """Long inputs take one layer more."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (layers.Dense(3, use_bias=False, kernel_initializer="ones") for _ in range(2))

    def call(self, x):
        y = self.first(ops.mean(x, axis=1))
        return y + self.second(ops.max(x, axis=1)) if x.shape[1] > 2 else y


@pytest.mark.parametrize("optimizer", [keras.optimizers.Adam, keras.optimizers.Lamb])
def test_steps_leave_weights_alone_that_they_do_not_read(optimizer):
    """Not the gradients of the step before, nor the momentum; and each step reads what the other one has trained."""
    long, short = X.reshape(8, 3, 6), X[:16].reshape(8, 2, 6)
    model = Deeper()
    model(long)
    model.compile(optimizer(0.1), "mse")
    for _ in range(3):
        model.train_on_batch(long, Y[:8])
        before = [variable.numpy() for variable in model.second.weights]
        first = model.first.kernel.numpy()
        model.train_on_batch(short, Y[:8])
        np.testing.assert_array_equal(before, [variable.numpy() for variable in model.second.weights])
        assert not np.array_equal(first, model.first.kernel.numpy())
    model.fit(iter([(long, Y[:8]), (short, Y[:8])] * 2), verbose=0)
    assert int(model.optimizer.iterations) == 10


def test_penalties_of_frozen_weights_go():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3, kernel_regularizer=keras.regularizers.L2(1.0))])
    model.compile("sgd", "mse")
    (dense,) = model.layers
    penalty = float((dense.kernel.numpy() ** 2).sum())
    with_it = model.evaluate(X, Y, verbose=0)
    dense.kernel.trainable = False
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(with_it - penalty, rel=1e-5)
    dense.kernel.trainable = True
    assert model.evaluate(X, Y, verbose=0) == pytest.approx(with_it, rel=1e-6)


def test_a_layer_that_reads_whether_it_is_trainable():
    class Doubles(layers.Layer):
        def call(self, x):
            return x * 2.0 if self.trainable else x

    model = keras.Sequential([keras.Input((6,)), Doubles()])
    np.testing.assert_array_equal(model.predict(X, verbose=0), 2 * X)
    model.layers[0].trainable = False
    np.testing.assert_array_equal(model.predict(X, verbose=0), X)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_steps_run_as_python_take_any_floats(dtype):
    model, other = (keras.Sequential([keras.Input((6,)), layers.Dense(3, kernel_initializer="ones")]) for _ in "ab")
    model.compile("sgd", "mse", run_eagerly=True)
    other.compile("sgd", "mse")
    weights = np.ones(24, dtype)
    given = {"sample_weight": weights, "shuffle": False, "verbose": 0}
    for each in model, other:
        each.losses_of_fit = each.fit(X, Y.astype(dtype), **given).history["loss"]
    assert model.losses_of_fit == pytest.approx(other.losses_of_fit, rel=1e-5)


class OwnTraining(keras.Model):
    def train_step(self, data):
        return super().train_step(data)


@pytest.mark.parametrize("kind", [keras.Model, OwnTraining])
def test_the_scale_of_the_loss_may_change(kind):
    inputs = keras.Input((6,))
    model = kind(inputs, layers.Dense(3)(inputs))
    model.compile(keras.optimizers.SGD(0.1, loss_scale_factor=4.0), "mse")
    steps = []
    for factor in 4.0, 1.0:
        model.set_weights([np.zeros((6, 3)), np.zeros(3)])
        model.optimizer.loss_scale_factor = factor
        model.train_on_batch(X, Y)
        steps.append(model.get_weights()[0])
    np.testing.assert_allclose(steps[1], steps[0], rtol=1e-5)


def test_averages_of_variables_that_come_late_or_not_at_all():
    inputs = keras.Input((6,))
    head = layers.Dense(2, name="b")
    model = keras.Model(inputs, [layers.Dense(3, name="a")(inputs), head(inputs)])
    model.compile(keras.optimizers.SGD(0.01, use_ema=True), ["mse", None])
    before = head.kernel.numpy()
    model.fit(X, [Y, np.zeros((24, 2))], verbose=0)
    np.testing.assert_array_equal(head.kernel.numpy(), before)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(5), layers.Dense(3)])
    model.compile(keras.optimizers.SGD(0.01, use_ema=True), "mse")
    model.layers[0].trainable = False
    model.fit(X, Y, epochs=2, verbose=0)
    model.layers[0].trainable = True
    before = model.layers[0].kernel.numpy()
    model.fit(X, Y, verbose=0)
    np.testing.assert_allclose(model.layers[0].kernel.numpy(), before, atol=0.01)


def test_large_integers_keep_their_values():
    x = np.array([2**32 - 1, 5], "uint32")
    found = keras.function(lambda x: ops.cast(x, "float64"))(x)
    np.testing.assert_array_equal(np.asarray(found), [2**32 - 1, 5])


def test_what_is_compiled_anew_keeps_loss_and_metrics():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3, kernel_regularizer="l2")])
    model.compile("sgd", "mse", metrics=["mae"])
    expected = model.evaluate(X, Y, verbose=0, return_dict=True)
    model.compile(keras.optimizers.SGD(1e-3))
    assert model.evaluate(X, Y, verbose=0, return_dict=True) == pytest.approx(expected)
    model.compile("sgd", "mae", metrics=["mse"])
    assert model.evaluate(X, Y, verbose=0, return_dict=True)["mse"] < expected["loss"]


def test_losses_of_outputs_come_in_the_order_of_the_losses():
    inputs = keras.Input((6,))
    model = keras.Model(inputs, {"priority": layers.Dense(3)(inputs), "department": layers.Dense(3)(inputs)})
    model.compile("sgd", {"priority": "mse", "department": "mae"})
    given = X, {"priority": Y, "department": Y}
    by_name = model.evaluate(*given, verbose=0, return_dict=True)
    in_order = [by_name[name] for name in ("loss", "priority_loss", "department_loss")]
    assert model.evaluate(*given, verbose=0) == pytest.approx(in_order)


@pytest.mark.parametrize("eager", [False, True])
def test_a_variable_that_is_trained_again_goes_on_from_its_momentum(eager):
    ones = {"use_bias": False, "kernel_initializer": "ones"}
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1, **ones), layers.Dense(1, **ones)])
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse", run_eagerly=eager)
    kernels, before = [], 0.0
    for step in range(4):
        model.layers[1].trainable = step in (0, 3)
        before = float(model.layers[0].kernel.numpy().sum())
        model.train_on_batch(np.ones((2, 2), "float32"), np.zeros((2, 1), "float32"))
        kernels.append(float(model.layers[1].kernel.numpy()[0, 0]))
    assert kernels[0] == kernels[1] == kernels[2]
    moved = 0.9 * (kernels[0] - 1) - 0.01 * 2 * before**2 * kernels[2]
    assert kernels[3] - kernels[2] == pytest.approx(moved, rel=1e-4)


def test_the_dtype_policy_of_a_layer_may_change():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(3)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    for policy in ("float32", "mixed_bfloat16", "float32"):
        model.layers[0].dtype_policy = policy
        expected = np.asarray(model.layers[0](X))
        np.testing.assert_array_equal(model.predict(X, verbose=0), expected)
        np.testing.assert_allclose(model.train_on_batch(X, Y), np.mean((expected - Y) ** 2), rtol=1e-6)
        model.reset_metrics()
