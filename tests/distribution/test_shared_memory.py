"""Gradients in memory that all ranks see: who can have it, and steps that begin before others have read theirs."""

import pytest

from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi


@pytest.mark.parametrize("ranks", [2, 3])
def test_rows_on_one_host(ranks):
    assert str([True] * ranks) in run_well(ranks, "shared.py", "rows").stdout


def test_none_where_mpi_tells_of_several_hosts():
    assert "[False, False]" in run_well(2, "shared.py", "rows", MPIR_CVAR_NOLOCAL=1).stdout


def test_no_room_on_one_rank():
    told = run_well(3, "shared.py", "no_room").stdout
    assert "[1, 0, 0]" in told
    assert "gradients are sent as messages, which is slower on one host: /dev/shm on rank 2: File too large" in told


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "what",
    [("after_an_error",), ("after_an_error", "sending"), ("turns",), ("own_apply",), ("own_apply", "sending")],
    ids="-".join,
)
def test_training(what, ranks):
    assert "equal" in run_well(ranks, "shared.py", *what).stdout
