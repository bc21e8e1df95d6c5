"""Every network of the zoo with another top: without one, with another number of classes, on a tensor, from files."""

import inspect
import itertools

import numpy as np
import pytest

from pydtconv import Input, KerasTensor, Sequential, applications, layers, replica
from pydtconv.applications.assembly import Arguments, assembled
from pydtconv.initializers.fans import VarianceScaling
from tests.interchange.weight_files import write_safetensors
from tests.zoo import BUILDERS, SMALLEST

ARGUMENTS = {"include_top", "weights", "input_tensor", "input_shape", "pooling", "classes", "classifier_activation"}
SIZES = SMALLEST | {"cosmoflow": 8}
#: networks that are made in a blink with these options
QUICK = {
    "mlp": {"hidden": (4,)}, "mnistconvnet": {}, "vit": {"depth": 1, "hidden": 6}, "smallmobilenet": {"alpha": 0.25},
    "unet": {"filters": 2, "levels": 2}, "unet3d": {"filters": 2, "levels": 2}, "resnet1d": {"filters": (4, 8)},
    "cosmoflow": {"filters": (2, 3), "units": (5,)}, "mobilenet": {"alpha": 0.25}, "resnet20": {},
}  # fmt: skip
EVERY = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BUILDERS]


@pytest.fixture
def counted(monkeypatch):
    """Filters are all of one number, another one in each layer: they are made at once."""
    numbers = itertools.count(1)
    monkeypatch.setattr(
        VarianceScaling, "__call__", lambda self, shape, dtype=None: np.full(shape, next(numbers), np.float32)
    )


def made(network, classes=3, **options):
    """The network for small inputs, by its builder: `build` itself has an argument called name."""
    shape = (*[SIZES.get(network, 32)] * applications.axes(network), 3)
    return builder(network)(input_shape=shape, classes=classes, **QUICK.get(network, {}), **options)


def builder(network):
    return next(getattr(applications, each) for each in applications.__all__ if each.lower() == network)


