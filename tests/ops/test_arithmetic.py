"""Arithmetic with and without broadcasting, fused addition, operators on arrays by name."""

import numpy as np
import pytest

from pydtconv import GradientTape, Input, ops
from pydtconv.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from tests.ops.harness import away_from, check_op, normal
from tests.reference.elementwise import ACTIVATIONS

BINARY = {
    Add: np.add,
    Subtract: np.subtract,
    Multiply: np.multiply,
    Divide: np.divide,
    Maximum: np.maximum,
    Minimum: np.minimum,
    Power: np.power,
}
SHAPES = [
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (2, 1, 1, 5)),  # channel attention
    ((2, 3, 4, 5), (5,)),
    ((2, 3, 4, 5), (2, 3, 4, 1)),
    ((2, 3, 4, 1), (1, 3, 1, 5)),  # both repeat
    ((2, 3, 4, 1), (2, 1, 1, 5)),  # a mask times a number for each channel
    ((4, 1), (1, 3)),
    ((6,), ()),
    ((1, 6), (6,)),  # the axes that are missing have extent 1, as those of a batch of one sample
    ((3, 5), (1, 1, 3, 5)),
    ((1, 1, 3, 5), (3, 1)),
    ((1,), ()),
    ((3, 41, 17), (41, 1)),
    ((2, 90, 91), (2, 90, 91)),  # several threads
    ((30, 12, 40), (40,)),
]


def operands(a_shape, b_shape):
    a, b = normal(*a_shape), normal(*b_shape, seed=2)
    a, b = np.abs(a) + 0.5, np.abs(b) + 0.5
    near = np.abs(a - b) < 1e-3  # no pair close to the kink of maximum
    if near.shape == a.shape:
        a = np.where(near, b + 1e-2, a)
    return a, b


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_binary(op, shapes):
    check_op(op(), *operands(*shapes), reference=BINARY[op], rtol=1e-4, rtol_gradient=1e-6)


@pytest.mark.parametrize("activation", ["relu", "relu6", "leaky_relu", "sigmoid", "tanh"])
def test_add_with_activation(activation):
    a, b = normal(2, 3, 4, 5), 3 * normal(2, 3, 4, 5, seed=2)
    b = away_from(a + b, 0, 6) - a
    check_op(Add(activation), a, b, reference=lambda a, b: ACTIVATIONS[activation](a + b))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("average", [False, True])
def test_add_of_several(count, average):
    arrays = [normal(2, 3, 2, 4, seed=i) for i in range(count)]
    check_op(Add(average=average), *arrays, reference=lambda *xs: sum(xs) / (len(xs) if average else 1))


def test_add_of_several_with_broadcasting_and_activation():
    arrays = [normal(2, 3, 2, 4), normal(4, seed=2), normal(2, 1, 1, 4, seed=3)]
    check_op(Add("tanh"), *arrays, reference=lambda *xs: np.tanh(sum(xs)))


def test_add_of_several_with_missing_axes_of_extent_1():
    arrays = [normal(1, 3, 4), normal(3, 4, seed=2), normal(4, seed=3)]
    check_op(Add("tanh"), *arrays, reference=lambda *xs: np.tanh(sum(xs)))


def test_a_tie_shares_the_gradient():
    x = normal(5)
    for op in (Maximum(), Minimum()):
        result = check_op(op, x, x, rtol_gradient=10)
        assert np.array_equal(result.dx[0], result.dx[1])


def test_functions_with_numbers():
    x = np.abs(normal(3, 4)) + 0.5
    cases = [
        (ops.add(x, 2), x + 2),
        (ops.add(2, x), x + 2),
        (ops.subtract(x, 2), x - 2),
        (ops.subtract(2, x), 2 - x),
        (ops.multiply(x, 3), x * 3),
        (ops.divide(x, 4), x / 4),
        (ops.divide(4, x), 4 / x),
        (ops.power(x, 2), x**2),
        (ops.power(x, 1.5), x**1.5),
        (ops.power(2, x), 2**x),
        (ops.maximum(x, 1), np.maximum(x, 1)),
        (ops.minimum(1, x), np.minimum(x, 1)),
        (ops.negative(x), -x),
        (ops.rsqrt(x), x**-0.5),
        (ops.add(x, x[0]), x + x[0]),
        (ops.clip(x, 0.7, 1), np.clip(x, 0.7, 1)),
        (ops.mean_of([x, 2 * x]), 1.5 * x),
    ]
    for got, want in cases:
        np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("bounds", [(None, 2), (2, None), (None, None), (np.array([0, 1, 2]), np.array([2, 2, 2]))])
