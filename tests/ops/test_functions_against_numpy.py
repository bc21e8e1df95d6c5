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
