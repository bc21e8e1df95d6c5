"""Ranks that offload: each has a file of its own in one folder, and the weights are those without, bit for bit."""

import os

import numpy as np
import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = [*needs_mpi, pytest.mark.slow]


def test_ranks_that_share_a_folder_get_the_bits_of_ranks_without(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    for share in (0, 0.8):
        run_well(2, "offloaded", folder, tmp_path / str(share), share, PYDTCONV_CACHE=tmp_path / "cache")
    for rank in range(2):
        want, found = (np.load(tmp_path / f"{share}.{rank}.npz") for share in (0, 0.8))
        assert found["moved"]
        for name in want.files:
            assert name == "moved" or np.array_equal(found[name], want[name]), f"rank {rank}: {name}"
    assert not os.listdir(folder)
