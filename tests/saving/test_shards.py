"""Weights in shards, both ways with Keras; indexes from others; layers that are skipped, or found under other names."""

import json

import h5py
import numpy as np
import pytest

import pydtconv
from pydtconv import layers, models, saving
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
GIB = 1 << 30
#: bytes of a shard: one array each, some together, all in one
SIZES = [600, 1000, 1 << 20]


def network(k, seed=0, compiled=True):
    inputs = k.Input((6,))
    inner = k.Sequential([k.Input((8,)), k.layers.Dense(8, activation="relu"), k.layers.BatchNormalization()])
    model = k.Model(inputs, k.layers.Dense(2)(inner(k.layers.Dense(8)(inputs))))
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    if compiled:
        model.compile("adam", "mse")
        model.optimizer.build(model.trainable_variables)
    return model


def equal(a, b):
    for first, second in zip(a.get_weights(), b.get_weights(), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", ["ours", "theirs read", "theirs written"])
def test_shards_go_both_ways(way, size, tmp_path):
    keras = import_keras() if way != "ours" else pydtconv
    writer, reader = (pydtconv, keras) if way != "theirs written" else (keras, pydtconv)
    model, other = network(writer), network(reader, seed=1)
    path = tmp_path / "a.weights.json"
    model.save_weights(path, max_shard_size=size / GIB)
    files = sorted(file.name for file in tmp_path.iterdir())
    assert files[:2] == ["a.weights.json", "a_00000.weights.h5"]
    assert len(files) == 2 or size < 1 << 20
    other.load_weights(path)
    equal(model, other)


@pytest.mark.parametrize("size", SIZES)
def test_the_index_and_the_files_are_keras_ones(size, tmp_path):
    keras = import_keras()
    for k, folder in (pydtconv, tmp_path / "ours"), (keras, tmp_path / "theirs"):
        folder.mkdir()
        network(k, compiled=False).save_weights(folder / "a.weights.json", max_shard_size=size / GIB)
    ours, theirs = (tmp_path / name for name in ("ours", "theirs"))
    assert sorted(file.name for file in ours.iterdir()) == sorted(file.name for file in theirs.iterdir())
    assert json.loads((ours / "a.weights.json").read_text()) == json.loads((theirs / "a.weights.json").read_text())


def test_an_array_that_no_shard_takes_is_refused_before_anything_is_written(tmp_path):
    model = network(pydtconv)
    with pytest.raises(ValueError, match=r"max_shard_size: expected 256 bytes or more for layers/sequential/.*/vars/0"):
        model.save_weights(tmp_path / "a.weights.json", max_shard_size=200 / GIB)
    for size in 0, -1.0, "1GB", True:
        with pytest.raises(ValueError, match="max_shard_size: expected a number of GiB above 0"):
            model.save_weights(tmp_path / "a.weights.json", max_shard_size=size)
    with pytest.raises(ValueError, match=r"a name that ends in '.weights.json', got 'a.h5'"):
        model.save_weights("a.h5", max_shard_size=1)
    assert not list(tmp_path.iterdir())
    with pytest.warns(UserWarning, match=r"the index of the shards is .*a.weights.json"):
        model.save_weights(tmp_path / "a.weights.h5", max_shard_size=1)
    assert (tmp_path / "a.weights.json").exists()


def _index(folder, weight_map):
    path = folder / "a.weights.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return path


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({"/vars": "../a_00000.weights.h5"}, "expected weight_map with the names of '.weights.h5' files of its folder"),
        ({"/vars": ["/etc/a.weights.h5"]}, "expected weight_map with the names"),
        ({"/vars": 3}, "expected weight_map with the names"),
        ({"/vars": {}}, "expected weight_map with the names"),
        ([], "expected weight_map with the names"),
        ({"/vars": "missing.weights.h5"}, "missing.weights.h5"),
        ({"/vars": "text.weights.h5"}, "text.weights.h5: expected a whole file of weights"),
        ({"/vars": ["one.weights.h5", "two.weights.h5"]}, "two.weights.h5"),
        ({"/vars": "linked.weights.h5"}, "expected data in this file, found a link"),
    ],
)
def test_indexes_from_others_are_refused_with_the_name_of_the_file(weight_map, message, tmp_path):
    (tmp_path / "text.weights.h5").write_text("no weights")
    for name in "one", "two":
        with h5py.File(tmp_path / f"{name}.weights.h5", "w") as file:
            file["vars/0"] = np.zeros(2)
    with h5py.File(tmp_path / "linked.weights.h5", "w") as file:
        file["vars"] = h5py.ExternalLink("one.weights.h5", "/vars")
    model = network(pydtconv)
    before = model.get_weights()
    with pytest.raises((OSError, ValueError), match=message):
        model.load_weights(_index(tmp_path, weight_map))
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_layers_that_are_skipped_keep_their_weights(tmp_path):
    first, second = network(pydtconv), network(pydtconv, seed=1)
    kept = second.layers[2].get_weights()
    saving.save_weights(first, tmp_path / "a.weights.h5", objects_to_skip=[first.layers[2]])
    with pytest.raises(ValueError, match="expected 2 variables, found 0"):
        second.load_weights(tmp_path / "a.weights.h5")
    second.load_weights(tmp_path / "a.weights.h5", objects_to_skip=[second.layers[2]])
    for old, new in zip(kept, second.layers[2].get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_array_equal(first.layers[1].kernel, second.layers[1].kernel)
    with pytest.raises(ValueError, match=r"objects_to_skip: expected a '.weights.h5' file, got .*a.keras"):
        second.load_weights("a.keras", objects_to_skip=[])
    with pytest.raises(ValueError, match=r"expected a '.weights.h5', .* or '.pth' file, got 'a.pkl'"):
        second.load_weights("a.pkl")


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        return self.dense(x)


class First(models.Model):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def call(self, x):
        return self.block(x)


class Second(models.Model):
    """The same block under names that come before and after."""

    def __init__(self):
        super().__init__()
        self.a_block = Block()

    @property
    def block(self):
        return self.a_block

    @property
    def broken(self):
        raise RuntimeError("a property may raise")

    def call(self, x):
        return self.block(x)


def test_a_layer_is_found_under_another_name_that_leads_to_it(tmp_path):
    x = np.ones((1, 3), "float32")
    first, second = First(), Second()
    first(x), second(x)
    first.save_weights(tmp_path / "a.weights.h5")
    second.load_weights(tmp_path / "a.weights.h5")
    equal(first, second)
