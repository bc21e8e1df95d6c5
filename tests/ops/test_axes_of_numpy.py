"""NumPy's integers name axes, as Python's do."""

import inspect

import numpy as np
import pytest

from pydtconv import KerasTensor, ops, tree

X = np.random.RandomState(0).rand(4, 4, 4).astype("float32")
#: what arguments without a default are
GIVEN = {
    **dict.fromkeys(("x", "a", "x1", "x2", "y", "target", "output", "array"), X),
    **{"xs": [X, X], "indices": np.array([0, 1]), "num_classes": 3, "indices_or_sections": 2, "num": 2},
    **{"repeats": 2, "shift": 1, "kth": 1, "q": 0.5, "source": 0, "destination": 1, "axis1": 0, "axis2": 1, "axis": 0},
}
OWN = {"stack": {"x": [X, X]}, "squeeze": {"x": X[:1]}, "take_along_axis": {"indices": np.ones((4, 4, 4), "int32")}}
OWN["cross"] = {"x1": X[:3, :3, :3], "x2": X[1:, 1:, 1:]}
OWN["sparse_categorical_crossentropy"] = {"target": np.ones((4, 4), "int32"), "axis": -1}
AXES = ("axis", "axis1", "axis2", "axes", "source", "destination")


def calls():
    for name in dir(ops):
        function = getattr(ops, name)
        if not inspect.isfunction(function) or name in ("transpose", "rot90"):
            continue
        parameters = inspect.signature(function).parameters
        needed = [key for key, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        given = {**{key: GIVEN.get(key) for key in needed}, **OWN.get(name, {})}
        axes = [key for key in parameters if key in AXES]
        if axes and all(value is not None for value in given.values()):
            yield name, function, given, {key: given.get(key, i) for i, key in enumerate(axes)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_function_with_an_axis():
    walked = 0
    for name, function, given, axes in calls():
        expected = function(**{**given, **axes})
        found = function(**{**given, **{key: np.int64(axis) for key, axis in axes.items()}})
        for ours, theirs in zip(tree.flatten(found), tree.flatten(expected), strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        walked += 1
    assert walked > 50
    assert ops.sum(KerasTensor((2, 3)), np.int32(1)).shape == (2,)
