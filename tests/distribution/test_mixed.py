"""mixed_bfloat16 on several ranks: variables and sums of gradients are float32, so one step is that of one process."""

import numpy as np
import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = [*needs_mpi, pytest.mark.slow]


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folders = {ranks: tmp_path_factory.mktemp(f"ranks{ranks}") for ranks in (1, 2)}
    for ranks, folder in folders.items():
        run_well(ranks, "mixed", folder)
    return folders


def test_two_ranks_equal_one(outcomes):
    """A step's images and gradients are the same bfloat16 numbers, only sums of filters' gradients are cut in two.

    Later steps differ where a number is rounded to its other neighbour, and so do they behind statistics.
    """
    one, two = (np.load(outcomes[ranks] / "0.npz") for ranks in (1, 2))
    assert one.files == two.files
    for name in one.files:
        assert one[name].dtype in (np.float32, np.float64)
        if name.startswith("step "):
            assert distance(two[name], one[name]) < 1e-6, name
    several = [name for name in one.files if name.startswith("steps ")]
    assert distance(*(np.concatenate([found[name].ravel() for name in several]) for found in (two, one))) < 1e-2


def test_ranks_have_equal_bits(outcomes):
    first, second = (np.load(outcomes[2] / f"{rank}.npz") for rank in (0, 1))
    for name in first.files:
        np.testing.assert_array_equal(first[name], second[name])
