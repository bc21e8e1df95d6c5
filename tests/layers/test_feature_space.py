"""FeatureSpace beside what Keras 3.15 on TensorFlow 2.21 gives for the same tables."""

import io

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, saving
from pydtconv.utils import FeatureSpace

DATA = {
    "f": [1.5, -2.0, 3.25, 0.5, 8.0, -1.0],
    "n": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
    "r": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "d": [1.0, 5.0, 2.0, 9.0, 7.0, 3.0],
    "i": [3, 7, 3, 1, 7, 3],
    "s": ["a", "b", "a", "c", "b", "a"],
    "ih": [5, 17, 123, 5, 42, 99],
    "sh": ["x", "yy", "zzz", "x", "w", "yy"],
}
NEW = {
    "f": [2.5, 1.0], "n": [15.0, 100.0], "r": [7.0, -2.0], "d": [4.0, 20.0], "i": [7, 99], "s": ["c", "new"],
    "ih": [17, 1000], "sh": ["zzz", "other"],
}  # fmt: skip
KINDS = {
    "f": "float", "n": "float_normalized", "r": "float_rescaled", "d": "float_discretized", "i": "integer_categorical",
    "s": "string_categorical", "ih": "integer_hashed", "sh": "string_hashed",
}  # fmt: skip
SPACES = {
    "names": lambda: FeatureSpace(
        features=KINDS, crosses=[("i", "s"), ("i", "ih")], crossing_dim=5, hashing_dim=4, num_discretization_bins=3
    ),
    "dict": lambda: FeatureSpace(features=KINDS, crosses=[("i", "s")], output_mode="dict", num_discretization_bins=4),
    "own": lambda: FeatureSpace(
        features={
            "d": FeatureSpace.float_discretized(num_bins=3, output_mode="int"),
            "i": FeatureSpace.integer_categorical(num_oov_indices=2, output_mode="int"),
            "s": FeatureSpace.string_categorical(max_tokens=3, output_mode="int"),
            "ih": FeatureSpace.integer_hashed(num_bins=6, output_mode="int"),
            "r": FeatureSpace.float_rescaled(scale=0.5, offset=1.0),
        },
        crosses=[FeatureSpace.cross(("i", "s"), crossing_dim=7, output_mode="int")],
        output_mode="dict",
    ),
}
RECORDED = {
    "names": [
        [
            0,
            1,
            0,
            2.5,
            0,
            0,
            1,
            0,
            0,
            0,
            1,
            0,
            -1.1710801124572754,
            7,
            0,
            0,
            0,
            1,
            1,
            0,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            1,
        ],
        [
            0,
            0,
            1,
            1,
            1,
            0,
            0,
            0,
            0,
            1,
            0,
            0,
            3.8060104846954346,
            -2,
            1,
            0,
            0,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            1,
        ],
    ],
    "dict": {
        "d": [[0, 0, 1, 0], [0, 0, 0, 1]],
        "f": [[2.5], [1]],
        "i": [[0, 0, 1, 0], [1, 0, 0, 0]],
        "ih": [
            [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
        ],
        "n": [[-1.1710801124572754], [3.8060104846954346]],
        "r": [[7], [-2]],
        "s": [[0, 0, 0, 1], [1, 0, 0, 0]],
        "sh": [
            [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ],
        "i_X_s": [
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ],
    },
    "own": {
        "d": [[1], [2]],
        "i": [[3], [1]],
        "ih": [[0], [5]],
        "r": [[4.5], [0]],
        "s": [[0], [0]],
        "i_X_s": [[1], [6]],
    },
}


def _tables(data, space):
    kinds = {"f": "float32", "n": "float32", "r": "float32", "d": "float32", "i": "int32", "ih": "int32"}
    return {name: np.array(data[name], kinds.get(name, object)) for name in space.features}


def _check(found, expected):
    if not isinstance(expected, dict):
        found, expected = {"": found}, {"": expected}
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-6, err_msg=name)


def _adapted(name):
    space = SPACES[name]()
    space.adapt(_tables(DATA, space))
    return space


@pytest.mark.parametrize("name", SPACES)
def test_values_beside_keras(name):
    """Of batches, of one row, of symbolic tensors, adapted by columns and by rows, and from a file."""
    space, expected = _adapted(name), RECORDED[name]
    new = _tables(NEW, space)
    _check(space(new), expected)
    first = {key: values[0] for key, values in expected.items()} if isinstance(expected, dict) else expected[0]
    _check(space({key: values[0] for key, values in new.items()}), first)
    model = pydtconv.Model(space.get_inputs(), space.get_encoded_features())
    _check(model.predict({key: values[:, None] for key, values in new.items()}, verbose=0), expected)
    by_rows, columns = SPACES[name](), _tables(DATA, space)
    by_rows.adapt([{key: values[i] for key, values in columns.items()} for i in range(6)])
    _check(by_rows(new), expected)
    file = io.BytesIO()
    space.save(file)
    file.seek(0)
    _check(saving.load_model(file)(new), expected)


def test_layers_of_ones_own_and_what_is_set():
    """A preset layer is not adapted; any layer may prepare a column."""
    preset = layers.Normalization(mean=[1.0], variance=[4.0])
    space = FeatureSpace(
        {
            "n": FeatureSpace.feature("float32", preset, "float"),
            "d": FeatureSpace.float_discretized(None, bin_boundaries=[2.0, 5.0]),
            "f": FeatureSpace.feature("float32", layers.Rescaling(2.0), "float"),
        }
    )
    found = space({"n": [3.0, 5.0], "d": [1, 6], "f": [1.0, 2.0]})
    np.testing.assert_allclose(found, [[1, 0, 0, 2, 1], [0, 0, 1, 4, 2]])


def test_columns_that_are_no_arrays():
    """Lists, and columns that know their shape alone, as those of pandas."""

    class Series:
        shape = (3,)

        def __array__(self, dtype=None, copy=None):
            return np.array([1, 2, 1])

    space = FeatureSpace({"a": "integer_categorical"})
    space.adapt({"a": Series()})
    np.testing.assert_array_equal(space({"a": Series()}), space({"a": [1, 2, 1]}))


def test_models_train_on_it():
    space = _adapted("names")
    y = layers.Dense(1)(space.get_encoded_features())
    model = pydtconv.Model(space.get_inputs(), y)
    model.compile("sgd", "mse")
    columns = {key: values[:, None] for key, values in _tables(DATA, space).items()}
    assert np.isfinite(model.fit(columns, np.ones((6, 1)), verbose=0).history["loss"][0])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: FeatureSpace({}), "features: expected one or more"),
        (lambda: FeatureSpace({"a": "number"}), "expected a Feature or one of float, "),
        (lambda: FeatureSpace({"a": "float"}, output_mode="list"), "output_mode: expected one of concat, dict"),
        (lambda: FeatureSpace({"a": "float"}, crosses=[("a", "b")]), "expected names of features and a crossing_dim"),
        (lambda: FeatureSpace({"a": "float_normalized"})({"a": [1.0]}), r"expected adapt\(data\) before"),
        (lambda: FeatureSpace({"a": "float"})({"b": [1.0]}), r"expected a dict of \['a'\], got \['b'\]"),
        (lambda: FeatureSpace({"a": "float"})([1.0]), r"expected a dict of \['a'\], got list"),
        (lambda: FeatureSpace({"a": "float_normalized"}).adapt(np.ones(3)), "expected a dict of arrays, or data"),
        (lambda: FeatureSpace({"a": "float_normalized"}).adapt([{"b": 1.0}]), "expected dicts with 'a', got dict"),
        (
            lambda: FeatureSpace({"a": FeatureSpace.integer_hashed(3, output_mode="int")})({"a": [1]}),
            "expected floats where features are joined",
        ),
        (lambda: FeatureSpace.cross(("a", "b"), 3, "float"), "output_mode: expected one of int, one_hot"),
    ],
)
def test_what_is_wrong_is_said(make, told):
    with pytest.raises(ValueError, match=told):
        make()
