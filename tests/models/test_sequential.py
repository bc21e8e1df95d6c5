"""Sequential models: with and without an input, add, pop, deferred build."""

import numpy as np
import pytest

from pydtconv import Input, Model, Sequential, layers, utils
from pydtconv.models import clone_model, load_model


def convolutions():
    return [layers.Conv2D(4, 3, activation="relu"), layers.GlobalAveragePooling2D()]


def test_with_input_is_built_at_once():
    model = Sequential([Input((8, 8, 3)), *convolutions()])
    assert model.built
    assert model.output_shape == (None, 4)
    assert [type(layer).__name__ for layer in model.layers] == ["Conv2D", "GlobalAveragePooling2D"]
    assert model(np.ones((2, 8, 8, 3))).shape == (2, 4)


def test_without_input_is_built_by_the_first_call():
    model = Sequential(convolutions())
    assert not model.built
    assert model.weights == []
    assert model(np.ones((2, 8, 8, 3))).shape == (2, 4)
    assert model.built
    assert model.input_shape == (None, 8, 8, 3)
    assert len(model.weights) == 2


def test_build_with_a_shape():
    model = Sequential(convolutions())
    model.build((None, 8, 8, 3))
    assert len(model.weights) == 2
    assert model.count_params() == 3 * 3 * 3 * 4 + 4


def test_input_shape_argument_of_the_first_layer():
    model = Sequential([layers.Conv2D(4, 3, input_shape=(8, 8, 3))])
    assert model.output_shape == (None, 6, 6, 4)


def test_a_layer_that_does_not_fit_is_not_added():
    x = np.ones((2, 4), "float32")
    model = Sequential([Input((4,)), layers.Dense(3)])
    before = model.predict(x, verbose=0)
    with pytest.raises(ValueError, match="expected 4 dimensions"):
        model.add(layers.Conv2D(3, 3))
    assert [len(model.layers), model.built, model.output_shape] == [1, True, (None, 3)]
    np.testing.assert_array_equal(model.predict(x, verbose=0), before)


@pytest.mark.parametrize("outside", [False, True])
def test_add_and_pop_are_seen_after_steps(outside):
    """Also by a model that holds this one."""
    x = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    model = Sequential([Input((4,)), layers.Dense(3), layers.Dense(1)])
    seen = Sequential([Input((4,)), model]) if outside else model
    assert seen.predict(x, verbose=0).shape == (5, 1)
    model.pop()
    np.testing.assert_allclose(seen.predict(x, verbose=0), np.asarray(model(x)), rtol=1e-6)
    model.add(layers.ReLU())
    found = seen.predict(x, verbose=0)
    assert found.shape == (5, 3)
    assert found.min() == 0
    np.testing.assert_allclose(found, np.asarray(model(x)), rtol=1e-6)


def test_add_and_pop():
    model = Sequential([Input((8, 8, 3))])
    assert not model.built
    model.add(layers.Conv2D(4, 3))
    model.add(layers.ReLU())
    weights = model.get_weights()
    assert model.output_shape == (None, 6, 6, 4)
    assert isinstance(model.pop(), layers.ReLU)
    model.add(layers.GlobalMaxPooling2D())
    assert model.output_shape == (None, 4)
    for a, b in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="expected a layer, got 3"):
        model.add(3)
    with pytest.raises(ValueError, match="come first"):
        model.add(Input((3,)))


def test_equal_names_are_refused():
    with pytest.raises(ValueError, match="named 'a'"):
        Sequential([layers.ReLU(name="a"), layers.ReLU(name="a")])


def test_inside_functional_and_sequential():
    block = Sequential(convolutions())
    x = Input((8, 8, 3))
    model = Model(x, block(x))
    assert block.built
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 3))
    np.testing.assert_array_equal(Sequential([Input((8, 8, 3)), model])(a), block(a))


def test_config_round_trip():
    model = Sequential([Input((8, 8, 3)), *convolutions()], name="small")
    copy = Sequential.from_config(model.get_config())
    assert copy.name == "small"
    assert [layer.name for layer in copy.layers] == [layer.name for layer in model.layers]
    copy.set_weights(model.get_weights())
    a = np.random.default_rng(0).normal(size=(2, 8, 8, 3))
    np.testing.assert_array_equal(copy(a), model(a))


def test_wrong_channels_names_layer_expected_and_found():
    model = Sequential([Input((8, 8, 3)), *convolutions()])
    with pytest.raises(ValueError, match=r"Conv2D.*expected extent 3 on axis -1, got shape \(2, 8, 8, 4\)"):
        model(np.ones((2, 8, 8, 4)))
    with pytest.raises(ValueError, match=r"Conv2D 'conv2d.*expected extent 3 on axis -1.*\(2, 8, 8, 4\)"):
        model.layers[0](np.ones((2, 8, 8, 4)))
    with pytest.raises(ValueError, match=r"expected 4 dimensions.*\(2, 8, 8\)"):
        model.layers[0](np.ones((2, 8, 8)))


