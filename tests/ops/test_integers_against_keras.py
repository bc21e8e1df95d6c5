"""Integers and booleans: values and kinds of dtype as in Keras, on arrays and in code that is traced."""

import inspect

import numpy as np
import pytest

import pydtconv
from pydtconv import ops, tree
from tests.real_keras import import_keras

INT = np.array([[3, 1, 2], [5, 0, 4]], "int32")
B, F = INT > 2, INT.astype("float32")
CASES = {
    "sum": [(INT,), (B,), (INT, 1), (INT > 9, 0)],
    "max": [(INT,), (INT, 1)],
    "min": [(B,), (INT, 0)],
    "mean": [(INT,), (B,)],
    "prod": [(B,), (INT, 1)],
    "cumsum": [(B,), (INT, 0), (B, 1)],
    "cumprod": [(B, 1)],
    "ptp": [(INT,)],
    "nanmax": [(INT,), (INT, 1)],
    "nanmin": [(B,), (INT, 0, True)],
    "nansum": [(INT,), (B, 1)],
    "nanprod": [(INT, 1)],
    "nancumsum": [(B,), (INT, 0)],
    "nancumprod": [(B, 1)],
    "diff": [(INT,)],
    "trace": [(INT,)],
    "transpose": [(INT,), (B,)],
    "reshape": [(INT, (3, 2)), (B, (-1,))],
    "squeeze": [(INT[None],)],
    "concatenate": [([INT, INT],), ([INT, F],), ([B, INT],)],
    "stack": [([INT, INT],)],
    "pad": [(INT, ((1, 1), (2, 0)))],
    "add": [(INT, INT), (INT, 2), (INT, 2.5), (B, B), (B, INT), (B, 2), (B, 1.5), (INT, F), (B, F)],
    "subtract": [(INT, 2), (2, INT), (B, INT)],
    "multiply": [(INT, INT), (B, B), (B, F), (INT, 0.5)],
    "divide": [(INT, 2), (INT, INT + 1)],
    "power": [(INT, 2)],
    "maximum": [(INT, 3), (B, B)],
    "clip": [(INT, 1, 4)],
    "negative": [(INT,)],
    "square": [(INT,), (B,)],
    "sqrt": [(INT,)],
}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_integers_stay_integers_where_they_do_in_keras(name):
    theirs = getattr(import_keras().ops, name)
    for args in CASES[name]:
        expected = np.asarray(theirs(*args))
        found = [np.asarray(getattr(ops, name)(*args))]
        if not any(leaf.dtype == bool for leaf in tree.flatten(args) if isinstance(leaf, np.ndarray)):
            call = pydtconv.function(lambda x, *rest: getattr(ops, name)(x, *rest))
            found.append(np.asarray(call(*args)))
        for each in found:
            assert (each.dtype.kind, each.shape) == (expected.dtype.kind, expected.shape), args
            np.testing.assert_allclose(each, expected, rtol=1e-6)


def test_large_integers_are_exact():
    for name in ("nanmax", "nanmin", "nansum", "nanprod", "nancumsum", "nancumprod"):
        np.testing.assert_array_equal(getattr(ops, name)(np.array([2**24 + 1])), 2**24 + 1, name)
    large = np.array([2**24 + 1, 1], "int32")
    assert int(ops.max(large)) == 2**24 + 1
    assert int(ops.sum(large)) == 2**24 + 2
    np.testing.assert_array_equal(ops.reshape(large, (2, 1))[:, 0], large)
    assert ops.argmax(large[::-1].copy()) == ops.argmax(np.array([2**24, 2**24 + 1])) == 1


WHOLE = np.array([[2**24 + 1, 1], [3, 5], [7, 0]], "int32")


@pytest.mark.parametrize(
    ("product", "exact"),
    [
        (lambda x: ops.matmul(x, WHOLE), lambda x: x @ WHOLE),
        (lambda x: ops.matmul(x, WHOLE[:, 0]), lambda x: x @ WHOLE[:, 0]),
        (lambda x: ops.dot(x, WHOLE[None]), lambda x: x @ WHOLE[None]),
        (lambda x: ops.dot(x, 2), lambda x: x * 2),
        (lambda x: ops.inner(x, x), lambda x: np.inner(x, x)),
        (lambda x: ops.tensordot(x, WHOLE, 1), lambda x: x @ WHOLE),
        (lambda x: ops.einsum("...j,jk->k...", x, WHOLE), lambda x: (x @ WHOLE).T),
    ],
)
def test_products_of_integers_in_models_are_exact_integers(product, exact, tmp_path):
    inputs = pydtconv.Input((3,), dtype="int32")
    model = pydtconv.Model(inputs, product(inputs))
    model.save(tmp_path / "a.keras")
    for each in (product, model, pydtconv.saving.load_model(tmp_path / "a.keras")):
        found = np.asarray(each(INT))
        assert found.dtype == "int32"
        np.testing.assert_array_equal(found.reshape(np.shape(exact(INT))), exact(INT))


