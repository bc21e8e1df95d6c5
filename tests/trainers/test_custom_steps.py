"""Steps that a class writes itself, beside the step of `fit`: the same weights under every option of `fit`."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import Split, layers, ops
from tests.graph.networks import NETWORKS
from tests.marks import slow


@pytest.fixture(autouse=True)
def settings():
    keras.config.set_num_threads(1)
    yield
    keras.config.set_device("cpu")


class Own(keras.Model):
    """What Keras's guide writes."""

    def train_step(self, data):
        x, y = data
        with keras.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {metric.name: metric.result() for metric in self.metrics}


def residual(kind: type[keras.Model], optimizer) -> keras.Model:
    keras.utils.set_random_seed(5)
    network = NETWORKS["residual"](32, 16)
    model = kind(network.inputs, network.outputs)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(True), metrics=["accuracy"])
    return model


def trained(kind, split=None, share=None, **options):
    """The weights after two steps, one of a smaller batch, and the peaks of the plans that were made."""
    model = residual(kind, keras.optimizers.SGD(0.01, momentum=0.9))
    model.split = split
    if share is not None:
        options["memory_limit"] = int(share * model.plan(8).peak_bytes)
    rng = np.random.default_rng(0)
    x, y = rng.random((11, 32, 32, 3), np.float32), rng.integers(0, 10, 11)
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, **options)
    return model.get_weights(), plans_of(model)


def plans_of(model):
    if not isinstance(model, Own):
        return model._pydt_steps.plans
    programs = model._pydt_custom.function("train")._programs.values()
    return [bound.executor.plan for program in programs for stage in program._stages for _, bound in stage.runs]


@pytest.mark.parametrize(
    "options",
    [
        {"share": 0.8},
        {"share": 0.8, "offload": True},
        {"split": Split(0.5, (2, 2))},
        slow({"split": Split(0.5, (2, 2), exact=True)}),
        slow({"split": Split(0.5, (2, 2), stochastic=0.3)}),
        slow({"split": Split(0.5, (2, 2)), "share": 0.85}),
    ],
    ids=str,
)
def test_options_of_fit_hold(options, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYDTCONV_CACHE", str(tmp_path / "cache"))  # measured times choose plans
    if options.get("offload"):
        options = options | {"offload": tmp_path}
    weights, plans = trained(Own, **options)
    wanted, _ = trained(keras.Model, **options)
    peaks, free = {plan.peak_bytes for plan in plans}, {plan.peak_bytes for plan in trained(Own)[1]}
    # a limit may take other algorithms for plans that differ by a result: the bits may differ, not the numbers
    tolerance = {"rtol": 1e-4, "atol": 1e-6} if "share" in options else {"rtol": 0, "atol": 0}
    for one, other in zip(weights, wanted, strict=True):
        np.testing.assert_allclose(one, other, **tolerance)
    if "share" in options:
        whole = trained(Own, options.get("split"))[1]
        assert max(peaks) <= options["share"] * max(plan.peak_bytes for plan in whole) + 1
    if "offload" in options:
        assert any(plan.offloaded is not None and plan.offloaded.moved for plan in plans)
    assert not peaks <= free


@pytest.mark.parametrize("device", ["cpu", "host"])
def test_what_runs_op_by_op_takes_no_split(device) -> None:
    keras.config.set_device(device)
    model = residual(keras.Model, "sgd")
    x, y = np.zeros((4, 32, 32, 3), "float32"), np.zeros(4, "int32")
    model.compile("sgd", "sparse_categorical_crossentropy", run_eagerly=True, split="0.5:2x2:0")
    with pytest.raises(NotImplementedError, match="split: expected None with run_eagerly"):
        model.fit(x, y, verbose=0)


def small(kind: type[keras.Model], optimizer) -> keras.Model:
    keras.utils.set_random_seed(1)
    inputs = layers.Input((12, 12, 3))
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling2D()(layers.BatchNormalization()(x))
    outputs = layers.Dense(4)(layers.GlobalAveragePooling2D()(layers.Conv2D(16, 3)(x)))
    model = kind(inputs, outputs)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(True), metrics=["accuracy"])
    return model


def batches(count: int):
    rng = np.random.default_rng(0)
    return [(rng.random((4, 12, 12, 3), np.float32), rng.integers(0, 4, 4)) for _ in range(count)]


