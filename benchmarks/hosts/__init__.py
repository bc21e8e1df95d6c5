"""Hosts of their own on one machine: network namespaces, and a switch between them with links of a given speed.

  hosts 10.0.0.1, 10.0.0.2, ...: a name, a loopback and a device eth0 of their own; switch.c carries what they send.
  mpiexec runs on a further host, and enters the others where it would use ssh (enter.sh).

A host lives in a process that holds its namespaces and that the system ends with this one, however that ends, and the
switch and the ranks likewise; nothing is made outside of the namespaces, so nothing is left.  The switch is a program,
since the kernel's own delay (netem) is a module that not every machine has.  Needs Linux, root, a C compiler, and the
commands ip, nsenter, setpriv and unshare.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from pydtconv.simulation import Network

HERE = Path(__file__).parent
_NEEDED = ("ip", "nsenter", "setpriv", "unshare")
#: words before a command that the system is to end with the process that starts it
_TIED = ("setpriv", "--pdeathsig", "KILL")
#: lets MPICH use TCP alone between hosts
_TCP = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0"}
#: of each host's TCP.  What a connection may leave in its device is as little as a real one's queue limits allow it:
#: behind megabytes of data acknowledgements come so late that the two directions of a link take turns
#: (M. Heusse et al., "Two-way TCP connections: old problem, new insight", SIGCOMM CCR 41(2), 2011)
_SETTINGS = {"tcp_congestion_control": "reno", "tcp_limit_output_bytes": "131072"}


def missing() -> str | None:
    """Why hosts cannot be made here; None where they can."""
    absent = [name for name in (*_NEEDED, _compiler()[0]) if shutil.which(name) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    try:
        with Hosts(1, Network.parse("1Gbps:100us")):
            return None
    except OSError as error:
        return f"network namespaces are not allowed here: {error}"


class Hosts:
    """A context in which so many hosts are there, linked by a network of which alpha and beta count.

    Raises OSError, with what the system said, where they cannot be made.
    """

    def __init__(self, count: int, network: Network) -> None:
        self.addresses = [f"10.0.0.{i + 1}" for i in range(count)]
        self.network = network
        self._holders: list[subprocess.Popen[str]] = []
        self._switch: subprocess.Popen[str] | None = None
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> Hosts:
        try:
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    # --- what is made ----------------------------------------------------------------------------------------------
    def _make(self) -> None:
        names = [*(f"host{i}" for i in range(len(self.addresses))), "launcher"]
        for name in names:
            inside = f"hostname {name} && ip link set lo up && echo made && exec sleep infinity"
            self._holders.append(_started(["unshare", "--net", "--uts", "sh", "-c", inside]))
        pids = [holder.pid for holder in self._holders]
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "switch"
            _run([*_compiler(), "-O2", "-pthread", "-o", str(program), str(HERE / "switch.c")])
            arguments = [repr(1 / self.network.beta), repr(self.network.alpha), *map(str, pids)]
            self._pipe = os.pipe()
            self._switch = _started([str(program), *arguments], self._pipe[0])
        for i, pid in enumerate(pids):
            _run([*_entered(pid), "ip", "address", "add", f"10.0.0.{i + 1}/24", "dev", "eth0"])
            _run([*_entered(pid), "ip", "link", "set", "eth0", "up"])
            for name, value in _SETTINGS.items():
                _run([*_entered(pid), "sh", "-c", f"echo {value} > /proc/sys/net/ipv4/{name}"])

    def _end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        for end in self._pipe or ():
            os.close(end)
        self._holders, self._switch, self._pipe = [], None, None

    @property
    def processes(self) -> list[subprocess.Popen[str]]:
        """Those that hold the hosts, the one of mpiexec's host, the switch."""
        return [*self._holders, *(() if self._switch is None else (self._switch,))]

    # --- what it is for --------------------------------------------------------------------------------------------
    def sent(self) -> list[int]:
        """Bytes that have left each host so far, as the system counts them at its device."""
        counts = []
        for holder in self._holders[:-1]:
            lines = Path(f"/proc/{holder.pid}/net/dev").read_text().splitlines()
            (line,) = (line for line in lines if line.strip().startswith("eth0:"))
            counts.append(int(line.split()[9]))
        return counts

    def switch_seconds(self) -> float:
        """Processor time that the switch has taken so far."""
        assert self._switch is not None
        threads = Path(f"/proc/{self._switch.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) * 1e-9

    @property
    def links(self) -> str:
        """The file by which `set_links` gives all links another bandwidth and latency."""
        assert self._pipe is not None
        return f"/proc/{os.getpid()}/fd/{self._pipe[1]}"

    def entered(self, host: int) -> list[str]:
        """Words before a command that let it run on a host."""
        return _entered(self._holders[host].pid)

    def run(
        self, words: Sequence[object], env: Mapping[str, str] = os.environ, ranks: int = 1, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs `python words` as one rank on each host, or several, to the end; options: of subprocess.run."""
        *hosts, launcher = self._holders
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        mpiexec = shutil.which("mpiexec", path=path)
        if mpiexec is None:
            raise OSError("mpiexec: not found: pip install 'pydtconv[mpi]'")
        command = [
            *_TIED,
            *_entered(launcher.pid),
            mpiexec,
            "-launcher",
            "rsh",
            "-launcher-exec",
            str(HERE / "enter.sh"),
        ]
        command += ["-iface", "eth0", "-hosts", ",".join(self.addresses), "-ppn", str(ranks)]
        command += ["-n", str(ranks * len(hosts)), *_TIED, sys.executable]
        alone = {"MPIR_CVAR_NOLOCAL": "1"} if ranks == 1 else {}
        pids = {f"HOLDER_{i + 1}": str(host.pid) for i, host in enumerate(hosts)}
        return subprocess.run([*command, *map(str, words)], env={**env, **_TCP, **alone, **pids}, text=True, **options)


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def _entered(pid: int) -> list[str]:
    return ["nsenter", f"--target={pid}", "--net", "--uts"]


def set_links(file: str, network: Network) -> None:
    """Shapes the links of hosts anew, from any process.  file: `Hosts.links`."""
    Path(file).write_text(f"{1 / network.beta!r} {network.alpha!r}\n")


def _started(command: Sequence[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """A process that the system ends with this one.  Raises OSError where it does not say "made"."""
    process = subprocess.Popen(
        [*_TIED, *command],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "made":
        process.kill()
        raise OSError(process.communicate()[1].strip() or f"{command[0]}: failed")
    return process


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip() or f"{shlex.join(command)}: status {done.returncode}")
