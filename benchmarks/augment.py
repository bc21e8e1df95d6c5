"""Steps with layers that change images: `python -m benchmarks.augment --peer tensorflow`.

Each row is a step of a model of one layer of images, or of none, a mean over the pixels and a dense layer, by
`train_on_batch` of float32 pixels, in fresh processes that take turns, on the same number of threads; images/s of the
median step of all rounds.  The last rows are whole: flip, rotation, zoom and contrast of uint8 pixels in front of a
small convnet and of MobileNetV2.  "share of memory" tells how near our step is to the bytes that it must move, at the
bandwidth that is measured in this run: the batch is read and written, the layer reads it and writes its result, and
the mean reads that; the arrays of a step may lie in a cache, which is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from typing import Any

from benchmarks import report
from benchmarks.peers import image_layers
from benchmarks.peers.table import PEERS, add_peer_arguments, installed
from benchmarks.processes import in_own_process
from pydtconv.profiling import memory_bandwidth

NAMES = ("none", *image_layers.layers(224), *image_layers.WHOLE)
Result = dict[str, Any]


def moved(name: str, size: int, numbers: int) -> int:
    """Bytes of an image that a step moves at the least; numbers: of the layer's result.  Whole networks move more."""
    image = size * size * 3
    return 4 * (2 * image + (image + numbers if name != "none" else 0) + numbers)


def row(name: str, options: argparse.Namespace, bandwidth: float) -> dict[str, object]:
    words = [name, options.size, options.batch, options.steps, options.seconds]
    results: dict[str, list[Result]] = {side: [] for side in ("ours", *options.pythons)}
    for _ in range(options.rounds):
        for side, found in results.items():
            if side == "ours":
                found.append(in_own_process("benchmarks.augment", ["--one", *words], options.threads))
            else:
                found.append(PEERS[side].run("augment", words, options.threads, options.pythons[side]))

    def rate(side: str) -> float:
        return options.batch / statistics.median(second for result in results[side] for second in result["seconds"])

    mine = rate("ours")
    figures: dict[str, object] = {"layer": name, "images/s": mine}
    for side in options.pythons:
        figures |= {f"{PEERS[side].label} images/s": rate(side), f"{PEERS[side].label} ratio": mine / rate(side)}
    alone = name not in image_layers.WHOLE
    floor = bandwidth * 1e9 / moved(name, options.size, results["ours"][0]["numbers"])
    return figures | {"share of memory": mine / floor if alone else None}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.augment", description=__doc__)
    add_peer_arguments(parser, [name for name, peer in PEERS.items() if peer.backend])
    parser.add_argument("--layers", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME", help="rows")
    parser.add_argument("--size", type=int, default=224, help="rows and columns of an image (default: 224)")
    parser.add_argument("--batch", type=int, default=32, help="images of a step (default: 32)")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side (default: 2)")
    parser.add_argument("--steps", type=int, default=100, help="timed steps of a process, at most (default: 100)")
    parser.add_argument("--seconds", type=float, default=2, help="after which a process ends (default: 2)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--name", default="augment", help="of the file in benchmarks/results/")
    return parser.parse_args()


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        import pydtconv

        name, size, batch, steps, seconds = sys.argv[2:]
        print(json.dumps(image_layers.timed(pydtconv, name, int(size), int(batch), int(steps), float(seconds))))
        return
    options = parse()
    options.pythons = installed(options.peer, options.peer_python)
    bandwidth, rows = memory_bandwidth(options.threads), []
    for name in options.layers:
        rows.append(row(name, options, bandwidth))
        print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table(f"steps with layers of images; memory {bandwidth:.1f} GB/s", rows)
    print(report.write_csv(options.name, rows))
    for side in options.pythons:
        label = f"{PEERS[side].label} ratio"
        ratios = [float(str(each[label])) for each in rows]
        print(f"{label}: geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
