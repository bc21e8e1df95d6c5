"""Disturbs trainings until the time is over:  python -m tests.soak --minutes 10 [--seed N] [--ranks 1,3] [--kills 200]

Each training is killed, interrupted, stopped or starved of disk at random moments, and started again, until it has
reached its end; what it has learnt must have the bits of an undisturbed one, and nothing of it may be left behind.
Beside that, processes train again and again; what they take of the system must not grow.  A table tells what happened.
With --kills trainings are killed only, until so many have been, and nothing trains beside them.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.disturbed import KILLS, Room
from tests.soak.steady import Steady


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="of the moments (default: the clock)")
    parser.add_argument("--ranks", default="1,3", help="numbers of ranks, in turns (default: 1,3)")
    parser.add_argument("--kills", type=int, help="kills only, and ends after so many (default: all that can happen)")
    options = parser.parse_args()
    if not options.minutes > 0:
        parser.error(f"--minutes: expected a number above 0, got {options.minutes}")
    try:
        ranks = [int(word) for word in options.ranks.split(",")]
    except ValueError:
        parser.error(f"--ranks: expected numbers with commas between them, got {options.ranks!r}")
    if options.kills is not None and options.kills < 1:
        parser.error(f"--kills: expected an integer of 1 or more, got {options.kills}")
    print(f"seed {options.seed}, {options.minutes} minutes", flush=True)
    seconds = options.minutes * 60
    with tempfile.TemporaryDirectory(prefix="pydtconv-soak-") as folder:
        room = Room(Path(folder), options.seed, ranks, KILLS if options.kills else None)
        room.prepare()
        end = time.monotonic() + seconds
        with Steady(Path(folder), [] if options.kills else ranks, seconds) as steady:
            try:
                while time.monotonic() < end and room.kills < (options.kills or math.inf):
                    room.disturb()
            finally:
                room.clean()
            steady.wait()
        print(room.table())
        print(steady.table())
        findings = room.findings + steady.findings
    for finding in findings:
        print(f"FOUND: {finding}")
    print(f"{len(findings)} findings, {room.count} disturbances, {room.trainings} trainings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
