"""Batch renormalization beside Keras, and normalization by the root mean square in files."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.real_keras import import_keras

# of Keras on torch, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
RANDOM = np.random.default_rng(4)
X, Y = RANDOM.normal(0.5, 2, (12, 5, 3)).astype("float32"), RANDOM.normal(size=(12, 2)).astype("float32")


def trained(k, arguments, weights=None):
    model = k.Sequential(
        [k.Input((5, 3)), k.layers.BatchNormalization(**arguments), k.layers.Flatten(), k.layers.Dense(2)]
    )
    start = model.get_weights() if weights is None else weights
    model.set_weights(start)
    model.compile(k.optimizers.SGD(0.05), "mse")
    model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return model, start


@pytest.mark.parametrize(
    "more",
    [{}, {"renorm_clipping": {"rmin": 0.9, "rmax": 1.1, "dmax": 0.2}}, {"axis": 1, "scale": False}, {"center": False}],
)
def test_renorm(more):
    arguments = {"renorm": True, "renorm_momentum": 0.5, "momentum": 0.8, "moving_variance_initializer": "ones"} | more
    ours, start = trained(pydtconv, arguments)
    theirs, _ = trained(import_keras(), arguments, start)
    for weight, mine, other in zip(ours.weights, ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-4, atol=1e-5, err_msg=weight.path)
    np.testing.assert_allclose(ours.predict(X, verbose=0), theirs.predict(X, verbose=0), rtol=1e-3, atol=1e-4)
    assert [w.name for w in ours.weights] == [w.name for w in theirs.weights]


def test_deviations_start_as_roots_of_the_variance():
    layer = layers.BatchNormalization(renorm=True, moving_variance_initializer=pydtconv.initializers.Constant(4.0))
    layer.build((None, 5))
    for deviation in layer.moving_stddev, layer.renorm_stddev:
        np.testing.assert_array_equal(deviation.numpy(), 2.0)


@pytest.mark.parametrize(
    "limits", [{"rmax": 1, "rmin": 2}, {"dmax": -1.0}, {"other": 1}, {"rmax": "1"}, {"rmin": float("nan")}]
)
def test_limits_of_renorm_that_cannot_be(limits):
    with pytest.raises(ValueError, match="renorm_clipping: expected"):
        layers.BatchNormalization(renorm=True, renorm_clipping=limits)


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"axis": [1, 2, 3]}])
def test_rms_scaling_of_a_file(tmp_path, options):
    keras = import_keras()
    images = np.random.default_rng(0).normal(size=(8, 6, 6, 2)).astype("float32")
    with pytest.warns(UserWarning, match="rms_scaling"):
        normalization = keras.layers.LayerNormalization(rms_scaling=True, **options)
    theirs = keras.Sequential([keras.Input((6, 6, 2)), normalization])
    theirs.set_weights([w + 0.5 for w in theirs.get_weights()])
    with pytest.warns(UserWarning, match="rms_scaling"):
        expected = theirs.predict(images, verbose=0)
    theirs.save(tmp_path / "a.keras")
    read = pydtconv.models.load_model(tmp_path / "a.keras")
    np.testing.assert_allclose(read.predict(images, verbose=0), expected, rtol=1e-4, atol=1e-5)
    again = pydtconv.models.model_from_json(read.to_json())
    assert again.layers[-1].rms_scaling
