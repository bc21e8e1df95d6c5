"""`.h5` files of Keras 2 and 3: whole models and weights, there and back with real Keras."""

import json

import h5py
import numpy as np
import pytest

import pydtconv
from pydtconv import layers, saving
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

X = np.random.default_rng(0).random((3, 6, 6, 2), np.float32)


def network(keras):
    """With a branch, a nested model, shared and frozen layers."""
    layers = keras.layers
    inputs = keras.Input((6, 6, 2), name="img")
    x = layers.Conv2D(3, 3, activation="relu", kernel_regularizer="l2", name="conv")(inputs)
    y = layers.BatchNormalization(name="norm")(x)
    x = layers.Add(name="add")([x, y])
    inner = keras.Sequential([keras.Input((48,)), layers.Dense(5, name="inner"), layers.LeakyReLU(0.1)], name="nested")
    x = inner(layers.Flatten(name="flat")(x))
    frozen = layers.Dense(4, name="frozen")
    frozen.trainable = False
    model = keras.Model(inputs, layers.Dense(2, name="out")(frozen(x)), name="net")
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(X, np.ones((3, 2), "float32"), verbose=0)
    return model


def check_same(a, b):
    np.testing.assert_allclose(a.predict(X, verbose=0), b.predict(X, verbose=0), atol=1e-5)


def test_ours_reads_keras(tmp_path):
    theirs = network(import_keras())
    theirs.save(tmp_path / "net.h5")
    ours = saving.load_model(tmp_path / "net.h5")
    check_same(ours, theirs)
    assert ours.compiled
    assert int(ours.optimizer.iterations.value) == 1
    states = zip(ours.optimizer.variables, theirs.optimizer.variables, strict=True)
    for mine, other in states:
        np.testing.assert_allclose(mine.value, np.asarray(other.value.detach()), atol=1e-7)
    fresh = network(pydtconv)
    fresh.load_weights(tmp_path / "net.h5")
    check_same(fresh, theirs)


def test_keras_reads_ours(tmp_path):
    ours = network(pydtconv)
    ours.save(tmp_path / "net.h5")
    keras = import_keras()
    theirs = keras.saving.load_model(tmp_path / "net.h5", compile=False)
    check_same(ours, theirs)
    # Keras cannot compile by names of losses and metrics, also not from files of its own
    inputs = pydtconv.Input((2,))
    small = pydtconv.Model(inputs, layers.Dense(1)(inputs))
    small.compile(pydtconv.optimizers.Adam(0.25), pydtconv.losses.MeanSquaredError())
    small.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    small.save(tmp_path / "small.h5")
    theirs = keras.saving.load_model(tmp_path / "small.h5")
    assert (int(theirs.optimizer.iterations), float(theirs.optimizer.learning_rate)) == (1, 0.25)
    again = saving.load_model(tmp_path / "net.h5")
    check_same(again, ours)
    for mine, other in zip(again.optimizer.variables, ours.optimizer.variables, strict=True):
        np.testing.assert_array_equal(mine.value, other.value)


def keras_2(path):
    """A whole model as Keras 2 writes it, made by hand: its own names, lists of calls, ":0" behind weights."""
    glorot = {"class_name": "GlorotUniform", "config": {"seed": None}}
    shared = {"trainable": True, "dtype": "float32"}

    def layer(kind, name, inbound, **config):
        whole = {"name": name, **({} if kind == "InputLayer" else shared), **config}
        return {"class_name": kind, "name": name, "config": whole, "inbound_nodes": inbound}

    described = [
        layer("InputLayer", "img", [], batch_input_shape=[None, 6, 6, 2], dtype="float32", sparse=False, ragged=False),
        layer(
            "DepthwiseConv2D",
            "dw",
            [[["img", 0, 0, {}]]],
            kernel_size=[3, 3],
            strides=[1, 1],
            padding="same",
            data_format="channels_last",
            dilation_rate=[1, 1],
            groups=1,
            activation="relu",
            use_bias=True,
            depth_multiplier=1,
            depthwise_initializer=glorot,
            bias_initializer={"class_name": "Zeros", "config": {}},
        ),
        layer("BatchNormalization", "bn", [[["dw", 0, 0, {}]]], axis=[3], momentum=0.9, epsilon=0.001, scale=False),
        layer("Concatenate", "cat", [[["dw", 0, 0, {}], ["bn", 0, 0, {}]]], axis=-1),
        layer("LeakyReLU", "leaky", [[["cat", 0, 0, {}]]], alpha=0.25),
        layer("GlobalAveragePooling2D", "gap", [[["leaky", 0, 0, {}]]], data_format="channels_last", keepdims=False),
        layer(
            "Dense", "fc", [[["gap", 0, 0, {}]]], units=3, activation="linear", use_bias=True, kernel_initializer=glorot
        ),
    ]
    config = {"name": "old", "layers": described, "input_layers": [["img", 0, 0]], "output_layers": [["fc", 0, 0]]}
    rng = np.random.default_rng(1)
    weights = {
        "dw": [("depthwise_kernel", (3, 3, 2, 1)), ("bias", (2,))],
        "bn": [("beta", (2,)), ("moving_mean", (2,)), ("moving_variance", (2,))],
        "fc": [("kernel", (4, 3)), ("bias", (3,))],
    }
    values = {}
    with h5py.File(path, "w") as h5:
        h5.attrs["keras_version"] = "2.11.0"
        h5.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": config})
        optimizer = {"name": "SGD", "learning_rate": 0.5, "decay": 0.0, "momentum": 0.9, "nesterov": False}
        training = {"loss": "categorical_crossentropy", "metrics": ["accuracy"], "loss_weights": None}
        training["optimizer_config"] = {"class_name": "SGD", "config": {**optimizer, "is_legacy_optimizer": True}}
        h5.attrs["training_config"] = json.dumps(training)
        group = h5.create_group("model_weights")
        group.attrs["layer_names"] = [entry["name"].encode() for entry in described]
        for entry in described:
            name = entry["name"]
            inner = group.create_group(name)
            inner.attrs["weight_names"] = [f"{name}/{w}:0".encode() for w, _ in weights.get(name, ())]
            for weight, shape in weights.get(name, ()):
                values[f"{name}/{weight}"] = inner[f"{name}/{weight}:0"] = rng.random(shape).astype("float32")
    return values


