"""The networks of the zoo for signals, for volumes and for pixels: sizes, and that they learn."""

import numpy as np
import pytest

from pydtconv import applications, utils
from pydtconv.applications import cosmoflow, resnet1d, unet
from tests.marks import slow

SMALL = {
    "cosmoflow": ((8, 8, 8, 1), {"filters": (4, 8, 8), "units": (8,)}),
    "resnet1d": ((24, 2), {"filters": (8, 8)}),
    "unet": ((8, 16, 2), {"filters": 4, "levels": 3}),
    "unet3d": ((8, 4, 8, 2), {"filters": 2, "levels": 3}),
}


def small(name, classes=3):
    shape, options = SMALL[name]
    return applications.build(name, input_shape=shape, classes=classes, **options), shape


def test_axes():
    for name, (shape, _) in SMALL.items():
        assert applications.axes(name) == len(shape) - 1
    assert applications.axes("ResNet-34") == 2


@pytest.mark.slow
def test_parameters():
    """As counted by hand from the papers' figures: U-Net 31.0 million, 3D U-Net 19.1 million."""
    assert round(applications.UNet().count_params() / 1e6, 1) == 31.0
    assert round(applications.UNet3D((32, 32, 32, 3), 3).count_params() / 1e6, 1) == 19.1
    volumes = sum(27 * a * b + b for a, b in zip((1, *cosmoflow.FILTERS), cosmoflow.FILTERS, strict=False))
    dense = sum(a * b + b for a, b in ((8 * 256, 2048), (2048, 256), (256, 3)))
    assert applications.CosmoFlow().count_params() == volumes + dense


@pytest.mark.parametrize("name", [name if name == "resnet1d" else slow(name) for name in SMALL])
def test_a_few_steps_lower_the_loss(name):
    utils.set_random_seed(1)
    random = np.random.default_rng(1)
    model, shape = small(name)
    x = random.standard_normal((4, *shape), np.float32)
    y_shape = model.compute_output_shape((4, *shape))
    values = name == "cosmoflow"
    y = random.standard_normal(y_shape, np.float32) if values else random.integers(0, 3, y_shape[:-1])
    model.compile("adam", "mean_squared_error" if values else "sparse_categorical_crossentropy")
    losses = [float(model.train_on_batch(x, y)) for _ in range(12)]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", SMALL)
def test_weights_and_models_go_to_files_and_back(name, tmp_path):
    model, shape = small(name)
    x = np.random.default_rng(2).standard_normal((2, *shape), np.float32)
    want = model.predict(x, verbose=0)
    model.save_weights(tmp_path / "w.weights.h5")
    again = applications.build(name, shape, 3, weights=tmp_path / "w.weights.h5", **SMALL[name][1])
    np.testing.assert_array_equal(again.predict(x, verbose=0), want)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"unet: input_shape: expected 2 multiples of 16 .* got \(8, 16, 1\)"):
        applications.UNet((8, 16, 1))
    with pytest.raises(ValueError, match=r"cosmoflow: input_shape: expected 3 extents of 64 or more"):
        applications.CosmoFlow((32, 32, 32, 1))
    with pytest.raises(ValueError, match=r"resnet1d: input_shape: expected \(steps, channels\)"):
        applications.ResNet1D((8, 8, 1))


def test_data_of_the_scripts():
    x, y = unet.discs(3, 32)
    assert x.shape == (3, 32, 32, 1)
    assert {*np.unique(y)} == {0, 1, 2}
    x, y = cosmoflow.fields(2, 8)
    assert x.shape == (2, 8, 8, 8, 1)
    np.testing.assert_allclose(x.std((1, 2, 3, 4)), 1.5 + y[:, 0], rtol=1e-4)
    x, y = resnet1d.waves(5, 64)
    assert (x.shape, y.shape) == ((5, 64, 1), (5,))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "data"), [(unet, "discs"), (cosmoflow, "fields"), (resnet1d, "waves")])
def test_scripts_train(module, data, monkeypatch, capsys):
    """On fewer examples than they make."""
    make = getattr(module, data)
    monkeypatch.setattr(module, data, lambda count, size, seed: make(4, size, seed))
    module.main(epochs=1)
    assert "test loss" in capsys.readouterr().out
