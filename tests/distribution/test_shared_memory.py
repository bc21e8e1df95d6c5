"""Gradients in memory that all ranks see: who can have it, and steps that begin before others have read theirs."""

import os
import time
from pathlib import Path

import pytest

from pydtconv.distribution.gradients import shared_memory
from tests.distribution.ranks import needs_mpi, run_well

pytestmark = needs_mpi


@pytest.mark.slow
def test_none_where_mpi_tells_of_several_hosts():
    assert "[False, False]" in run_well(2, "shared", "rows", MPIR_CVAR_NOLOCAL=1).stdout


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_no_room_on_one_rank(ranks):
    told = run_well(ranks, "shared", "no_room").stdout
    assert str([1] + [0] * (ranks - 1)) in told
    assert f"which is slower on one host: /dev/shm on rank {ranks - 1}: File too large" in told


def test_what_a_killed_process_has_left_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "FOLDER", tmp_path)
    for name, age in ("pydtconv-dead", 3600), ("pydtconv-going-on", 5), ("of-others", 3600):
        (tmp_path / name).write_text("rows")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    created = shared_memory._created(2)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"pydtconv-going-on", "of-others", Path(created).name}


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_rows_and_training_in_them(ranks):
    told = run_well(ranks, "shared", "rows", "after_an_error", "turns", "own_apply").stdout
    assert str([True] * ranks) in told
    assert all(f"{part}: equal" in told for part in ("after_an_error", "turns", "own_apply"))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_training_that_sends(ranks):
    told = run_well(ranks, "shared", "sending", "after_an_error", "own_apply").stdout
    assert all(f"{part}: equal" in told for part in ("after_an_error", "own_apply"))
