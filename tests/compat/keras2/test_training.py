"""Old methods of models give the results of the new ones."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops
from pydtconv.compat.keras2 import training

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
X = np.random.default_rng(0).random((20, 3)).astype("float32")
Y = np.eye(4, dtype="float32")[np.arange(20) % 4]


def made(activation="softmax", units=4):
    pydtconv.utils.set_random_seed(1)
    model = pydtconv.Sequential([pydtconv.Input((3,)), layers.Dense(units, activation=activation)])
    model.compile("sgd", "mse", metrics=["acc"])
    return model


def batches(size=5):
    while True:
        for at in range(0, 20, size):
            yield X[at : at + size], Y[at : at + size]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"steps_per_epoch": 4, "epochs": 2}, {"steps_per_epoch": 4, "epochs": 2}),
        ({"samples_per_epoch": 18, "nb_epoch": 2}, {"steps_per_epoch": 4, "epochs": 2}),
        ({"steps_per_epoch": 17 / 5, "epochs": 1, "workers": 4}, {"steps_per_epoch": 4, "epochs": 1}),
        (
            {"samples_per_epoch": 20, "nb_epoch": 1, "validation_data": (X, Y), "nb_val_samples": 20, "max_q_size": 3},
            {"steps_per_epoch": 4, "epochs": 1, "validation_data": (X, Y)},
        ),
        (
            {"steps_per_epoch": 2, "nb_epoch": 1, "validation_data": batches(), "nb_val_samples": 10, "nb_worker": 2},
            {"steps_per_epoch": 2, "epochs": 1, "validation_data": batches(), "validation_steps": 2},
        ),
    ],
)
def test_fit_generator_is_fit(tf, old, new):
    found, expected = made(), made()
    first = found.fit_generator(batches(), verbose=0, **old).history
    second = expected.fit(batches(), verbose=0, **new).history
    assert dict(first) == dict(second)
    np.testing.assert_array_equal(found.get_weights()[0], expected.get_weights()[0])


def test_samples_by_place_are_those_of_keras_1(tf):
    found, expected = made(), made()
    found.fit_generator(batches(), 15, nb_epoch=1, verbose=0)
    expected.fit(batches(), steps_per_epoch=3, verbose=0)
    np.testing.assert_array_equal(found.get_weights()[0], expected.get_weights()[0])


def test_other_methods_give_what_the_new_ones_give(tf):
    model = made()
    p = model.predict(X, verbose=0)
    np.testing.assert_array_equal(model.predict_generator(batches(), 4), p)
    np.testing.assert_array_equal(model.predict_generator(batches(), val_samples=20), p)
    np.testing.assert_array_equal(model.predict_proba(X), p)
    np.testing.assert_array_equal(model.predict_classes(X), p.argmax(-1))
    assert model.evaluate_generator(batches(), 4) == model.evaluate(X, Y, batch_size=5, verbose=0)
    binary = made("sigmoid", 1)
    np.testing.assert_array_equal(binary.predict_classes(X), (binary.predict(X, verbose=0) > 0.5).astype(int))
    assert model.model is model
    assert all(hasattr(model, name) for name in training.methods())
    with pytest.raises(NotImplementedError, match="write to_json"):
        model.to_yaml()


def test_fit_and_compile_take_old_arguments(tf):
    found, expected = made(), made()
    found.compile("sgd", "mse", metrics=["acc"], sample_weight_mode=None, class_mode="categorical")
    found.fit(X, Y, nb_epoch=2, class_weight="auto", workers=2, verbose=0)
    expected.fit(X, Y, epochs=2, verbose=0)
    np.testing.assert_array_equal(found.get_weights()[0], expected.get_weights()[0])
    with pytest.raises(ValueError, match="expected None or 'temporal'"):
        found.compile("sgd", "mse", sample_weight_mode="spatial")


@pytest.mark.parametrize("name", ["fit_generator", "evaluate_generator", "predict_generator"])
def test_generators_with_fewer_batches_than_steps_begin_again(tf, name):
    class Two(tf.keras.utils.Sequence):
        ends = 0

        def __len__(self):
            return 2

        def __getitem__(self, i):
            return X[i * 4 : i * 4 + 4], Y[i * 4 : i * 4 + 4]

        def on_epoch_end(self):
            self.ends += 1

    def round_and_round():
        while True:
            yield from (two[0], two[1])

    two, first = Two(), made()
    more = {"epochs": 2, "validation_data": two, "validation_steps": 3, "verbose": 0} if "fit" in name else {}
    found = getattr(first, name)(two, 5, **more)
    assert two.ends >= 2
    second = made()
    more |= {"validation_data": round_and_round()} if more else {}
    expected = getattr(second, name)(round_and_round(), 5, **more)
    found, expected = (getattr(each, "history", each) for each in (found, expected))
    np.testing.assert_equal(found, expected)
    np.testing.assert_array_equal(first.get_weights()[0], second.get_weights()[0])


#: weights of classes as Keras 2 took them, by the number of outputs, and those of the samples; None: ones
CLASS_WEIGHTS = {
    "dict": (1, {0: 2.0, 1: 3.0}, [1]), "list": (1, [{0: 2.0, 1: 3.0}], [1]), "name": (1, {"a": {0: 2.0, 1: 3.0}}, [1]),
    "auto": (1, "auto", None), "array": (1, np.array([2.0, 3.0]), None), "too many": (1, [{0: 2.0}, {0: 3.0}], None),
    "list of two": (2, [{0: 2.0, 1: 3.0}, {1: 5.0}], [1, 2]), "one of two": (2, (None, {1: 5.0}), [0, 2]),
    "names of two": (2, {"b": {1: 5.0}}, [0, 2]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASS_WEIGHTS)
def test_class_weights_in_every_form_are_weights_of_samples(tf, kind):
    outputs, given, expected = CLASS_WEIGHTS[kind]
    labels = np.arange(20) % 2
    tables = [np.ones(20), np.where(labels, 3.0, 2.0), np.where(labels, 5.0, 1.0)]
    x = tf.keras.Input((3,))
    heads = [layers.Dense(2, name=name, activation="softmax")(x) for name in "ab"[:outputs]]
    model = tf.keras.Model(x, heads)
    model.compile("sgd", "sparse_categorical_crossentropy")
    first = model.get_weights()
    y = [labels] * outputs if outputs > 1 else labels

    def trained(method, **kwargs):
        model.set_weights(first)
        getattr(model, method)(X, y, **kwargs)
        return model.get_weights()

    weights = None if expected is None else [tables[i] for i in expected]
    weights = weights[0] if weights and outputs == 1 else weights
    for method, settings in ("fit", {"verbose": 0, "batch_size": 20}), ("train_on_batch", {}):
        found = trained(method, class_weight=given, **settings)
        np.testing.assert_allclose(found[0], trained(method, sample_weight=weights, **settings)[0], rtol=1e-5)
    if outputs == 2:
        for wrong in [{0: 1.0}], {"a": {}, "b": {}}:
            with pytest.raises(ValueError, match="one for each of 2 outputs, arrays y"):
                model.fit(X, y, class_weight=wrong, sample_weight=[tables[1]] * 2, verbose=0)


@pytest.mark.parametrize("metrics", [["acc"], {"a": "acc"}, ["acc"] * 2], ids=str)
def test_the_third_argument_of_compile_is_metrics(tf, metrics):
    x = tf.keras.Input((3,))
    outputs = 2 if len(metrics) == 2 else 1
    model = tf.keras.Model(x, [layers.Dense(4, name=name)(x) for name in "ab"[:outputs]])
    model.compile("sgd", "mse", metrics, [0.5] * outputs)
    logs = model.test_on_batch(X, [Y] * outputs, return_dict=True)
    assert sum(name.endswith("acc") for name in logs) == outputs
    plain = tf.keras.Model(x, model.outputs)
    plain.compile("sgd", "mse", [0.5] * outputs)
    assert plain.test_on_batch(X, [Y] * outputs, return_dict=True)["loss"] == logs["loss"]


def test_metrics_of_a_list_are_of_every_output(tf):
    x = tf.keras.Input((3,))
    model = tf.keras.Model(x, [layers.Dense(4, name="a")(x), layers.Dense(4, name="b")(x)])
    model.compile("sgd", "mse", metrics=["mae"])
    assert {"a_mae", "b_mae"} <= set(model.fit(X, [Y, Y], verbose=0).history)


def test_compile_says_what_is_trained(tf):
    discriminator = made("sigmoid", 1)
    z = tf.keras.Input((2,))
    discriminator.trainable = False
    generator = layers.Dense(3)
    around = tf.keras.Model(z, discriminator(generator(z)))
    around.compile("sgd", "mse")
    before, made_by = discriminator.get_weights()[0], generator.get_weights()[0]
    discriminator.train_on_batch(X, np.ones((20, 1)))
    after = discriminator.get_weights()[0]
    assert (before != after).any()
    assert not discriminator.trainable
    around.train_on_batch(X[:, :2], np.ones((20, 1)))
    np.testing.assert_array_equal(discriminator.get_weights()[0], after)
    assert (generator.get_weights()[0] != made_by).any()
    discriminator.compile("sgd", "mse")  # as it is now: frozen
    with pytest.warns(UserWarning, match="no trainable variables"):
        discriminator.train_on_batch(X, np.ones((20, 1)))
    np.testing.assert_array_equal(discriminator.get_weights()[0], after)


def test_losses_of_symbolic_tensors_are_added(tf):
    x = tf.keras.Input((3,))
    h = layers.Dense(2, name="h")(x)
    y = layers.Dense(3)(h)
    model = tf.keras.Model(x, y)
    model.add_loss(tf.keras.losses.mean_squared_error(x, y) * 3 + ops.sum(ops.square(h), axis=-1))
    model.compile("sgd")
    p, inner = model.predict(X, verbose=0), tf.keras.Model(x, h).predict(X, verbose=0)
    expected = np.mean(3 * np.mean((p - X) ** 2, 1) + np.sum(inner**2, 1))
    losses = model.fit(X, batch_size=20, epochs=3, verbose=0).history["loss"]
    assert losses[0] == pytest.approx(expected, rel=1e-5)
    assert losses[-1] < losses[0]
