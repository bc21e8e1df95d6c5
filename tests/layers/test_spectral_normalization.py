"""SpectralNormalization beside Keras's: training, files, steps of one's own."""

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
X = np.random.default_rng(0).normal(size=(8, 6, 6, 2)).astype("float32")
Y = np.random.default_rng(1).normal(size=(8, 3)).astype("float32")


def network(of):
    layers = of.layers
    return of.Sequential(
        [
            of.Input((6, 6, 2)),
            layers.SpectralNormalization(layers.Conv2D(4, 3, activation="relu"), power_iterations=2),
            layers.Flatten(),
            layers.SpectralNormalization(layers.Dense(3)),
        ]
    )


def test_spectral_normalization_trains_as_in_keras_and_goes_both_ways(tmp_path):
    keras = import_keras()
    theirs, ours = network(keras), network(pydtconv)
    ours.set_weights(theirs.get_weights())
    for model, of in (theirs, keras), (ours, pydtconv):
        model.compile(of.optimizers.SGD(0.05), "mse")
    expected = theirs.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
    found = ours.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for a, b in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    theirs.save(tmp_path / "a.keras")
    read = pydtconv.models.load_model(tmp_path / "a.keras")
    np.testing.assert_allclose(read.predict(X, verbose=0), theirs.predict(X, verbose=0), rtol=1e-4, atol=1e-5)
    ours.save(tmp_path / "b.keras")
    read = keras.models.load_model(tmp_path / "b.keras")
    np.testing.assert_allclose(read.predict(X, verbose=0), ours.predict(X, verbose=0), rtol=1e-4, atol=1e-5)


def test_spectral_normalization_in_a_step_of_ones_own():
    class Own(pydtconv.Model):
        def train_step(self, data):
            return super().train_step(data)

    plain = network(pydtconv)
    own = Own(plain.inputs, network(pydtconv)(plain.inputs[0]))
    own.set_weights(plain.get_weights())
    losses = []
    for model in plain, own:
        model.compile(pydtconv.optimizers.SGD(0.05), "mse")
        losses.append(model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert abs(np.linalg.norm(plain(X, training=True)) - np.linalg.norm(own(X, training=True))) < 1e-2
