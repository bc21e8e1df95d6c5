"""Files of models with classes, functions and containers of one's own."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras
from tests.saving.test_optimizers import X, Y, linear

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def with_functions(k):
    inputs = k.Input((6,))
    a, b = k.ops.split(k.layers.Dense(4, activation="tanh")(inputs), 2, axis=-1)
    return k.Model(inputs, k.ops.add(k.ops.transpose(k.ops.expand_dims(a, 1), (0, 2, 1)), 1.5) + k.ops.abs(b)[:, None])


def with_masks(k):
    inputs = k.Input((6,))
    x = k.layers.Masking(0.0)(k.layers.Reshape((3, 2))(inputs))
    return k.Model(inputs, k.layers.GlobalAveragePooling1D()(k.layers.Dense(2)(x)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ["h5", "keras"])
@pytest.mark.parametrize("make", [with_functions, with_masks])
def test_models_of_keras_with_functions_and_masks(make, ending, tmp_path):
    theirs = make(import_keras())
    x = X.copy()
    x[:, 2:4] = 0
    theirs.save(tmp_path / f"net.{ending}")
    ours = pydtconv.saving.load_model(tmp_path / f"net.{ending}")
    np.testing.assert_allclose(ours.predict(x, verbose=0), theirs.predict(x, verbose=0), rtol=1e-5, atol=1e-6)


@pydtconv.saving.register_keras_serializable("tests")
class Distances(pydtconv.layers.Layer):
    """Of an anchor to two others."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = pydtconv.layers.Dense(3)

    def call(self, anchor, near, far):
        anchor, near, far = self.inner(anchor), self.inner(near), self.inner(far)
        return pydtconv.ops.sum((anchor - near) ** 2, -1), pydtconv.ops.sum((anchor - far) ** 2, -1)


def test_a_layer_of_several_inputs_is_loaded(tmp_path):
    inputs = [pydtconv.Input((6,)) for _ in range(3)]
    model = pydtconv.Model(inputs, Distances()(*inputs))
    model.save(tmp_path / "net.keras")
    loaded = pydtconv.saving.load_model(tmp_path / "net.keras")
    given = [X, Y @ X[:2], X[::-1].copy()]
    for found, want in zip(loaded.predict(given, verbose=0), model.predict(given, verbose=0), strict=True):
        np.testing.assert_array_equal(found, want)


@pydtconv.saving.register_keras_serializable("tests")
class Odd(pydtconv.Model):
    """Whose constructor has names of its own for itself and for the rest."""

    def __init__(this, units=3, **more):
        super().__init__(**more)
        this.dense = pydtconv.layers.Dense(units)

    def call(self, x):
        return self.dense(x)


def test_names_of_the_constructors_arguments_are_free(tmp_path):
    model = Odd(5, name="odd")
    want = model.predict(X, verbose=0)
    model.save(tmp_path / "net.keras")
    loaded = pydtconv.saving.load_model(tmp_path / "net.keras")
    assert loaded.name == "odd"
    np.testing.assert_array_equal(loaded.predict(X, verbose=0), want)


@pydtconv.saving.register_keras_serializable("tests")
class Warm(pydtconv.optimizers.schedules.LearningRateSchedule):
    def __init__(self, inner, steps):
        self.inner, self.steps = inner, steps

    def __call__(self, step):
        return min(1.0, (step + 1) / self.steps) * self.inner(step)

    def get_config(self):
        return {"inner": pydtconv.saving.serialize_keras_object(self.inner), "steps": self.steps}


def absolute(y_true, y_pred):
    return pydtconv.ops.mean(pydtconv.ops.abs(y_true - y_pred), axis=-1)


def absolute_of_arrays(y_true, y_pred):
    return np.abs(y_true - y_pred).mean(-1)


def test_objects_around_others_are_loaded(tmp_path):
    model = linear(pydtconv.optimizers.SGD(Warm(pydtconv.optimizers.schedules.CosineDecay(0.1, 10), 4)))
    metric = pydtconv.metrics.MeanMetricWrapper(absolute_of_arrays, name="distance")
    model.compile(model.optimizer, pydtconv.losses.LossFunctionWrapper(absolute), metrics=[metric])
    model.train_on_batch(X, Y)
    model.save(tmp_path / "a.keras")
    functions = {function.__name__: function for function in (absolute, absolute_of_arrays)}
    loaded = pydtconv.saving.load_model(tmp_path / "a.keras", custom_objects=functions)
    assert loaded.optimizer.learning_rate == model.optimizer.learning_rate
    assert loaded.evaluate(X, Y, verbose=0, return_dict=True) == model.evaluate(X, Y, verbose=0, return_dict=True)


