"""Dense layers whose columns ranks share: weights, slots and results of one process, a part of the memory."""

import re

import numpy as np
import pytest

from pydtconv import distribution
from tests.distribution import columns
from tests.distribution.ranks import HERE, needs_mpi, run, run_well


def on_ranks(test):
    for mark in needs_mpi:
        test = mark(test)
    return test


FEW = "Adam, tanh, False;global_clipnorm"
FOUR = "accumulated;regularized;accumulated, averaged"


def loaded(path):
    with np.load(path) as file:
        return dict(file)


def check_equal(folder, one, others, **tolerance):
    expected = loaded(folder / f"{one}.npz")
    for other in others:
        found = loaded(folder / f"{other}.npz")
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            limits = {"rtol": 1e-9, "atol": 1e-10} | tolerance
            np.testing.assert_allclose(found[key], value, err_msg=f"{other}: {key}", **limits)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("columns")


@on_ranks
@pytest.mark.parametrize(
    ("ranks", "meshes", "names"),
    [
        (2, ["height=2"], FEW),
        pytest.param(2, ["model=2", "height=2"], "all", marks=pytest.mark.slow),
        pytest.param(4, ["batch=2,height=2", "height=2,width=2", "batch=2,model=2"], FOUR, marks=pytest.mark.slow),
    ],
)
def test_trainings_equal_one_process(folder, ranks, meshes, names):
    names_of = list(columns.RUNS) if names == "all" else names.split(";")
    if not all((folder / f"{name} alone.npz").exists() for name in names_of):
        run_well(0, "columns", folder, names, "alone")
    run_well(ranks, "columns", folder, names, *meshes, PYDTCONV_STALL_TIMEOUT=60)
    for name in names_of:
        check_equal(folder, f"{name} alone", [f"{name} {rank}" for rank in range(ranks)])


@pytest.mark.slow
@on_ranks
def test_variables_are_whole_for_all_who_read_them(folder):
    for ranks, mesh in (0, "alone"), (2, "height=2"):
        run_well(ranks, "columns:lives", folder, mesh, PYDTCONV_STALL_TIMEOUT=60)
    check_equal(folder, "lives alone 0", ["lives height=2 0", "lives height=2 1"])
    check_equal(folder, "mixed alone 0", ["mixed height=2 0", "mixed height=2 1"], rtol=0.05, atol=0.02)


@pytest.mark.slow
@on_ranks
def test_checkpoints_resume_on_any_number_of_ranks(folder):
    for ranks, mesh, epochs in (2, "model=2", 1), (3, "height=3", 2), (0, "alone", 3), (0, "alone", "all"):
        run_well(ranks, "columns:resumed", folder, mesh, epochs)
    one, several = (loaded(folder / f"resumed alone {epochs} 0.npz") for epochs in ("all", 3))
    for key in (key for key in one if not key.startswith("history")):
        np.testing.assert_allclose(several[key], one[key], rtol=1e-9, atol=1e-10, err_msg=key)


@pytest.mark.slow
@on_ranks
def test_a_rank_that_dies_ends_the_job():
    done = run(2, "columns:until", "die", wrapper=("sh", str(HERE / "wrapped.sh")), PYDTCONV_STALL_TIMEOUT=3)
    assert done.returncode != 0
    assert "not reached" not in done.stdout
    assert re.search(r"rank 0 has .* s,? in .* for rank 1 on \S+, which is dead", done.stderr), done.stderr


def test_arguments():
    mesh = distribution.DeviceMesh((1,), ("height",))
    for given in ("fc1", [1], [""], None):
        with pytest.raises(ValueError, match="columns: expected a sequence of names of Dense layers, got "):
            distribution.SpatialParallel(mesh, columns=given)
    with pytest.raises(ValueError, match="shard: expected None with columns, got 'optimizer'"):
        distribution.SpatialParallel(mesh, columns=["fc1"], shard="optimizer")
