"""Every function of `ops` that NumPy has, too, beside NumPy's in float64."""

import inspect

import numpy as np
import pytest

from pydtconv import ops, tree
from tests.ops.keras_calls import calls_of

#: "nan_to_num" depends on the largest number of the dtype
NAMES = sorted(
    name
    for name in dir(ops)
    if inspect.isfunction(getattr(ops, name)) and callable(getattr(np, name, None)) and name[0] != "_"
    if name != "nan_to_num"
)


def exact(value):
    return value.astype("float64") if isinstance(value, np.ndarray) and value.dtype == "float32" else value


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_numpy(name):
    for args, kwargs in calls_of(name, getattr(ops, name)):
        expected = tree.flatten(getattr(np, name)(*tree.map_structure(exact, args), **kwargs))
        found = tree.flatten(getattr(ops, name)(*args, **kwargs))
        for y, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5, equal_nan=True, err_msg=f"{name} {kwargs}")


def test_arrays_of_bfloat16_stand_beside_others():
    narrow = pytest.importorskip("ml_dtypes").bfloat16
    x = np.array([1, 3], narrow)
    found = ops.where(np.array([True, False]), x, np.array([2, 5]))
    assert found.dtype == narrow
    assert found.tolist() == [1, 5]
    for end in (x, np.array([1, 3], "float32"), np.array([1, 3])):
        for make in (ops.linspace, ops.logspace, ops.geomspace):
            expected = make(np.array([1.0, 3.0]), np.array([1.0, 3.0]), 3)
            np.testing.assert_array_equal(make(x, end, 3), expected)
            np.testing.assert_array_equal(make(end, x, 3), expected)
