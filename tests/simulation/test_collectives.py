"""Costs of the all-reduces and the network they run on, against counts by hand."""

import pytest

from pydtconv.simulation import ALGORITHMS, Network, allreduce
from pydtconv.simulation.collectives import work_of_cores

NETWORK = Network(alpha=10.0, beta=2.0, gamma=1.0)


@pytest.mark.parametrize(
    ("algorithm", "ranks", "seconds"),
    [
        # two ranks: one exchange of all 8 bytes, or of 4 bytes there and 4 back
        ("recursive_doubling", 2, 10 + 8 * 2 + 8 * 1),
        ("rabenseifner", 2, 2 * 10 + 8 * 2 + 4 * 1),
        ("ring", 2, 2 * 10 + 8 * 2 + 4 * 1),
        # four: two rounds; 4 + 2 bytes there, 2 + 4 back; three rounds of 2 bytes, twice
        ("recursive_doubling", 4, 2 * (10 + 8 * 2 + 8 * 1)),
        ("rabenseifner", 4, 4 * 10 + 12 * 2 + 6 * 1),
        ("ring", 4, 6 * 10 + 12 * 2 + 6 * 1),
        # three: the third hands its bytes to a partner, two go on, and it gets the result
        ("recursive_doubling", 3, (10 + 16 + 8) + (10 + 16 + 8) + (10 + 16)),
        ("rabenseifner", 3, (10 + 16 + 8) + (20 + 16 + 4) + (10 + 16)),
        ("ring", 3, 4 * 10 + 2 * (16 / 3) * 2 + (16 / 3) * 1),
        ("best", 2, 10 + 8 * 2 + 8 * 1),
        ("best", 4, 68),
    ],
)
def test_costs(algorithm, ranks, seconds):
    assert allreduce(8, ranks, NETWORK, algorithm) == pytest.approx(seconds)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_rank_and_a_perfect_network_cost_nothing(algorithm):
    assert allreduce(1e9, 1, NETWORK, algorithm) == 0
    assert allreduce(1e9, 7, Network(0, 0, 0), algorithm) == 0


@pytest.mark.parametrize(("ranks", "sent"), [(1, 0), (2, 8), (4, 12)])
def test_the_cores_work_for_each_byte_that_the_cheapest_algorithm_sends(ranks, sent):
    assert work_of_cores(8, ranks, Network(alpha=0.1, beta=2.0, gamma=1.0, delta=0.5)) == pytest.approx(0.5 * sent)
    assert work_of_cores(8, ranks, NETWORK) == 0
    twice = work_of_cores(8, ranks, Network(0, 2.0, 0, 0.5), "recursive_doubling")
    assert twice == pytest.approx({1: 0, 2: 4, 4: 8}[ranks])


def test_misuse_is_told():
    with pytest.raises(ValueError, match=r"expected one of best, ring, .*, got 'tree'"):
        allreduce(8, 2, NETWORK, "tree")
    with pytest.raises(ValueError, match="ranks: expected 1 or more, got 0"):
        allreduce(8, 0, NETWORK)


@pytest.mark.parametrize(
    ("text", "alpha", "beta", "gamma", "delta"),
    [
        ("100Gbps:1.5us", 1.5e-6, 8e-11, 1e-10, 0),
        ("12.5GB/s:1500ns", 1.5e-6, 8e-11, 1e-10, 0),
        ("1Gbps:100us", 1e-4, 8e-9, 1e-10, 0),
        ("100Mbps:0.1ms:4GB/s", 1e-4, 8e-8, 2.5e-10, 0),
        ("1Gbps:100us:4GB/s:500MB/s", 1e-4, 8e-9, 2.5e-10, 2e-9),
        (" 8bps:1s ", 1.0, 1.0, 1e-10, 0),
    ],
)
def test_networks_are_read(text, alpha, beta, gamma, delta):
    network = Network.parse(text)
    assert (network.alpha, network.beta, network.gamma, network.delta) == pytest.approx((alpha, beta, gamma, delta))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "100Gbps",
        "100G:1us",
        "Gbps:1us",
        "100Gbps:1.5",
        "-1Gbps:1us",
        "0Gbps:1us",
        "fast:1us",
        "1Gbps:1us:1GB/s:0B/s",
    ],
)
def test_what_is_no_network_is_refused(text):
    with pytest.raises(ValueError, match=r"network: expected BANDWIDTH:LATENCY such as 100Gbps:1.5us.*got '"):
        Network.parse(text)
