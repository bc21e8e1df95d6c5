"""Convolution passes beside SGEMM of the same m, n, k and beside PyTorch: `python -m benchmarks.conv [--peer torch]`.

All sides of a layer are called in turns in one process; the median of each counts.  The layers are in layers.txt, those
of one and of three axes in layers_of_ranks.txt.  PyTorch has the better of its two layouts where these are no images.
--near 1 measures AUTO's algorithm alone, --near 3 also what the cost model expects to take up to three times as long,
--bases 2 the next two bases of Fourier transforms; what AUTO loses is its time by that of the fastest one measured.
--cpu-time measures the CPU time of one thread, for a machine that others use at the same time.  Where the im2col matrix
is too large to stand beside the rest, SGEMM is measured on as many of its rows as fit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from math import exp, inf, log, prod
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.timing import Side, medians
from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem, algorithms, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.dtypes import from_bits, to_bits
from pydtconv.gemm import gemm

LAYERS = Path(__file__).with_name("layers.txt")
LAYERS_OF_RANKS = Path(__file__).with_name("layers_of_ranks.txt")
LONG = 0.15  # seconds of a call that is not repeated to find out which of two is faster
MATRIX_BYTES = 256 << 20  # of the matrix that SGEMM multiplies


def layers(path: Path = LAYERS, dtype: str = "float32") -> dict[str, ConvProblem]:
    """The problems of a file of layers, by name."""
    problems = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *sizes = line.split()
            n, extent, ci, co, kernel, stride = map(int, sizes)
            if name.startswith("1d"):
                problems[name] = ConvProblem.of((n, extent, ci), (kernel, ci, co), stride, "same", dtype=dtype)
            else:
                problems[name] = ConvProblem(n, extent, extent, ci, co, kernel, stride, "same", dtype=dtype)
    return problems


def layers_of_ranks(path: Path = LAYERS_OF_RANKS, dtype: str = "float32") -> dict[str, ConvProblem]:
    """The problems of a file of layers of one and of three axes, by name."""
    problems = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *sizes = line.split()
            rank, n, extent, ci, co, kernel, stride = map(int, sizes)
            shapes = (n, *[extent] * rank, ci), (*[kernel] * rank, ci, co)
            problems[name] = ConvProblem.of(*shapes, stride, "same", dtype=dtype)
    return problems


def candidates(p: ConvProblem, direction: str, near: float, bases: int) -> list[str]:
    """AUTO's algorithm, and those expected to take at most `near` times as long; of each, so many bases more."""
    first, *others = algorithms(p, direction)
    if near <= 1:
        others = []
    longest = near * TABLE[first].seconds(p, direction)
    names = [first, *(name for name in others if TABLE[name].seconds(p, direction) <= longest)]
    more = [row.name for name in names for row in TABLE[TABLE[name].family].others(p, direction, bases)]
    return list(dict.fromkeys(names + more))


def our_sides(
    p: ConvProblem, direction: str, arrays: dict[str, np.ndarray], names: Sequence[str] | None = None
) -> dict[str, Side]:
    """Every algorithm of the table that supports p, or those of these names, bound to the arrays."""
    sides: dict[str, Side] = {}
    for algorithm in algorithms(p, direction) if names is None else names:
        workspace = np.empty(workspace_bytes(p, direction, algorithm), np.uint8)
        bound = bind(p, direction, algorithm, **arrays, workspace=workspace)
        sides[algorithm] = lambda bound=bound: run(bound)
    return sides


