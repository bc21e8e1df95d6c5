"""What benchmarks of images that are cut over ranks make of measurements; each runs once, with the smallest images."""

import argparse
from types import SimpleNamespace

import pytest

from benchmarks import spatial, spatial_equal
from tests.distribution.ranks import needs_mpi


def timing(index, direction, kind, ms):
    return SimpleNamespace(index=index, direction=direction, kind=kind, seconds=1e-3 * ms)


def test_times_are_split_by_pass():
    timings = [
        timing(0, "start", "halo", 1),
        timing(1, "forward", "conv", 20),
        timing(2, "wait", "halo", 3),
        timing(3, "forward", "elementwiseloss", 1000),
        timing(4, "backward_data", "conv", 30),
        timing(5, "wait", "halo", 4),
        timing(-1, "outside", "wait", 1000),
    ]
    found = spatial.split(timings, 4)
    assert found == pytest.approx({"forward": 24, "backward": 34, "waiting": 7})


def test_ranks_stand_beside_one_rank_in_the_same_job():
    def result(ms, predicted, **more):
        found = {"forward": ms, "backward": 2 * ms, "waiting": 0.0, "predicted": predicted, "MiB": 11.0, "step": 4 * ms}
        return found | {"cpu": 3 * ms} | more

    one = result(10, 100.0)
    both = {"every": 40.0, "simulated": 20.0}
    rounds = [result(5, 51.0, one=result(10, 100.0), **both), result(20, 51.0, one=result(20, 100.0), **both)]
    found = spatial.row((1, 512, 1, 2), rounds, one)
    assert (found["lowest"], found["highest"], found["memory"]) == (1.0, 2.0, 0.51)
    assert (found["forward ms"], found["simulated"], found["by CPU time"]) == (12.5, (1 + 4) / 2, (2 + 1) / 2)
    # both with all the work at the same time take 40 ms, one alone 30 and 60
    assert (found["ceiling"], found["of it"]) == ((1.5 + 3) / 2, pytest.approx(1.5 / 2.25))


def test_what_is_larger_than_wanted_is_told():
    row = {"network": "odd", "mesh": "height=2", "gradients": 1e-16, "gradients 32": 2e-5, "losses": float("nan")}
    told = spatial_equal.too_large([row])
    assert told[0] == "odd, height=2: gradients 32: expected at most 1e-05, got 2.0e-05"
    assert told[1].startswith("odd, height=2: losses")
    assert len(told) == 2


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.skipif(needs_mpi[1].args[0], reason=needs_mpi[1].kwargs["reason"])
def test_they_run():
    options = argparse.Namespace(
        images=1, steps=1, dilations=[1], sizes=[80], ranks=[1, 2], rounds=1, network="40Gbps:10us"
    )
    one, two = spatial.rows_of(options)
    assert one["speed"] == 1.0
    assert 0.5 < two["memory"] < 1  # of images so small, workspaces are much
    assert two["waiting ms"] > 0
    assert two["simulated"] > 0  # how near it is, is the benchmark's to tell: machines are busy
    assert one["ceiling"] == 1.0
    rows = spatial_equal.rows_of(["odd"], ["height=2"])
    assert not spatial_equal.too_large(rows)
