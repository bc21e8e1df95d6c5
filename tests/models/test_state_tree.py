"""`get_state_tree` and `set_state_tree`: paths, values, what is refused."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def model_of(k):
    x = k.Input((3,))
    model = k.Model(x, k.layers.Dense(2, name="out")(k.layers.BatchNormalization(name="norm")(x)))
    model.compile(k.optimizers.Adam(0.01, name="adam"), "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    return model


def paths(tree, before=""):
    return sorted(
        path
        for key, part in tree.items()
        for path in (paths(part, f"{before}{key}/") if isinstance(part, dict) else [f"{before}{key}"])
    )


def test_paths_are_those_of_keras():
    tree = model_of(pydtconv).get_state_tree()
    assert paths(tree) == paths(model_of(import_keras()).get_state_tree("numpy_array"))


def test_a_tree_sets_the_values_of_another_model():
    first, second = model_of(pydtconv), model_of(pydtconv)
    second.set_state_tree(first.get_state_tree("numpy_array"))
    for a, b in zip(
        first.variables + first.optimizer.variables, second.variables + second.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    second.set_state_tree({"trainable_variables": {"out": {"bias": [0.5, 1.5]}}})
    np.testing.assert_array_equal(second.get_layer("out").bias.numpy(), [0.5, 1.5])


def test_what_is_refused():
    model = model_of(pydtconv)
    with pytest.raises(ValueError, match="value_format: expected 'backend_tensor' or 'numpy_array', got 'list'"):
        model.get_state_tree("list")
    before = model.get_weights()
    for tree in (
        {"weights": {}},
        {"trainable_variables": None},
        {"trainable_variables": {"norm": {"gamma": [9, 9, 9], "none": [1]}}},
        {"trainable_variables": {"norm": {"gamma": [9, 9, 9], "beta": [1, 2]}}},
    ):
        with pytest.raises(ValueError, match="set_state_tree: "):
            model.set_state_tree(tree)
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    twins = pydtconv.Sequential([pydtconv.Input((3,)), pydtconv.Sequential([layers.Dense(2, name="x")], name="a")])
    twins.add(layers.Dense(2, name="y"))
    twins.layers[-1].kernel.path = twins.layers[0].layers[0].kernel.path
    twins.compile("sgd", "mse")
    with pytest.raises(ValueError, match="two variables have the path"):
        twins.get_state_tree()