@pydtconv.saving.register_keras_serializable("tests")
class Table(pydtconv.layers.Layer):
    """Keeps an array that is no variable by Keras's methods for that."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.table = np.zeros(3)

    def build(self, shape):
        self.scale = self.add_weight((shape[-1],), "ones")

    def call(self, x):
        return x * self.scale

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["table"] = self.table

    def load_own_variables(self, store):
        self.table = np.array(store["table"])
        super().load_own_variables({"0": store["0"]})


def test_layers_may_write_and_read_more_than_their_variables(tmp_path):
    model = pydtconv.Sequential([pydtconv.Input((6,)), Table(), pydtconv.layers.Dense(2)])
    model.layers[0].table = np.arange(3.0)
    model.layers[0].scale.assign(np.arange(6))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    loaded = pydtconv.saving.load_model(tmp_path / "model.keras")
    other = pydtconv.models.clone_model(model)
    other.load_weights(tmp_path / "model.weights.h5")
    for each in loaded, other:
        np.testing.assert_array_equal(each.layers[0].table, np.arange(3))
        np.testing.assert_array_equal(each(X), model(X))
    plain = pydtconv.Sequential([pydtconv.Input((6,)), pydtconv.layers.Rescaling(1.0), pydtconv.layers.Dense(2)])
    plain.save_weights(tmp_path / "plain.weights.h5")
    renamed = pydtconv.Sequential([pydtconv.Input((6,)), RenamedTable(), pydtconv.layers.Dense(2)])
    with pytest.raises(ValueError, match=r"load_own_variables.*table"):
        renamed.load_weights(tmp_path / "plain.weights.h5")
    with pytest.warns(UserWarning, match="load_own_variables"):
        renamed.load_weights(tmp_path / "plain.weights.h5", skip_mismatch=True)
    np.testing.assert_array_equal(renamed.layers[1].kernel.numpy(), plain.layers[1].kernel.numpy())


class RenamedTable(Table):
    """Lies in files where a `Rescaling` does."""


RenamedTable.__name__ = "Rescaling"


@pydtconv.saving.register_keras_serializable("tests")
class Words(pydtconv.layers.Layer):
    """Keeps a list of words in a file of its own."""

    words = ()

    def call(self, x):
        return x

    def save_assets(self, folder):
        Path(folder, "more").mkdir()
        Path(folder, "more", "words.txt").write_text(" ".join(self.words))

    def load_assets(self, folder):
        self.words = tuple(Path(folder, "more", "words.txt").read_text().split())


def test_layers_may_keep_files_of_their_own(tmp_path):
    inner = pydtconv.Sequential([pydtconv.Input((6,)), Words(), Words()])
    model = pydtconv.Sequential([pydtconv.Input((6,)), inner])
    inner.layers[1].words = ("some", "words")
    path = tmp_path / "model.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        assert "assets/layers/sequential/layers/words_1/more/words.txt" in archive.namelist()
    loaded = pydtconv.saving.load_model(path)
    assert [layer.words for layer in loaded.layers[0].layers] == [(), ("some", "words")]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("assets/layers/sequential/layers/words/../../x", "outside")
    with pytest.raises(pydtconv.files.reading.BadFileError, match="inside"):
        pydtconv.saving.load_model(path)


@pydtconv.saving.register_keras_serializable("odd")
def mean_prediction(y_true, y_pred):
    return pydtconv.ops.mean(y_pred)


@pydtconv.saving.register_keras_serializable("odd")
class OwnCompile(pydtconv.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = pydtconv.layers.Dense(2)

    def call(self, x):
        return self.dense(x)

    def compile(self, optimizer, loss_fn, measures):
        super().compile(optimizer, loss_fn, metrics=measures)
        self.given = {"optimizer": optimizer, "loss_fn": loss_fn, "measures": measures}

    def get_compile_config(self):
        return self.given

    def compile_from_config(self, config):
        self.compile(**{name: pydtconv.saving.deserialize_keras_object(value) for name, value in config.items()})


def test_arguments_of_an_own_compile_may_be_objects(tmp_path):
    model = OwnCompile()
    model.compile(pydtconv.optimizers.SGD(0.25), pydtconv.losses.Huber(0.5), ["mae", mean_prediction])
    x, y = np.ones((4, 3), "float32"), np.ones((4, 2), "float32")
    model.fit(x, y, verbose=0)
    model.save(tmp_path / "own.keras")
    again = pydtconv.saving.load_model(tmp_path / "own.keras")
    assert float(again.optimizer.learning_rate) == 0.25
    assert again.given["measures"] == ["mae", mean_prediction]
    assert again.evaluate(x, y, verbose=0) == model.evaluate(x, y, verbose=0)


@pydtconv.saving.register_keras_serializable("odd")
class Cyclic(pydtconv.Model):
    """Lists and dicts that hold themselves, beside layers."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.blocks = [pydtconv.layers.Dense(3)]
        self.blocks.append(self.blocks)
        self.named = {"out": pydtconv.layers.Dense(2), "more": []}
        self.named["more"].append(self.named)

    def call(self, x):
        return self.named["out"](self.blocks[0](x))


@pytest.mark.parametrize("name", ["model.keras", "model.weights.h5"])
def test_containers_that_hold_themselves(name, tmp_path):
    model, again = Cyclic(), Cyclic()
    expected = model(X)
    if name.endswith(".keras"):
        model.save(tmp_path / name)
        again = pydtconv.saving.load_model(tmp_path / name)
    else:
        again(X)
        model.save_weights(tmp_path / name)
        again.load_weights(tmp_path / name)
    np.testing.assert_array_equal(again(X), expected)
    assert len(again.layers) == 2
    again.blocks = []
    assert len(again.layers) == 1
