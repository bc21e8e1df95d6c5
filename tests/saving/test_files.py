"""Weights and model files: round trips, Keras's own files, errors before changes, whole files only."""

import io
import signal
import zipfile

import h5py
import numpy as np
import pytest

import pydtconv
from pydtconv import Input, Model, Sequential, layers, saving
from pydtconv.files import hdf5
from pydtconv.files.reading import BadFileError
from pydtconv.graph.ir.variable import Variable
from tests.real_keras import import_keras

# of NumPy about PyTorch's arrays
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

RNG = np.random.default_rng(5)


def sequential(k):
    return k.Sequential(
        [
            k.layers.Input((8, 8, 3)),
            k.layers.Conv2D(4, 3, activation="relu"),
            k.layers.BatchNormalization(),
            k.layers.Dropout(0.5),
            k.layers.SeparableConv2D(6, 3),
            k.layers.DepthwiseConv2D(3),
            k.layers.GlobalAveragePooling2D(),
        ]
    )


def functional(k):
    x = k.layers.Input((8, 8, 3))
    shared = k.layers.Conv2D(3, 1)
    inner_input = k.layers.Input((8, 8, 3))
    inner = k.Model(inner_input, k.layers.BatchNormalization()(k.layers.Conv2D(3, 3, padding="same")(inner_input)))
    y = k.layers.Add()([shared(x), inner(shared(x))])
    return k.Model(x, [k.layers.GlobalAveragePooling2D()(y), k.layers.Conv2D(2, 1)(y)])


def subclassed(k):
    class Net(k.Model):
        def __init__(self):
            super().__init__()
            self.zz = k.layers.Conv2D(4, 1)
            self.blocks = [k.layers.Conv2D(4, 1), [k.layers.BatchNormalization(), k.layers.Conv2D(4, 1)]]
            self.table = {"b": k.layers.Conv2D(4, 1), "a": k.layers.BatchNormalization()}
            self._hidden = k.layers.Conv2D(4, 1)
            self.inner = k.Sequential([k.layers.Conv2D(4, 1), k.layers.ReLU()])

        def call(self, inputs):
            x = self.blocks[0](self.zz(inputs))
            x = self.blocks[1][1](self.blocks[1][0](x))
            x = self.table["a"](self.table["b"](x))
            return self.inner(self._hidden(x))

    model = Net()
    model(np.ones((1, 8, 8, 3), "float32"))
    return model


MAKERS = [sequential, functional, subclassed]
IDS = [maker.__name__ for maker in MAKERS]


def randomize(model):
    model.set_weights([RNG.uniform(0.1, 1, size=w.shape) for w in model.weights])
    return model


def numbers(outputs):
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [y.detach().numpy() if hasattr(y, "detach") else y for y in outputs]