def test_clip_with_one_bound_or_those_of_each_element(bounds):
    for x in np.array([[-1, 3, 1], [4, 0, 7]]), np.array([[-1.0, 3.0, 1.5], [4.0, 0.0, 7.0]]):
        expected = np.clip(x, *bounds) if any(each is not None for each in bounds) else x
        found = ops.clip(x, *bounds)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        assert ops.clip(Input((3,), dtype=x.dtype.name), *bounds).dtype == expected.dtype


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ops.stack([]), "stack: expected one tensor or more, got none"),
        (lambda: ops.concatenate([]), "concatenate: expected one tensor or more, got none"),
        (lambda: ops.arange(0, 1, 0), "arange: expected numbers, and a step other than 0, got 0, 1, 0"),
        (lambda: ops.arange("a"), "arange: expected numbers, and a step other than 0, got 0, 'a', 1"),
    ],
)
def test_arguments_that_cannot_be(call, told):
    with pytest.raises(ValueError, match=f"^{told}$"):
        call()


@pytest.mark.parametrize("exponent", [0, np.zeros(3), np.array([0.0, 1.0, 2.0])], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_zero_have_gradients(exponent, dtype):
    x = np.array([0.0, 0.0, 3.0], dtype)
    exponent = exponent if isinstance(exponent, int) else exponent.astype(dtype)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = ops.power(x, exponent)
        first = inner.gradient(y, x)
        total = ops.sum(first * first)
    np.testing.assert_allclose(first, [0, 1, 6] if np.any(exponent) else [0, 0, 0])
    second = outer.gradient(total, x, unconnected_gradients="zero")
    np.testing.assert_allclose(second, [0, 0, 24] if np.any(exponent) else [0, 0, 0])


def test_errors():
    with pytest.raises(ValueError, match=r"add: expected shapes that broadcast together, got \(2, 3\), \(4,\)"):
        Add()(normal(2, 3), normal(4))
    with pytest.raises(ValueError, match="multiply: expected two inputs, got 1"):
        Multiply()(normal(2, 3))
    with pytest.raises(ValueError, match=r"activation: expected one of linear, relu.* got 'mish'"):
        Add("mish")
    with pytest.raises(ValueError, match="got float64, float32"):
        Subtract()(normal(2), normal(2).astype("float32"))


@pytest.mark.parametrize("function", [ops.maximum, ops.minimum], ids=lambda f: f.__name__)
def test_extrema_beside_a_number_that_is_none(function):
    x = np.array([-1, 2], "float32")
    for number in (np.nan, np.array(np.nan, "float32"), np.float32("nan")):
        assert np.isnan(function(x, number)).all()
        assert np.isnan(function(number, x)).all()


@pytest.mark.parametrize("shape", [(1, 2, 1), (1, 2, 4), (3, 2, 1)], ids=str)
def test_both_factors_are_broadcast(shape):
    """The second one along the pixels of an image that the first one is not."""
    check_op(Multiply(), normal(*shape), normal(3, 1, 4, seed=2), reference=np.multiply)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_of_an_array_and_a_number_are_exact(dtype):
    x = np.arange(1, 200).astype(dtype)
    for number in (41, 49.0, 3, 1e-40, np.inf):
        with np.errstate(all="ignore"):
            expected = x / np.asarray(number, dtype), np.asarray(number, dtype) / x
        np.testing.assert_array_equal(ops.divide(x, number), expected[0])
        np.testing.assert_array_equal(ops.divide(number, x), expected[1])
    assert ops.divide(x.astype("int32"), 2).dtype == "float32"


def test_powers_of_a_number_are_as_exact_as_those_of_arrays():
    np.testing.assert_array_equal(ops.power(10.0, np.arange(9, dtype="float32")), 10.0 ** np.arange(9))
    assert ops.power(np.array(2.0), np.ones(2, "float32")).dtype == "float32"
