"""Kernels on images in bfloat16 against the same kernel in float32 on the same numbers, rounded where it stores."""

import numpy as np
import pytest

from pydtconv._ext import elem, wire


def bits(x):
    """The bfloat16 nearest to each number, as its bits."""
    y = np.empty(np.size(x), np.uint16)
    wire.to_bfloat16(np.ascontiguousarray(x, np.float32).reshape(-1), y)
    return y.reshape(np.shape(x))


def numbers(x):
    """The numbers that bits of bfloat16 mean."""
    return (x.astype(np.uint32) << 16).view(np.float32)


def normal(*shape, seed=0):
    """Bits of random numbers."""
    return bits(np.random.default_rng(seed).normal(size=shape))


P = np.array([0.1, 6, 0], np.float32)


def dense(n, operands):
    """The layout of so many operands of n elements."""
    return np.array([1, operands, n, *[1] * operands], np.int64)


def test_addition_with_relu_rounds_once():
    a, b, y = normal(3000), normal(3000, seed=1), np.empty(3000, np.uint16)
    elem.bind_add_activation(1, P, dense(3000, 3), a, b, y)()
    np.testing.assert_array_equal(y, bits(np.maximum(numbers(a) + numbers(b), 0)))


def test_special_values_survive():
    """By vectors, and by what is left of them."""
    special = bits(np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, 1, 2]))
    special[-2:] = 0x7F81, 0xFFFF  # NaN of other payloads
    some = np.resize(special, 107)
    y = np.empty_like(some)
    elem.bind_copy(1.0, False, dense(some.size, 2), some, y)()
    np.testing.assert_array_equal(numbers(y), numbers(some))
    elem.bind_copy(2.0, False, dense(some.size, 2), some, y)()
    with np.errstate(invalid="ignore", over="ignore"):
        np.testing.assert_array_equal(numbers(y), numbers(bits(2 * numbers(some))))
    assert np.isinf(numbers(y)[7::10]).all()


@pytest.mark.parametrize("kind", [0, 1, 3, 4, 7, 14, 16, 18])
@pytest.mark.parametrize("accumulate", [False, True])
def test_functions_are_those_of_float32(kind, accumulate):
    n = 2 * 2048 + 3
    x, dy, dx = normal(n), normal(n, seed=1), normal(n, seed=2)
    y, wide = np.empty(n, np.uint16), np.empty(n, np.float32)
    elem.bind_unary(kind, P, dense(n, 2), x, y)()
    elem.bind_unary(kind, P, dense(n, 2), numbers(x), wide)()
    np.testing.assert_array_equal(y, bits(wide))
    wide = numbers(dx)
    elem.bind_unary_backward(kind, P, accumulate, dense(n, 3), x, dy, dx)()
    elem.bind_unary_backward(kind, P, accumulate, dense(n, 3), numbers(x), numbers(dy), wide)()
    np.testing.assert_array_equal(dx, bits(wide))


@pytest.mark.parametrize("kind", range(7))
def test_arithmetic_broadcasts(kind):
    layout = np.array([2, 3, 5, 700, 700, 1, 1, 0, 700, 1], np.int64)  # b: a number for each row
    a, b = bits(np.abs(numbers(normal(5, 700)))), bits(np.abs(numbers(normal(5, seed=1))))
    y, wide = np.empty((5, 700), np.uint16), np.empty((5, 700), np.float32)
    elem.bind_binary(kind, layout, a.ravel(), b, y.ravel())()
    elem.bind_binary(kind, layout, numbers(a).ravel(), numbers(b), wide.ravel())()
    np.testing.assert_array_equal(y, bits(wide))


def test_sums_do_not_lose_small_terms():
    x, y = bits(np.full(10_000, 1.0)), np.empty(1, np.uint16)
    layout = np.array([0, 1, 10_000, 1, 0], np.int64)
    workspace = np.empty(elem.reduce_workspace(layout, "bfloat16") + 1, np.uint8)
    elem.bind_reduce(0, False, 1.0, layout, x, None, y, workspace)()
    assert numbers(y)[0] == numbers(bits(np.array([10_000.0])))[0]
