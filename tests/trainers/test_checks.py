"""What cannot be is refused by name, before anything is changed; what has a meaning is taken."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, optimizers

X, Y = np.ones((10, 4), "float32"), np.ones((10, 2), "float32")


def model_of(*inner, **kwargs):
    model = keras.Sequential([keras.Input((4,), **kwargs), *(inner or [layers.Dense(2)])])
    model.compile("sgd", "mse")
    return model


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return X[:4], Y[:4]


@pytest.mark.parametrize("units", [b"x", 1.5, "3", True, 0, [2]], ids=repr)
def test_units(units):
    with pytest.raises(ValueError, match="Dense: units: expected an integer"):
        layers.Dense(units if not isinstance(units, list) else [2, 3])


def test_integers_of_numpy():
    assert layers.MaxPooling2D(np.int64(2)).pool_size == (2, 2)
    assert layers.AveragePooling2D(np.array([2, 3])).pool_size == (2, 3)
    assert layers.ZeroPadding2D(np.int32(1)).padding == ((1, 1), (1, 1))
    assert layers.Dense(np.int64(3)).get_config()["units"] == 3


@pytest.mark.parametrize("epochs", [-1, 1.5, "2", True], ids=repr)
def test_epochs(epochs):
    model = model_of()
    with pytest.raises(ValueError, match="epochs: expected an integer of 0 or more"):
        model.fit(X, Y, epochs=epochs, verbose=0)
    with pytest.raises(ValueError, match="initial_epoch: expected an integer of 0 or more"):
        model.fit(X, Y, initial_epoch=epochs, verbose=0)


def test_labels_are_whole_numbers():
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    labels = np.arange(10) % 3 * 1.0
    model.fit(X, labels, verbose=0)
    labels[3] = 1.5
    whole = np.trunc(labels)
    with pytest.warns(UserWarning, match=r"expected class numbers, got 1\.5: fractions are cut off"):
        found = model.evaluate(X, labels, verbose=0)
    assert found == model.evaluate(X, whole, verbose=0)
    for wrong in (np.nan, 4.0):
        labels[3] = wrong
        with pytest.raises(ValueError, match="expected class numbers"):
            model.fit(X, labels, verbose=0)


OPTIMIZERS = [
    (optimizers.SGD, "momentum"),
    (optimizers.RMSprop, "rho"),
    (optimizers.Adam, "beta_1"),
    (optimizers.AdamW, "weight_decay"),
    (optimizers.Nadam, "beta_2"),
    (optimizers.Adamax, "epsilon"),
    (optimizers.Adagrad, "initial_accumulator_value"),
    (optimizers.Adadelta, "rho"),
    (optimizers.Lion, "beta_2"),
    (optimizers.Ftrl, "beta"),
]


@pytest.mark.parametrize(("kind", "name"), OPTIMIZERS, ids=lambda value: getattr(value, "__name__", value))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1"], ids=str)
def test_hyperparameters_are_finite_numbers(kind, name, value):
    for argument in (name, "learning_rate", "clipvalue"):
        with pytest.raises(ValueError, match=argument):
            kind(**{argument: value})


def test_a_learning_rate_that_is_set_is_finite():
    optimizer = optimizers.SGD(0.1)
    with pytest.raises(ValueError, match="learning_rate: expected a finite number"):
        optimizer.learning_rate = float("nan")
    assert float(optimizer.learning_rate) == 0.1


@pytest.mark.parametrize(
    ("text", "size"), [("1GB", 10**9), ("800MiB", 800 << 20), ("1.5 GiB", 3 << 29), ("64k", 64000), ("7", 7)]
)
def test_memory_limits_have_units(text, size):
    model = model_of()
    if size > 1 << 20:
        model.fit(X, Y, memory_limit=text, verbose=0)
        assert model.plan(4, memory_limit=text).peak_bytes <= size
    else:
        with pytest.raises(MemoryError, match=f"got {size} bytes" if size < 10 else "expected at least|got"):
            model.plan(100000, memory_limit=text)


@pytest.mark.parametrize("limit", ["much", "-1", "1XB", float("inf"), -1, True], ids=repr)
def test_memory_limits_that_are_none(limit):
    with pytest.raises(ValueError, match="memory_limit: expected bytes"):
        model_of().fit(X, Y, memory_limit=limit, verbose=0)


@pytest.mark.parametrize("watch", ["EarlyStopping", "ReduceLROnPlateau", "ModelCheckpoint"])
def test_a_training_goes_on_where_an_epoch_has_no_monitored_value(watch, tmp_path):
    class EachSecond(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch % 2:
                logs["own"] = 1.0 / epoch

    first = [tmp_path / "best.keras"] if watch == "ModelCheckpoint" else []
    options = {"save_best_only": True} if first else {}
    for monitor, told in ("los", "did you mean loss"), ("val_loss", "val_loss"), ("own", "'own' is not there"):
        callback = getattr(keras.callbacks, watch)(*first, monitor=monitor, mode="min", **options)
        with pytest.warns(UserWarning, match=told):
            history = model_of().fit(X, Y, epochs=4, verbose=0, callbacks=[EachSecond(), callback])
        assert len(history.epoch) == 4
    assert not first or first[0].exists()


def test_a_call_that_returns_nothing_is_named():
    class Forgets(keras.Model):
        def call(self, inputs):
            keras.ops.relu(inputs)

    model = Forgets()
    model.compile("sgd", "mse")
    for run in (lambda: model.predict(X, verbose=0), lambda: model.fit(X, X, verbose=0)):
        with pytest.raises(ValueError, match=r"Forgets\.call: expected it to return tensors, got None"):
            run()


def test_a_fixed_batch_takes_a_short_last_one():
    inputs = keras.Input(batch_shape=(4, 4))
    model = keras.Model(inputs, layers.Dense(2)(inputs))
    assert model.predict(X, batch_size=4, verbose=0).shape == (10, 2)


def test_a_batch_size_beside_batches_does_nothing():
    model = model_of()
    told = r"batch_size: 2 is passed over, as x is a Batches, which makes its own batches"
    for call in model.fit, model.evaluate, model.predict:
        with pytest.warns(UserWarning, match=told):
            call(Batches(), batch_size=2, verbose=0)


@pytest.mark.parametrize("names", [("a", "b", "c"), lambda self: "abc", 3], ids=["longer", "method", "number"])
def test_class_names_of_a_data_set_of_ones_own_may_mean_anything(names):
    class Own(Batches):
        class_names = class_indices = names

        def __getitem__(self, index):
            return X[:4], np.array([0, 1, 1, 0])

    model = model_of()
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(Own(), verbose=0)
    assert repr(Own()) == "<Own: 1 batches>"


def test_layers_take_other_numbers():
    inputs = keras.Input((4,), dtype="int32")
    model = keras.Model(inputs, layers.Dense(2)(inputs))
    assert model.predict(X.astype("int32"), verbose=0).dtype == "float32"
    model = model_of(layers.Dense(3, dtype="float64"), layers.Dense(2))
    assert model.predict(X, verbose=0).dtype == "float32"


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        (keras.layers, "CuDNNLSTM", "no layers.CuDNNLSTM; instead use"),
        (keras.layers, "Conv2d", "layers.Conv2D"),
        (keras, "Sequental", "pydtconv.Sequential"),
        (keras.optimizers, "Adamm", "optimizers.Adam"),
    ],
)
def test_a_missing_name_is_named_with_what_serves_instead(module, name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(module, name)


@pytest.mark.parametrize("verbose", ["atuo", None, 1.5], ids=repr)
def test_verbose(verbose):
    with pytest.raises(ValueError, match="verbose: expected 'auto', 0, 1 or 2, got"):
        model_of().fit(X, Y, verbose=verbose)


@pytest.mark.parametrize("verbose", [True, np.int64(0), 2], ids=repr)
def test_other_ways_to_say_verbose(verbose):
    model_of().fit(X, Y, verbose=verbose)


def test_class_weight_by_names():
    with pytest.raises(ValueError, match=r"class_weight: expected the classes' numbers as keys, got \['0', 1\]"):
        model_of().fit(X, Y, verbose=0, class_weight={"0": 2.0, 1: 1.0})


def test_a_text_is_no_data():
    with pytest.raises(TypeError, match="x: expected arrays, or an iterable of batches, got str"):
        model_of().fit("images", Y, verbose=0)


@pytest.mark.parametrize("given", [1, None])
def test_a_loss_that_gives_no_tensor(given):
    model = model_of()
    model.compile("sgd", lambda y_true, y_pred: given)
    with pytest.raises(ValueError, match=f"expected a tensor, a value for each sample, got {given}"):
        model.fit(X, Y, verbose=0)


def test_validation_batch_size():
    with pytest.raises(ValueError, match="batch_size: expected an integer of 1 or more, got 0"):
        model_of().fit(X, Y, verbose=0, validation_data=(X, Y), validation_batch_size=0)


def test_none_is_no_value_of_a_variable():
    for value in (None, [1.0, None]):
        with pytest.raises(ValueError, match="variable 'variable': expected numbers, got"):
            keras.Variable(value)
    with pytest.raises(ValueError, match="variable 'variable': expected numbers, got None"):
        keras.Variable(1.0).assign(None)
