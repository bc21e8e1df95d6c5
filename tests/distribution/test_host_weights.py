"""Ranks of a mesh with one copy of weights and slots: results are those of one process, whatever happens to them."""

import pytest

from tests.distribution import host_weights
from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi
PARTS = (
    "every_optimizer",
    "what_is_assigned",
    "what_one_rank_loads",
    "other_forms",
    "after_an_error",
    "predicted",
    "no_room",
)


@pytest.mark.parametrize(
    ("ranks", "mesh"), [(2, "height=2"), pytest.param(4, "batch=2,height=2", marks=pytest.mark.slow)]
)
def test_one_copy_is_as_good_as_one_process(ranks, mesh):
    assert all(callable(getattr(host_weights, part)) for part in PARTS)
    told = run_well(ranks, "host_weights", mesh, *PARTS, PYDTCONV_STALL_TIMEOUT=60).stdout
    assert all(f"rank {rank}: {', '.join(PARTS)}: equal" in told for rank in range(ranks))
