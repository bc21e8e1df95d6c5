"""Sums and products of images that a batch normalization leaves, computed as they are read."""

import numpy as np
import pytest

from pydtconv.dtypes import from_bits, to_bits
from pydtconv.kernels.base import BackwardReductions, Prologue
from pydtconv.kernels.cpu.normalized_image import (
    AFTER_NORMALIZATION,
    bind_mean_gradient,
    bind_normalized_product,
    bind_normalized_sums,
)

ACTIVATIONS = {
    None: lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "relu6": lambda z: np.clip(z, 0, 6),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "hard_silu": lambda z: z * np.clip(z + 3, 0, 6) / 6,
}
#: relative to the largest result; bfloat16 has 8 bits
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 2**-8}
#: images, pixels, channels: fewer and more than a vector, a strip of sums, a block of pixels
SIZES = [(1, 1, 1), (3, 7, 5), (2, 65, 40), (2, 130, 300)]


def image(rng, rows, channels, dtype, apart):
    """Rows `apart` channels wider than they are read: as stored, and as numbers."""
    values = 3 * rng.standard_normal((rows, channels + apart)).astype("float32")
    if dtype != "bfloat16":
        stored = values.astype(dtype)[:, :channels]
        return stored, stored.astype("float64")
    stored = to_bits(values)[:, :channels]
    return stored, from_bits(np.ascontiguousarray(stored)).astype("float64")


def numbers(array, dtype):
    return from_bits(np.ascontiguousarray(array)) if dtype == "bfloat16" else array


def close(found, expected, dtype):
    np.testing.assert_allclose(numbers(found, dtype), expected, rtol=0, atol=TOLERANCE[dtype] * abs(expected).max())


def prologue(rng, channels, dtype, activation, has_beta):
    real = "float32" if dtype == "bfloat16" else dtype
    mean, scale, beta = (rng.standard_normal(channels).astype(real) for _ in range(3))
    return Prologue(mean, scale, beta if has_beta else None, activation)


def normalized(of, x, dtype):
    z = (x - of.mean) * of.scale.astype("float64") + (0 if of.beta is None else of.beta)
    z = ACTIVATIONS[of.activation](z)
    return from_bits(to_bits(z.astype("float32"))).astype("float64") if dtype == "bfloat16" else z


def test_all_activations_are_there():
    assert {*ACTIVATIONS, "linear"} == set(AFTER_NORMALIZATION)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_product(dtype, activation, size):
    rng = np.random.default_rng(4)
    n, pixels, channels = size
    x, values = image(rng, n * pixels, channels, dtype, 3)
    factors, factor_values = image(rng, n, channels, dtype, 0)
    y, _ = image(rng, n * pixels, channels, dtype, 2)
    of = prologue(rng, channels, dtype, activation, pixels > 1)
    bind_normalized_product(of, n, x, factors, y)()
    close(y, normalized(of, values, dtype) * np.repeat(factor_values, pixels, 0), dtype)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_sums(dtype, activation, size):
    rng = np.random.default_rng(5)
    n, pixels, channels = size
    x, values = image(rng, n * pixels, channels, dtype, 3)
    dy, slopes = image(rng, n * pixels, channels, dtype, 1)
    of = prologue(rng, channels, dtype, activation, pixels > 1)
    z = normalized(of, values, dtype).reshape(n, pixels, channels)
    mean, _ = image(rng, n, channels, dtype, 2)
    bind_normalized_sums(of, n, x, None, mean, factor=1 / pixels)()
    close(mean, z.mean(1), dtype)
    total, before = image(rng, n, channels, dtype, 0)
    bind_normalized_sums(of, n, x, dy, total, accumulate=True)()
    close(total, before + (z * slopes.reshape(z.shape)).sum(1), dtype)


SLOPES = {
    None: lambda z: np.ones_like(z),
    "relu": lambda z: z > 0,
    "relu6": lambda z: (z > 0) & (z < 6),
    "silu": lambda z: (1 + z * (1 - 1 / (1 + np.exp(-z)))) / (1 + np.exp(-z)),
    "hard_silu": lambda z: np.where(z < -3, 0, np.where(z > 3, 1, (2 * z + 3) / 6)),
}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("activation", SLOPES)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_mean_gradient_and_its_sums(dtype, activation, size):
    rng = np.random.default_rng(6)
    n, pixels, channels = size
    x, values = image(rng, n * pixels, channels, dtype, 3)
    dy, slopes = image(rng, n, channels, dtype, 1)
    of = prologue(rng, channels, dtype, activation, pixels > 1)
    z = (values - of.mean) * of.scale.astype("float64") + (0 if of.beta is None else of.beta)
    for accumulate in (False, True):
        dx, before = image(rng, n * pixels, channels, dtype, 2)
        sums = np.zeros((2, 1, 1, channels), of.mean.dtype)
        found = BackwardReductions(x, of, sums)
        bind_mean_gradient(found, n, dy, dx, accumulate, np.zeros(16 * n * channels, np.uint8))()
        close(dx, np.repeat(slopes, pixels, 0) / pixels + accumulate * before, dtype)
        g = numbers(dx, dtype) * SLOPES[activation](z)
        expected = np.stack([g.sum(0), (g * (values - of.mean)).sum(0)])
        error = 1e-5 if dtype == "bfloat16" else 10 * TOLERANCE[dtype]
        np.testing.assert_allclose(sums[:, 0, 0], expected, rtol=0, atol=error * abs(g * values).sum(0).max())


def test_nan_and_infinity_stay():
    x = np.array([[np.nan, np.inf, -np.inf]])
    of = Prologue(np.zeros(3), np.ones(3), None, "silu")
    y = np.zeros((1, 3))
    bind_normalized_product(of, 1, x, np.ones((1, 3)), y)()
    assert np.isnan(y[0, 0])
    assert y[0, 1] == np.inf
    assert abs(y[0, 2]) < 1e-300
