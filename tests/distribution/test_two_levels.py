"""Ranks of several hosts: sums in memory within each, by messages between them.  MPICH takes one host for two."""

import json

import numpy as np
import pytest

from tests.distribution import two_levels
from tests.distribution.ranks import needs_mpi, run_well

pytestmark = [*needs_mpi, pytest.mark.slow]
#: three on the first host, two on the second
RANKS = 5


def loaded(path):
    with np.load(path) as found:
        return dict(found)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    one, hosts = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("hosts")
    run_well(0, "two_levels", one)
    run_well(RANKS, "two_levels", hosts, MPIR_CVAR_NUM_CLIQUES=2)
    return one, hosts


@pytest.mark.parametrize("way", two_levels.WAYS)
def test_hosts_train_as_one_process_does(outcomes, way):
    one = loaded(outcomes[0] / "measured.0.npz")
    found = [loaded(outcomes[1] / f"{way}.{rank}.npz") for rank in range(RANKS)]
    for key, value in one.items():
        rtol, atol = (1e-4, 1e-5) if key.startswith("two dtypes") else (1e-7, 1e-9)
        atol = 0.02 if "bfloat16" in way else atol
        np.testing.assert_allclose(found[0][key], value, rtol, atol, err_msg=key)
        for rank in range(1, RANKS):
            np.testing.assert_array_equal(found[rank][key], found[0][key], err_msg=f"rank {rank}: {key}")


@pytest.mark.parametrize("way", [way for way in two_levels.WAYS if way not in ("measured", "bfloat16")])
def test_bits_depend_neither_on_lanes_nor_on_buckets_nor_on_shards(outcomes, way):
    measured = loaded(outcomes[1] / f"{'bfloat16' if 'bfloat16' in way else 'measured'}.0.npz")
    for key, value in loaded(outcomes[1] / f"{way}.0.npz").items():
        if two_levels.WAYS[way][0].get("shard") and key.startswith("two dtypes"):
            np.testing.assert_allclose(value, measured[key], 1e-5, 1e-6, err_msg=key)
        else:
            np.testing.assert_array_equal(value, measured[key], err_msg=key)


def test_the_way_is_told_with_what_the_links_alone_take(outcomes):
    told = json.loads((outcomes[1] / "told.json").read_text())
    assert told["doctor"] == told["measured"]  # they measure once
    for way, (_, lanes) in two_levels.WAYS.items():
        lanes = lanes or told[way].partition(" of each")[0].split()[-1]
        begin = f"on each of 2 hosts in memory that its ranks see, between hosts sent by {lanes} of each: 1 MiB takes "
        assert told[way].startswith(begin)
        assert told[way].endswith("; sent as bfloat16") == ("bfloat16" in way)
        assert "the links alone" in told[way]
