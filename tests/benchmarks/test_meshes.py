"""What benchmarks tell of meshes by plans alone: wider halos, and predictions beside steps without messages."""

import pytest

import pydtconv as keras
from benchmarks import predicted_mesh, spatial, wider_halos
from benchmarks.networks import Case
from pydtconv import config, layers
from pydtconv.simulation import Network
from pydtconv.simulation.meshes import OneRank, as_rank


@pytest.fixture(autouse=True)
def one_thread():
    before = config.num_threads()
    config.set_num_threads(1)
    yield
    config.set_num_threads(before)


def network(normalizes):
    inputs = keras.Input((32, 32, 4))
    x = inputs
    for _ in range(3):
        x = layers.Conv2D(4, 3, padding="same")(x)
        x = layers.BatchNormalization()(x) if normalizes else x
    model = keras.Model(inputs, x)
    model.compile("sgd", "mse")
    return model


def gains(link, normalizes=False):
    model = network(normalizes)
    one = OneRank.by_cost_model(model.plan(1))
    with as_rank({"height": 2}, 0):
        plan = model.plan(1)
    times = wider_halos.times_of(plan, one, link)
    return [wider_halos.gain(pair, times, link) for pair in wider_halos.pairs(plan)]


def test_a_wider_halo_pays_where_links_are_slow_and_images_small():
    assert all(gain > 0.9 for gain in gains(Network(alpha=1.0, beta=0.0)))
    assert len(gains(Network(alpha=1.0, beta=0.0))) == 2  # the second and the third convolution's exchange
    assert all(gain < 0 for gain in gains(Network(alpha=0.0, beta=0.0)))


def test_a_normalization_parts_a_pair():
    assert gains(Network(alpha=1.0, beta=0.0), normalizes=True) == []


@pytest.mark.slow
def test_a_rank_without_messages_runs_beside_its_prediction():
    row, operators = predicted_mesh.compare(Case("resnet20", 16, 2), {"height": 2}, 2)
    assert row["rank / predicted"] == pytest.approx(row["rank ms"] / row["predicted ms"])
    assert row["copies ms"] > 0
    assert row["predicted copies ms"] > 0
    assert row["apart"] >= 1
    assert len(operators) == 6
    assert sum(each["rank ms"] for each in operators) <= row["rank ms"]


@pytest.mark.slow
@pytest.mark.parametrize("dilation", [1, 3])
def test_ranks_plan_within_their_share_of_memory(dilation):
    """Layers of benchmarks.spatial: 0.52 and 0.27 of what one process takes are enough for the same algorithms.

    With a dilation of 3 a rank of four has three more rows on both sides of 128, and 0.275 are.
    """
    model = spatial.made(512, dilation)
    one = model.plan(1).peak_bytes
    for ranks, share in ((2, 0.52), (4, 0.27 if dilation == 1 else 0.275)):
        with as_rank({"height": ranks}, ranks // 2):
            free, limited = model.plan(1), model.plan(1, memory_limit=int(share * one))
        assert limited.peak_bytes <= share * one
        assert list(limited.algorithms.values()) == list(
            free.algorithms.values()
        )  # fewer spectra are kept, that is all
