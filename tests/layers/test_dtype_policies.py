"""Dtype policies: names, what layers make of them, what files say of them, what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import dtype_policies, layers
from tests.layers.test_constructor_arguments import LAYERS, base_of, made


@pytest.fixture(autouse=True)
def _default():
    yield
    keras.utils.clear_session(free_memory=False)


#: what Keras 3.15 writes into a layer's config
WRITTEN = {
    "module": "keras",
    "class_name": "DTypePolicy",
    "config": {"name": "mixed_bfloat16"},
    "registered_name": None,
}


def test_the_global_policy_is_that_of_layers_made_later():
    before = layers.Dense(2)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    assert keras.mixed_precision.global_policy() == keras.config.dtype_policy() == keras.DTypePolicy("mixed_bfloat16")
    after, own = layers.Dense(2), layers.Dense(2, dtype="float32")
    assert after.input_dtype == "bfloat16"
    found = [(each.dtype, each.variable_dtype, each.compute_dtype) for each in (before, after, own)]
    assert found == [("float32",) * 3, ("float32", "float32", "bfloat16"), ("float32",) * 3]
    keras.utils.clear_session()
    assert keras.config.dtype_policy().name == "float32"


def test_the_default_is_that_of_floatx():
    keras.config.set_floatx("float64")
    try:
        assert layers.Dense(2).dtype_policy == keras.DTypePolicy("float64")
    finally:
        keras.config.set_floatx("float32")


@pytest.mark.parametrize("given", ["mixed_bfloat16", keras.DTypePolicy("mixed_bfloat16"), WRITTEN])
def test_a_layer_takes_names_policies_and_configs(given):
    layer = layers.Conv2D(2, 3, dtype=given)
    assert layer.compute_dtype == "bfloat16"
    assert layer.get_config()["dtype"] == WRITTEN
    assert layers.Conv2D.from_config(layer.get_config()).dtype_policy == layer.dtype_policy
    layer.dtype_policy = "float32"
    assert layer.compute_dtype == "float32"


def mixed() -> keras.Model:
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    inputs = keras.Input((6, 6, 2))
    x = layers.Conv2D(3, 3)(inputs)
    x = layers.LayerNormalization(dtype="float32", name="own")(x)
    x = layers.Flatten()(layers.ReLU()(x))
    return keras.Model(inputs, layers.Dense(4, dtype="float32")(x))


def test_tensors_have_the_dtype_in_which_layers_compute():
    model = mixed()
    dtypes = [layer.output.dtype for layer in model.layers]
    assert dtypes == ["float32", "bfloat16", "float32", "bfloat16", "bfloat16", "float32"]
    assert {variable.dtype for variable in model.variables} == {"float32"}


def test_policies_survive_config_and_file(tmp_path):
    model = mixed()
    config = json.loads(model.to_json())
    keras.utils.clear_session()
    again = keras.models.model_from_json(json.dumps(config))
    assert [layer.compute_dtype for layer in again.layers[1:]] == [layer.compute_dtype for layer in model.layers[1:]]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).normal(size=(3, 6, 6, 2)).astype("float32")
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))


@pytest.mark.parametrize("name", ["mixed_float16", "float16", "bfloat16"])
def test_what_there_is_not_is_refused_with_what_there_is(name):
    message = f"expected one of float32, float64, mixed_bfloat16, got '{name}'; instead of {name} use mixed_bfloat16"
    for call in (
        lambda: keras.mixed_precision.set_global_policy(name),
        lambda: keras.DTypePolicy(name),
        lambda: layers.Dense(2, dtype=name),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_an_error_names_the_layer():
    with pytest.raises(ValueError, match=r"^Dense 'head': dtype policy: expected one of .*, got 'int3'$"):
        layers.Dense(2, dtype="int3", name="head")
    with pytest.raises(ValueError, match=r"Dense 'head': dtype: expected a name, a dtype or a DTypePolicy, got 3[.]5"):
        layers.Dense(2, dtype=3.5, name="head")
    with pytest.raises(ValueError, match="set_dtype_policy: expected a name or a DTypePolicy, got 3"):
        keras.config.set_dtype_policy(3)
    assert keras.config.dtype_policy().name == "float32"


def test_the_environment_names_a_policy(monkeypatch):
    monkeypatch.setenv("PYDTCONV_DTYPE", "mixed_bfloat16")
    dtype_policies.set_policy_of_the_environment()
    assert layers.Dense(2).compute_dtype == "bfloat16"
    monkeypatch.setenv("PYDTCONV_DTYPE", "half")
    message = "PYDTCONV_DTYPE: dtype policy: expected one of float32, float64, mixed_bfloat16, got 'half'"
    with pytest.raises(ValueError, match=message):
        dtype_policies.set_policy_of_the_environment()


def test_a_loss_scale_optimizer_is_its_inner_one():
    def trained(wrap):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
        optimizer = keras.optimizers.Adam(0.1)
        model.compile(keras.mixed_precision.LossScaleOptimizer(optimizer) if wrap else optimizer, "mse")
        model.fit(np.ones((8, 3)), np.ones((8, 2)), epochs=2, batch_size=4, verbose=0)
        return model

    plain, wrapped = trained(False), trained(True)
    for a, b in zip(plain.get_weights(), wrapped.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert wrapped.optimizer.inner_optimizer.iterations == wrapped.optimizer.iterations == 4
    again = keras.optimizers.deserialize(keras.optimizers.serialize(wrapped.optimizer))
    assert isinstance(again.inner_optimizer, keras.optimizers.Adam)
    with pytest.raises(ValueError, match="LossScaleOptimizer: inner_optimizer: expected an Optimizer, got 'adam'"):
        keras.mixed_precision.LossScaleOptimizer("adam")


#: layers that draw, or change integers otherwise than Keras on PyTorch, which cuts what `ops.image.resize` rounds
NOT_COMPARED = {"RandomFlip", "RandomCrop", "Resizing", "CategoryEncoding", "MaxNumBoundingBoxes"}


@pytest.mark.parametrize("name", LAYERS)
def test_integer_dtypes_are_keras_s_or_refused_in_words(name):
    """Of all layers: what is made with an integer dtype gives what Keras's gives, of floats, which are cut, too."""
    (arguments, shapes), rng = base_of(name), np.random.default_rng(0)
    for dtype in "int32", "uint8":
        kind = LAYERS[name](**arguments)
        integers = kind.reads_integers if kind.computes_integers is None else kind.computes_integers
        if not (integers or name in ("Hashing", "HashedCrossing")):
            with pytest.raises(ValueError, match=f"expected one of floats, in which the layer computes, got '{dtype}'"):
                LAYERS[name](**arguments, dtype=dtype)
            continue
        layer = LAYERS[name](**arguments, dtype=dtype)
        assert not layer.weights
        theirs = None if name in NOT_COMPARED else made(name, {**arguments, "dtype": dtype})
        if theirs is None:
            continue
        for kind in "float32", dtype:
            xs = [rng.uniform(0, 9, shape).astype(kind) for shape in shapes]
            given = xs if len(xs) > 1 else xs[0]
            try:
                expected = np.asarray(theirs(given))
            except (OverflowError, RuntimeError):  # of constants that the dtype does not hold
                with pytest.raises(OverflowError, match="out of bounds for uint8"):
                    layer(given)
                continue
            found = np.asarray(layer(given))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
            inputs = [keras.Input(x.shape[1:], dtype=kind) for x in xs]
            outputs = layer(inputs if len(xs) > 1 else inputs[0])
            predicted = keras.Model(inputs, outputs).predict(given, verbose=0)
            assert predicted.dtype == outputs.dtype == found.dtype
            np.testing.assert_array_equal(predicted, found)


