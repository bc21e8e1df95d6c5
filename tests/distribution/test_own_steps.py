"""Steps that a user writes, on several ranks; that they equal one rank's is in test_equal.py."""

import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi


@pytest.mark.slow
def test_what_ranks_cannot_share_is_refused_and_batches_of_any_structure_are_shared():
    run_well(2, "own_steps")
