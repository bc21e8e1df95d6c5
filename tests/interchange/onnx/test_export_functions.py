"""Functions of `ops` as ONNX nodes, run by onnxruntime."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from tests.interchange.onnx_sessions import check, onnx, run

FUNCTIONS = {
    "sin": lambda x: ops.sin(x),
    "log1p": lambda x: ops.log1p(ops.abs(x)),
    "log2": lambda x: ops.log2(ops.abs(x) + 1),
    "expm1": lambda x: ops.expm1(x),
    "where": lambda x: ops.where(x > 0, x, 2.0),
    "not_equal": lambda x: ops.cast(ops.not_equal(x, x[:, :1]), "float32"),
    "logical_and": lambda x: ops.cast(ops.logical_and(x > 0, x < 1), "float32"),
    "flip": lambda x: ops.flip(x, 1),
    "tile": lambda x: ops.tile(x, (1, 2, 1, 1)),
    "depth_to_space": lambda x: ops.depth_to_space(x, 2),
    "space_to_depth": lambda x: ops.space_to_depth(x, 2),
    "resize": lambda x: ops.image.resize(x, (7, 3), interpolation="bicubic"),
    "cumsum": lambda x: ops.cumsum(x, 2),
    "prod": lambda x: ops.prod(x, axis=(1, -1)),
    "any": lambda x: ops.cast(ops.any(x > 1, axis=1), "float32"),
    "all": lambda x: ops.cast(ops.all(x > -2, axis=-1, keepdims=True), "float32"),
    "take": lambda x: ops.take(x, np.array([2, 0]), 1),
    "top_k": lambda x: ops.top_k(x, 2)[0],
    "argmin": lambda x: ops.cast(ops.argmin(x, -1), "float32"),
    "one_hot": lambda x: ops.one_hot(ops.argmax(x, 1), 4),
    "triu": lambda x: ops.triu(x, 1),
    "logaddexp": lambda x: ops.logaddexp(x, x[:, :1]),
    "hypot": lambda x: ops.hypot(x, 2.0),
    "broadcast_to": lambda x: ops.stack([x, ops.zeros_like(x)], 1),
    "mean_over_the_batch": lambda x: x - ops.mean(x, 0, keepdims=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, tmp_path):
    inputs = keras.Input((4, 4, 4))
    check(keras.Model(inputs, FUNCTIONS[name](inputs)), tmp_path / "net.onnx", (4, 4, 4))


def test_remainders_have_the_divisors_sign(tmp_path):
    x = keras.Input((6,))
    check(keras.Model(x, keras.ops.mod(x, -0.7) + keras.ops.fmod(x, 0.7)), tmp_path / "net.onnx", (6,))


def test_negative_numbers_are_no_class(tmp_path):
    inputs = keras.Input((3,), dtype="int32")
    outputs = [ops.one_hot(inputs, 4), ops.one_hot(inputs, 4, axis=1), layers.CategoryEncoding(4)(inputs)]
    model, x = keras.Model(inputs, outputs), np.array([[0, -1, 3]], "int32")
    model.export(tmp_path / "net.onnx", format="onnx")
    for got, expected in zip(run(tmp_path / "net.onnx", x), model.predict(x, verbose=0), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_whole_numbers_are_rounded_and_asked_whether_they_are_finite(tmp_path):
    inputs = keras.Input((3,), dtype="int32")
    model, x = keras.Model(inputs, [ops.round(inputs), ops.isnan(inputs), ops.isinf(inputs)]), np.eye(3, dtype="int32")
    model.export(tmp_path / "net.onnx", format="onnx")
    for got, expected in zip(run(tmp_path / "net.onnx", x), (x, x > 9, x > 9), strict=True):
        np.testing.assert_array_equal(got, expected)


OF_INTEGERS = {
    "arithmetic": lambda x: ops.maximum(x + x * 2, 1) - ops.minimum(ops.abs(-x), 3),
    "clip": lambda x: ops.clip(x, -1, 2) + ops.clip(x, [0, 0, 1, 1], [1, 2, 3, 4]) + ops.clip(x, None, 1),
    "powers": lambda x: ops.square(x) * ops.sign(x),
    "products": lambda x: [ops.matmul(x, ROWS), ops.dot(x, ROWS[:, 0]), ops.einsum("ij,jk->ki", x, ROWS)],
    "sums": lambda x: [ops.sum(x, axis=1), ops.max(x, axis=1, keepdims=True), ops.min(x, axis=-1)],
    "moved": lambda x: [ops.transpose(x), x[:, 1:3], ops.concatenate([x, x], 1), ops.pad(x, ((0, 0), (1, 2)))],
    "inner": lambda x: ops.inner(x, ROWS.T),
    "truths": lambda x: [ops.add(x > 0, x > 1), ops.multiply(x > 0, x > 1), ops.max(x > 1, axis=1)],
}
ROWS = np.arange(8, dtype="int32").reshape(4, 2)


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_functions_of_integers(name, tmp_path):
    inputs = keras.Input((4,), dtype="int32")
    model = keras.Model(inputs, OF_INTEGERS[name](inputs))
    x = np.random.default_rng(0).integers(-5, 5, (3, 4)).astype("int32")
    model.export(tmp_path / "net.onnx", format="onnx")
    onnx.checker.check_model(str(tmp_path / "net.onnx"), full_check=True)
    expected_ones = keras.tree.flatten(model.predict(x, verbose=0))
    for got, expected in zip(run(tmp_path / "net.onnx", x), expected_ones, strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