@pytest.mark.parametrize("name", applications.names())
def test_all_have_the_arguments(name):
    function = builder(name)
    assert set(inspect.signature(function).parameters) >= {*ARGUMENTS, "name"}
    assert all(word in function.__doc__ for word in ARGUMENTS)
    with pytest.raises(ValueError, match="pooling: expected None, 'avg' or 'max', got 'sum'"):
        function(weights=None, pooling="sum")
    with pytest.raises(ValueError, match="input_tensor: expected a symbolic tensor"):
        function(weights=None, input_tensor=np.zeros((1, 32, 32, 3)))


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("name", EVERY)
def test_weights_with_another_top(name, tmp_path, capsys):
    """From a file of three classes: the features have its weights, the classes are new, and one line says so."""
    whole, path = made(name, weights=None), tmp_path / "old.weights.h5"
    whole.save_weights(path)
    features = made(name, weights=path, include_top=False, pooling=None if name == "mlp" else "avg")
    assert len(features.output_shape) == 2
    theirs = whole.get_weights()[: len(features.weights)]
    for ours, other in zip(features.get_weights(), theirs, strict=True):
        np.testing.assert_array_equal(ours, other)
    assert capsys.readouterr().out == ""
    other = made(name, 2, weights=path, classifier_activation=None, name="mine")
    assert other.name == "mine"
    assert other.output_shape[-1] == 2
    last = next(layer for layer in reversed(other.layers) if layer.variables)
    told = capsys.readouterr().out
    assert told.startswith(f"mine: new, since old.weights.h5 does not fit: layer {last.name!r}")
    assert told.count("\n") == 1
    for ours, theirs in zip(other.get_weights()[:-2], whole.get_weights()[:-2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for activation in {getattr(last, "activation", None), getattr(other.layers[-1], "activation", None)} - {None}:
        assert activation.__name__ == "linear"


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("name", EVERY)
def test_an_input_tensor(name):
    size = SIZES.get(name, 32)
    start = Input((*[size] * applications.axes(name), 3))
    model = made(name, weights=None, input_tensor=start * 2.0)
    assert model.inputs[0] is start
    assert isinstance(model.outputs[0], KerasTensor)
    assert not isinstance(model, Sequential)
    assert model.count_params() == made(name, weights=None).count_params()


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("name", "kind"),
    [("mobilenet", "safetensors"), *itertools.product(["mnistconvnet", "resnet20"], ["weights.h5", "h5", "keras"])],
)
def test_kinds_of_files(name, kind, tmp_path, capsys):
    whole, path = made(name, weights=None), tmp_path / f"old.{kind}"
    if kind == "safetensors":
        write_safetensors(path, {variable.path: np.asarray(variable.value) for variable in whole.variables})
    elif kind == "weights.h5":
        whole.save_weights(path)
    else:
        whole.save(path)
    features = made(name, weights=path, include_top=False)
    for ours, other in zip(features.get_weights(), whole.get_weights(), strict=False):
        np.testing.assert_array_equal(ours, other)
    assert capsys.readouterr().out == ""
    other = made(name, 2, weights=path)
    assert "new, since" in capsys.readouterr().out
    for ours, theirs in zip(other.get_weights()[:-2], whole.get_weights()[:-2], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="expected shape"):
        made(name, 2, weights=None).load_weights(path)
    again = made(name, 2, weights=None)
    with pytest.warns(UserWarning, match="1 layers were skipped"):
        again.load_weights(path, skip_mismatch=True)
    np.testing.assert_array_equal(again.get_weights()[0], whole.get_weights()[0])


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("include_top", [True, False])
@pytest.mark.parametrize("kind", ["weights.h5", "h5", "keras", "safetensors"])
@pytest.mark.parametrize(
    ("name", "key", "deeper", "fewer"),
    [("ViT", "depth", 3, 1), ("MLP", "hidden", (4, 4, 4), (4,)), ("UNet", "levels", 3, 2)],
)
def test_files_of_deeper_networks_are_refused(name, key, deeper, fewer, kind, include_top, tmp_path):
    options = {"input_shape": (16, 16, 3), "classes": 4}
    options |= {"ViT": {"hidden": 6, "patch_size": 8}, "UNet": {"filters": 2}}.get(name, {})
    function, path = getattr(applications, name), tmp_path / f"old.{kind}"
    whole = function(weights=None, **{key: deeper}, **options)
    if kind == "safetensors":
        write_safetensors(path, {variable.path: np.asarray(variable.value) for variable in whole.variables})
    else:
        (whole.save_weights if kind == "weights.h5" else whole.save)(path)
    with pytest.raises(ValueError, match=r"does not fit the model|expected weights of"):
        function(weights=path, include_top=include_top, **{key: fewer}, **options)


@pytest.mark.parametrize("kind", ["weights.h5", "h5"])
def test_layers_of_other_names_are_refused(kind, tmp_path):
    """Two networks of as many layers of the same shapes: the file's order is not the network's."""

    def build(weights, names):
        first, *others = [layers.Dense(3, name=name) for name in names]
        images = Input((3,))
        given = Arguments(False, weights, None, None, None, 3, None, "net")
        return assembled(given, images, [first, *others], [layers.Dense(3, name="classes")])

    path = tmp_path / f"old.{kind}"
    whole = build(None, ["one", "two", "last"])
    (whole.save_weights if kind == "weights.h5" else whole.save)(path)
    with pytest.raises(ValueError, match=r"layer 'last' .* expected its weights, found those of 'two' in its place"):
        build(path, ["one", "last"])
    renamed = build(path, ["first", "second", "third"])
    np.testing.assert_array_equal(renamed.get_weights()[4], whole.get_weights()[4])


@pytest.mark.usefixtures("counted")
def test_other_features_are_refused(tmp_path):
    made("mnistconvnet", weights=None).save_weights(tmp_path / "old.weights.h5")
    with pytest.raises(ValueError, match=r"does not fit the model 'mlp'"):
        made("mlp", 2, weights=tmp_path / "old.weights.h5")
    with pytest.raises(ValueError, match="mlp: pooling: expected None: its features are vectors, got 'avg'"):
        made("mlp", weights=None, include_top=False, pooling="avg")
    with pytest.raises(TypeError, match="ResNet20: got an unexpected keyword argument 'clases'"):
        applications.ResNet20(clases=3)


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("name", ["mlp", "mobilenet"])
def test_weights_that_another_process_writes(name, tmp_path, monkeypatch):
    whole, path = made(name, weights=None), tmp_path / "old.weights.h5"

    class Second(replica.Replica):
        def wait_for(self, path):
            whole.save_weights(path)

    monkeypatch.setattr(replica, "_current", Second())
    for ours, theirs in zip(made(name, weights=path).get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