def test_a_file_of_keras_2(tmp_path):
    values = keras_2(tmp_path / "old.h5")
    model = saving.load_model(tmp_path / "old.h5")
    padded = np.pad(X, ((0, 0), (1, 1), (1, 1), (0, 0)))
    kernel = values["dw/depthwise_kernel"][..., 0]
    x = sum(padded[:, i : i + 6, j : j + 6] * kernel[i, j] for i in range(3) for j in range(3))
    x = np.maximum(x + values["dw/bias"], 0)
    y = (x - values["bn/moving_mean"]) / np.sqrt(values["bn/moving_variance"] + 0.001) + values["bn/beta"]
    x = np.concatenate([x, y], -1)
    x = np.where(x > 0, x, 0.25 * x).mean((1, 2)) @ values["fc/kernel"] + values["fc/bias"]
    np.testing.assert_allclose(model.predict(X, verbose=0), x, rtol=1e-4)
    assert (model.optimizer.learning_rate, model.optimizer.momentum) == (0.5, 0.9)
    fresh = pydtconv.Sequential([layers.Input((4,)), layers.Dense(3, name="fc"), layers.Dense(2, name="other")])
    before = fresh.get_weights()[2]
    fresh.load_weights(tmp_path / "old.h5", by_name=True)
    np.testing.assert_array_equal(fresh.get_weights()[0], values["fc/kernel"])
    np.testing.assert_array_equal(fresh.get_weights()[2], before)


@pytest.mark.parametrize("name", ["SGD", "Custom>SGD"])
def test_how_keras_2_compiled(name, tmp_path):
    """Its learning rate becomes smaller by `decay`, and its losses have the reduction "auto"."""
    path, model = tmp_path / "net.h5", pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(2)])
    model.compile("sgd", "mse")
    model.save(path)
    old = {
        "optimizer_config": {"class_name": name, "config": {"name": "SGD", "lr": 0.1, "decay": 0.5, "momentum": 0.0}},
        "loss": {"class_name": "MeanSquaredError", "config": {"reduction": "auto", "name": "mean_squared_error"}},
    }
    with h5py.File(path, "a") as h5:
        h5.attrs["training_config"] = json.dumps(old)
    loaded = saving.load_model(path)
    rates = []
    for _ in range(3):
        rates.append(float(loaded.optimizer.learning_rate))
        loaded.train_on_batch(np.ones((1, 3), "float32"), np.ones((1, 2), "float32"))
    np.testing.assert_allclose(rates, [0.1 / (1 + 0.5 * step) for step in range(3)], rtol=1e-6)


def test_weights_by_name_and_with_mismatches(tmp_path):
    one = pydtconv.Sequential([layers.Input((4,)), layers.Dense(3, name="a"), layers.Dense(2, name="b")])
    two = pydtconv.Sequential([layers.Input((3,)), layers.Dense(2, name="b"), layers.Dense(7, name="a")])
    one.save(tmp_path / "net.h5")
    one.save_weights(tmp_path / "net.weights.h5")
    for name in ("net.h5", "net.weights.h5"):
        before = two.get_weights()
        with pytest.raises(ValueError, match=r"layer 'a'.*kernel: expected shape \(2, 7\), found \(4, 3\)"):
            two.load_weights(tmp_path / name, by_name=True)
        for old, new in zip(before, two.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)
        with pytest.warns(UserWarning, match="1 layers were skipped"):
            two.load_weights(tmp_path / name, by_name=True, skip_mismatch=True)
        np.testing.assert_array_equal(two.get_weights()[0], one.get_weights()[2])
    with pytest.raises(ValueError, match="load_weights: unknown arguments: 'by_nam'"):
        two.load_weights(tmp_path / "net.h5", by_nam=True)


