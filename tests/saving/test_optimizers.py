"""State of optimizers in files: schedules, optimizers in optimizers, several ones, another one."""

import h5py
import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
X = np.random.default_rng(0).normal(size=(12, 6)).astype("float32")
Y = X[:, :2] ** 2
OPTIMIZERS = {
    "schedule": lambda k: k.optimizers.AdamW(k.optimizers.schedules.CosineDecay(0.01, 10, warmup_steps=3)),
    "loss-scale": lambda k: k.optimizers.LossScaleOptimizer(k.optimizers.Adam(0.01)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_the_other_library(name, tmp_path):
    libraries = {"ours": pydtconv, "theirs": import_keras()}
    start = None
    for here, k in libraries.items():
        inputs = k.Input((6,))
        model = k.Model(inputs, k.layers.Dense(2)(inputs))
        start = start or model.get_weights()
        model.set_weights(start)
        model.compile(OPTIMIZERS[name](k), "mse")
        model.fit(X, Y, epochs=2, batch_size=4, shuffle=False, verbose=0)
        model.save(tmp_path / f"{here}.keras")
        model.fit(X, Y, epochs=2, batch_size=4, shuffle=False, verbose=0)
        for there, other in libraries.items():
            again = other.saving.load_model(tmp_path / f"{here}.keras")
            again.fit(X, Y, epochs=2, batch_size=4, shuffle=False, verbose=0)
            for a, b in zip(again.get_weights(), model.get_weights(), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=f"{here} to {there}")


def linear(optimizer):
    model = pydtconv.Sequential([pydtconv.Input((6,)), pydtconv.layers.Dense(2)])
    model.compile(optimizer, "mse")
    return model


@pytest.mark.filterwarnings("ignore:.*the optimizer's state was skipped")
@pytest.mark.parametrize("name", ["a.keras", "a.weights.h5", "a.h5", "trained.weights.h5"])
def test_a_schedule_free_optimizer_starts_from_the_weights_of_a_file(name, tmp_path):
    model = linear(pydtconv.optimizers.ScheduleFreeAdamW(0.0))
    if name.startswith("trained"):
        model = linear("adam")
        model.train_on_batch(X, Y)
    (model.save_weights if ".weights." in name else model.save)(tmp_path / name)
    if name == "a.keras":
        loaded = pydtconv.saving.load_model(tmp_path / name)
    else:
        loaded = linear(pydtconv.optimizers.ScheduleFreeAdamW(0.0))
        loaded.optimizer.ready(loaded.trainable_variables)
        loaded.load_weights(tmp_path / name)
    loaded.train_on_batch(X, Y)
    for a, b in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_the_state_of_another_optimizer_is_skipped(tmp_path):
    model, loaded = linear("adam"), linear(pydtconv.optimizers.ScheduleFreeAdamW(0.0))
    model.train_on_batch(X, Y)
    model.save_weights(tmp_path / "a.weights.h5")
    with pytest.warns(UserWarning, match="state was skipped: expected that of ScheduleFreeAdamW, found that of Adam"):
        loaded.load_weights(tmp_path / "a.weights.h5")
    assert int(loaded.optimizer.iterations) == 0


class Pair(pydtconv.Model):
    """Two layers with an optimizer each."""

    def __init__(self):
        super().__init__()
        self.parts = [pydtconv.layers.Dense(4), pydtconv.layers.Dense(2)]
        self.second_optimizer = pydtconv.optimizers.Adam(0.1)
        self.others = {"first": pydtconv.optimizers.SGD(0.1, momentum=0.9)}

    def call(self, x):
        return self.parts[1](self.parts[0](x))

    def train_step(self, data):
        with pydtconv.GradientTape() as tape:
            loss = pydtconv.ops.mean((self(data[0]) - data[1]) ** 2)
        weights = [part.trainable_variables for part in self.parts]
        first, second = tape.gradient(loss, weights)
        self.others["first"].apply(first, weights[0])
        self.second_optimizer.apply(second, weights[1])
        return {"loss": loss}


def pair():
    model = Pair()
    model.build((None, 6))
    model.compile("sgd")
    return model


def test_the_state_of_all_optimizers_is_kept(tmp_path):
    model, loaded, unbuilt, last = pair(), pair(), pair(), pair()
    for _ in range(3):
        model.train_on_batch(X, Y)
    model.save_weights(tmp_path / "a.weights.h5")
    loaded.others["first"].build(loaded.parts[0].trainable_variables)
    loaded.second_optimizer.build(loaded.parts[1].trainable_variables)
    for each in loaded, unbuilt:  # the file tells of which variables the state is
        each.load_weights(tmp_path / "a.weights.h5")
    for each in model, loaded, unbuilt:
        each.train_on_batch(X, Y)
    for a, b, c in zip(model.get_weights(), loaded.get_weights(), unbuilt.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
    with h5py.File(tmp_path / "a.weights.h5", "a") as file:  # as files of before, and of Keras
        del file["second_optimizer/vars"].attrs["slots_of"]
    with pytest.warns(UserWarning, match="found 6; 'second_optimizer' is not built yet"):
        last.load_weights(tmp_path / "a.weights.h5")
