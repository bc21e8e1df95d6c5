"""Variables that two models share, of which one is on a device; and values that cannot be brought back."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import devices, layers
from pydtconv.devices import DeviceError
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.mirror import Mirror

X = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
Y = np.arange(4)


def network():
    keras.utils.set_random_seed(3)
    inputs = keras.Input((6,))
    hidden = layers.Dense(5, activation="relu", name="hidden")(inputs)
    outputs = layers.Dense(4, activation="softmax")(hidden)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.5, momentum=0.9), "sparse_categorical_crossentropy")
    return model, keras.Model(inputs, hidden)


@pytest.mark.slow
def test_a_model_of_the_cpu_sees_what_another_learns_on_a_device():
    """Its steps are there before the device has the values, and no getter of a variable is called."""
    model, front = network()
    with keras.device("host"):
        model.train_on_batch(X, Y)
    before = front.predict_on_batch(X).copy()
    with keras.device("host"):
        model.train_on_batch(X, Y)
    after = front.predict_on_batch(X).copy()
    kernel, bias = (variable.numpy() for variable in model.get_layer("hidden").weights)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after, np.maximum(X @ kernel + bias, 0), atol=1e-6)


@pytest.mark.slow
def test_devices_in_turn_take_the_same_steps():
    runs = []
    for names in (["cpu"] * 6, ["cpu", "host", "host", "cpu", "host", "cpu"]):
        model, _ = network()
        losses = []
        for device in names:
            with keras.device(device):
                losses.append(model.train_on_batch(X, Y))
        runs.append((losses, model.get_weights(), [v.numpy() for v in model.optimizer.variables]))
    for mine, reference in zip(runs[1], runs[0], strict=True):
        for a, b in zip(mine, reference, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.slow
def test_batches_in_turn_leave_the_values_on_the_device(monkeypatch):
    model, _ = network()
    with keras.device("host"):
        model.train_on_batch(X, Y)
        with monkeypatch.context() as patched:
            patched.setattr(Mirror, "to_host", lambda self: pytest.fail("the values were brought back"))
            model.train_on_batch(X, Y)
            model.predict_on_batch(X)


def test_values_that_cannot_be_brought_back_stay_on_the_device(monkeypatch):
    device = devices.get("host")
    mirror, variable, flat = Mirror(device), Variable(np.zeros(3)), np.zeros(2)
    mirror.array_of(variable)
    mirror.twin(flat)
    mirror.to_device([])
    device.put(mirror.array_of(variable), np.ones(3, variable.dtype))
    with monkeypatch.context() as patched:
        patched.setattr(device, "get", lambda source: (_ for _ in ()).throw(DeviceError("the device is lost")))
        for _ in range(2):  # and not, the second time, what it was before
            with pytest.raises(DeviceError, match="the device is lost"):
                variable.numpy()
    np.testing.assert_array_equal(variable.numpy(), 1)
    assert not mirror.on_device
