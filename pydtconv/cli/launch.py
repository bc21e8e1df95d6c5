"""Starts ranks of `train` or `run`, and starts them again where one is lost, so that a long job needs no person.

  pydtconv launch -n 4 train --model resnet34 --data photos --checkpoint saved
  pydtconv launch --hosts hosts --min-ranks 6 train --model resnet34 --data photos --checkpoint saved
  pydtconv launch -n 4 run script.py          a script whose fit has a BackupAndRestore

A job that fails goes on from its last checkpoint: on as many ranks, or with --hosts on those of the hosts that answer.
An error in the options (status 2) and a signal, which training ends with a checkpoint (129, 130, 143), end it for good.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

from pydtconv.cli.errors import CommandError, UsageError
from pydtconv.cli.parser import Parser, number, whole
from pydtconv.support.launcher import launched
from pydtconv.support.uninterrupted import ENDING

SUMMARY = "start ranks of train or run, and start them again where one is lost"
#: exit statuses that a restart does not change: a good end, an error in the options, an end that was asked for
_FINAL = (0, 2, *(128 + each for each in ENDING))
#: seconds for which a host may take to answer, and the longest time before a restart
_ANSWER, _LONGEST = 30, 300


def add_arguments(parser: Parser) -> None:
    parser.add_argument("-n", "--ranks", type=whole(1), help="how many (default: those of --hosts, else 1)")
    parser.add_argument(
        "--hosts", metavar="FILE", help="where they run, for MPICH: lines such as node1:2, a host and its ranks"
    )
    parser.add_argument("--restarts", type=whole(0), default=3, help="how often at most (default: 3)")
    parser.add_argument(
        "--min-ranks", type=whole(1), help="start on so many or more, where hosts of --hosts are gone (default: 1)"
    )
    parser.add_argument(
        "--backoff", type=number(0), default=5.0, metavar="SECONDS", help="before the first restart, then twice as long"
    )
    parser.add_argument("--launcher", default="mpiexec", help="what starts ranks, with its options (default: mpiexec)")
    parser.add_argument("job", choices=("train", "run"), help="the command that the ranks run")
    parser.add_argument("arguments", nargs="...", metavar="...", help="its options")


def run(args: Any) -> int:
    words = [args.job, *args.arguments]
    again = _resuming(args, words)
    hosts = _read_hosts(args.hosts) if args.hosts else {}
    ranks = args.ranks or sum(hosts.values()) or 1
    least = args.min_ranks or 1
    _check_ranks(args, ranks, hosts)
    launcher = _launcher(args.launcher) if ranks > 1 or hosts else []
    pause = args.backoff
    with _Job() as job:
        for restart in range(args.restarts + 1):
            alive = _alive(launcher, hosts)
            now = min(ranks, sum(alive.values())) if hosts else ranks
            if now < least:
                status, told = 1, f"{now} of {ranks} ranks are left, expected --min-ranks {least}"
            else:
                status = job.run(launcher, alive, now, again if restart else words)
                told = f"ended with status {status} on {now} rank{'s' * (now > 1)}"
            if status in _FINAL or job.received:
                return status
            last = restart == args.restarts
            _say(f"{told}; {'no restart is left' if last else f'restart {restart + 1} in {pause:g} s'}")
            if not last and job.ended.wait(pause):
                return 128 + job.received
            pause = min(2 * pause, _LONGEST)
    return status


def _resuming(args: Any, words: list[str]) -> list[str]:
    """The words of a restart.  Raises CommandError, before anything is started, for a command that is wrong."""
    from pydtconv.cli import build_parser

    if launched()[0] > 1:
        raise CommandError("expected to be started by itself, which starts the ranks: not under mpiexec or srun")
    try:
        parsed = build_parser().parse_args(words)
    except UsageError as error:
        raise CommandError(error.text) from None
    if args.job == "run" and parsed.script == "-":
        raise CommandError("run: expected a file, which a restart reads again, got '-', the standard input")
    if args.job == "run":
        return words
    if args.restarts and parsed.checkpoint is None:
        raise CommandError("train: expected --checkpoint FOLDER, from which a restart goes on, or --restarts 0")
    return words if parsed.resume else [*words, "--resume"]


def _read_hosts(path: str) -> dict[str, int]:
    """Ranks by host.  Raises CommandError for a file that cannot be read, or has another form."""
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--hosts: {error}") from None
    found: dict[str, int] = {}
    for line in lines:
        text = line.partition("#")[0].strip()
        match = re.fullmatch(r"([^\s:]+)(?::0*([1-9]\d*))?", text)
        if text and (match is None or match[1] in found):
            raise CommandError(f"--hosts: {path}: expected lines such as node1:2, each host once, got {line!r}")
        if match:
            found[match[1]] = int(match[2] or 1)
    if not found:
        raise CommandError(f"--hosts: {path}: expected lines such as node1:2, got none")
    return found


def _check_ranks(args: Any, ranks: int, hosts: Mapping[str, int]) -> None:
    if hosts and ranks > sum(hosts.values()):
        raise CommandError(f"-n {ranks}: expected at most the {sum(hosts.values())} ranks of --hosts {args.hosts}")
    if args.min_ranks is not None and not hosts:
        raise CommandError("--min-ranks: expected --hosts FILE with it, of which hosts may be gone")
    if args.min_ranks is not None and args.min_ranks > ranks:
        raise CommandError(f"--min-ranks: expected at most the {ranks} ranks that are started, got {args.min_ranks}")


def _launcher(text: str) -> list[str]:
    """Raises CommandError where there is no such program; that of this Python's environment comes first."""
    name, *options = text.split() or [""]
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        raise CommandError(f"--launcher: found no {name!r}: pip install 'pydtconv[mpi]' brings mpiexec")
    return [found, *options]


