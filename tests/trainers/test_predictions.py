"""Outputs of predict that are not put together row by row."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import ops

X = np.random.default_rng(0).normal(size=(24, 6)).astype("float32")


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x: ops.mean(x, axis=0, keepdims=True), (3, 6)),
        (lambda x: ops.reshape(x, (-1, 2)), (72, 2)),
        (lambda x: ops.mean(x), (3,)),
    ],
)
def test_outputs_that_have_not_one_row_for_each_sample(call, shape):
    inputs = keras.Input((6,))
    found = keras.Model(inputs, call(inputs)).predict(X, batch_size=8, verbose=0)
    assert found.shape == shape
    batches = [call(X[i : i + 8]) for i in (0, 8, 16)]
    np.testing.assert_allclose(found, np.concatenate([np.array(each, ndmin=1) for each in batches]), rtol=1e-5)