def test_products_of_integers_that_do_not_fit_tell_shapes():
    with pytest.raises(ValueError, match=r"got shapes \(None, 3\), \(2, 3\): expected the last extent of the first"):
        ops.matmul(pydtconv.Input((3,), dtype="int32"), INT)
    with pytest.raises(ValueError, match="expected one extent of 'b', got 3 and 2"):
        ops.einsum("ab,bc->ac", pydtconv.Input((3,), dtype="int32"), INT)


def test_lists_of_numbers_are_int32_and_floatx():
    assert [y.dtype.name for y in (ops.sum([1, 2]), ops.reshape([1, 2], (2, 1)), ops.add([1, 2], [3, 4]))] == [
        "int32"
    ] * 3
    assert ops.add(np.array([2**24 + 1], "int32"), [0])[0] == 2**24 + 1
    assert ops.max([[2**40, 1]]) == 2**40
    floats = ops.exp([1.0]), ops.mean([1.0, 2.0]), ops.max([[0.5]]), ops.maximum([1, 2], 1.5), ops.ravel([])
    assert [y.dtype.name for y in floats] == ["float32"] * 5


def test_functions_of_two_short_integers_are_as_exact_as_of_one():
    """NumPy computes them in half precision."""
    a, b = np.array([1, 200], "uint8"), np.array([3, 7], "uint8")
    for name in ("arctan2", "hypot", "logaddexp", "logaddexp2"):
        exact = getattr(np, name)(a.astype("float64"), b.astype("float64"))
        np.testing.assert_allclose(getattr(ops, name)(a, b), exact, rtol=1e-6)


def test_what_is_like_integers_is_integers_where_code_is_traced():
    like = pydtconv.function(lambda x: (ops.zeros_like(x), ops.full_like(x, 2.7), ops.ones_like(x, dtype="float32")))
    assert [np.asarray(y).tolist() for y in like(INT)] == [[[n] * 3] * 2 for n in (0, 2, 1)]
    assert [str(y.dtype) for y in like(INT)] == ["int32", "int32", "float32"]


def test_variables_of_integers_count():
    count = pydtconv.Variable(3, dtype="int32", trainable=False)
    assert (int(count + 1), int(2 * count), int(1 - count), float(count / 2)) == (4, 6, -2, 1.5)


def test_truth_values_beside_integers_are_integers():
    for call in (lambda x: ops.add(x, True), lambda x: ops.multiply(True, x), lambda x: ops.maximum(x, False)):
        for found in (call(INT), np.asarray(pydtconv.function(call)(INT))):
            assert found.dtype == "int32"
    np.testing.assert_array_equal(ops.subtract(INT, True), INT - 1)
    np.testing.assert_array_equal(ops.add(B, True), np.ones((2, 3), bool))


def test_integers_that_a_dtype_does_not_hold_are_not_cut_to_it():
    pixels = np.array([0, 44, 200], "uint8")
    np.testing.assert_array_equal(ops.less(pixels, 300), [True] * 3)
    np.testing.assert_array_equal(ops.greater(pixels, -1), [True] * 3)
    np.testing.assert_array_equal(ops.equal(300, pixels), [False] * 3)
    np.testing.assert_array_equal(ops.mod(pixels, 300), pixels)
    np.testing.assert_allclose(ops.hypot(pixels, -1), np.hypot(pixels.astype(float), 1), rtol=1e-6)
    assert ops.mod(pixels, 7).dtype == "uint8"


def test_numbers_without_a_tensor_are_whole_where_they_are():
    calls = {
        60: lambda: ops.minimum(70, 60), 9: lambda: ops.multiply(3, 3), 7: lambda: ops.abs(-7),
        3: lambda: ops.clip(7, 1, 3), 8: lambda: ops.power(2, 3), 2: lambda: ops.subtract(5, 3),
    }  # fmt: skip
    for expected, call in calls.items():
        assert (call(), call().dtype) == (expected, "int32")
    assert np.arange(90)[: ops.minimum(70, 60)].shape == (60,)
    assert ops.multiply(2**20, 2**20) == 2**40
    assert ops.power(2, -1) == 0.5
    assert ops.maximum(1, 2.5).dtype == "float32"


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "power", "maximum", "minimum", "negative", "square", "clip"]
)
def test_operands_are_those_of_the_signature(name):
    """One too many is no place for results, and operands by name may come in any order."""
    function = getattr(ops, name)
    parameters = list(inspect.signature(function).parameters)
    values = [np.array([5, 7]), np.array([2, 3]), np.array([4, 6])][: len(parameters)]
    target = np.zeros(2, "int64")
    with pytest.raises(TypeError, match="positional argument"):
        function(*values, target)
    np.testing.assert_array_equal(target, 0)
    by_name = dict(reversed(list(zip(parameters, values, strict=True))))
    np.testing.assert_array_equal(function(**by_name), function(*values))