def equal_outputs(a, b):
    x = RNG.normal(size=(2, 8, 8, 3)).astype("float32")
    for ours, theirs in zip(numbers(a(x)), numbers(b(x)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", MAKERS, ids=IDS)
def test_weights_round_trip(make, tmp_path):
    model, copy = randomize(make(pydtconv)), make(pydtconv)
    model.save_weights(tmp_path / "a.weights.h5")
    copy.load_weights(tmp_path / "a.weights.h5")
    for a, b in zip(model.get_weights(), copy.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", MAKERS, ids=IDS)
def test_keras_reads_our_weights(make, tmp_path):
    ours, theirs = randomize(make(pydtconv)), make(import_keras())
    ours.save_weights(tmp_path / "a.weights.h5")
    theirs.load_weights(tmp_path / "a.weights.h5")
    equal_outputs(ours, theirs)


@pytest.mark.parametrize("make", MAKERS, ids=IDS)
def test_we_read_weights_of_keras(make, tmp_path):
    ours, theirs = make(pydtconv), randomize(make(import_keras()))
    theirs.save_weights(tmp_path / "a.weights.h5")
    ours.load_weights(tmp_path / "a.weights.h5")
    equal_outputs(ours, theirs)


@pytest.mark.parametrize("make", MAKERS, ids=IDS)
def test_same_entries_as_keras(make, tmp_path):
    def entries(path):
        found = {}
        with h5py.File(path) as file:
            file.visititems(lambda name, item: found.update({name: getattr(item, "shape", None)}))
        return found

    make(pydtconv).save_weights(tmp_path / "ours.weights.h5")
    make(import_keras()).save_weights(tmp_path / "theirs.weights.h5")
    assert entries(tmp_path / "ours.weights.h5") == entries(tmp_path / "theirs.weights.h5")


@pytest.mark.parametrize("make", MAKERS[:2], ids=IDS[:2])
def test_model_round_trip(make, tmp_path):
    model = randomize(make(pydtconv))
    model.save(tmp_path / "a.keras")
    copy = saving.load_model(tmp_path / "a.keras")
    assert type(copy) is type(model)
    assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]
    equal_outputs(model, copy)


@pytest.mark.parametrize("make", MAKERS[:2], ids=IDS[:2])
def test_keras_loads_our_model(make, tmp_path):
    keras = import_keras()
    model = randomize(make(pydtconv))
    model.save(tmp_path / "a.keras")
    equal_outputs(model, keras.saving.load_model(tmp_path / "a.keras"))


@pytest.mark.parametrize("make", MAKERS[:2], ids=IDS[:2])
def test_we_load_models_of_keras(make, tmp_path):
    theirs = randomize(make(import_keras()))
    theirs.save(tmp_path / "a.keras")
    equal_outputs(saving.load_model(tmp_path / "a.keras"), theirs)


def test_mismatch_names_layer_expected_found_and_changes_nothing(tmp_path):
    def net(width):
        return Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1, name="first"), layers.Conv2D(width, 1, name="second")])

    randomize(net(5)).save_weights(tmp_path / "a.weights.h5")
    model = net(6)
    before = model.get_weights()
    with pytest.raises(ValueError, match=r"'second'.*kernel: expected shape \(1, 1, 4, 6\), found \(1, 1, 4, 5\)"):
        model.load_weights(tmp_path / "a.weights.h5")
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.warns(UserWarning, match="'second'"):
        model.load_weights(tmp_path / "a.weights.h5", skip_mismatch=True)
    after = model.get_weights()
    assert (after[0] != before[0]).all()
    np.testing.assert_array_equal(after[2], before[2])


def test_missing_layer_in_file(tmp_path):
    Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1)]).save_weights(tmp_path / "a.weights.h5")
    model = Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1), layers.Conv2D(4, 1)])
    with pytest.raises(ValueError, match="expected 2 variables, found 0"):
        model.load_weights(tmp_path / "a.weights.h5")


def test_names_and_existing_files(tmp_path):
    model = Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1)])
    with pytest.raises(ValueError, match=r"\.weights\.h5"):
        model.save_weights(tmp_path / "a.h5")
    with pytest.raises(ValueError, match=r"\.keras"):
        model.save(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError):
        model.load_weights(tmp_path / "none.weights.h5")
    with pytest.raises(FileNotFoundError):
        saving.load_model(tmp_path / "none.keras")
    model.save_weights(tmp_path / "a.weights.h5")
    with pytest.raises(FileExistsError):
        model.save_weights(tmp_path / "a.weights.h5", overwrite=False)
    with pytest.raises(ValueError, match="not built"):
        Sequential([layers.Conv2D(4, 1)]).save_weights(tmp_path / "b.weights.h5")


def test_a_model_that_is_not_built_is_saved_without_weights(tmp_path):
    model = Sequential([layers.Dense(4), layers.BatchNormalization()])
    model.compile("adam", "mse")
    with pytest.warns(UserWarning, match="is not built yet .*: the file has no weights of it"):
        model.save(tmp_path / "a.keras")
    loaded = saving.load_model(tmp_path / "a.keras")
    assert not loaded.built
    x = np.ones((2, 3), "float32")
    loaded.fit(x, np.ones((2, 4)), verbose=0)
    loaded.save(tmp_path / "b.keras")
    again = saving.load_model(tmp_path / "b.keras")
    np.testing.assert_array_equal(again.predict(x, verbose=0), loaded.predict(x, verbose=0))
    with zipfile.ZipFile(tmp_path / "a.keras") as unbuilt, zipfile.ZipFile(tmp_path / "b.keras") as built:
        parts = {"metadata.json": built, "config.json": unbuilt, "model.weights.h5": built}
        with zipfile.ZipFile(tmp_path / "c.keras", "w") as file:
            for name, archive in parts.items():
                file.writestr(name, archive.read(name))
    with pytest.raises(ValueError, match=r"load_model: the model .* is not built yet"):
        saving.load_model(tmp_path / "c.keras")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    model = Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1)])
    path = tmp_path / "a.weights.h5"
    model.save_weights(path)
    old = path.read_bytes()

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr("pydtconv.models.stored_weights.own_variables", broken)
    with pytest.raises(OSError, match="disk full"):
        model.save_weights(path)
    assert path.read_bytes() == old
    assert [file.name for file in tmp_path.iterdir()] == ["a.weights.h5"]


