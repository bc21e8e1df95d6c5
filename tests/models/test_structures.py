"""Structures of inputs, outputs, targets, losses and weights: as Keras reads them, or refused, never reordered."""

import numpy as np
import pytest

import pydtconv
from pydtconv import tree
from tests.real_keras import import_keras

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
#: the leaves are names of inputs or outputs
STRUCTURES = {
    "one": "p",
    "list of one": ["p"],
    "list": ["p", "q"],
    "tuple": ("p", "q"),
    "dict": {"p": "p", "q": "q"},
    "dict in another order": {"q": "q", "p": "p"},
    "dict of other keys": {"k2": "p", "k1": "q"},
    "nested": {"z": "p", "h": {"x": "r", "y": "q"}},
    "lists": [["p"], ["q", "r"]],
    "dict in a list": [{"b": "p", "a": "q"}, "r"],
    "dict in a tuple": ({"b": "p"}, ["q", "r"]),
}
VALUES = {"p": 1.0, "q": 2.0, "r": 4.0}


def names_of(structure):
    """The leaves in the order in which they stand there."""
    parts = structure.values() if isinstance(structure, dict) else structure
    return [structure] if isinstance(structure, str) else [name for part in parts for name in names_of(part)]


def givens_of(structure):
    """What users may pass for a structure, by what it is."""
    names = names_of(structure)
    return {
        "the same": structure,
        "list": list(names),
        "tuple": tuple(names),
        "sorted list": sorted(names),
        "dict by names": {name: name for name in names},
        "dict by names, in another order": {name: name for name in reversed(names)},
        "dict with more": {**{name: name for name in names}, "w": "p"},
        "dict with less": {name: name for name in names[:-1]},
        "dict of unknown keys": {f"u{i}": name for i, name in enumerate(names)},
        "short list": list(names[:-1]),
        "one array": names[0],
    }


def array_of(name):
    return np.full((2, 1), VALUES[name], "float32")


def sum_of_inputs(keras, structure, given, way):
    """p + 10 q + 100 r, where each array reaches the input of its name; the error where it is refused."""
    inputs = {name: keras.Input((1,), name=name) for name in names_of(structure)}
    total = sum(inputs[name] * 10.0 ** "pqr".index(name) for name in inputs)
    model = keras.Model(tree.map_structure(inputs.__getitem__, structure), total)
    data = tree.map_structure(array_of, given)
    try:
        found = model.predict(data, verbose=0) if way == "predict" else model(data)
    except Exception as error:
        return error
    return float(np.asarray(found.detach() if hasattr(found, "detach") else found)[0, 0])


CASES = [(name, given) for name in STRUCTURES for given in givens_of(STRUCTURES[name])]


def test_inputs_reach_the_places_of_their_names_or_are_refused():
    for name, given in CASES:
        structure, passed = STRUCTURES[name], givens_of(STRUCTURES[name])[given]
        expected = sum(VALUES[leaf] * 10.0 ** "pqr".index(leaf) for leaf in names_of(structure))
        for way in ("call", "predict"):
            found = sum_of_inputs(pydtconv, structure, passed, way)
            where = f"{given} for {name}, {way}: {found!r}"
            # lists say nothing of names: where they are sorted, they are read as they stand
            if given == "sorted list" and names_of(structure) != sorted(names_of(structure)):
                assert isinstance(found, ValueError), where
            elif given == "the same" or (given in ("list", "tuple") and found == expected):
                assert found == expected, where
            else:
                assert found == expected or isinstance(found, ValueError), where


@pytest.mark.slow
def test_inputs_beside_keras():
    keras = import_keras()
    for name, given in CASES:
        structure, passed = STRUCTURES[name], givens_of(STRUCTURES[name])[given]
        for way in ("call", "predict"):
            theirs, ours = (sum_of_inputs(k, structure, passed, way) for k in (keras, pydtconv))
            assert isinstance(ours, ValueError) or isinstance(theirs, Exception) or ours == theirs, (name, given, way)
            if isinstance(theirs, float) and given in ("the same", "list"):
                assert ours == theirs or name == "dict in a list", (name, given, way)


def results(keras, structure, **given):
    """The list and the dict of `evaluate`, with losses of targets against zero; y, loss and sample_weight by names."""
    x = keras.Input((1,))
    made = {
        name: keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", name=name)(x)
        for name in names_of(structure)
    }
    model = keras.Model(x, tree.map_structure(made.__getitem__, structure))
    kinds = {"p": "mse", "q": "mae", "r": "mean_squared_logarithmic_error"}
    loss = tree.map_structure(kinds.__getitem__, given["loss"]) if "loss" in given else "mse"
    y = tree.map_structure(array_of, given.get("y", structure))
    weight = tree.map_structure(lambda name: np.full(2, VALUES[name], "float32"), given.get("sample_weight", ()))
    data = {"y": y, "sample_weight": weight if "sample_weight" in given else None, "verbose": 0}
    try:
        model.compile("sgd", loss)
        as_list = np.atleast_1d(model.evaluate(np.ones((2, 1)), **data)).tolist()
        return np.round(as_list, 4).tolist(), model.evaluate(np.ones((2, 1)), **data, return_dict=True)
    except Exception as error:
        return error


def test_targets_losses_and_weights_in_another_order_are_refused():
    nested, flat = STRUCTURES["nested"], STRUCTURES["dict in another order"]
    names = names_of(nested)
    for argument in ("y", "loss", "sample_weight"):
        assert isinstance(results(pydtconv, nested, **{argument: names}), ValueError), argument
    assert isinstance(results(pydtconv, flat, sample_weight=["q", "p"]), ValueError)
    assert results(pydtconv, nested, y=nested) == results(pydtconv, nested)


def test_results_stand_in_the_order_of_the_losses():
    """As Keras 3.15 lists them."""
    nested = STRUCTURES["nested"]
    assert results(pydtconv, nested)[0] == [21.0, 16.0, 4.0, 1.0]
    assert results(pydtconv, nested, loss=nested)[0] == [5.5903, 1.0, 2.5903, 2.0]
    assert results(pydtconv, nested, loss={"h": {"y": "q", "x": "r"}, "z": "p"})[0] == [5.5903, 2.0, 2.5903, 1.0]
    assert results(pydtconv, ["p", "q"], loss={"q": "q", "p": "p"})[0] == [3.0, 1.0, 2.0]
    assert results(pydtconv, {"p": "p", "q": "q"}, loss={"q": "q", "p": "p"})[0] == [3.0, 2.0, 1.0]


@pytest.mark.slow
@pytest.mark.parametrize("argument", ["y", "loss", "sample_weight"])
def test_results_beside_keras(argument):
    keras = import_keras()
    for name, given in CASES:
        passed = givens_of(STRUCTURES[name])[given]
        theirs, ours = (results(k, STRUCTURES[name], **{argument: passed}) for k in (keras, pydtconv))
        if not isinstance(theirs, Exception) and not isinstance(ours, ValueError):
            assert ours[0] == pytest.approx(theirs[0], abs=1e-3), (name, given)
            assert ours[1] == pytest.approx(theirs[1], abs=1e-3), (name, given)


def test_tuples_stay_tuples_in_configs_and_clones():
    x = pydtconv.Input((3,))
    outputs = (pydtconv.layers.Dense(2)(x), {"a": (pydtconv.layers.Dense(2)(x),)})
    model = pydtconv.Model(x, outputs)
    for other in (type(model).from_config(model.get_config()), pydtconv.models.clone_model(model)):
        found = other(np.ones((1, 3), "float32"))
        assert isinstance(found, tuple)
        assert isinstance(found[1]["a"], tuple)
