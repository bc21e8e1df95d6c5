"""Tapes over layers in mixed_bfloat16, beside the same in float32."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, layers, ops

X = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
LABELS = np.array([0, 3, 1, 4])


@pytest.fixture(autouse=True)
def _default():
    yield
    keras.utils.clear_session(free_memory=False)


def classifier(policy: str) -> keras.Model:
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(policy)
    inputs = keras.Input((6,))
    x = layers.Dense(8, activation="tanh")(inputs)
    return keras.Model(inputs, layers.Dense(5, activation="softmax")(x))


def near(found, expected) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "float32"])
def test_gradients_by_what_is_rounded_and_widened_again(policy: str) -> None:
    model = classifier(policy)
    with GradientTape(persistent=True) as tape:
        p = model(X)
        wide = ops.cast(p, "float32")
        loss = ops.sum(ops.square(wide))
    together = tape.gradient(loss, [p, wide])
    for found in (tape.gradient(loss, p), tape.gradient(loss, wide), *together):
        near(found, 2 * np.asarray(wide))


def of_losses(policy: str) -> list[np.ndarray]:
    """Losses of arrays, with a gradient of each."""
    model, found = classifier(policy), []
    values = np.random.default_rng(2).normal(size=(4, 5)) * 100 + 1000
    calls = [
        lambda p: keras.losses.SparseCategoricalCrossentropy()(LABELS, p),
        lambda p: keras.losses.SparseCategoricalCrossentropy()(LABELS.astype("float64"), p, np.arange(4.0)),
        lambda p: keras.losses.MeanSquaredError()(values, p),
        lambda p: keras.losses.CategoricalFocalCrossentropy(alpha=[0.1, 0.2, 0.3, 0.4, 0.5])(np.eye(5)[LABELS], p),
        lambda p: ops.mean(keras.losses.sparse_categorical_crossentropy(LABELS, p)),
        lambda p: ops.mean(ops.sparse_categorical_crossentropy(LABELS, p)),
    ]
    for call in calls:
        with GradientTape() as tape:
            loss = call(model(X))
        found += [np.asarray(loss), np.asarray(tape.gradient(loss, model.trainable_variables[0]))]
    return found


def test_losses_of_arrays() -> None:
    for found, expected in zip(of_losses("mixed_bfloat16"), of_losses("float32"), strict=True):
        near(found, expected)


def test_losses_are_computed_in_float32() -> None:
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = keras.Sequential([keras.Input((6,)), layers.Dense(1)])
    with GradientTape():
        loss = keras.losses.MeanSquaredError()(np.full((4, 1), 1000.5), model(X))
    assert loss.dtype == "float32"
    exact = np.mean((1000.5 - np.asarray(model(X), "float64")) ** 2)
    np.testing.assert_allclose(np.asarray(loss), exact, rtol=1e-6)


def test_gradients_of_gradients() -> None:
    def found(policy: str) -> np.ndarray:
        keras.utils.set_random_seed(1)
        dense = layers.Dense(2, activation="tanh", dtype=policy)
        with GradientTape() as outer:
            with GradientTape() as inner:
                x = ops.convert_to_tensor(X)
                inner.watch(x)
                y = ops.sum(ops.square(dense(x)))
            slope = ops.mean(ops.square(inner.gradient(y, x)))
        return np.asarray(outer.gradient(slope, dense.trainable_variables[0]))

    near(found("mixed_bfloat16"), found("float32"))
