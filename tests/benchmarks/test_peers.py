"""The networks that benchmarks train are built in PyTorch, too."""

import json

import pytest

from benchmarks.networks import NETWORKS, OTHERS, Case, compiled
from benchmarks.peers.description import describe

pytest.importorskip("torch", reason="needs torch")
SIZES = {"cosmoflow": 64, "resnet1d": 64}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, *OTHERS, "vit", "wide_filters"])
def test_the_peer_has_a_module_for_each_layer(name):
    from benchmarks.peers.torch_networks import Network

    description = json.loads(json.dumps(describe(compiled(Case(name, SIZES.get(name, 32), 1)))))
    network = Network(description)
    assert network.wiring[-1][0] == description["output"]
