"""Slurm on this machine: munge, a controller and two nodes by name, in a folder of their own, until it is stopped."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")
NODES = ("node1", "node2")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=20
NodeName=node1 NodeAddr=127.0.0.1 NodeHostname=node1 Port={ports[1]} CPUs=2
NodeName=node2 NodeAddr=127.0.0.1 NodeHostname=node2 Port={ports[2]} CPUs=2
PartitionName=all Nodes=node1,node2 Default=YES State=UP
"""


def reason():
    """Why Slurm cannot be had here; None where it can be tried."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
    missing = [name for name in DAEMONS if not shutil.which(name, path=path)]
    if missing:
        return f"needs {', '.join(missing)}: apt-get install slurm-wlm munge"
    return "needs root, to start daemons of Slurm" if os.geteuid() else None


class ClusterError(RuntimeError):
    """Slurm does not start here."""


class ProcessManagerError(ClusterError):
    """Slurm misread what a rank told PMI-2, as happens on a loaded machine; the rank waits for ever, or ends."""


class Cluster:
    """Two nodes, each with a host name of its own, which run jobs at once.  A context manager.

    Raises ClusterError, with what the daemons have told, where they do not come up.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self._daemons = []
        self.environment = os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.environment["PATH"] = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error):
        self.stop()

    def _start(self):
        folder = self.folder
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        text = CONFIGURATION.format(host=socket.gethostname(), folder=folder, ports=_free_ports(3))
        (folder / "slurm.conf").write_text(text)
        options = {"key-file": key, "socket": folder / "munge.socket", "pid-file": folder / "munged.pid"}
        options |= {"log-file": folder / "munged.log", "seed-file": folder / "munge.seed"}
        self._run("munged", "--foreground", "--force", *(f"--{name}={value}" for name, value in options.items()))
        self._run("slurmctld", "-D")
        for node in NODES:
            # a name space of its own for its name: MPI takes ranks with different host names for ranks on two hosts
            self._run("unshare", "--uts", "sh", "-c", f"hostname {node} && exec slurmd -D -N {node}")
        try:
            self.wait(lambda: self.command("sinfo", "-h", "-o", "%D %t", check=False).strip() == "2 idle", 30)
        except TimeoutError:
            logs = "\n".join(path.read_text()[-2000:] for path in sorted(folder.glob("*.log")))
            raise ClusterError(f"Slurm's nodes do not come up:\n{logs}") from None

    def _run(self, *words):
        with (self.folder / f"{words[0]}.{len(self._daemons)}.log").open("wb") as log:
            self._daemons.append(subprocess.Popen(words, env=self.environment, stdout=log, stderr=log))

    def stop(self):
        """Ends all jobs, then all daemons."""
        if len(self._daemons) == 2 + len(NODES):
            self._cancel_all()
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self._daemons = []

    def _cancel_all(self):
        self.command("scancel", "--user=root", check=False)
        try:
            self.wait(lambda: not self.command("squeue", "-h", check=False).strip(), 30)
        except TimeoutError:
            self.command("scancel", "--user=root", "--signal=KILL", "--full", check=False)

    # --- jobs ------------------------------------------------------------------------------------------------------
    def command(self, *words, check=True, **options):
        """What a command of Slurm prints.

        Raises ProcessManagerError where srun's ranks were lost before MPI had begun, ClusterError where it fails.
        """
        try:
            done = subprocess.run(
                words, env=self.environment, capture_output=True, text=True, timeout=60, check=False, **options
            )
        except subprocess.TimeoutExpired as error:
            self._check_process_manager((error.stderr or b"").decode(errors="replace"))
            raise
        if check and done.returncode:
            self._check_process_manager(done.stderr)
            raise ClusterError(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def _check_process_manager(self, told):
        """Raises ProcessManagerError, after all jobs are cancelled, where srun has told of one that was misread."""
        if "mpi/pmi2: invalid client request" in told:
            self._cancel_all()
            raise ProcessManagerError(f"Slurm's PMI-2 lost a rank: {told[-500:]}") from None

    def submit(self, *words, **options):
        """The number of the job that sbatch was told to run."""
        return re.search(r"job (\d+)", self.command("sbatch", *map(str, words), **options))[1]

    def state(self, job):
        """Such as RUNNING, PENDING, COMPLETED or CANCELLED."""
        return re.search(r"JobState=(\w+)", self.command("scontrol", "show", "job", job))[1]

    def restarts(self, job):
        """How often a job went back into the queue."""
        return int(re.search(r"Restarts=(\d+)", self.command("scontrol", "show", "job", job))[1])

    def wait(self, done, seconds, output=None):
        """Until done() is true.

        Raises TimeoutError, and ProcessManagerError where a job's output, a path, tells of one.
        """
        end = time.monotonic() + seconds
        while True:
            if output is not None and output.exists():
                self._check_process_manager(output.read_text(errors="replace"))
            if done():
                return
            if time.monotonic() > end:
                raise TimeoutError(f"not done after {seconds} s")
            time.sleep(0.25)


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
