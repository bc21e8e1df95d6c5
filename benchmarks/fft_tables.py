"""The measurements of the fbfft paper on this machine, beside PyTorch: `python -m benchmarks.fft_tables --table 4`.

N. Vasilache et al., "Fast Convolutional Nets With fbfft: A GPU Performance Evaluation", ICLR 2015.  --table 3: the
convolutional layers of AlexNet and OverFeat fast; --table 4: its layers L1 to L5; --table 5: what each phase of their
passes takes; --sweep: its 8,232 configurations, of which --sample takes some by a seed, as many as --seconds suffice
for.  A sweep goes on where its CSV file ends, if that is of this machine and commit.  --cpu-time measures the CPU time
of one thread, for a machine that others use at the same time.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import time

import numpy as np

from benchmarks import report
from benchmarks.conv import torch_side
from benchmarks.timing import Side, medians
from pydtconv import config
from pydtconv._ext import fft as ext
from pydtconv.conv import ConvProblem, algorithms, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from pydtconv.conv.problem import DIRECTIONS

# name: image, channels in and out, kernel, stride, padding
ALEXNET = {
    "AlexNet conv1": (227, 3, 96, 11, 4, 0),
    "AlexNet conv2": (27, 96, 256, 5, 1, 2),
    "AlexNet conv3": (13, 256, 384, 3, 1, 1),
    "AlexNet conv4": (13, 384, 384, 3, 1, 1),
    "AlexNet conv5": (13, 384, 256, 3, 1, 1),
}
OVERFEAT = {
    "OverFeat conv1": (231, 3, 96, 11, 4, 0),
    "OverFeat conv2": (24, 96, 256, 5, 1, 0),
    "OverFeat conv3": (12, 256, 512, 3, 1, 1),
    "OverFeat conv4": (12, 512, 1024, 3, 1, 1),
    "OverFeat conv5": (12, 1024, 1024, 3, 1, 1),
}
LAYERS = {
    "L1": (128, 3, 96, 11, 1, 0),
    "L2": (64, 64, 64, 9, 1, 0),
    "L3": (32, 128, 128, 9, 1, 0),
    "L4": (16, 128, 128, 7, 1, 0),
    "L5": (13, 384, 384, 3, 1, 0),
}
TABLES = {3: ALEXNET | OVERFEAT, 4: LAYERS}
SWEEP = ((1, 16, 64, 128), *((1, 4, 16, 64, 96, 128, 256),) * 2, (3, 5, 7, 9, 11, 13), (1, 2, 4, 8, 16, 32, 64))
COLUMNS = ("S", "f", "f'", "k", "output")
#: configurations after which a sweep writes its file, so that it can be stopped at any time
KEEP_EVERY = 16


def problem(sizes: tuple[int, ...], batch: int) -> ConvProblem:
    extent, ci, co, kernel, stride, pad = sizes
    return ConvProblem(batch, extent, extent, ci, co, (kernel, kernel), stride, ((pad, pad), (pad, pad)))


def measure(p: ConvProblem, direction: str, options: argparse.Namespace) -> dict[str, object]:
    """Milliseconds of AUTO's algorithm and of PyTorch's."""
    arrays = _arrays(p)
    algorithm = algorithms(p, direction)[0]
    workspace = np.empty(workspace_bytes(p, direction, algorithm), np.uint8)
    theirs = torch_side(p, direction, arrays, options.threads)
    try:
        theirs()
    except RuntimeError:  # "slow_conv2d: grad_weight must be contiguous": some sizes it does in one layout only
        theirs = torch_side(p, direction, arrays, options.threads, channels_last=False)
    bound = bind(p, direction, algorithm, **arrays, workspace=workspace)
    sides: dict[str, Side] = {"pydtconv": lambda: run(bound), "torch": theirs}
    clock = time.thread_time if options.cpu_time else time.perf_counter
    seconds = medians(sides, options.each, clock, options.threads, options.turns)
    return {
        "pass": direction,
        "algorithm": algorithm,
        "ms": seconds["pydtconv"] * 1e3,
        "torch ms": seconds["torch"] * 1e3,
        "to torch": seconds["torch"] / seconds["pydtconv"],
        "GFLOP": p.flops / 1e9,
    }


def mean(rows: list[dict[str, object]], column: str = "to torch") -> float:
    """The geometric mean of the speed-up."""
    return math.exp(sum(math.log(float(str(row[column]))) for row in rows) / len(rows))


def table(options: argparse.Namespace) -> None:
    rows: list[dict[str, object]] = []
    for name, sizes in TABLES[options.table].items():
        p = problem(sizes, options.batch)
        for direction in DIRECTIONS if sizes[1] > 3 else ("forward", "backward_weights"):
            rows.append({"layer": name, "batch": p.n, **measure(p, direction, options)})
    report.print_table(f"table {options.table} of the fbfft paper, float32, {options.threads} threads", rows)
    print(f"geometric mean: {mean(rows):.2f}")
    print(report.write_csv(f"fft_table{options.table}", rows))


def phases(options: argparse.Namespace) -> None:
    """Milliseconds of the phases of each pass of L1 to L5 by fft with the basis of the cost model."""
    rows: list[dict[str, object]] = []
    for name, sizes in LAYERS.items():
        p = problem(sizes, options.batch)
        arrays = _arrays(p)
        for direction in DIRECTIONS:
            algorithm = TABLE["fft"].of(p, direction).name
            workspace = np.empty(workspace_bytes(p, direction, algorithm), np.uint8)
            bound = bind(p, direction, algorithm, **arrays, workspace=workspace)
            best = min((_phases(lambda bound=bound: run(bound)) for _ in range(options.turns + 1)), key=lambda t: t[0])
            weights = direction == "backward_weights"
            of_filters, of_images, products, back = (1e3 * value for value in best[1])
            rows.append({
                "layer": name, "pass": direction, "algorithm": algorithm, "batch": p.n,
                "images ms": of_images, "filters ms": 0.0 if weights else of_filters, "products ms": products,
                "inverse ms": of_filters if weights else back, "pass ms": 1e3 * best[0],
            })  # fmt: skip
    report.print_table(f"phases of the passes of fft, float32, {options.threads} threads", rows)
    print(report.write_csv("fft_table5", rows))


def _phases(side: Side) -> tuple[float, list[float]]:
    """Seconds of a call, and of its phases on the first thread (cext/include/dtconv_fft_phases.h)."""
    seconds = np.zeros(4)
    ext.watch(seconds)
    try:
        start = time.perf_counter()
        side()
        took = time.perf_counter() - start
    finally:
        ext.watch(None)
    return took, seconds.tolist()


def _arrays(p: ConvProblem) -> dict[str, np.ndarray]:
    some = np.random.default_rng(0)
    shapes = {"x": p.x_shape, "w": p.w_shape, "y": p.y_shape}
    return {name: some.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}


def sweep(options: argparse.Namespace) -> None:
    every = list(itertools.product(*SWEEP))
    chosen = random.Random(options.seed).sample(every, min(options.sample, len(every))) if options.sample else every
    name, end = "fft_sweep", time.monotonic() + options.seconds
    rows = report.read_csv(name) if report.goes_on(name) else []
    done = {tuple(int(float(str(row[column]))) for column in COLUMNS) for row in rows}
    left = [sizes for sizes in chosen if sizes not in done]
    for i, (batch, ci, co, kernel, out) in enumerate(left):
        if time.monotonic() > end:
            break
        extent = out + kernel - 1
        p = ConvProblem(batch, extent, extent, ci, co, (kernel, kernel))
        if p.flops > options.most * 1e9:
            continue
        sizes = dict(zip(COLUMNS, (batch, ci, co, kernel, out), strict=True))
        rows += [{**sizes, **measure(p, direction, options)} for direction in DIRECTIONS]
        if i % KEEP_EVERY == 0:
            report.write_csv(name, rows)
        width = 40 * (i + 1) // len(left)
        print(f"\r[{'#' * width}{'.' * (40 - width)}] {i + 1} of {len(left)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(report.write_csv(name, rows))
    for direction in DIRECTIONS:
        mine = [row for row in rows if row["pass"] == direction]
        if mine:
            print(f"{direction}: {len(mine)} configurations, geometric mean {mean(mine):.2f}")
    pictures(rows)


def pictures(rows: list[dict[str, object]], name: str = "fft_sweep", peer: str = "PyTorch") -> None:
    """Speed-up over the problem's size S f f' and the output's size, one picture for each filter size."""
    column = {"PyTorch": "to torch"}.get(peer, f"to {peer}")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for kernel in SWEEP[3]:
        mine = [row for row in rows if int(float(str(row["k"]))) == kernel]
        if not mine:
            continue
        x = [math.prod(float(str(row[column])) for column in COLUMNS[:3]) for row in mine]
        figure, axes = pyplot.subplots(figsize=(7, 4.5))
        speed = np.clip([float(str(row[column])) for row in mine], 0.25, 16)
        dots = axes.scatter(
            x, [float(str(row["output"])) for row in mine], c=np.log2(speed), cmap="RdYlGn", vmin=-2, vmax=4
        )
        axes.set(
            xscale="log", yscale="log", xlabel="S f f'", ylabel="output", title=f"{kernel}x{kernel}, pydtconv / {peer}"
        )
        figure.colorbar(dots, label="log2 of the speed-up")
        path = report.RESULTS / f"{name}_k{kernel}.png"
        figure.savefig(path, dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        print(path)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fft_tables", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--table", type=int, choices=[*TABLES, 5])
    what.add_argument("--sweep", action="store_true")
    parser.add_argument("--sample", type=int, default=0, help="so many configurations of the sweep; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of the sweep")
    parser.add_argument("--most", type=float, default=40, help="GFLOP of a configuration of the sweep that is measured")
    parser.add_argument("--batch", type=int, default=128, help="images of the tables")
    parser.add_argument("--each", type=float, default=0.0, help="seconds for each side by side measurement, at least")
    parser.add_argument("--turns", type=int, default=3, help="turns of each measurement, at least")
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of one thread instead of elapsed time")
    options = parser.parse_args()
    if options.cpu_time:
        options.threads = 1
    config.set_num_threads(options.threads)
    if options.sweep:
        sweep(options)
    elif options.table == 5:
        phases(options)
    else:
        table(options)


if __name__ == "__main__":
    main()