def sgemm_side(p: ConvProblem, direction: str) -> tuple[Side, float]:
    """Our SGEMM on the matrices of this pass as if im2col had been there, and the share of m that it works on."""
    k, pixels = prod(p.kernel) * p.ci, p.n * prod(p.out)
    rows = min(pixels, MATRIX_BYTES // (4 * k))
    wide, y, w = np.ones((rows, k), "float32"), np.ones((rows, p.co), "float32"), np.ones((k, p.co), "float32")
    operands = {"forward": (wide, w, y), "backward_data": (y, w.T, wide), "backward_weights": (wide.T, y, w)}[direction]
    return lambda: gemm(operands[0], operands[1], out=operands[2]), rows / pixels


def torch_side(
    p: ConvProblem, direction: str, arrays: dict[str, np.ndarray], threads: int, channels_last: bool = True
) -> Side:
    """PyTorch's pass in channels_last, its filters in the layout that it prefers; or all in its own layout."""
    import torch

    torch.set_num_threads(threads)
    if p.rank != 2:
        return _torch_side_of_ranks(p, direction, arrays)
    pad_h, pad_w = p.padding
    kind = torch.bfloat16 if p.dtype == "bfloat16" else torch.float32
    shown = {name: from_bits(array) if array.dtype == np.uint16 else array for name, array in arrays.items()}
    x, y = (torch.tensor(shown[name]).to(kind).permute(0, 3, 1, 2) for name in ("x", "y"))
    w = torch.tensor(shown["w"]).to(kind).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    if not channels_last:
        x, y, w = x.contiguous(), y.contiguous(), w.contiguous()
    sides = (pad_w[0], pad_w[1], pad_h[0], pad_h[1])
    if pad_h[0] != pad_h[1] or pad_w[0] != pad_w[1]:  # PyTorch pads both sides alike: what is missing is in its input
        x = torch.nn.functional.pad(x, sides).contiguous(memory_format=torch.channels_last)
        pad_h = pad_w = (0, 0)
    padding = [pad_h[0], pad_w[0]]
    if direction == "forward":

        def forward() -> Any:
            with torch.no_grad():
                return torch.nn.functional.conv2d(x, w, None, (p.sh, p.sw), padding)

        return forward
    mask = [direction == "backward_data", direction == "backward_weights", False]
    return lambda: torch.ops.aten.convolution_backward(
        y, x, w, None, (p.sh, p.sw), padding, (1, 1), False, [0, 0], 1, mask
    )


def _torch_side_of_ranks(p: ConvProblem, direction: str, arrays: dict[str, np.ndarray]) -> Side:
    """PyTorch's pass of one or three axes, in the faster of its layouts; padding is alike on both sides."""
    import torch

    function = {1: torch.nn.functional.conv1d, 3: torch.nn.functional.conv3d}[p.rank]
    axes = range(1, p.rank + 1)
    last = [torch.tensor(arrays[name]).permute(0, p.rank + 1, *axes) for name in ("x", "y")]
    w = torch.tensor(arrays["w"]).permute(p.rank + 1, p.rank, *range(p.rank))
    padding = [before for before, _ in p.padding]
    ones, mask = [1] * p.rank, [direction == "backward_data", direction == "backward_weights", False]
    sides: list[Side] = []
    for x, y, filters in ((*last, w), (*(image.contiguous() for image in last), w.contiguous())):

        def forward(x: Any = x, w: Any = filters) -> Any:
            with torch.no_grad():
                return function(x, w, None, p.strides, padding)

        def backward(x: Any = x, y: Any = y, w: Any = filters) -> Any:
            return torch.ops.aten.convolution_backward(
                y, x, w, None, p.strides, padding, ones, False, [0] * p.rank, 1, mask
            )

        sides.append(forward if direction == "forward" else backward)
    return min(sides, key=_best_of_some)


def _best_of_some(side: Side) -> float:
    """The shortest time of a few calls; of one that is long, its own."""
    times: list[float] = []
    while not times or (len(times) < 3 and sum(times) < LONG):
        start = time.perf_counter()
        side()
        times.append(time.perf_counter() - start)
    return min(times)


def measure_layer(name: str, p: ConvProblem, options: argparse.Namespace) -> list[dict[str, object]]:
    random = np.random.default_rng(0)
    x, w, y = (random.standard_normal(shape, dtype="float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    if p.dtype == "bfloat16":
        x, y = to_bits(x), to_bits(y)
    rows: list[dict[str, object]] = []
    for direction in options.directions:
        arrays = {"x": x, "w": w, "y": y}
        written = {"forward": "y", "backward_data": "x", "backward_weights": "w"}[direction]
        arrays[written] = arrays[written].copy()
        names = candidates(p, direction, options.near, options.bases)
        sides = our_sides(p, direction, arrays, names)
        share = 0.0
        if options.near > 1:
            sides["sgemm"], share = sgemm_side(p, direction)
        if options.peer:
            sides["torch"] = torch_side(p, direction, arrays, options.threads)
        clock = time.thread_time if options.cpu_time else time.perf_counter
        seconds = medians(sides, options.seconds, clock, options.threads, options.turns)
        rate = {side: p.flops / value / 1e9 for side, value in seconds.items()}
        rate["sgemm"] = rate.get("sgemm", 0.0) * share
        for algorithm in names:
            rows.append({
                "layer": name, "direction": direction, "algorithm": algorithm, "threads": options.threads,
                "AUTO": "AUTO" if algorithm == names[0] else "", "GFLOPS": rate[algorithm],
                "sgemm": rate["sgemm"], "to sgemm": rate[algorithm] / rate["sgemm"] if share else None,
                "torch": rate.get("torch"), "to torch": rate[algorithm] / rate["torch"] if options.peer else None,
                "workspace MiB": workspace_bytes(p, direction, algorithm) / 2**20,
            })  # fmt: skip
    return rows


def say_of_auto(rows: list[dict[str, object]], peer: bool) -> None:
    """Prints how fast AUTO's algorithms are beside the peer, and what they lose to the fastest measured ones."""
    passes: dict[tuple[object, object], list[dict[str, object]]] = {}
    for row in rows:
        passes.setdefault((row["layer"], row["direction"]), []).append(row)
    chosen = [row for row in rows if row["AUTO"]]
    if peer:
        ratios = [float(str(row["to torch"])) for row in chosen]
        mean = exp(sum(map(log, ratios)) / len(ratios))
        print(f"AUTO beside PyTorch: geometric mean {mean:.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
    lost = {}
    for key, mine in passes.items():
        best = max(mine, key=lambda row: float(str(row["GFLOPS"])))
        first = next(row for row in mine if row["AUTO"])
        lost[key] = float(str(best["GFLOPS"])) / float(str(first["GFLOPS"])) - 1, first["algorithm"], best["algorithm"]
    if len(passes) < len(rows):
        mean = exp(sum(log(1 + found[0]) for found in lost.values()) / len(lost)) - 1
        print(
            f"AUTO loses {mean:.1%} to the fastest algorithm, in geometric mean of {len(lost)} passes; more than 5% in:"
        )
        for (layer, direction), (share, first, best) in lost.items():
            if share > 0.05:
                print(f"  {layer} {direction}: {share:.0%}, {first} instead of {best}")


def picture(direction: str, rows: list[dict[str, object]], peak: float, options: argparse.Namespace) -> None:
    """Bars of all algorithms of one direction, with SGEMM and the peer beside them."""
    mine = [row for row in rows if row["direction"] == direction]
    labels = list(dict.fromkeys(str(row["layer"]) for row in mine))
    names = list(dict.fromkeys(str(row["algorithm"]) for row in mine))
    others = [*(["sgemm"] if options.near > 1 else []), *(["torch"] if options.peer else [])]
    series: dict[str, list[float]] = {name: [] for name in [*names, *others]}
    for label in labels:
        found = {str(row["algorithm"]): row for row in mine if row["layer"] == label}
        for name, values in series.items():
            row = found.get(name)
            column = "GFLOPS" if name in names else name
            values.append(float((row or next(iter(found.values())))[column]) if row or name not in names else 0.0)  # type: ignore[arg-type]
    title = f"{direction}, {options.dtype}, {options.threads} threads"
    report.plot_bars(f"{options.name}_{direction}", title, labels, series, "GFLOPS",
                     peak, "FMA peak")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conv", description=__doc__)
    parser.add_argument("--peer", choices=["torch"], help="measure another framework beside ours")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32", help="of images")
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--layer", action="append", help="a part of a layer's name; may be repeated (default: all)")
    parser.add_argument(
        "--direction", dest="directions", action="append", choices=DIRECTIONS, help="default: all three"
    )
    parser.add_argument(
        "--rank",
        dest="ranks",
        action="append",
        type=int,
        choices=(1, 2, 3),
        help="axes; may be repeated (default: all)",
    )
    parser.add_argument("--near", type=float, default=inf, help="expected times the first's of what is measured (all)")
    parser.add_argument("--bases", type=int, default=0, help="further bases of Fourier transforms (default: 0)")
    parser.add_argument("--name", default="conv", help="of the files in benchmarks/results/")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each layer and direction")
    parser.add_argument("--turns", type=int, default=5, help="of each algorithm, at least (default: 5)")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of one thread instead of elapsed time")
    options = parser.parse_args()
    options.directions = options.directions or list(DIRECTIONS)
    if options.cpu_time:
        options.threads = 1
    config.set_num_threads(options.threads)
    known = {2: layers(dtype=options.dtype), 1: {}, 3: {}}
    for name, p in layers_of_ranks(dtype=options.dtype).items():
        known[p.rank][name] = p
    named = {name: p for rank in options.ranks or (2, 1, 3) for name, p in known[rank].items()}
    chosen = {name: p for name, p in named.items() if not options.layer or any(part in name for part in options.layer)}
    if not chosen:
        parser.error(f"--layer: expected a part of one of {', '.join(named)}")
    rows = []
    for name, p in chosen.items():
        rows += measure_layer(name, p, options)
        report.write_csv(options.name, rows)  # so that it can be stopped at any time
        said = [f"{row['direction']} {row['algorithm']} {report.cell(row['to torch'])}" for row in rows if row["AUTO"]]
        print(f"{name}: AUTO's times of PyTorch: {', '.join(said[-len(options.directions) :])}", file=sys.stderr)
    peak = microkernels.peak_gflops(options.dtype) * options.threads
    report.print_table(f"convolution, {options.dtype}; peak {peak:.0f} GFLOPS on {options.threads} threads", rows)
    say_of_auto(rows, bool(options.peer))
    print(report.write_csv(options.name, rows))
    for direction in options.directions:
        picture(direction, rows, peak, options)


if __name__ == "__main__":
    main()
