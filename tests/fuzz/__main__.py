"""Runs rooms in turn, each in a process of its own, until time is over; prints failing seeds and a table of counts.

python -m tests.fuzz files --seconds 60
python -m tests.fuzz files --seed 1234 --runs 1     the trials of one seed again
python -m tests.fuzz files --totals files.json      adds to what is counted there, and goes on with the next seed
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz import trials

ROOMS = tuple(sorted(path.stem for path in Path(__file__).parent.glob("room_*.py")))
#: bytes of address space on top of what a worker has when it begins, and seconds of one seed
MEMORY, SECONDS = 2 << 30, 120


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    names = [room.removeprefix("room_") for room in ROOMS]
    parser.add_argument("rooms", nargs="*", default=names, help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--seconds", type=float, default=60, help="for all rooms together (default: 60)")
    parser.add_argument("--seed", type=int, help="the first seed (default: a random one)")
    parser.add_argument("--runs", type=int, help="seeds for each room (default: as many as there is time for)")
    parser.add_argument(
        "--files", type=int, default=100, help="damaged files of a seed of the room files (default: 100)"
    )
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz"), help="folder for inputs that fail")
    parser.add_argument("--totals", type=Path, help="a file that keeps the counts of several runs (default: none)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.files < 1:
        parser.error(f"--files: expected an integer of 1 or more, got {args.files}")
    for room in args.rooms:
        if room not in names:
            parser.error(f"expected rooms of {', '.join(names)}, got {room!r}")
    if args.worker:
        return work(args)
    first = random.randrange(1 << 31) if args.seed is None else args.seed
    kept = Totals(args.totals)
    print(f"seed {first}, rooms {', '.join(args.rooms)}, inputs that fail in {args.corpus}", flush=True)
    failures = 0
    for room in args.rooms:
        failures += run_room(room, kept.following.get(room, first), args, args.seconds / len(args.rooms), kept)
    print(table(kept.counts))
    print(f"{failures} failures" + (f", {kept.failures} in all runs" if args.totals else ""))
    return 1 if failures else 0


class Totals:
    """counts: trials by room, kind and outcome.  following: by room the seed that comes next.  seeds, failures: so far.

    Kept in a file, where there is one, after each seed: a run that is ended loses none.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        kept = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self.counts = Counter({(room, kind, outcome): n for room, kind, outcome, n in kept.get("counts", [])})
        self.following: dict[str, int] = kept.get("following", {})
        self.seeds, self.failures = kept.get("seeds", 0), kept.get("failures", 0)

    def add(self, room: str, seed: int, counts: list[tuple[str, str, int]], failed: bool) -> None:
        for kind, outcome, number in counts:
            self.counts[room, kind, outcome] += number
        self.following[room] = seed + 1
        self.seeds, self.failures = self.seeds + 1, self.failures + failed
        if self.path is not None:
            rows = [[*key, number] for key, number in sorted(self.counts.items())]
            kept = {"counts": rows, "following": self.following, "seeds": self.seeds, "failures": self.failures}
            beside = self.path.with_name(self.path.name + ".new")
            beside.write_text(json.dumps(kept))
            beside.replace(self.path)


def run_room(room: str, seed: int, args: argparse.Namespace, seconds: float, totals: Totals) -> int:
    """Starts workers, another one where one dies; returns the number of seeds that failed."""
    end, failures = time.monotonic() + seconds, 0
    last = None if args.runs is None else seed + args.runs
    while time.monotonic() < end and (last is None or seed < last):
        left = end - time.monotonic()
        command = [sys.executable, "-m", "tests.fuzz", room, "--worker", "--seed", str(seed)]
        command += ["--seconds", str(left), "--corpus", str(args.corpus / room), "--files", str(args.files)]
        command += [] if last is None else ["--runs", str(last - seed)]
        begun = seed
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                told = json.loads(line)
                if "begin" in told:
                    begun = told["begin"]
                    continue
                totals.add(room, told["end"], told["counts"], bool(told["error"]))
                if told["error"]:
                    failures += 1
                    print(f"{room}: seed {told['end']} failed; input {told['input']}\n{told['error']}", flush=True)
                seed = told["end"] + 1
        if worker.returncode:
            trials.begin(args.corpus / room)
            print(f"{room}: seed {begun} ended the process ({worker.returncode}); input {trials.failed(begun)}")
            totals.add(room, begun, [], True)
            failures, seed = failures + 1, begun + 1
    return failures


def work(args: argparse.Namespace) -> int:
    """The worker: one seed after the other, a line of JSON before and after each."""
    (room,) = args.rooms
    module = importlib.import_module(f"tests.fuzz.room_{room}")
    trials.begin(args.corpus)
    trials.files = args.files
    if hasattr(module, "prepare"):
        module.prepare()
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    end, seed = time.monotonic() + args.seconds, args.seed
    while time.monotonic() < end and (args.runs is None or seed < args.seed + args.runs):
        print(json.dumps({"begin": seed}), flush=True)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + SECONDS, resource.RLIM_INFINITY))
        error = path = None
        try:
            module.run(seed)
        except Exception:
            error, path = traceback.format_exc(), str(trials.failed(seed))
        counts = [[*key, number] for key, number in trials.counts.items()]
        trials.counts.clear()
        print(json.dumps({"end": seed, "counts": counts, "error": error, "input": path}), flush=True)
        seed += 1
    return 0


def table(totals: Counter) -> str:
    """Trials by room, kind and outcome, as Markdown."""
    lines = ["| room | kind | outcome | trials |", "|---|---|---|---:|"]
    lines += [f"| {' | '.join(key)} | {number:,} |" for key, number in sorted(totals.items())]
    return "\n".join([*lines, f"| all | | | {sum(totals.values()):,} |"])


if __name__ == "__main__":
    sys.exit(main())