def test_images_of_integers_are_resized_mirrored_and_cut():
    x = np.random.default_rng(0).uniform(0, 255, (4, 6, 8, 3)).astype("float32")
    for dtype in "uint8", "int32":
        whole = x.astype(dtype)
        resized = layers.Resizing(3, 5, dtype=dtype)(x)
        np.testing.assert_array_equal(resized, keras.ops.image.resize(whole, (3, 5)))
        for layer in layers.RandomFlip(dtype=dtype, seed=1), layers.RandomCrop(4, 5, dtype=dtype, seed=1):
            floats = type(layer).from_config({**layer.get_config(), "dtype": "float32"})
            for given in x, {"images": x, "segmentation_masks": whole}:
                found, expected = layer(given, training=True), floats(given, training=True)
                found, expected = (each["images"] if isinstance(each, dict) else each for each in (found, expected))
                assert found.dtype == resized.dtype == dtype
                np.testing.assert_array_equal(found, expected.astype(dtype))


def test_an_integer_dtype_is_no_global_policy():
    with pytest.raises(ValueError, match=r"set_dtype_policy: expected one of float32, .*, got 'int32'"):
        keras.config.set_dtype_policy("int32")
    policy = keras.DTypePolicy("int32")
    assert (policy.compute_dtype, policy.variable_dtype) == ("int32", "int32")
    np.testing.assert_array_equal(layers.Rescaling(3, 2, dtype="uint8")(np.array([1.9, 100])), [5, 302 % 256])
    layer = layers.Flatten(dtype=policy)
    assert layers.Flatten.from_config(layer.get_config()).dtype_policy == policy
