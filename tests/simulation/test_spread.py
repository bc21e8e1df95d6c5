"""What the slowest of several takes, beside draws; what a step loses to that, to shared links, and to waiting."""

import dataclasses
import statistics

import numpy as np
import pytest

from pydtconv.profiling.record import reductions_of
from pydtconv.simulation import (
    ALGORITHMS,
    Network,
    Spread,
    Workload,
    allreduce,
    predict,
    slowest,
    strong_scaling,
    weak_scaling,
)
from pydtconv.simulation.collectives import work_of_cores
from tests.simulation.test_scaling import profile

SECONDS = [3.0, 1.0, 2.0, 2.5, 9.0]


@pytest.mark.parametrize("ranks", [1, 2, 4, 64])
def test_the_slowest_is_the_mean_maximum_of_draws(ranks):
    draws = np.random.default_rng(0).choice(SECONDS, (100_000, ranks)).max(1)
    assert slowest(SECONDS, ranks) == pytest.approx(draws.mean(), abs=5 * draws.std() / 100_000**0.5 + 1e-4)


def test_the_slowest_of_values_that_are_maxima():
    maxima = np.random.default_rng(0).choice(SECONDS, (20_000, 2)).max(1)
    assert slowest(maxima, 8 / 2) == pytest.approx(slowest(SECONDS, 8), rel=0.01)
    assert slowest(maxima, 1 / 2) == pytest.approx(statistics.fmean(SECONDS), rel=0.01)


def test_the_slowest_grows_from_the_mean_to_the_largest():
    found = [slowest(SECONDS, ranks) for ranks in (1, 2, 3, 100, 10_000)]
    assert found[0] == pytest.approx(statistics.fmean(SECONDS))
    assert found == sorted(found)
    assert found[-1] == pytest.approx(9.0)
    assert slowest([4.0], 7) == 4.0
    with pytest.raises(ValueError, match="expected one or more, got none"):
        slowest([], 2)


def test_where_nothing_is_known_all_ranks_take_the_same_time():
    assert Spread().of_steps(100) == Spread().of_reductions(100) == 1.0


def test_ranks_wait_for_the_slowest_step_and_the_slowest_reduction():
    steps, reductions = [10.0, 11.5], [1.0, 1.0, 4.0]
    spread = dataclasses.replace(profile(), step_seconds=steps, reduction_seconds=reductions, ranks=2)
    network = Network(alpha=0.5, beta=0.01, gamma=0.0)  # one bucket, which nothing hides, in 4.5 s of two ranks
    found = predict(Workload([spread]), 2, 16, network, "recursive_doubling", 400)
    assert found.compute == pytest.approx(10.75)  # the mean step
    assert found.communication == pytest.approx(4.5)
    assert (found.waiting, found.link) == pytest.approx((0.5, 4.0))
    assert found.spread == pytest.approx(11.125 - 10.75)  # those of two ranks were measured: they take their mean
    assert found.overlapped == found.blocking == pytest.approx(10.75 + 4.5 + found.spread)
    assert found.hidden == pytest.approx(0)
    four = predict(Workload([spread]), 4, 32, network, "recursive_doubling", 400)
    assert (four.waiting, four.link) == pytest.approx((1.0, 8.0))
    assert four.spread == pytest.approx(slowest(steps, 4) - 10.75 + 9.0 * (slowest(reductions, 2) / 2 - 1))
    assert sum(four.lost.values()) == pytest.approx(1 - 10.75 / four.overlapped)


@pytest.mark.parametrize("scaling", [weak_scaling, strong_scaling])
def test_many_ranks_are_not_predicted_to_be_perfect(scaling):
    workload = Workload([dataclasses.replace(profile(), step_seconds=[10.0, 10.5, 11.75])])
    one, many = scaling(workload, [1, 1024], 1024 * 8, Network(0, 0, 0), "best", 240)
    assert one.efficiency == pytest.approx(1)
    assert one.lost == {"spread": 0, "link": 0, "waiting": 0}
    assert many.lost["spread"] == pytest.approx(1 - 10.75 / 11.75)
    if scaling is weak_scaling:
        assert many.efficiency == pytest.approx(10.75 / 11.75)


def test_ranks_of_a_host_add_in_memory_and_share_its_link():
    own = Network(alpha=0.5, beta=0.01, gamma=0.001, delta=0.002)
    hosts = dataclasses.replace(own, ranks_per_host=4)
    within = 400 * 3 / 4 * 0.001
    for name in ALGORITHMS:
        assert allreduce(400, 8, hosts, name) == pytest.approx(within + allreduce(400, 2, own, name))
        assert allreduce(400, 6, hosts, name) == pytest.approx(within + allreduce(400, 2, own, name))
        assert allreduce(400, 4, hosts, name) == pytest.approx(within)
        assert allreduce(400, 1, hosts, name) == 0
        assert work_of_cores(400, 8, hosts, name) == pytest.approx(work_of_cores(400, 2, own, name) / 4)
        assert work_of_cores(400, 4, hosts, name) == 0
    one_host = predict(Workload([profile()]), 4, 32, hosts, "ring", 400)
    assert (one_host.waiting, one_host.link) == pytest.approx((within, 0))
    assert predict(Workload([profile()]), 1, 8, hosts).lost == {"spread": 0, "link": 0, "waiting": 0}


def test_a_link_costs_what_is_not_hidden_of_its_bytes():
    network = Network(alpha=0.5, beta=0.01, gamma=0.0, delta=0.001)
    # of the first bucket only the work of cores is not hidden; the second comes in 2.1 s, beside 0.6 s of the optimizer
    found = predict(Workload([profile()]), 2, 16, network, "recursive_doubling", 240)
    assert found.link == pytest.approx(240 * 0.001 + 2.1 - 0.6)


def test_a_reduction_takes_what_it_takes_the_rank_that_begins_it_last():
    first = [{"bucket 1": 3.0, "bucket 2": 1.0}, {"bucket 1": 2.0}, {}]
    second = [{"bucket 1": 2.0, "bucket 2": 4.0}, {"bucket 9": 2.0}, {}]
    assert reductions_of([first, second]) == [3.0]
    assert reductions_of([[{}], [{}]]) == []
    assert reductions_of([[], first]) == []