@pytest.mark.parametrize("name", ["a.weights.h5", "a.keras"])
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.9])
def test_a_torn_file_is_named_and_changes_nothing(name, keep, tmp_path):
    model = Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1)])
    (model.save if name == "a.keras" else model.save_weights)(tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(keep * len(whole))])
    before = model.get_weights()
    with pytest.raises(OSError, match=name):
        model.load_weights(tmp_path / name)
    assert all(np.array_equal(*pair) for pair in zip(before, model.get_weights(), strict=True))


@saving.register_keras_serializable(package="tests")
class Twice(layers.Layer):
    def __init__(self, times=2.0, **kwargs):
        super().__init__(**kwargs)
        self.times = times

    def call(self, inputs):
        return inputs * self.times


class Unregistered(Twice):
    pass


def test_registered_and_custom_objects(tmp_path):
    x = Input((3,))
    Model(x, Twice(3.0)(x)).save(tmp_path / "a.keras")
    assert saving.load_model(tmp_path / "a.keras")(np.ones((1, 3)))[0, 0] == 3
    Model(x, Unregistered(4.0)(x)).save(tmp_path / "b.keras")
    with pytest.raises(ValueError, match=r"'Unregistered'.*custom_objects"):
        saving.load_model(tmp_path / "b.keras")
    copy = saving.load_model(tmp_path / "b.keras", custom_objects={"Unregistered": Unregistered})
    assert copy(np.ones((1, 3)))[0, 0] == 4
    with saving.custom_object_scope({"Unregistered": Unregistered}):
        saving.load_model(tmp_path / "b.keras")


def test_ops_on_symbolic_tensors_are_saved(tmp_path):
    x = Input((3,))
    model = Model(x, (2 * x + 1) * x[:, 1:2])
    model.save(tmp_path / "a.keras")
    a = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(saving.load_model(tmp_path / "a.keras")(a), model(a))


def test_shared_layers_and_several_calls_are_restored(tmp_path):
    a, b = Input((4, 4, 2), name="a"), Input((4, 4, 2), name="b")
    conv = layers.Conv2D(2, 1)
    model = Model({"a": a, "b": b}, {"sum": layers.Add()([conv(a), conv(conv(b))])})
    model.save(tmp_path / "a.keras")
    copy = saving.load_model(tmp_path / "a.keras")
    assert len(copy.weights) == 2
    x = {"a": RNG.normal(size=(2, 4, 4, 2)), "b": RNG.normal(size=(2, 4, 4, 2))}
    np.testing.assert_allclose(copy(x)["sum"], model(x)["sum"], rtol=1e-6)


def test_file_is_readable_by_others_as_the_umask_says(tmp_path):
    import os

    Sequential([Input((8, 8, 3)), layers.Conv2D(4, 1)]).save_weights(tmp_path / "a.weights.h5")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "a.weights.h5").stat().st_mode & 0o777 == 0o666 & ~mask


