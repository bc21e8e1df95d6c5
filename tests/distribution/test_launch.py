"""A job that loses a rank goes on by itself, and ends with the weights of one that was left alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pydtconv import applications
from tests.distribution.ranks import LAUNCHER, environment, needs_mpi, run_well

pytestmark = [*needs_mpi, pytest.mark.slow]
TRAIN = ("train", "--model", "resnet20", "--dataset", "digits", "--samples", "128", "--batch-size", "32")
TRAIN += ("--epochs", "3", "--dtype", "float64")
#: mpiexec for hosts that have a name alone; those in the file "gone" do not answer
HOSTS = """#!/bin/sh
if [ "$1" = -hosts ]; then ! grep -qx "$2" {folder}/gone; exit; fi
[ "$1" = -f ] && shift 2
exec {mpiexec} "$@"
"""


def weights(name):
    network = applications.build("resnet20", (8, 8, 1), 10)
    network.load_weights(f"{name}.weights.h5")
    return network.get_weights()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The weights of two ranks that were left alone."""
    name = tmp_path_factory.mktemp("whole") / "whole"
    run_well(2, "-m", "pydtconv", *TRAIN, "--output", name)
    return weights(name)


def ranks_of(word):
    """The numbers of the processes of ranks that have this word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes() and b"PMI_RANK=" in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:  # it has ended, or is not ours
            continue
    return sorted(found)


@pytest.mark.parametrize("host", ["there", "gone"])
def test_a_killed_rank(host, whole, tmp_path):
    launcher, saved = tmp_path / "launcher", tmp_path / "saved"
    launcher.write_text(HOSTS.format(folder=tmp_path, mpiexec=LAUNCHER))
    launcher.chmod(0o755)
    (tmp_path / "hosts").write_text("node1:1\nnode2:1\n")
    (tmp_path / "gone").touch()
    options = ["-n", "2", "--backoff", "0.1", "--launcher", launcher, "--hosts", tmp_path / "hosts"]
    train = [*TRAIN, "--checkpoint", saved, "--save-every", "3", "--output", tmp_path / "killed"]
    words = [sys.executable, "-m", "pydtconv", "launch", *options, *train]
    with subprocess.Popen([*map(str, words)], env=environment(), stderr=subprocess.PIPE, text=True) as process:
        while not [*saved.glob("checkpoint-*")]:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        if host == "gone":
            (tmp_path / "gone").write_text("node2\n")
        os.kill(ranks_of(str(saved))[-1], signal.SIGKILL)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    assert "on 2 ranks; restart 1 in 0.1 s" in told
    assert ("no answer from node2" in told) == (host == "gone")
    for expected, found in zip(whole, weights(tmp_path / "killed"), strict=True):
        if host == "there":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
