"""Constraints, beside Keras's."""

import numpy as np
import pytest

from pydtconv import constraints
from tests.real_keras import import_keras

X = np.random.default_rng(3).normal(0, 2, (6, 8)).astype("float32")


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.MaxNorm(1.5, axis=0),
        lambda m: m.NonNeg(),
        lambda m: m.UnitNorm(axis=1),
        lambda m: m.MinMaxNorm(0.5, 1.5, rate=0.7, axis=0),
    ],
    ids=["MaxNorm", "NonNeg", "UnitNorm", "MinMaxNorm"],
)
def test_constraint(make):
    keras = import_keras()
    expected = make(keras.constraints)(keras.ops.convert_to_tensor(X)).numpy()
    ours = make(constraints)
    np.testing.assert_allclose(ours(X), expected, rtol=1e-5)
    np.testing.assert_allclose(constraints.deserialize(constraints.serialize(ours))(X), expected, rtol=1e-5)