def test_arithmetic_in_models_of_keras(tmp_path):
    keras = import_keras()
    x = keras.Input((3,))
    y = keras.layers.Dense(3)(x)
    z = keras.ops.relu(2.0 * y + 1.0) * x - y
    theirs = keras.Model(x, [keras.layers.Dense(2)(z), z])
    theirs.save(tmp_path / "a.keras")
    ours = saving.load_model(tmp_path / "a.keras")
    a = RNG.normal(size=(4, 3)).astype("float32")
    for mine, other in zip(ours(a), theirs(a), strict=True):
        np.testing.assert_allclose(mine, other.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_training_goes_on_as_if_it_had_not_been_saved(optimizer, tmp_path):
    def data(step):
        rng = np.random.default_rng(step)
        return rng.normal(size=(8, 6, 6, 2)), rng.integers(0, 3, 8)

    model = Sequential(
        [Input((6, 6, 2)), layers.Conv2D(3, 3), layers.BatchNormalization(), layers.Flatten(), layers.Dense(3)]
    )
    loss = pydtconv.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(pydtconv.optimizers.get(optimizer), loss, metrics=["accuracy"])
    for step in range(3):
        model.train_on_batch(*data(step))
    model.save(tmp_path / "a.keras")
    copy = saving.load_model(tmp_path / "a.keras")
    for step in range(3, 6):
        model.train_on_batch(*data(step))
        copy.train_on_batch(*data(step))
    for a, b in zip(model.get_weights(), copy.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@saving.register_keras_serializable("tests")
class Block(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.dense = layers.Dense(units)

    def call(self, inputs):
        return self.dense(inputs)


@pytest.mark.parametrize("ending", ["keras", "h5", "clone"])
def test_layers_made_of_others_stay_frozen(ending, tmp_path):
    x = Input((5, 2))
    y = Block(2, name="block")(layers.MultiHeadAttention(2, 2, name="attention")(x, x))
    model = Model(x, layers.Dense(3)(layers.TimeDistributed(layers.Dense(2), name="each")(y)))
    for name in ("block", "attention", "each"):
        model.get_layer(name).trainable = False
    model.get_layer("each").layer.trainable = True
    if ending == "clone":
        copy = pydtconv.models.clone_model(model)
    else:
        model.save(tmp_path / f"a.{ending}")
        copy = saving.load_model(tmp_path / f"a.{ending}")
    assert [v.shape for v in copy.trainable_variables] == [v.shape for v in model.trainable_variables]
    assert not copy.get_layer("each").trainable
    assert copy.get_layer("each").layer.trainable


@saving.register_keras_serializable("tests")
class Around(layers.Layer):
    """Its config holds objects as they are."""

    def __init__(self, inner, table, factor, text, **kwargs):
        super().__init__(**kwargs)
        self.inner, self.table, self.factor, self.text = inner, table, factor, text

    def call(self, inputs):
        return self.inner(inputs) * self.table * self.factor

    def get_config(self):
        own = {name: getattr(self, name) for name in ("inner", "table", "factor", "text")}
        return {**super().get_config(), **own}


def test_objects_in_configs_are_written_and_read(tmp_path):
    layer = Around(layers.Dense(3), np.arange(3, dtype="float32"), np.float32(2), b"text")
    start = pydtconv.initializers.RandomNormal(stddev=np.float32(0.5))
    model = Sequential([Input((4,)), layers.Dense(4, kernel_initializer=start), layer])
    model.save(tmp_path / "a.keras")
    copy = saving.load_model(tmp_path / "a.keras")
    x = RNG.normal(size=(2, 4)).astype("float32")
    np.testing.assert_array_equal(copy(x), model(x))
    assert copy.layers[-1].text == b"text"
    assert isinstance(copy.layers[-1].table, np.ndarray)
    assert copy.layers[0].kernel_initializer.stddev == 0.5


def rate():
    return 0.25


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda k: k.SGD(lambda: 0.25), 0.25),
        (lambda k: k.SGD(rate), 0.25),
        (lambda k: k.Adam(0.25, beta_1=np.float32(0.5), clipnorm=np.float32(1)), 0.25),
        (lambda k: k.SGD(k.schedules.PiecewiseConstantDecay(np.array([1, 2]), np.array([0.5, 1, 2]))), 0.5),
    ],
)
def test_optimizers_of_functions_and_numbers_of_numpy(make, expected, tmp_path):
    model = Sequential([Input((4,)), layers.Dense(3)])
    model.compile(make(pydtconv.optimizers), "mse")
    model.train_on_batch(np.ones((2, 4)), np.ones((2, 3)))
    model.save(tmp_path / "a.keras")
    copy = saving.load_model(tmp_path / "a.keras", custom_objects={"rate": rate}, safe_mode=False)
    assert float(copy.optimizer.learning_rate) == expected