@pytest.mark.parametrize("optimizer", ["SGD", slow("Adam"), slow("RMSprop")])
def test_a_device_runs_them(optimizer) -> None:
    """The kernels of GPUs, as fit's own step: the same weights, and not those of the CPU."""
    x, y = (np.concatenate(part) for part in zip(*batches(3), strict=True))
    found = {}
    for kind, device in (Own, "host"), (keras.Model, "host"), (Own, "cpu"):
        keras.config.set_device(device)
        model = small(kind, getattr(keras.optimizers, optimizer)(0.05))
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        found[kind, device] = np.concatenate([each.ravel() for each in model.get_weights()])
    np.testing.assert_array_equal(found[Own, "host"], found[keras.Model, "host"])
    np.testing.assert_allclose(found[Own, "host"], found[Own, "cpu"], rtol=1e-3, atol=1e-4)
    assert (found[Own, "host"] != found[Own, "cpu"]).any()


@pytest.mark.parametrize("traced", [True, False])
def test_loops_of_a_tape_run_on_a_device(traced) -> None:
    """With gradients that the code changes before it applies them, and two sets of variables that take turns."""

    def loop(device: str) -> list[np.ndarray]:
        keras.config.set_device(device)
        model, other = (small(keras.Model, "sgd") for _ in range(2))
        optimizers = [keras.optimizers.SGD(0.05, momentum=0.9) for _ in range(2)]
        loss = keras.losses.SparseCategoricalCrossentropy(True)

        def step(x, y):
            with keras.GradientTape(persistent=True) as tape:
                y_model, y_other = model(x, training=True), other(x, training=True)
                value = loss(y, y_model) + loss(y, y_other + 0.5 * y_model)
            found = [tape.gradient(value, each.trainable_variables) for each in (model, other)]
            for each, gradients, optimizer in zip((model, other), found, optimizers, strict=True):
                clipped = [ops.clip(gradient, -0.01, 0.01) for gradient in gradients]
                optimizer.apply_gradients(zip(clipped, each.trainable_variables, strict=True))
            return value

        run = keras.function(step) if traced else step
        values = [float(run(x, y)) for x, y in batches(4)]
        return [np.array(values), *model.get_weights(), *other.get_weights()]

    found, wanted = loop("host"), loop("cpu")
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert any((one != other).any() for one, other in zip(found, wanted, strict=True))


def test_a_model_goes_to_a_device_and_back() -> None:
    """One function, one model: each call runs on the device that is active then, and finds the weights of the last."""
    model, optimizer = small(keras.Model, "sgd"), keras.optimizers.SGD(0.05)
    loss = keras.losses.SparseCategoricalCrossentropy(True)

    @keras.function
    def step(x, y):
        with keras.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    def losses(*devices: str) -> list[float]:
        model.set_weights(first)
        found = []
        for device, (x, y) in zip(devices, batches(4), strict=True):
            keras.config.set_device(device)
            found.append(float(step(x, y)))
        return found

    first = model.get_weights()
    np.testing.assert_allclose(losses("cpu", "host", "host", "cpu"), losses("cpu", "cpu", "cpu", "cpu"), rtol=1e-4)


class WithItsOwnOptimizer(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(1)
        self.own = keras.optimizers.SGD(0.1)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with keras.GradientTape() as tape:
            loss = ops.mean(ops.square(self(x, training=True) - y))
        self.own.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"error": loss}


def test_compile_without_an_optimizer(tmp_path):
    """For steps that have their own; `fit`'s step says that it needs one."""
    model = WithItsOwnOptimizer()
    model.compile(optimizer=None)
    assert model.optimizer is None
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    losses = model.fit(x, y, epochs=3, batch_size=4, verbose=0).history["error"]
    assert losses[-1] < losses[0]
    plain = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    plain.compile(None, "mse")
    assert plain.evaluate(x, y, verbose=0) > 0
    for train in plain.fit, plain.train_on_batch:
        with pytest.raises(ValueError, match=r"^expected an optimizer, but compile was given None: only"):
            train(x, y)
    plain.save(tmp_path / "plain.keras")
    again = keras.saving.load_model(tmp_path / "plain.keras")
    assert again.optimizer is None
    np.testing.assert_array_equal(again(x), plain(x))
    assert keras.models.clone_model(again).optimizer is None
