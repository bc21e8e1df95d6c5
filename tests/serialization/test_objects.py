"""Objects as plain data beside Keras's: what comes back, and which class of error is raised."""

import json

import numpy as np
import pytest

import pydtconv
from pydtconv import initializers, random, saving
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PLAIN = [
    "text", b"text", np.array([0, 1]), np.array([0.0, 1.0]), np.float32(1), ["a", 0, 1.0, True], {"1": "a", "2": 0},
    {"1": [True, False], "2": None}, slice(None, 20, 1), slice(None, np.array([0, 1]), 1), Ellipsis,
]  # fmt: skip


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_plain_data_is_what_keras_writes_and_reads(value):
    keras = import_keras()
    ours, theirs = (k.saving.serialize_keras_object(value) for k in (pydtconv, keras))
    assert json.loads(json.dumps(ours)) == json.loads(json.dumps(theirs))
    again = saving.deserialize_keras_object(json.loads(json.dumps(ours)))
    assert repr(again) == repr(value.item() if isinstance(value, np.generic) else value)


@pytest.mark.parametrize(
    "config",
    [
        {"class_name": "function", "config": ["not", "a", "name"]},
        {"class_name": "Dense", "config": [1, 2, 3]},
        {"class_name": "Nothing", "module": "keras.layers", "config": {}},
        {"class_name": "Nothing", "module": None, "config": {}},
        {
            "class_name": "Dense",
            "module": "keras.layers",
            "config": {"units": 1},
            "registered_name": "subprocess.Popen",
        },
        {"class_name": "Dense", "module": "keras.layers", "config": {"units": 1}, "registered_name": "mine>Dense"},
        {"class_name": "function", "module": "builtins", "config": "relu", "registered_name": "other"},
        {"class_name": "function", "module": "builtins", "config": "no_such_function", "registered_name": "function"},
    ],
    ids=str,
)
def test_bad_configs_raise_the_errors_of_keras(config):
    keras = import_keras()
    with pytest.raises((TypeError, ValueError)) as theirs:
        keras.saving.deserialize_keras_object(json.loads(json.dumps(config)))
    with pytest.raises(theirs.type):
        saving.deserialize_keras_object(json.loads(json.dumps(config)))


def test_functions_are_found_by_their_names_without_the_package_they_were_registered_with():
    """As Keras wrote them before 3.7."""

    @saving.register_keras_serializable(package="of_the_test")
    def of_the_test_alone(x):
        return x

    for name in "of_the_test_alone", "of_the_test>of_the_test_alone":
        config = {"module": "builtins", "class_name": "function", "config": name, "registered_name": "function"}
        assert saving.deserialize_keras_object(config) is of_the_test_alone


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, cls in vars(initializers).items()
        if isinstance(cls, type) and initializers.RandomInitializer in cls.__mro__[1:] and name[0].isupper()
    ],
)
def test_seed_generators_in_the_configs_of_initializers(name):
    keras = import_keras()
    for writer, reader in (pydtconv, pydtconv), (pydtconv, keras), (keras, pydtconv):
        initializer = getattr(writer.initializers, name)(seed=writer.random.SeedGenerator(7, name="seeds"))
        config = json.loads(json.dumps(writer.saving.serialize_keras_object(initializer)))
        assert config["config"]["seed"]["module"] == "keras.random"
        again = reader.saving.deserialize_keras_object(config)
        seeds = again.get_config()["seed"]
        assert (seeds["class_name"], seeds["config"]["seed"]) == ("SeedGenerator", 7)


def test_a_seed_generator_is_a_class_of_files():
    seeds = random.SeedGenerator(7, name="seeds")
    config = json.loads(json.dumps(saving.serialize_keras_object(seeds)))
    again = saving.deserialize_keras_object(config)
    assert type(again) is random.SeedGenerator
    assert again.get_config() == seeds.get_config()
    np.testing.assert_array_equal(random.normal((3,), seed=seeds), random.normal((3,), seed=again))
    with pytest.raises(ValueError, match=r"seed: expected int \| SeedGenerator"):
        saving.deserialize_keras_object(
            {"module": "keras.initializers", "class_name": "Orthogonal", "config": {"seed": "seven"}}
        )
