"""Communication goes on while ranks compute."""

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi


def test_sums_arrive_without_a_call_of_mpi_by_the_ranks():
    done = run_well(2, "progress.py")
    assert done.stdout.count("arrived") == 2
