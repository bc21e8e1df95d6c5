"""Several ranks give what one rank gives: weights, optimizer's state, results of epochs, predictions."""

import numpy as np
import pytest

from tests.distribution import cases
from tests.distribution.ranks import needs_mpi, run_well
from tests.marks import slow

pytestmark = needs_mpi
NAMES = [*cases.TRAINED, *cases.OPTIMIZERS, *cases.OPTIONS]
OTHERS = [name for name in NAMES if name not in cases.QUICK]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Of 1, 2, 3 and 4 ranks, and of 2 that send their gradients: the folder with what each has written."""
    folders = {}

    def folder(ranks, name):
        names = cases.QUICK if name in cases.QUICK else OTHERS
        if (ranks, names[0]) not in folders:
            folders[ranks, names[0]] = tmp_path_factory.mktemp(f"ranks{count(ranks)}")
            options = ("shared_memory=False",) if "sending" in str(ranks) else ()
            run_well(count(ranks), "train_cases", folders[ranks, names[0]], ",".join(names), *options)
        return folders[ranks, names[0]]

    return folder


SEVERAL = [2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (3, 4, "2 sending"))]


def count(ranks):
    return ranks if isinstance(ranks, int) else int(ranks.split()[0])


@pytest.mark.parametrize("ranks", SEVERAL)
@pytest.mark.parametrize("name", [*cases.QUICK, *map(slow, OTHERS)])
def test_ranks_equal_one(outcomes, name, ranks):
    one = np.load(outcomes(1, name) / f"{name}.0.npz")
    rtol, atol = (1e-4, 1e-5) if name in cases.ROUNDED else (1e-7, 1e-9)
    for rank in range(count(ranks)):
        several = np.load(outcomes(ranks, name) / f"{name}.{rank}.npz")
        assert several.files == one.files
        for key in one.files:
            np.testing.assert_allclose(several[key], one[key], rtol, atol, err_msg=f"rank {rank}: {key}")


@pytest.mark.parametrize("ranks", SEVERAL)
@pytest.mark.parametrize("name", [*cases.QUICK, *map(slow, OTHERS)])
def test_ranks_have_equal_bits(outcomes, name, ranks):
    first = np.load(outcomes(ranks, name) / f"{name}.0.npz")
    for rank in range(1, count(ranks)):
        other = np.load(outcomes(ranks, name) / f"{name}.{rank}.npz")
        for key in first.files:
            np.testing.assert_array_equal(other[key], first[key], err_msg=f"rank {rank}: {key}")
