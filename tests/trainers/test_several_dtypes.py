"""Models whose parameters differ in dtype: they train as in Keras, and as models of one dtype do in all else."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, layers, ops, optimizers
from pydtconv.graph.ir.graph import Graph, Thresholds
from pydtconv.graph.schedule.steps import UpdateStep
from pydtconv.optimizers import Optimizer
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RNG = np.random.default_rng(4)
X = RNG.normal(size=(40, 8, 8, 3)).astype("float32")
Y = RNG.integers(0, 4, 40)
BATCH = 4


def double_inside(keras):
    """A float64 layer in a float32 model."""
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.BatchNormalization()(keras.layers.Conv2D(6, 3, activation="relu")(inputs))
    x = keras.layers.Dense(7, activation="relu", dtype="float64")(keras.layers.Flatten()(x))
    return keras.Model(inputs, keras.layers.Dense(4, activation="softmax")(x))


def double_convolution(keras):
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(6, 3, activation="relu")(inputs)
    x = keras.layers.Conv2D(5, 3, use_bias=False, dtype="float64")(x)
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.BatchNormalization(dtype="float64")(x))
    return keras.Model(inputs, keras.layers.Dense(4, activation="softmax")(x))


def double_head(keras):
    inputs = keras.Input((8, 8, 3))
    x = keras.layers.Flatten()(keras.layers.Conv2D(6, 3, activation="relu")(inputs))
    return keras.Model(inputs, keras.layers.Dense(4, activation="softmax", dtype="float64")(x))


def single_head(keras):
    """A float32 head on float64 layers."""
    inputs = keras.Input((8, 8, 3), dtype="float64")
    x = keras.layers.Conv2D(6, 3, activation="relu", dtype="float64")(inputs)
    x = keras.layers.Flatten(dtype="float64")(keras.layers.BatchNormalization(dtype="float64")(x))
    return keras.Model(inputs, keras.layers.Dense(4, activation="softmax", dtype="float32")(x))


NETWORKS = {make.__name__: make for make in (double_inside, double_convolution, double_head, single_head)}
OPTIMIZERS = {
    "momentum": lambda keras: keras.optimizers.SGD(0.05, momentum=0.9),
    "adam": lambda keras: keras.optimizers.Adam(0.01),
    "global norm": lambda keras: keras.optimizers.SGD(0.05, global_clipnorm=0.3),
    "averaged": lambda keras: keras.optimizers.AdamW(0.01, weight_decay=0.1, use_ema=True, clipnorm=0.2),
    "accumulated": lambda keras: keras.optimizers.RMSprop(0.01, gradient_accumulation_steps=2),
    "by variable": lambda keras: keras.optimizers.Lamb(0.01),
}
QUICK = [("double_inside", "momentum"), ("double_inside", "adam"), ("single_head", "momentum"), ("single_head", "adam")]
CASES = [(network, kind) for network in NETWORKS for kind in OPTIMIZERS]


def compiled(network, kind, keras=pydtconv):
    """With the same weights each time."""
    model = NETWORKS[network](keras)
    rng = np.random.default_rng(1)
    for variable in model.weights:
        value = rng.normal(size=variable.shape) * 0.2
        variable.assign(np.abs(value) + 0.2 if "variance" in variable.path else value)
    model.compile(OPTIMIZERS[kind](keras), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def trained(network, kind, keras=pydtconv, **options):
    model = compiled(network, kind, keras)
    history = model.fit(X, Y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0, **options)
    return model, history.history["loss"]


def same(one, other) -> None:
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize(
    ("network", "kind"), [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in CASES]
)
def test_ten_steps_are_those_of_keras(network, kind) -> None:
    theirs, their_loss = trained(network, kind, import_keras())
    ours, our_loss = trained(network, kind)
    assert [v.dtype for v in ours.weights] == [str(v.dtype) for v in theirs.weights]
    assert [v.dtype for v in ours.optimizer.variables[2:]] == [str(v.dtype) for v in theirs.optimizer.variables[2:]]
    for found, want in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(our_loss, their_loss, rtol=1e-5)
    found, want = ours.predict(X[:5], verbose=0), theirs.predict(X[:5], verbose=0)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["momentum", "adam", "averaged"])
def test_gradients_that_are_applied_as_they_come_give_the_same_bits(kind, monkeypatch) -> None:
    monkeypatch.setattr(Graph, "thresholds", Thresholds(applied_gradients=0, gradient_rows=1 << 7))
    models = [compiled("double_inside", kind) for _ in range(2)]
    for keeps, model in enumerate(models):
        model._pydt_steps.memory.keeps_gradients = bool(keeps)
        model.fit(X, Y, batch_size=BATCH, shuffle=False, verbose=0)
        plan = model._pydt_steps.plans[-1]
        assert plan.applies_gradients is not bool(keeps)
        rows = {step.variable.dtype for step in plan.steps if isinstance(step, UpdateStep) and step.rows is not None}
        assert rows == (set() if keeps or kind == "averaged" else {"float64"})
    same(*models)


def test_the_flat_arrays_are_as_long_as_the_plan_says() -> None:
    model, _ = trained("double_inside", "adam")
    plan, store = model._pydt_steps.plans[-1], model._pydt_steps.memory.store
    gaps = 64 * len(store.variables)
    assert plan.trainable_bytes <= store.parameters.nbytes <= plan.trainable_bytes + gaps
    assert plan.slot_bytes <= sum(flat.nbytes for flat in store.slots.values()) <= plan.slot_bytes + 2 * gaps
    assert plan.slot_bytes == sum(slot.value.nbytes for slot in model.optimizer.variables[2:])


def test_a_limit_of_memory_and_a_file_for_the_rest_change_but_rounding(tmp_path) -> None:
    whole, _ = trained("double_convolution", "adam")
    peak = whole.plan(BATCH).peak_bytes
    for options in ({}, {"offload": tmp_path}):
        found, _ = trained("double_convolution", "adam", memory_limit=int(0.97 * peak), **options)
        assert found._pydt_steps.plans[-1].peak_bytes <= 0.97 * peak
        for a, b in zip(found.get_weights(), whole.get_weights(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_files_pickles_and_copies_keep_each_dtype_and_go_on(tmp_path) -> None:
    model, _ = trained("double_inside", "adam")
    model.save(tmp_path / "whole.keras")
    model.save_weights(tmp_path / "of.weights.h5")
    loaded = pydtconv.saving.load_model(tmp_path / "whole.keras")
    others = [loaded, pickle.loads(pickle.dumps(model))]
    weights = compiled("double_inside", "adam")
    weights.load_weights(tmp_path / "of.weights.h5")
    same(weights, model)
    for other in others:
        same(other, model)
    for each in (model, *others):
        each.fit(X[:8], Y[:8], batch_size=BATCH, shuffle=False, verbose=0)
    for other in others:
        same(other, model)
        for a, b in zip(other.optimizer.variables, model.optimizer.variables, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy(), strict=True)


class Stop(callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 7:
            raise KeyboardInterrupt


def test_a_checkpoint_is_gone_on_with_bit_for_bit(tmp_path) -> None:
    whole, _ = trained("double_inside", "adam")
    with pytest.raises(KeyboardInterrupt):
        trained("double_inside", "adam", callbacks=[callbacks.BackupAndRestore(tmp_path, save_freq=2), Stop()])
    found, _ = trained("double_inside", "adam", callbacks=[callbacks.BackupAndRestore(tmp_path, save_freq=2)])
    same(found, whole)


def test_a_loop_of_ones_own_takes_the_steps_of_fit() -> None:
    fitted, _ = trained("double_inside", "momentum")
    model = compiled("double_inside", "momentum")
    loss_of = pydtconv.losses.SparseCategoricalCrossentropy()
    for start in range(0, len(X), BATCH):
        with pydtconv.GradientTape() as tape:
            loss = loss_of(Y[start : start + BATCH], model(X[start : start + BATCH], training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        assert [g.dtype for g in gradients] == [v.dtype for v in model.trainable_variables]
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    for a, b in zip(model.get_weights(), fitted.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_arrays_of_gradients_may_differ_in_dtype() -> None:
    variables = [pydtconv.Variable(np.ones(3), dtype=dtype, name=dtype) for dtype in ("float32", "float64")]
    optimizer = optimizers.SGD(0.5, global_clipnorm=1.0)
    optimizer.apply([np.full(3, 2.0, "float32"), np.full(3, 1.0)], variables)
    for variable, value in zip(variables, (2, 1), strict=True):
        np.testing.assert_allclose(variable.numpy(), 1 - 0.5 * value / 15**0.5, rtol=1e-6)
    assert [variable.dtype for variable in variables] == ["float32", "float64"]


class Halved(Optimizer):
    """Written over flat arrays, of which it sees one dtype at a time."""

    slot_names = ("before",)

    def update(self, w, dw, slots, learning_rate, weight_decay) -> None:
        assert w.dtype == dw.dtype == slots["before"].dtype
        slots["before"][...] = w
        w -= learning_rate * dw


def test_an_optimizer_over_flat_arrays_sees_numbers_of_one_dtype() -> None:
    model = compiled("double_inside", "momentum")
    model.compile(Halved(0.0), "sparse_categorical_crossentropy")
    model.fit(X[:8], Y[:8], batch_size=BATCH, verbose=0)
    for variable, slot in zip(model.trainable_variables, model.optimizer.variables[2:], strict=True):
        np.testing.assert_array_equal(slot.numpy(), variable.numpy(), strict=True)


def test_a_layer_that_is_frozen_leaves_one_dtype() -> None:
    model = compiled("double_inside", "adam")
    model.fit(X[:8], Y[:8], batch_size=BATCH, verbose=0)
    model.layers[-2].trainable = False
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(X[:8], Y[:8], batch_size=BATCH, verbose=0)
    assert model._pydt_steps.memory.store.dtype == "float32"
    assert isinstance(model.layers[-2], layers.Dense)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("policy", ["float32", "float64"])
def test_inputs_of_float64_are_read_in_float64(policy, eager):
    x, y = np.random.default_rng(0).random((6, 4, 4, 3)), np.random.default_rng(1).random((6, 2)).astype("float32")
    wide, usual = pydtconv.Input((4, 4, 3), dtype="float64"), pydtconv.Input((2,))
    head = layers.Dense(2, dtype=policy)(layers.Flatten(dtype=policy)(ops.image.rgb_to_hsv(wide)))
    model = pydtconv.Model([wide, usual], [head, ops.mean(wide, axis=(1, 2)) + usual[:, :1]], dtype=policy)
    model.compile("adam", "mse", run_eagerly=eager)
    model.fit([x, y], [y, np.ones((6, 3))], verbose=0)
    for found in model.predict([x, y], verbose=0), model([x, y]):
        assert [str(each.dtype) for each in found] == [policy, "float64"]
        np.testing.assert_allclose(found[1], x.mean((1, 2)) + y[:, :1], rtol=1e-7 if eager else 1e-14)
