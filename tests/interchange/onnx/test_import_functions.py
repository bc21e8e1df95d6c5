"""ONNX nodes of elements, reductions and products, as functions."""

import numpy as np
import pytest

from pydtconv import saving
from tests.interchange.onnx_files import load, made, node, normal, vector


@pytest.mark.parametrize("rows", [1, 2])
def test_a_constant_beside_the_batch(rows, tmp_path):
    """As networks have it whose class token was expanded to a batch of 2."""
    token = np.tile(np.arange(3, dtype="float32"), (rows, 1))
    path = tmp_path / "net.onnx"
    model = made([node("Concat", ["t", "x"], axis=1)], [vector("t", token)], shape=(2, 4))
    path.write_bytes(model.SerializeToString())
    loaded = saving.load_onnx(path, free_batch=True)
    x = np.ones((5, 4), "float32")
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), np.hstack([np.tile(token[:1], (5, 1)), x]))


def test_a_column_that_a_product_adds_to_its_rows(tmp_path):
    b, c, x = normal(4, 3), normal(3, 1), normal(3, 4)
    model = load(tmp_path, [node("Gemm", ["x", "b", "c"])], [vector("b", b), vector("c", c)], shape=(3, 4))
    np.testing.assert_allclose(model(x), x @ b + c, atol=1e-5)