def _alive(launcher: Sequence[str], hosts: Mapping[str, int]) -> dict[str, int]:
    """Those on which the launcher can start a program now."""

    def answers(host: str) -> bool:
        command = [*launcher, "-hosts", host, "-n", "1", "true"]
        try:
            return not subprocess.run(
                command, timeout=_ANSWER, capture_output=True, stdin=subprocess.DEVNULL, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return False

    with ThreadPoolExecutor(max_workers=32) as pool:
        found = dict(zip(hosts, pool.map(answers, hosts), strict=True))
    gone = [host for host, answered in found.items() if not answered]
    if gone:
        _say(f"no answer from {', '.join(gone)}")
    return {host: hosts[host] for host, answered in found.items() if answered}


class _Job:
    """The ranks that run now, and signals, which they get.  received: the last one, 0 without any."""

    def __init__(self) -> None:
        self.received = 0
        self.ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Job:
        self._before = {each: signal.signal(each, self._pass_on) for each in ENDING}
        return self

    def __exit__(self, *error: object) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)

    def _pass_on(self, received: int, frame: FrameType | None) -> None:
        self.received = received
        self.ended.set()
        if self._process is not None:
            self._process.send_signal(received)

    def run(self, launcher: Sequence[str], hosts: Mapping[str, int], ranks: int, words: Sequence[str]) -> int:
        """The exit status of so many ranks; 128 and its number for a signal."""
        command = [sys.executable, "-m", "pydtconv", *words]
        with tempfile.NamedTemporaryFile("w", prefix="hosts-") as file:
            if launcher:
                file.writelines(f"{host}:{count}\n" for host, count in hosts.items())
                file.flush()
                command = [*launcher, *(["-f", file.name] if hosts else []), "-n", str(ranks), *command]
            # in a session of its own: Ctrl-C of a terminal reaches the ranks once, through this process
            with subprocess.Popen(command, start_new_session=True) as self._process:
                if self.received:  # while it was started
                    self._process.send_signal(self.received)
                status = self._process.wait()
        self._process = None
        return status if status >= 0 else 128 - status


def _say(text: str) -> None:
    print(f"pydtconv launch: {text}", file=sys.stderr, flush=True)
