"""Convolutions that share one wider halo give what whole images give; the processes are threads."""

import math

import pytest

import pydtconv as keras
from pydtconv import config, layers
from pydtconv.graph.spatial.partition import Partition
from pydtconv.ops.exchange import Exchange
from pydtconv.support.network import Network
from tests.graph.spatial import networks
from tests.graph.spatial.test_cutting import MESHES, check, mesh_of
from tests.graph.spatial.threads import plan_of

#: a message takes a second, and one that takes no time
SLOW, FAST = Network(1.0, 0.0), Network(0.0, 0.0)


@pytest.fixture(autouse=True)
def double():
    before = config.floatx(), config.num_threads()
    config.set_floatx("float64")
    config.set_num_threads(1)
    yield
    config.set_floatx(before[0])
    config.set_num_threads(before[1])


def three(shape=(23, 17, 3), **between):
    """Three convolutions in a row, with strides, dilation and a side of padding."""

    def make():
        keras.utils.set_random_seed(3)
        inputs = keras.Input(shape)
        x = layers.Conv2D(4, 3, padding="same", activation="relu")(inputs)
        x = layers.BatchNormalization()(x) if between.get("normalized") else x
        x = layers.DepthwiseConv2D(3, strides=2, padding="same")(x)
        x = layers.Conv2D(5, (2, 3), dilation_rate=2, padding="same", activation="tanh")(x)
        x = layers.Conv2D(3, 3, padding="valid")(x)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model = keras.Model(inputs, x)
        model.compile("sgd", loss)
        return model

    return make


@pytest.fixture
def extra(monkeypatch):
    """A network besides those of all tests."""
    monkeypatch.setitem(networks.NETWORKS, "three", lambda: three()())


def exchanges(plan):
    return sum(isinstance(node.op, Exchange) for node in plan.graph.nodes)


def planned(make, mesh, network, rank=0):
    names, shape = mesh_of(mesh)
    ranks = tuple(range(math.prod(shape)))
    model = make()
    return plan_of(model, networks.data(model), partition=Partition(names, shape, ranks, rank, network=network))[0]


@pytest.mark.parametrize("mesh", ["height=2", "width=3", "height=2,width=2"])
def test_chains_share_one_halo(extra, mesh):
    several = check("three", mesh, network=SLOW)
    assert {exchanges(rank.plan) for rank in several} == {1}
    assert exchanges(planned(three(), mesh, None)) == 4


def test_where_messages_cost_nothing_each_has_its_own():
    assert exchanges(planned(three(), "height=2", FAST)) == 4


def test_a_normalization_in_between_is_left_alone():
    """Its statistics would count rows twice."""
    assert exchanges(planned(three(normalized=True), "height=2", SLOW)) == 2


def test_all_ranks_decide_alike():
    """Near the point where it pays, too: parts of 23 rows differ."""
    seen = set()
    for latency in (1e-9, 1e-8, 3e-8, 1e-7, 1e-6):
        plans = [planned(three(), "height=3", Network(latency, 1e-12), rank) for rank in range(3)]
        (count,) = {exchanges(plan) for plan in plans}
        seen.add(count)
    assert {1, 4} < seen


@pytest.mark.slow
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_all_networks(name, mesh):
    check(name, mesh, network=SLOW)