def test_bad_files(tmp_path):
    path = tmp_path / "net.h5"
    model = pydtconv.Sequential([layers.Input((4,)), layers.Dense(3, name="a")])
    model.save(path)
    with h5py.File(path, "r+") as h5:
        h5["model_weights/a/a/link"] = h5py.ExternalLink("/etc/passwd", "x")
        h5["model_weights/a"].attrs["weight_names"] = [b"a/link", b"a/bias"]
    with pytest.raises(ValueError, match=r"net\.h5: .*expected data in this file, found a link"):
        saving.load_model(path)
    with h5py.File(path, "w") as h5:
        h5.attrs["model_config"] = json.dumps({"class_name": "Lambda", "config": {"function": ["evil", None, None]}})
    with pytest.raises(ValueError, match=r"net\.h5: "):
        saving.load_model(path)
    with h5py.File(path, "w") as h5:
        h5.attrs["layer_names"] = [b"a"]
    with pytest.raises(ValueError, match=r"net\.h5: expected a whole model, found weights alone"):
        saving.load_model(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"net\.h5: expected an '\.h5' file"):
        saving.load_model(path)


def test_weights_of_a_nested_model_that_is_frozen_otherwise(tmp_path):
    def made():
        x = layers.Input((4,))
        base = pydtconv.Model(x, layers.Dense(4, name="second")(layers.Dense(4, name="first")(x)), name="base")
        return pydtconv.Sequential([layers.Input((4,)), base])

    one, two = made(), made()
    one.layers[0].layers[1].trainable = False
    one.save(tmp_path / "net.h5")
    two.load_weights(tmp_path / "net.h5")
    for a, b in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def distance(y_true, y_pred):
    return pydtconv.ops.mean(pydtconv.ops.abs(y_true - y_pred), axis=-1)


class OwnAdam(pydtconv.optimizers.Adam):
    pass


def small_model(**arguments):
    model = pydtconv.Sequential([layers.Input((4,)), layers.Dense(2)])
    model.compile(**{"optimizer": "adam", "loss": "mse", **arguments})
    model.fit(np.ones((4, 4)), np.ones((4, 2)), verbose=0)
    return model


def test_own_losses_and_optimizers(tmp_path):
    model = small_model(optimizer=OwnAdam(0.25), loss=distance)
    model.save(tmp_path / "net.h5")
    known = {"distance": distance, "OwnAdam": OwnAdam}
    loaded = saving.load_model(tmp_path / "net.h5", custom_objects=known)
    assert type(loaded.optimizer) is OwnAdam
    assert int(loaded.optimizer.iterations) == 1
    data = np.ones((4, 4)), np.ones((4, 2))
    assert loaded.evaluate(*data, verbose=0) == model.evaluate(*data, verbose=0)
    with pytest.warns(UserWarning, match=r"net.h5: the model is not compiled: ConfigError: .*distance"):
        loaded = saving.load_model(tmp_path / "net.h5", custom_objects={"OwnAdam": OwnAdam})
    assert not loaded.compiled
    np.testing.assert_array_equal(loaded.predict(data[0], verbose=0), model.predict(data[0], verbose=0))


def test_metrics_of_functions_of_keras_2(tmp_path):
    small_model().save(tmp_path / "net.h5")
    with h5py.File(tmp_path / "net.h5", "a") as h5:
        training = json.loads(h5.attrs["training_config"])
        config = {"name": "far", "dtype": "float32", "fn": "mean_absolute_error"}
        training["metrics"] = [[{"class_name": "MeanMetricWrapper", "config": config}]]
        h5.attrs["training_config"] = json.dumps(training)
    loaded = saving.load_model(tmp_path / "net.h5")
    assert "far" in loaded.evaluate(np.ones((4, 4)), np.ones((4, 2)), verbose=0, return_dict=True)


def test_built_in_functions_as_losses_and_metrics(tmp_path):
    losses = pydtconv.losses
    model = pydtconv.Sequential([pydtconv.Input((3,)), pydtconv.layers.Dense(1)])
    model.compile("sgd", losses.mean_squared_error, metrics=[losses.mean_absolute_error])
    x, y = np.ones((4, 3)), np.ones((4, 1))
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "a.h5")
    loaded = pydtconv.saving.load_model(tmp_path / "a.h5")
    assert loaded.evaluate(x, y, verbose=0, return_dict=True) == model.evaluate(x, y, verbose=0, return_dict=True)
