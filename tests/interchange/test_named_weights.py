"""Weights of `.safetensors` and `.pth` files by Keras's and by torchvision's names, against both libraries."""

import numpy as np
import pytest

from pydtconv import Input, Sequential, applications, layers, utils
from tests.interchange.weight_files import write_safetensors
from tests.real_keras import import_keras
from tests.torchvision_models import import_torchvision

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")

#: ours, torchvision's, rows and columns of the images, and how the file's name ends
PAIRS = [
    ("AlexNet", "alexnet", 224, "pth"),
    ("ConvNeXtTiny", "convnext_tiny", 64, "safetensors"),
    ("DenseNet121", "densenet121", 64, "pth"),
    ("ResNet18", "resnet18", 64, "safetensors"),
    ("ResNet34", "resnet34", 64, "pth"),
    ("SmallDenseNet121", "densenet121", 64, "safetensors"),
    ("SmallResNet50", "resnet50", 64, "pth"),
    ("VGG16", "vgg16", 224, "pth"),
    ("VGG11BN", "vgg11_bn", 224, "safetensors"),
]


def torch_network(name):
    """A network with random weights and statistics; its own way to draw them takes seconds where layers are large."""
    torchvision = import_torchvision()
    import torch

    torch.manual_seed(0)
    with torch.device("meta"):
        network = getattr(torchvision.models, name)(weights=None, num_classes=5).eval()
    network.to_empty(device="cpu")
    for key, value in network.state_dict().items():
        if value.dim() > 1:
            value.uniform_(-1, 1).mul_((6 / value[0].numel()) ** 0.5)
        elif value.dim() == 1:
            value.uniform_(0, 0.2).add_(key.endswith(("weight", "running_var")))
    return torch, network


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs", "size", "kind"), PAIRS)
def test_torchvision(ours, theirs, size, kind, tmp_path):
    torch, network = torch_network(theirs)
    path = tmp_path / f"net.{kind}"
    state = network.state_dict()
    if kind == "pth":
        torch.save(state, path)
    else:
        write_safetensors(path, {key: value.numpy() for key, value in state.items()})
    options = {"include_preprocessing": False} if ours.startswith("ConvNeXt") else {}
    model = getattr(applications, ours)(weights=path, input_shape=(size, size, 3), classes=5, **options)
    x = np.random.default_rng(0).normal(size=(2, size, size, 3)).astype("float32")
    with torch.no_grad():
        expected = torch.softmax(network(torch.from_numpy(x.transpose(0, 3, 1, 2).copy())), 1).numpy()
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-4)
    if size == 64:  # those of 224 have a hundred million weights, which go the same ways
        of_other_tops(ours, path, size, model, options)


def of_other_tops(ours, path, size, model, options):
    """Without a top, and with one of other classes, all else is what the whole model has."""
    options |= {"weights": path, "input_shape": (size, size, 3)}
    features = getattr(applications, ours)(include_top=False, pooling="avg", **options)
    other = getattr(applications, ours)(classes=2, **options)
    assert other.output_shape == (None, 2)
    for part in (features, other):
        count = len(features.weights)
        for found, whole in zip(part.get_weights()[:count], model.get_weights()[:count], strict=True):
            np.testing.assert_array_equal(found, whole)
    with pytest.raises(ValueError, match="expected shape"):
        other.load_weights(path)
    with pytest.warns(UserWarning, match="1 layers were skipped"):
        other.load_weights(path, skip_mismatch=True)


@pytest.mark.parametrize("separator", ["/", "."])
@pytest.mark.parametrize("name", ["MobileNet", pytest.param("ResNet50", marks=pytest.mark.slow)])
def test_keras_names(name, separator, tmp_path):
    theirs = getattr(import_keras().applications, name)(weights=None, input_shape=(32, 32, 3), classes=5)
    path = tmp_path / "net.safetensors"
    write_safetensors(path, {v.path.replace("/", separator): np.asarray(v.value.detach()) for v in theirs.weights})
    ours = getattr(applications, name)(weights=path, input_shape=(32, 32, 3), classes=5)
    x = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
    np.testing.assert_allclose(ours.predict(x, verbose=0), theirs.predict(x, verbose=0), atol=1e-5)


def test_what_does_not_fit(tmp_path):
    path = tmp_path / "net.safetensors"
    write_safetensors(path, {"conv1.weight": np.zeros((64, 3, 7, 7), "float32")})
    with pytest.raises(ValueError, match=r"resnet50 by Keras's names, .*strides in the 3x3.*SmallResNet50"):
        applications.ResNet50(weights=path, input_shape=(32, 32, 3))
    with pytest.raises(ValueError, match=r"net\.safetensors: expected weights of resnet18: .* are not among them"):
        applications.ResNet18(weights=path, input_shape=(64, 64, 3))
    options = {"input_shape": (32, 32, 3), "classes": 5, "alpha": 0.25}
    model = applications.MobileNet(weights=None, **options)
    tensors = {variable.path: np.asarray(variable.value) for variable in model.variables}
    write_safetensors(path, {**tensors, "conv1/kernel": np.zeros((1, 2), "float32")})
    with pytest.raises(ValueError, match=r"conv1/kernel: expected shape \(3, 3, 3, 8\), got \(1, 2\)"):
        applications.MobileNet(weights=path, **options)


@pytest.mark.parametrize(("name", "options"), [("ResNet20", {}), ("MLP", {"hidden": (4, 4)})])
def test_automatic_names_go_by_rank(name, options, tmp_path):
    """Layers that the process made before do not change which layer of a file is which of the network."""
    make = getattr(applications, name)
    options = {"weights": None, "input_shape": (32, 32, 3), "classes": 4, **options}
    utils.clear_session()
    whole, path = make(**options), tmp_path / "net.safetensors"
    write_safetensors(path, {variable.path: np.asarray(variable.value) for variable in whole.variables})
    utils.clear_session()
    Sequential([Input((8, 8, 1)), *(layers.Conv2D(1, 1) for _ in range(2))])
    Sequential([Input((8,)), layers.Dense(8), layers.Dense(8)])
    model = make(**options)
    for skip_mismatch in (False, True):
        model.set_weights([np.zeros_like(weights) for weights in model.get_weights()])
        model.load_weights(path, skip_mismatch=skip_mismatch)
        for ours, theirs in zip(model.get_weights(), whole.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
