"""Communication goes on while ranks compute."""

from pathlib import Path

import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi


@pytest.mark.slow
@pytest.mark.parametrize("what", ["one", "many"])
def test_sums_arrive_without_a_call_of_mpi_by_the_ranks(what):
    done = run_well(2, "progress", what)
    assert done.stdout.count("arrived") == 2


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_what_arrives_is_added_without_a_second_team_of_threads():
    done = run_well(2, "progress", "team")
    assert done.stdout.count("arrived") == 2


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_step_after_one_that_ended_early(ranks):
    done = run_well(ranks, "progress", "left", PYDTCONV_STALL_TIMEOUT=20)
    assert done.stdout.count("arrived") == ranks
