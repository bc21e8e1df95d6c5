"""SpectralNormalization, seeds on arrays, LayerNormalization's rms_scaling, custom_gradient: against Keras on torch."""

import numpy as np
import pytest

import pydtconv
from pydtconv import ops
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


@pytest.mark.parametrize(
    "make",
    [
        lambda layers: layers.Dropout(0.5, seed=3),
        lambda layers: layers.SpatialDropout2D(0.5, seed=3),
        lambda layers: layers.GaussianNoise(1.0, seed=3),
        lambda layers: layers.GaussianDropout(0.5, seed=3),
        lambda layers: layers.AlphaDropout(0.5, seed=3),
        lambda layers: layers.RandomFlip(seed=3),
        lambda layers: layers.RandomCrop(3, 3, seed=3),
        lambda layers: layers.RandomRotation(0.3, seed=3),
    ],
    ids=["Dropout", "Spatial", "Noise", "Gaussian", "Alpha", "Flip", "Crop", "Rotation"],
)
def test_a_seed_decides_calls_on_arrays(make):
    one, other = make(pydtconv.layers), make(pydtconv.layers)
    first, second = one(X, training=True), one(X, training=True)
    np.testing.assert_array_equal(first, other(X, training=True))
    assert (np.asarray(first) != second).any()
    np.testing.assert_array_equal(second, other(X, training=True))


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"axis": [1, 2, 3]}])
def test_rms_scaling_of_a_file(tmp_path, options):
    keras = import_keras()
    with pytest.warns(UserWarning, match="rms_scaling"):
        normalization = keras.layers.LayerNormalization(rms_scaling=True, **options)
    theirs = keras.Sequential([keras.Input((6, 6, 2)), normalization])
    theirs.set_weights([w + 0.5 for w in theirs.get_weights()])
    with pytest.warns(UserWarning, match="rms_scaling"):
        expected = theirs.predict(X, verbose=0)
    theirs.save(tmp_path / "a.keras")
    read = pydtconv.models.load_model(tmp_path / "a.keras")
    np.testing.assert_allclose(read.predict(X, verbose=0), expected, rtol=1e-4, atol=1e-5)
    again = pydtconv.models.model_from_json(read.to_json())
    assert again.layers[-1].rms_scaling


def test_custom_gradient():
    @ops.custom_gradient
    def clipped(x, scale):
        def grad(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            return ops.clip(ops.multiply(upstream, 100.0), -1.0, 1.0), None

        return ops.multiply(x, scale), grad

    x = np.array([[1.0, -2.0, 0.001]], "float32")
    np.testing.assert_allclose(clipped(x, 3.0), 3 * x)
    with pydtconv.GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(ops.square(clipped(x, np.float32(3.0))))
    np.testing.assert_allclose(tape.gradient(y, x), [[1.0, -1.0, 0.6]], rtol=1e-5)
    inputs = pydtconv.Input((3,))
    model = pydtconv.Model(inputs, pydtconv.layers.Dense(1)(clipped(pydtconv.layers.Dense(3)(inputs), 2.0)))
    model.compile("sgd", "mse")
    before = model.get_weights()[0]
    model.fit(x, x[:, :1], verbose=0)
    assert (model.get_weights()[0] != before).any()
