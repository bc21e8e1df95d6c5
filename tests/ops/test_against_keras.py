"""Losses, pooling and normalization beside those of Keras, where Keras and PyTorch are installed."""

import os

import numpy as np
import pytest

from pydtconv.kernels import compute
from pydtconv.ops import (
    AveragePool,
    BatchNorm,
    CrossEntropy,
    ElementwiseLoss,
    LayerNorm,
    MaxPool,
    WeightedMean,
)

RANDOM = np.random.default_rng(1)
X = RANDOM.uniform(0.01, 1, (6, 5, 10)).astype("float32")
T = RANDOM.uniform(0.01, 1, (6, 5, 10)).astype("float32")
LABELS = RANDOM.integers(0, 10, (6, 5))
IMAGE = RANDOM.standard_normal((2, 7, 6, 5)).astype("float32")


@pytest.fixture(scope="module")
def keras():
    pytest.importorskip("torch")
    os.environ.setdefault("KERAS_BACKEND", "torch")
    return pytest.importorskip("keras")


def close(got, want, rtol=2e-5):
    np.testing.assert_allclose(got, np.asarray(want.detach()), rtol=rtol, atol=2e-6)


@pytest.mark.parametrize("from_logits", [False, True])
def test_cross_entropies(keras, from_logits):
    losses = keras.losses
    x = 4 * X - 2 if from_logits else X
    close(
        compute(CrossEntropy("categorical", from_logits, 0.1), x, T),
        losses.categorical_crossentropy(T, x, from_logits=from_logits, label_smoothing=0.1),
    )
    close(
        compute(CrossEntropy("sparse", from_logits), x, LABELS),
        losses.sparse_categorical_crossentropy(LABELS, x, from_logits=from_logits),
    )
    close(
        compute(CrossEntropy("binary", from_logits, 0.1), x, T),
        losses.binary_crossentropy(T, x, from_logits=from_logits, label_smoothing=0.1),
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("mse", "mean_squared_error"),
        ("mae", "mean_absolute_error"),
        ("mape", "mean_absolute_percentage_error"),
        ("msle", "mean_squared_logarithmic_error"),
        ("huber", "huber"),
        ("logcosh", "log_cosh"),
        ("hinge", "hinge"),
        ("squared_hinge", "squared_hinge"),
        ("poisson", "poisson"),
        ("kl_divergence", "kl_divergence"),
    ],
)
def test_elementwise_losses(keras, kind, name):
    close(compute(ElementwiseLoss(kind), X, T), getattr(keras.losses, name)(T, X))


@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size", "mean_with_sample_weight"])
def test_weighted_reductions(keras, reduction):
    weights = RANDOM.uniform(size=6).astype("float32")
    per_sample = compute(CrossEntropy("sparse"), X[:, 0], LABELS[:, 0])
    loss = keras.losses.SparseCategoricalCrossentropy(reduction=reduction)
    close(compute(WeightedMean(reduction), per_sample, weights), loss(LABELS[:, 0], X[:, 0], sample_weight=weights))


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("size", "strides"), [((2, 2), None), ((3, 3), (2, 2)), ((3, 2), (1, 2))])
def test_pooling(keras, padding, size, strides):
    close(compute(MaxPool(size, strides, padding), IMAGE), keras.ops.max_pool(IMAGE, size, strides, padding))
    if padding == "same" and strides == (2, 2):
        return  # uneven padding, which Keras on PyTorch fills with copies of the border, unlike its other backends
    close(compute(AveragePool(size, strides, padding), IMAGE), keras.ops.average_pool(IMAGE, size, strides, padding))


def test_normalizations(keras):
    layer = keras.layers.BatchNormalization(momentum=0.9)
    want = layer(IMAGE, training=True)
    gamma, beta, mean, variance = (np.full(5, v, "float32") for v in (1, 0, 0, 1))
    close(compute(BatchNorm(momentum=0.9), IMAGE, gamma, beta, mean, variance, training=True), want)
    close(mean, layer.moving_mean.value, 1e-5)
    close(variance, layer.moving_variance.value, 1e-5)
    close(compute(LayerNorm(), IMAGE, gamma, beta), keras.layers.LayerNormalization()(IMAGE))
