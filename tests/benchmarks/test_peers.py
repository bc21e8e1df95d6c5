"""The networks that benchmarks train are built in PyTorch, too, and compute the same there."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import pydtconv as keras
from benchmarks.networks import NETWORKS, OTHERS, WIDE, Case, batch_of, compiled
from benchmarks.peers.description import describe
from benchmarks.peers.table import PEERS
from benchmarks.peers.torch_weights import in_torch_order
from tests.zoo import SMALLEST

torch = pytest.importorskip("torch", reason="needs torch")
#: one of each family of the zoo, and the smallest size where it is not 32
OTHER_FAMILIES = (
    "alexnet", "convnexttiny", "efficientnetb0", "efficientnetv2b0", "inceptionresnetv2", "inceptionv3", "mobilenet",
    "mobilenetv2", "mobilenetv3small", "nasnetmobile", "resnet20", "resnet50", "resnet50v2", "vgg11", "vgg11bn", "vit",
    "xception",
)  # fmt: skip
SIZES = SMALLEST | {"cosmoflow": 64, "resnet1d": 64}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, *OTHERS, *OTHER_FAMILIES, WIDE])
def test_the_peer_computes_the_same(name):
    from benchmarks.peers.torch_networks import Network

    case = Case(name, SIZES.get(name, 32), 2)
    model = compiled(case)
    rng = np.random.default_rng(3)
    for weight in model.trainable_weights:
        if weight.value.ndim == 1:  # biases and scales that are neither zero nor one
            weight.assign(weight.value + rng.uniform(-0.2, 0.2, weight.shape).astype("float32"))
        elif np.std(weight.value) > 0:  # nor does what the images were vanish on its way through many layers
            one = weight.value[..., 0] if weight.shape[-1] > 1 else weight.value[:, :, 0]
            weight.assign(weight.value * (np.sqrt(2 / one.size) / np.std(weight.value)))
    x, _ = batch_of(case, model)
    if any(isinstance(layer, keras.layers.Rescaling) for layer in model.layers):
        x *= 100  # pixels
    network = Network(json.loads(json.dumps(describe(model)))).eval()
    images = torch.tensor(np.moveaxis(x, -1, 1).copy())
    with torch.no_grad():
        network(images)  # gives the lazy modules their shapes
        network.set_weights(in_torch_order(model))
        theirs = np.moveaxis(network(images).numpy(), 1, -1)
    network.train()(images).sum().backward()  # nothing that backward needs is overwritten
    assert all(p.grad is not None for p in network.parameters() if p.requires_grad)
    model.layers[-1].activation = keras.activations.linear  # the peer leaves softmax to its loss
    ours = model.predict(x, verbose=0)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * np.abs(theirs).max())
    assert np.abs(ours[0] - ours[1]).max() > 1e-5 * np.abs(ours).max()


needs_keras = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="needs Keras")


@needs_keras
@pytest.mark.slow
def test_keras_trains_what_it_reads(tmp_path):
    case = Case("resnet20", 32, 2)
    model = compiled(case)
    (tmp_path / "model.json").write_text(model.to_json())
    found = PEERS["keras-torch"].run("train", [tmp_path / "model.json", 2, 1, "perf_counter"], 1, sys.executable)
    assert found["peer"].endswith("on torch")
    assert len(found["seconds"]) == 1
    assert found["first"] > 0


@needs_keras
@pytest.mark.slow
def test_keras_reads_the_same_networks(tmp_path):
    """Some, one of the papers' four; in a process of its own, as this one has another backend.

    Files of other families are opened in tests/saving/test_opened_by_keras.py.
    """
    expected = {}
    for name in (NETWORKS[1], *OTHERS, *OTHER_FAMILIES[:2]):
        model = compiled(Case(name, SIZES.get(name, 32), 2))
        (tmp_path / name).write_text(model.to_json())
        expected[name] = model.count_params()
    code = "import json, keras, pathlib, sys; files = pathlib.Path(sys.argv[1]).iterdir(); "
    code += "read = keras.models.model_from_json; "
    code += "print(json.dumps({file.name: read(file.read_text()).count_params() for file in files}))"
    env = {**os.environ, "KERAS_BACKEND": "torch"}
    done = subprocess.run([sys.executable, "-c", code, tmp_path], env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == expected
