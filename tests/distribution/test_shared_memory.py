"""Gradients in memory that all ranks see: who can have it, and steps that begin before others have read theirs."""

import os
import time
from pathlib import Path

import pytest

from pydtconv.distribution.gradients import shared_memory
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


def test_what_a_killed_process_has_left_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "FOLDER", tmp_path)
    for name, age in ("pydtconv-dead", 3600), ("pydtconv-going-on", 5), ("of-others", 3600):
        (tmp_path / name).write_text("rows")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    created = shared_memory._created(2)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"pydtconv-going-on", "of-others", Path(created).name}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "what",
    [("after_an_error",), ("after_an_error", "sending"), ("turns",), ("own_apply",), ("own_apply", "sending")],
    ids="-".join,
)
def test_training(what, ranks):
    assert "equal" in run_well(ranks, "shared.py", *what).stdout
