"""What the environments of launchers tell."""

import pytest

from pydtconv.distribution.mpi import launch


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ({}, (1, 0)),
        ({"PMI_SIZE": "4", "PMI_RANK": "2"}, (4, 2)),
        ({"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "1"}, (3, 1)),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, (2, 1)),
        # Open MPI's mpirun in a shell that srun has started with PMI
        ({"PMI_SIZE": "1", "PMI_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}, (4, 3)),
        # mpiexec -n 1 whose daemons srun has started
        ({"PMI_SIZE": "1", "PMI_RANK": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}, (1, 0)),
    ],
)
def test_launchers(monkeypatch, variables, want):
    for name in (*sum(launch._VARIABLES, ()), *launch._SLURM):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launch.launched() == want