@pytest.mark.parametrize("copied", [lambda m: Sequential.from_config(m.get_config()), clone_model])
def test_a_layer_thawed_in_a_frozen_model_stays_so(copied):
    model = Sequential([Input((4,)), layers.Dense(4, name="frozen"), layers.Dense(4, name="thawed")])
    model.trainable = False
    model.layers[-1].trainable = True
    copy = copied(model)
    assert not copy.trainable
    assert [layer.trainable for layer in copy.layers] == [False, True]


def test_a_layer_that_stands_twice(tmp_path):
    shared = layers.Dense(3, activation="relu", name="shared")
    model = Sequential([Input((3,)), shared, layers.Dense(3, name="between"), shared])
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    want = shared(model.layers[1](shared(x)))
    np.testing.assert_allclose(model.predict(x, verbose=0), want, rtol=1e-6)
    assert len(model.layers) == 3
    assert len(model.weights) == 4
    found = [clone_model(model)]
    found[0].set_weights(model.get_weights())
    for name in ("model.keras", "model.h5"):
        model.save(tmp_path / name)
        found.append(load_model(tmp_path / name))
    for other in found:
        assert other.layers[0] is other.layers[2]
        np.testing.assert_array_equal(other.predict(x, verbose=0), model.predict(x, verbose=0))


@pytest.mark.parametrize("begins", [False, True], ids=["of data", "of an Input"])
def test_images_of_other_sizes_where_the_layers_allow_it(begins):
    """As in Keras; what is bound to a size says so."""
    first = [layers.Input((8, 8, 3))] if begins else []
    model = Sequential([*first, layers.Conv2D(4, 3), layers.PReLU(shared_axes=(1, 2)), layers.GlobalAveragePooling2D()])
    model.compile("sgd", "mse")
    for size in (8, 11, 8):
        images = np.random.default_rng(size).random((2, size, size, 3), np.float32)
        model.fit(images, np.zeros((2, 4)), verbose=0)
        expected = model.layers[2](model.layers[1](model.layers[0](images)))
        np.testing.assert_allclose(model.predict(images, verbose=0), expected, rtol=1e-4, atol=1e-6)
    assert model.input_shape == (None, 8, 8, 3)
    for bound in (
        layers.PReLU(),
        layers.LayerNormalization(axis=(1, 2)),
        Sequential([layers.Flatten(), layers.Dense(2)]),
    ):
        model = Sequential([*first, bound])
        model(np.ones((2, 8, 8, 3), "float32"))
        with pytest.raises(ValueError, match=r"expected|must have shape"):
            model(np.ones((2, 9, 9, 3), "float32"))


def test_prelu_takes_no_extents_that_its_weights_would_be_repeated_along():
    layer = layers.PReLU()
    layer(np.ones((2, 1, 3), "float32"))
    with pytest.raises(ValueError, match="expected extent 1 on axis 1"):
        layer(np.ones((2, 4, 3), "float32"))


def test_names_of_models_count_as_in_keras():
    """Keras makes a functional model inside each chain that is built."""
    utils.clear_session(free_memory=False)
    Sequential([Input((3,)), layers.Dense(2)])
    x = Input((3,))
    assert Model(x, layers.Dense(2)(x)).name == "functional_1"


def test_lists_go_from_layer_to_layer():
    class Pair(layers.Layer):
        def call(self, inputs):
            return [inputs[0] + inputs[1], 2 * inputs[1]]

    x = [np.ones((3, 2), "float32"), np.ones((3, 2), "float32")]
    model = Sequential([Pair(), Pair(), layers.Add()])
    for y in model(x), model.predict(x, verbose=0):
        np.testing.assert_array_equal(y, np.full((3, 2), 8))
    model.summary(print_fn=lambda *_, **__: None)


def test_a_layer_whose_shapes_are_not_known_before_it_runs():
    class Unknown(layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight((input_shape[-1],), "ones")

        def call(self, inputs):
            return inputs * self.scale

        def compute_output_spec(self, *args, **kwargs):
            raise NotImplementedError

    x = np.ones((4, 2), "float32")
    for first in [], [Input((2,))]:
        model = Sequential([*first, Unknown(), layers.Dense(1, kernel_initializer="ones")])
        np.testing.assert_array_equal(model(x), np.full((4, 1), 2))
        model.compile("sgd", "mse")
        model.fit(x, x[:, :1], verbose=0)
        assert len(model.weights) == 3
        model.summary(print_fn=lambda *_, **__: None)


def test_what_a_layer_of_ours_refuses_is_said_at_once():
    class Refused(layers.Layer):
        def call(self, inputs):
            raise NotImplementedError("not here")

    with pytest.raises(NotImplementedError, match="not here"):
        Sequential([Input((2,)), Refused()])
