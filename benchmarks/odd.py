"""Small batches and odd sizes beside regular ones: `python -m benchmarks.odd --peer torch`.

Whole training steps as in benchmarks.train: batches of 1, 3 and 7 images beside 8, images one pixel smaller and larger
beside 32x32 and 224x224.  "to regular" compares GFLOPS of the direct method, which is fair between sizes.  A CSV file
goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks import report
from benchmarks.networks import Case
from benchmarks.peers.table import add_peer_arguments, installed
from benchmarks.processes import Kept
from benchmarks.train import Sides

#: (rows and columns, batch): the regular one first
GROUPS = (
    ((32, 8), (32, 7), (32, 3), (32, 1)),
    ((32, 64), (31, 64), (33, 64)),
    ((224, 8), (223, 8), (225, 8), (224, 7), (224, 1)),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.odd", description=__doc__)
    add_peer_arguments(parser, ("torch",))
    parser.add_argument("--networks", nargs="+", default=["resnet34"], help="names of the zoo (default: resnet34)")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each side")
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a process")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", type=Path, help="file of measurements, which are taken from there when it has them")
    parser.add_argument("--name", default="odd", help="of the file in benchmarks/results/")
    options = parser.parse_args()
    rows, kept, pythons = [], Kept(options.keep), installed(options.peer, options.peer_python)
    with tempfile.TemporaryDirectory() as folder:
        for network in options.networks:
            for group in GROUPS:
                regular = 0.0
                for size, batch in group:
                    sides = Sides(
                        Case(network, size, batch),
                        Path(folder),
                        steps=options.steps,
                        threads=options.threads,
                        pythons=pythons,
                    )
                    measure = partial(sides.rows, options.rounds)
                    found, origin = kept.get(f"{network} {size} {batch}", measure)
                    (row,) = found.values()
                    regular = regular or row["GFLOPS"]
                    rows.append(row | {"to regular": row["GFLOPS"] / regular} | origin)
                    report.print_table("", rows[-1:])
                    sys.stdout.flush()
    report.print_table("small batches and odd sizes", rows)
    print(report.write_csv(options.name, rows))


if __name__ == "__main__":
    main()
