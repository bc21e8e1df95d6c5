"""PreciseBatchNorm: means over batches of the whole network, seen by evaluation, while training stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.callbacks import PreciseBatchNorm

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((48, 8, 8, 3)).astype(np.float32), RNG.random((48, 1), np.float32)
X[:, 4:] += 3  # patches whose means differ


def model_of(split: str | None = None, momentum: float = 0.99, dropout: float = 0.0) -> keras.Model:
    keras.utils.set_random_seed(2)
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.BatchNormalization(momentum=momentum),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(momentum=momentum),
            layers.Dropout(dropout),
            layers.GlobalAveragePooling2D(),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), "mse", split=split)
    return model


def moving(model: keras.Model, layer: int = 0) -> np.ndarray:
    return np.array([model.layers[layer].moving_mean.numpy(), model.layers[layer].moving_variance.numpy()])


@pytest.mark.parametrize("momentum", [0.0, 0.9, 0.99])
def test_statistics_are_the_means_over_the_batches(momentum) -> None:
    model = model_of(momentum=momentum)
    model.fit(X, Y, batch_size=16, verbose=0, callbacks=[PreciseBatchNorm(X, batch_size=12, batches=3)])
    order = np.random.default_rng(0).permutation(48)[:36]
    drawn = [X[np.sort(order[first : first + 12])].astype(np.float64).reshape(-1, 3) for first in (0, 12, 24)]
    want = np.mean([[batch.mean(0), batch.var(0)] for batch in drawn], axis=0)
    np.testing.assert_allclose(moving(model), want, rtol=1e-3)


def test_a_sequence_of_batches_is_read_as_well() -> None:
    class Batches:
        def __len__(self):
            return 4

        def __getitem__(self, number):
            return X[12 * number : 12 * number + 12], Y[12 * number : 12 * number + 12]

    model = model_of()
    callback = PreciseBatchNorm(Batches())
    callback.set_model(model)
    callback.refresh()
    np.testing.assert_allclose(moving(model)[0], X.mean((0, 1, 2)), rtol=1e-3, atol=1e-4)


def test_patches_are_evaluated_by_statistics_of_whole_images_and_trained_as_without() -> None:
    found = []
    for callback in (None, PreciseBatchNorm(X, batch_size=48)):
        model = model_of("1.0:2x1", dropout=0.3)
        options = {"batch_size": 16, "epochs": 2, "verbose": 0, "callbacks": [callback] if callback else []}
        history = model.fit(X, Y, validation_data=(X, Y), **options)
        found.append((model, history.history["val_loss"][-1]))
    (patches, _), (whole, loss) = found
    for a, b in zip(patches.trainable_variables, whole.trainable_variables, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    variance = X.reshape(-1, 3).var(0)
    assert (moving(patches)[1] < 0.75 * variance).all()  # it does not see how the patches' means differ
    np.testing.assert_allclose(moving(whole)[1], variance, rtol=1e-3)
    assert whole.evaluate(X, Y, verbose=0) == pytest.approx(loss, rel=1e-5)


def test_nothing_is_computed_where_all_layers_are_frozen() -> None:
    model = model_of()
    for layer in (model.layers[0], model.layers[2]):
        layer.trainable = False
    callback = PreciseBatchNorm(X)
    callback.set_model(model)
    callback._x = None  # no batch is drawn of it
    callback.refresh()


def test_frozen_layers_stay_as_they_are() -> None:
    model = model_of()
    model.layers[0].trainable = False
    model.compile("sgd", "mse")
    before = moving(model), moving(model, 2)
    model.fit(X, Y, batch_size=16, verbose=0, callbacks=[PreciseBatchNorm(X, batches=2)])
    np.testing.assert_allclose(moving(model), before[0], rtol=1e-6)
    assert abs(moving(model, 2) - before[1]).max() > 1e-2


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((X, 0), ValueError, "batch_size: expected an integer of 1 or more, got 0"),
        ((X, 8, True), ValueError, "batches: expected an integer of 1 or more, got True"),
        ((X[:0],), ValueError, "x: expected at least one sample"),
        ((iter([X]),), TypeError, "x: expected an array or a sequence of batches, got list_iterator"),
    ],
)
def test_what_is_wrong_is_told(arguments, error, words) -> None:
    with pytest.raises(error, match=f"PreciseBatchNorm: {words}"):
        PreciseBatchNorm(*arguments)
