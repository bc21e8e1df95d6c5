"""Rows of a table by their number."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.kernels import compute
from pydtconv.ops import TakeRows
from tests.ops.harness import check_op, normal


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_take_rows(dtype):
    index = np.array([[0, 3, 3], [3, 1, 0]])
    check_op(
        TakeRows(), index.astype(dtype), normal(4, 37), reference=lambda i, t: t[i.astype(int)], needs=[False, True]
    )


def test_many_rows_on_several_threads():
    index = np.random.default_rng(0).integers(0, 9, 2000)
    check_op(TakeRows(), index, normal(9, 40), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_slices_of_a_concatenation(dtype):
    """Its result and its gradient: the network trains as one whose tables are one."""
    before = keras.config.floatx()
    keras.config.set_floatx(dtype)
    try:
        tables = [normal(9, width).astype(dtype) for width in (4, 3)]
        x, y = np.random.default_rng(1).integers(0, 9, (3, 5)), normal(3, 5, 7).astype(dtype)
        results = []
        for split in (True, False):
            inputs = keras.Input((5,), dtype="int32")
            parts = [layers.Embedding(9, width) for width in ((4, 3) if split else (7,))]
            z = [part(inputs) for part in parts]
            model = keras.Model(inputs, layers.Concatenate()(z) if split else z[0])
            model.set_weights(tables if split else [np.concatenate(tables, axis=1)])
            model.compile(keras.optimizers.SGD(0.5), "mse")
            for _ in range(2):
                model.train_on_batch(x, y)
            results.append(np.concatenate(model.get_weights(), axis=1))
        np.testing.assert_allclose(*results, rtol=1e-5)
    finally:
        keras.config.set_floatx(before)


@pytest.mark.parametrize("wrong", [-1, 4, np.nan])
def test_numbers_outside_of_the_table(wrong):
    with pytest.raises(ValueError, match=r"TakeRows: index: expected numbers from 0 to 3"):
        compute(TakeRows(), np.array([0.0, wrong]), normal(4, 5))