def test_weights_by_a_name_that_several_layers_have(tmp_path):
    def nested(*names):
        inputs = y = Input((4,))
        for name in names:
            x = Input((4,))
            y = Model(x, layers.Dense(4, name="dense")(x), name=name)(y)
        return Model(inputs, y)

    one, two = nested("a", "b"), nested("a", "b")
    one.save_weights(tmp_path / "one.weights.h5")
    two.load_weights(tmp_path / "one.weights.h5", by_name=True)
    for a, b in zip(one.get_weights(), two.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    alone = Sequential([Input((4,)), layers.Dense(4, name="dense")])
    with pytest.raises(ValueError, match=r"layer 'dense': expected one layer of that name with by_name=True, got 2: "):
        alone.load_weights(tmp_path / "one.weights.h5", by_name=True)


def in_two_models():
    shared = layers.Dense(5, name="shared")
    a, b, inputs = Input((4,)), Input((4,)), Input((4,))
    one, two = Model(a, shared(a), name="one"), Model(b, layers.Dense(2)(shared(b)), name="two")
    return Model(inputs, [one(inputs), two(inputs)])


def of_one_graph():
    a, inputs = Input((4,)), Input((4,))
    hidden = layers.Dense(3)(a)
    encoder, whole = Model(a, hidden, name="encoder"), Model(a, layers.Dense(4)(hidden), name="whole")
    return Model(inputs, [encoder(inputs), whole(inputs)])


def in_a_wrapper_and_outside():
    dense, inputs = layers.Dense(3), Input((4,))
    steps = layers.Reshape((1, 4))(inputs)
    return Model(inputs, [layers.TimeDistributed(dense)(steps), dense(inputs)])


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("make", [in_two_models, of_one_graph, in_a_wrapper_and_outside])
def test_layers_in_several_places_are_one_again(make, ending, tmp_path):
    model, x = make(), RNG.normal(size=(3, 4)).astype("float32")
    y = [np.ones(result.shape) for result in model(x)]
    model.compile("adam", "mse")
    model.train_on_batch(x, y)
    model.save(tmp_path / f"a.{ending}")
    copy = saving.load_model(tmp_path / f"a.{ending}")
    assert len(copy.weights) == len(model.weights)
    for each in (model, copy):
        each.train_on_batch(x, y)
    for ours, theirs in zip(copy(x), model(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


class Interrupted(io.BytesIO):
    """A file during one of whose writes Ctrl-C comes."""

    def __init__(self, left):
        super().__init__()
        self.left = left

    def write(self, data):
        self.left -= 1
        if not self.left:
            signal.raise_signal(signal.SIGINT)
        return super().write(data)


def _same_name_twice():
    """Saves after Ctrl-C, of which it is none."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with hdf5.writing(io.BytesIO(), 0) as h5:
            h5["a"] = 1
            h5.create_dataset("a", data=1)


def test_ctrl_c_while_weights_are_written_is_no_lack_of_memory(recwarn):
    """HDF5 calls the file: an exception there comes out as another one."""
    writes = 0
    for left in range(1, 100):
        file = Interrupted(left)
        try:
            with hdf5.writing(file, 4000) as h5:
                for i in range(3):
                    h5.create_dataset(str(i), data=np.ones(1000, "float32"))
        except KeyboardInterrupt:
            writes = left
    assert 5 < writes < 99
    with pytest.raises(ValueError, match="name already exists"):
        _same_name_twice()
    assert not recwarn.list


@pytest.mark.parametrize("file", ["a.keras", "a.weights.h5"])
def test_slots_of_layers_that_were_frozen_after_training_come_back(file, tmp_path, recwarn):
    def make():
        return Sequential([Input((3,)), *(layers.Dense(3, trainable=i > 0) for i in range(3))])

    x = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    model, other = make(), make()
    for each in model, other:
        each.compile("adam", "mse")
    model.fit(x, x, verbose=0)
    model.layers[1].trainable = other.layers[1].trainable = False
    model.fit(x, x, verbose=0)
    if file == "a.keras":
        model.save(tmp_path / file)
        other = saving.load_model(tmp_path / file)
    else:
        model.save_weights(tmp_path / file)
        other.fit(x, x, verbose=0)
        other.load_weights(tmp_path / file)
    for own, found in zip(model.optimizer.variables, other.optimizer.variables, strict=True):
        np.testing.assert_array_equal(own, found)
    other.layers[1].trainable = True
    other.fit(x, x, verbose=0)
    assert not recwarn.list


class Pair(pydtconv.Layer):
    """Two layers of one shape, whose freezing no config tells."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first, self.second = layers.Dense(3), layers.Dense(3)

    def call(self, inputs):
        return self.second(self.first(inputs))


def test_slots_of_layers_that_were_frozen_within_a_layer_come_back_to_their_variables(tmp_path):
    x = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    model = Sequential([Input((3,)), Pair()])
    model.compile("adam", "mse")
    model.fit(x, x * 2, verbose=0)
    model.layers[0].first.trainable = False
    model.fit(x, x * 2, verbose=0)
    model.save(tmp_path / "model.keras")
    with saving.custom_object_scope({"Pair": Pair}):
        found = saving.load_model(tmp_path / "model.keras")
    for own, other in zip(model.weights, found.weights, strict=True):
        for name, slot in model.optimizer._pydt_slots.of(own).items():
            np.testing.assert_array_equal(
                found.optimizer._pydt_slots.of(other)[name].numpy(), slot.numpy(), err_msg=own.path
            )
    assert found.optimizer.iterations.numpy() == 2


@pytest.mark.parametrize("ending", ["weights.h5", "h5"])
def test_weights_are_loaded_whole_where_ctrl_c_comes(ending, tmp_path, monkeypatch):
    model = Sequential([Input((3,)), layers.Dense(3), layers.Dense(3)])
    model.compile("adam", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 3)), verbose=0)
    (model.save_weights if ending == "weights.h5" else model.save)(tmp_path / f"a.{ending}")
    saved = [np.array(each) for each in (*model.weights, *model.optimizer.variables)]
    model.fit(np.ones((4, 3)), np.zeros((4, 3)), verbose=0)
    assign = Variable.assign

    def interrupted(variable, value):
        signal.raise_signal(signal.SIGINT)
        return assign(variable, value)

    monkeypatch.setattr(Variable, "assign", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.load_weights(tmp_path / f"a.{ending}")
    for variable, value in zip(model.weights, saved[: len(model.weights)], strict=True):
        np.testing.assert_array_equal(variable, value)
    if ending == "weights.h5":
        for variable, value in zip(model.optimizer.variables, saved[len(model.weights) :], strict=True):
            np.testing.assert_array_equal(variable, value)
    with pytest.raises(KeyboardInterrupt):
        model.set_weights([each + 1 for each in saved[: len(model.weights)]])
    np.testing.assert_array_equal(model.weights[-1], saved[len(model.weights) - 1] + 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_stream_takes_and_gives_a_model(tmp_path):
    model = functional(pydtconv)
    randomize(model)
    with open(tmp_path / "a file", "w+b") as file:
        for stream in io.BytesIO(), file:
            saving.save_model(model, stream)
            equal_outputs(model, saving.load_model(stream))
            assert not stream.closed
    with pytest.raises(BadFileError, match=r"the stream: expected a '\.keras' file"):
        saving.load_model(io.BytesIO(b"no model"))


def test_arguments_of_older_versions_are_passed_over_or_refused(tmp_path):
    model = sequential(pydtconv)
    model.compile("sgd", "mse")
    with pytest.warns(UserWarning, match="save_format='h5' is passed over: filepath says the format"):
        model.save(tmp_path / "a.h5", save_format="h5", include_optimizer=False)
    assert not saving.load_model(tmp_path / "a.h5").compiled
    with pytest.raises(ValueError, match="save: unknown arguments: signatures"):
        model.save(tmp_path / "a.keras", signatures=None)


class Compiling(pydtconv.Sequential):
    """compile with an argument of its own."""

    def compile(self, rate):
        super().compile(pydtconv.optimizers.SGD(rate), "mse")


def test_a_compile_of_ones_own_is_not_called_by_loading(tmp_path):
    model = Compiling([layers.Input((2,)), layers.Dense(1)])
    model.compile(0.5)
    model.save(tmp_path / "a.keras")
    with pytest.warns(UserWarning, match=r"Compiling: compile\(\) of its own is not called when the model is loaded"):
        again = saving.load_model(tmp_path / "a.keras", custom_objects={"Compiling": Compiling})
    assert not again.compiled


def test_lists_that_hold_themselves(tmp_path):
    class Cyclic(pydtconv.Model):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.blocks = [layers.Dense(2)]
            self.blocks.append(self.blocks)

        def call(self, x):
            return self.blocks[0](x)

    model, x = Cyclic(), np.ones((1, 3), "float32")
    expected = model(x)
    model.save(tmp_path / "a.keras")
    again = saving.load_model(tmp_path / "a.keras", custom_objects={"Cyclic": Cyclic})
    np.testing.assert_array_equal(again(x), expected)
