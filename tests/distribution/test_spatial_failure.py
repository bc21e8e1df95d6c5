"""What goes wrong on a mesh is told on every rank before the first step; a rank that is gone ends the job."""

import json
import re

import pytest

from tests.distribution.ranks import HERE, needs_mpi, run, run_well

pytestmark = needs_mpi
RANKS = 2
#: what each error says
TOLD = {
    "memory": r"memory_limit: expected at least \d+ bytes \(.* MiB\), the smallest plan .* on rank 1; got 1000 bytes",
    "loss": r"^'no such loss'$|^rank 1 cannot take the first step: KeyError: 'no such loss'$",
    "images": r"rank 1 differs from rank 0: expected on all ranks 'data: x\[0\] with the values ",
    "files": r"rank 1 differs from rank 0: expected on all ranks 'data: files and settings \w+', got on rank 1 ",
    "samples": "the batch: expected the same samples on ranks that share images, got 8, 7",
    "operator": "doubled.*: expected operators that can run on a part of an image, got .*, written in Python",
    "size": r"DeviceMesh: expected 3 devices for shape \[?\(?3.*, got 2",
    "axis": "mesh: expected axes among batch, depth, height, width, model, got 'rows'",
    "no such axis": r"mesh: expected images with an axis 'depth' of at least 2 elements, got none in this model",
    "window": "window: expected an image with at least 2 elements of depth",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spatial_fail")
    run_well(RANKS, "spatial_fail:errors", folder)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.slow
@pytest.mark.parametrize("case", TOLD)
def test_an_error_on_every_rank(found, case):
    for each in found:
        assert re.search(TOLD[case], each[case]), each[case]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "state"), [("die", "is dead"), ("stop", "is stopped")])
def test_a_rank_that_is_gone_ends_the_job(what, state):
    """The launcher does not see that it died: its neighbour tells what it waits for, and for whom."""
    wrapper = ("sh", str(HERE / "wrapped.sh")) if what == "die" else ()
    done = run(RANKS, "spatial_fail:until", what, wrapper=wrapper, PYDTCONV_STALL_TIMEOUT=3)
    assert done.returncode != 0
    assert "not reached" not in done.stdout
    where = r"halo of x0 with rank 1"
    assert re.search(rf"rank 0 has .* s,? in {where} for rank 1 on \S+, which {state}", done.stderr), done.stderr


@pytest.mark.slow
def test_doctor_checks_a_mesh():
    done = run(2, "-m", "pydtconv", "doctor", "--quick", "--mesh", "height=2")
    assert "mesh          height=2" in done.stdout
    assert "  rank 1: height 1; halos with rank 0 (height)" in done.stdout


@pytest.mark.slow
def test_doctor_measures_and_refuses_a_mesh():
    done = run(4, "-m", "pydtconv", "doctor", "--mesh", "batch=2,height=2")
    assert re.search(r"halos +64 KiB with each neighbour at the same time: \d+ us", done.stdout)
    done = run(2, "-m", "pydtconv", "doctor", "--quick", "--mesh", "height=2,width=2")
    assert done.returncode == 1
    assert "to mend       --mesh height=2,width=2: expected mpiexec -n 4, got 2 processes" in done.stdout
