"""Plans that are kept for graphs which come again, and for no others."""

from dataclasses import dataclass

import numpy as np
import pytest

from pydtconv import GradientTape, ops
from pydtconv.graph import run_once
from pydtconv.graph.runtime import executor
from pydtconv.graph.runtime.kept import Kept

X = np.array([[1.0, -2.0, 0.0, 3.0]], "float32")

#: functions that differ in a number which compares equal
PAIRS = {
    "maximum": (lambda x: ops.maximum(x, 0.0), lambda x: ops.maximum(x, -0.0)),
    "leaky_relu": (lambda x: ops.leaky_relu(x, 0.0), lambda x: ops.leaky_relu(x, -0.0)),
    "add": (lambda x: ops.cast(x, "int32") + 1, lambda x: ops.cast(x, "int32") + 1.0),
    "multiply": (lambda x: x * 0.0, lambda x: x * -0.0),
    "pad": (lambda x: ops.pad(x, 1, constant_values=0.0), lambda x: ops.pad(x, 1, constant_values=-0.0)),
    "truth": (lambda x: ops.cast(x, "int32") * 1, lambda x: ops.cast(x, "int32") * True),
}


@pytest.mark.parametrize(("first", "second"), PAIRS.values(), ids=list(PAIRS))
def test_numbers_that_compare_equal_are_told_apart(first, second, monkeypatch):
    monkeypatch.setattr(executor, "_PLANS", Kept(in_variables=True))
    expected = run_once(second, [X])
    monkeypatch.setattr(executor, "_PLANS", Kept(in_variables=True))
    run_once(first, [X])
    for found in (run_once(second, [X]), run_once(lambda x: [first(x), second(x)], [X])[1]):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@dataclass(frozen=True)
class Scaled(ops.NumpyOp):
    """An operator with an attribute that has no hash."""

    factors: object = None


@pytest.mark.parametrize("factors", [[2.0], np.array([2.0, 3.0])], ids=["list", "array"])
def test_operators_whose_attributes_have_no_hash_run_at_once(factors):
    def scaled(x):
        return Scaled(lambda x: factors[0] * x, lambda dy, *_: factors[0] * dy, factors=factors)(x)

    np.testing.assert_array_equal(run_once(scaled, [X]), 2 * X)
    for _ in range(2):
        with GradientTape() as tape:
            x = ops.convert_to_tensor(X)
            tape.watch(x)
            y = ops.sum(scaled(x))
        np.testing.assert_array_equal(tape.gradient(y, x), np.full_like(X, 2.0))
