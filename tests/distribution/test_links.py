"""Ranks on hosts of their own, network namespaces, whose links are shaped: the same result, over TCP alone."""

import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks import hosts
from pydtconv.simulation import Network
from tests.distribution.ranks import HERE, environment, needs_mpi, run_well

pytestmark = needs_mpi
RANKS = 2
LINK = Network.parse("100Mbps:100us")


@pytest.fixture(scope="module", autouse=True)
def _allowed():
    reason = hosts.missing()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Folder with the weights of one rank and of two hosts, blocking and overlapped, and bytes sent by each host."""
    folder = tmp_path_factory.mktemp("links")
    run_well(0, "over_links", folder)
    sent = {}
    with hosts.Hosts(RANKS, LINK) as network:
        for mode in ("blocking", "overlapped"):
            before = network.sent()
            words = ["-m", "tests.distribution", "over_links", folder, mode]
            done = network.run(words, environment(), capture_output=True, timeout=120, check=False, cwd=HERE.parents[1])
            assert done.returncode == 0, done.stdout + done.stderr
            sent[mode] = np.subtract(network.sent(), before)
    return folder, sent


def loaded(folder, name):
    with np.load(folder / f"{name}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["blocking", "overlapped"])
def test_hosts_equal_one_rank(outcomes, mode):
    folder, _ = outcomes
    alone = loaded(folder, "alone.0")
    for rank in range(RANKS):
        for key, value in loaded(folder, f"{mode}.{rank}").items():
            np.testing.assert_allclose(value, alone[key], rtol=1e-4, atol=1e-5, err_msg=f"rank {rank}: {key}")


@pytest.mark.slow
def test_blocking_and_overlapped_give_equal_bits(outcomes):
    folder, _ = outcomes
    first = loaded(folder, "blocking.0")
    for name in ("blocking.1", "overlapped.0", "overlapped.1"):
        for key, value in loaded(folder, name).items():
            np.testing.assert_array_equal(value, first[key], err_msg=f"{name}: {key}")


@pytest.mark.slow
def test_gradients_go_over_the_links(outcomes):
    folder, sent = outcomes
    weights = sum(value.nbytes for key, value in loaded(folder, "alone.0").items() if key != "loss")
    steps = 2 * 4  # each of the two ranks sends as many bytes as there are gradients
    for counts in sent.values():
        assert (counts >= steps * weights).all()


@pytest.mark.parametrize("first", ["1Mbps:20ms", "1Gbps:1us"])
def test_what_is_sent_takes_its_time(first):
    """A packet of 1400 bytes over 1 Mbit/s and 20 ms cannot be there earlier than 31 ms, whatever else runs."""
    receive = "import socket; s = socket.socket(2, 2); s.bind(('', 9)); print('ready', flush=True); s.recv(2000)"
    receive += "; import time; print(time.monotonic())"
    send = (
        "import socket, time; s = socket.socket(2, 2); print(time.monotonic()); s.sendto(bytes(1400), ('10.0.0.2', 9))"
    )
    with hosts.Hosts(2, Network.parse(first)) as network:
        hosts.set_links(network.links, Network.parse("1Mbps:20ms"))
        command = [*network.entered(1), sys.executable, "-c", receive]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
            assert receiver.stdout.readline() == "ready\n"
            done = subprocess.run([*network.entered(0), sys.executable, "-c", send], capture_output=True, text=True)
            arrived = float(receiver.communicate(timeout=120)[0])
    assert arrived - float(done.stdout) >= 0.02 + 1400 * 8e-6


def test_hosts_that_cannot_be_made_leave_nothing(monkeypatch):
    monkeypatch.setattr(hosts, "HERE", HERE)  # without a switch.c
    network = hosts.Hosts(2, LINK)
    with pytest.raises(OSError, match=r"switch\.c"), network:
        pytest.fail("hosts were made")
    assert network.processes == []


@pytest.mark.slow
def test_hosts_and_ranks_end_with_the_program_however_it_ends():
    code = "from benchmarks.hosts import Hosts; from pydtconv.simulation import Network\n"
    code += "with Hosts(2, Network.parse('1Gbps:100us')) as h:\n"
    code += "    print(*(p.pid for p in h.processes), flush=True)\n"
    code += "    h.run(['-c', 'import os, time; print(str(os.getpid()) + chr(32), flush=True); time.sleep(100)'])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE.parents[1]) as main:
        pids = main.stdout.readline().split()
        assert len(pids) == 4  # two hosts, that of mpiexec, the switch
        # of two ranks, whose lines may come in pieces
        for line in main.stdout:
            pids += line.split()
            if len(pids) >= 6:
                break
        assert len(pids) == 6
        main.kill()
        for pid in pids:
            wait_for_the_end(int(pid))


def wait_for_the_end(pid):
    """Fails where a process is still there after a minute; one that nobody has asked for is none."""
    for _ in range(1200):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "ZX":
                    return
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} is still there")
