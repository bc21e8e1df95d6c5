"""What `pydtconv doctor` says of ranks, and the launcher that belongs to another MPI."""

import pytest

from tests.distribution.ranks import needs_mpi, run

pytestmark = needs_mpi


@pytest.mark.slow
def test_ranks_threads_and_gradients_in_shared_memory():
    done = run(2, "-m", "pydtconv", "doctor", "--quick")
    assert done.stdout.count("ranks         2 on 1 host") == 1
    assert done.stdout.count("rank 0: 1 thread on cores") == 1
    assert done.stdout.count("rank 1: 1 thread on cores") == 1
    assert done.stdout.count("gradients     in memory that all ranks see (/dev/shm, ") == 1


@pytest.mark.slow
def test_gradients_of_several_hosts():
    done = run(2, "-m", "pydtconv", "doctor", "--quick", MPIR_CVAR_NOLOCAL=1)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("gradients     sent as messages: MPI does not tell that all ranks run on one host") == 1


@pytest.mark.slow
def test_no_room_for_gradients():
    program = (
        "import resource, sys; from mpi4py import MPI; from pydtconv.cli import main;"
        "MPI.COMM_WORLD.rank == 1 and resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY));"
        "sys.exit(main(['doctor', '--quick']))"
    )
    done = run(2, "-c", program, PYTHONDONTWRITEBYTECODE=1)  # Python would keep the first part of a module
    assert done.returncode != 0, done.stdout
    assert done.stdout.count("gradients     sent as messages: /dev/shm on rank 1: File too large") == 1
    assert done.stdout.count("to mend       /dev/shm on rank 1: File too large: gradients are sent") == 1


@pytest.mark.slow
def test_too_many_threads():
    done = run(2, "-m", "pydtconv", "doctor", "--quick", OMP_NUM_THREADS=1000)
    assert done.returncode != 0
    assert "2000 threads of 2 ranks share" in done.stdout
    assert "PYDTCONV_NUM_THREADS=" in done.stdout


@pytest.mark.slow
def test_launcher_of_another_mpi():
    first, second = (
        run(0, "-m", "pydtconv", "doctor", "--quick", OMPI_COMM_WORLD_SIZE=2, OMPI_COMM_WORLD_RANK=rank)
        for rank in (0, 1)
    )
    assert first.returncode == 1
    assert "the launcher started 2 processes, of which this is number 0, but" in first.stdout
    assert second.stdout == ""


@pytest.mark.slow
def test_training_under_another_launcher_is_refused():
    done = run(0, "-m", "pydtconv", "train", "--model", "mlp", OMPI_COMM_WORLD_SIZE=2, OMPI_COMM_WORLD_RANK=0)
    assert done.returncode == 2
    assert "pydtconv train: the launcher started 2 processes" in done.stderr
