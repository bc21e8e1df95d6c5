"""Weights of `.safetensors` and `.pth` files by Keras's and by torchvision's names, against both libraries."""

import json
import pickle
import struct
import zipfile

import numpy as np
import pytest

from pydtconv import applications
from pydtconv.interchange.safetensors import read_safetensors
from pydtconv.interchange.torch_files import read_torch
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


def write_safetensors(path, tensors):
    header, place = {"__metadata__": {"format": "pt"}}, 0
    kinds = {"float32": "F32", "int64": "I64", "float16": "F16"}
    for name, x in tensors.items():
        header[name] = {"dtype": kinds[x.dtype.name], "shape": list(x.shape), "data_offsets": [place, place + x.nbytes]}
        place += x.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in tensors.values()))


def torch_network(name):
    """A network with random statistics, of fewer units where dense layers would be large."""
    torchvision = import_torchvision()
    import torch

    torch.manual_seed(0)
    network = getattr(torchvision.models, name)(weights=None, num_classes=5).eval()
    for key, value in network.state_dict().items():
        if value.dim() == 1 and "num_batches" not in key:
            value.add_(0.2 * torch.rand_like(value))
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


def test_pth_without_torch_and_code(tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch")
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3).T,
        "b": torch.ones(2, dtype=torch.bfloat16) * 1.5,
        "c": torch.tensor(3),
        "d": torch.nn.Parameter(torch.ones(2, 2, dtype=torch.float16)),
        "e": torch.zeros(0, 3),
    }
    torch.save({"model": tensors, "epoch": 3}, tmp_path / "net.pth")
    found = read_torch(tmp_path / "net.pth")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor.detach().to(torch.float64).numpy())
        assert found[name].shape == tuple(tensor.shape)

    class Evil:
        def __reduce__(self):
            return (print, ("called",))

    torch.save({"a": torch.ones(2), "x": Evil()}, tmp_path / "net.pth")
    with pytest.raises(ValueError, match=r"net\.pth: expected a dict of tensors, found \w+\.print in it"):
        read_torch(tmp_path / "net.pth")


def pickled(path, data, **members):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", data)
        for name, value in members.items():
            archive.writestr(f"net/data/{name}", value)


def test_damaged_pth(tmp_path):
    path = tmp_path / "net.pth"
    for data, message in (
        (pickle.dumps({1}, 5), "found the instruction EMPTY_SET"),
        (b"\x80\x02cos\nsystem\n.", r"found os\.system in it"),
        (pickle.dumps([1], 2), "expected a dict of tensors, got a list"),
        (pickle.dumps({"a": 1}, 2), "a: expected a tensor, got a int"),
        (b"\x80\x02}q", "expected a dict of tensors"),
    ):
        pickled(path, data)
        with pytest.raises(ValueError, match=rf"net\.pth: .*{message}"):
            read_torch(path)
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"net\.pth: expected a \.pth file"):
        read_torch(path)


def test_damaged_safetensors(tmp_path):
    path = tmp_path / "net.safetensors"
    write_safetensors(path, {"a": np.arange(4, dtype="float32"), "b": np.zeros((2, 0), "int64")})
    found = read_safetensors(path)
    np.testing.assert_array_equal(found["a"], np.arange(4))
    assert found["b"].shape == (2, 0)
    data = path.read_bytes()
    for bad, message in (
        (data[:-1], "expected bytes 0 to 16 of 15"),
        (data + b"x", "expected 16 bytes of tensors, got 17"),
        (struct.pack("<Q", 1 << 60) + data[8:], "expected a header of"),
        (data.replace(b'"F32"', b'"F99"'), "a: expected a dtype of"),
        (data.replace(b"[4]", b"[9]"), "a: expected bytes 0 to 36"),
        (data.replace(b"[0, 16]", b"[4, 20]"), "a: expected bytes 0 to 16"),
        (b"\2\0\0\0\0\0\0\0[]", "expected a header by name, got a list"),
        (b"", "expected a header"),
    ):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=rf"net\.safetensors: .*{message}"):
            read_safetensors(path)
