"""The batch script of the docs under a real Slurm, on two nodes: ended by the time limit and by scancel."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.distribution import slurm
from tests.distribution.ranks import needs_mpi

pytestmark = [*needs_mpi, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "guides" / "clusters.md"
SMALL = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1")
TRAIN = ("--model", "mlp", "--dataset", "digits", "--batch-size", "64")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    reason = slurm.reason()
    if reason:
        pytest.skip(reason)
    try:
        with slurm.Cluster(tmp_path_factory.mktemp("slurm")) as cluster:
            path = os.pathsep.join([str(Path(sys.executable).parent), cluster.environment["PATH"]])
            cluster.environment["PATH"] = path
            yield cluster
    except slurm.ClusterError as error:
        pytest.skip(f"Slurm does not start here: {error}")


def attempts(run, count=3):
    """What run(attempt) gives; again where Slurm loses a rank before MPI has begun, which is no fault of ours."""
    for attempt in range(count):
        try:
            return run(attempt)
        except slurm.ProcessManagerError as error:
            reason = str(error)
    return pytest.skip(reason)


@pytest.fixture
def script(tmp_path):
    """The script of the docs, word for word."""
    found = re.findall(r"^```\w*\n(#!/bin/bash\n#SBATCH.*?)^```$", DOCS.read_text(), re.M | re.S)
    assert len(found) == 1
    path = tmp_path / "train.sbatch"
    path.write_text(found[0])
    return path


def test_time_limit_and_scancel(cluster, script, tmp_path):
    def run(attempt):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        time_limit_and_scancel(cluster, script, folder)

    attempts(run)


def time_limit_and_scancel(cluster, script, folder):
    output = folder / "output.txt"

    def wait(done, seconds):
        cluster.wait(done, seconds, output)

    def told(pattern):
        return len(re.findall(pattern, output.read_text())) if output.exists() else 0

    def ended():
        return cluster.state(job) not in ("PENDING", "RUNNING", "COMPLETING")

    # the time is nearly over at once, before the end of so many epochs: the job goes back to the queue, and goes on
    limits = ("--time=2", "--signal=TERM@75", f"--output={output}")
    job = cluster.submit(*SMALL, *limits, script, *TRAIN, "--epochs", 100000, cwd=folder)
    wait(lambda: told("checkpoint: checkpoints/"), 120)
    try:
        wait(lambda: told("going on with epoch"), 150)
    except TimeoutError:
        again = output.read_text().rpartition("srun: cluster configuration")[2]
        if told("checkpoint: checkpoints/") == 1 and "checkpoints" not in again:
            pytest.skip("Slurm took the job back into its queue, and did not start its processes again within 150 s")
        raise
    assert cluster.restarts(job) >= 1

    wait(lambda: output.read_text().rpartition("going on with epoch")[2].count("ms/step - ") > 2, 60)
    cluster.command("scancel", job)
    wait(ended, 60)
    assert cluster.state(job) == "CANCELLED"
    assert told("checkpoint: checkpoints/") >= 2

    last = int(re.findall(r"Epoch (\d+)/100000", output.read_text())[-1])
    job = cluster.submit(*SMALL, f"--output={output}", script, *TRAIN, "--epochs", last + 1, cwd=folder)
    wait(ended, 120)
    assert cluster.state(job) == "COMPLETED", output.read_text()
    # or with the next one, where it was cancelled between the two
    assert re.search(rf"going on with epoch ({last}|{last + 1}), step \d+, from", output.read_text())
    assert re.search(r"test accuracy 9\d\.", output.read_text())
    assert told("training starts from the beginning") == 1


def test_ranks_and_hosts(cluster):
    """srun starts what MPI takes for two hosts, of two ranks each."""
    words = ("srun", "--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=1", "--mpi=pmi2", sys.executable)
    told = attempts(lambda _: cluster.command(*words, "-m", "pydtconv", "doctor", "--quick", cwd=ROOT))
    assert "4 on 2 hosts, MPICH" in told
    assert "gradients     on each of 2 hosts in memory that its ranks see, between hosts sent by " in told
    assert "node1: " in told
    assert "node2: " in told
