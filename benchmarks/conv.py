"""Convolution passes beside SGEMM of the same m, n, k and beside PyTorch: `python -m benchmarks.conv [--peer torch]`.

All sides of a layer are called in turns in one process; the median of each counts.  The layers are in layers.txt.
--cpu-time measures the CPU time of one thread, for a machine that others use at the same time.  Where the im2col matrix
is too large to stand beside the rest, SGEMM is measured on as many of its rows as fit.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.timing import Side, medians
from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem, algorithms, workspace_bytes
from pydtconv.conv.functional import bind, run
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.gemm import gemm

LAYERS = Path(__file__).with_name("layers.txt")
MATRIX_BYTES = 256 << 20  # of the matrix that SGEMM multiplies


def layers(path: Path = LAYERS) -> dict[str, ConvProblem]:
    """The problems of a file of layers, by name."""
    problems = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, *sizes = line.split()
            n, extent, ci, co, kernel, stride = map(int, sizes)
            problems[name] = ConvProblem(n, extent, extent, ci, co, kernel, stride, "same")
    return problems


def our_sides(p: ConvProblem, direction: str, arrays: dict[str, np.ndarray]) -> dict[str, Side]:
    """Every algorithm of the table that supports p, bound to the arrays."""
    sides: dict[str, Side] = {}
    for algorithm in algorithms(p, direction):
        workspace = np.empty(workspace_bytes(p, direction, algorithm), np.uint8)
        bound = bind(p, direction, algorithm, **arrays, workspace=workspace)
        sides[algorithm] = lambda bound=bound: run(bound)
    return sides


def sgemm_side(p: ConvProblem, direction: str) -> tuple[Side, float]:
    """Our SGEMM on the matrices of this pass as if im2col had been there, and the share of m that it works on."""
    k = p.kh * p.kw * p.ci
    rows = min(p.n * p.oh * p.ow, MATRIX_BYTES // (4 * k))
    wide, y, w = np.ones((rows, k), "float32"), np.ones((rows, p.co), "float32"), np.ones((k, p.co), "float32")
    operands = {"forward": (wide, w, y), "backward_data": (y, w.T, wide), "backward_weights": (wide.T, y, w)}[direction]
    return lambda: gemm(operands[0], operands[1], out=operands[2]), rows / (p.n * p.oh * p.ow)


def torch_side(p: ConvProblem, direction: str, arrays: dict[str, np.ndarray], threads: int) -> Side:
    """PyTorch's pass in channels_last, its filters in the layout that it prefers."""
    import torch

    torch.set_num_threads(threads)
    pad_h, pad_w = p.padding
    x, y = (torch.tensor(arrays[name]).permute(0, 3, 1, 2) for name in ("x", "y"))
    w = torch.tensor(arrays["w"]).permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
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


def measure_layer(name: str, p: ConvProblem, options: argparse.Namespace) -> list[dict[str, object]]:
    random = np.random.default_rng(0)
    x, w, y = (random.standard_normal(shape, dtype="float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    rows: list[dict[str, object]] = []
    for direction in options.directions:
        arrays = {"x": x, "w": w, "y": y}
        written = {"forward": "y", "backward_data": "x", "backward_weights": "w"}[direction]
        arrays[written] = arrays[written].copy()
        sides = our_sides(p, direction, arrays)
        names = list(sides)
        sides["sgemm"], share = sgemm_side(p, direction)
        if options.peer:
            sides["torch"] = torch_side(p, direction, arrays, options.threads)
        clock = time.thread_time if options.cpu_time else time.perf_counter
        seconds = medians(sides, options.seconds, clock, options.threads)
        rate = {side: p.flops / value / 1e9 for side, value in seconds.items()}
        rate["sgemm"] *= share
        for algorithm in names:
            rows.append({
                "layer": name, "direction": direction, "algorithm": algorithm, "threads": options.threads,
                "GFLOPS": rate[algorithm], "sgemm": rate["sgemm"], "to sgemm": rate[algorithm] / rate["sgemm"],
                "torch": rate.get("torch"), "to torch": rate[algorithm] / rate["torch"] if options.peer else None,
                "workspace MiB": workspace_bytes(p, direction, algorithm) / 2**20,
            })  # fmt: skip
    return rows


def picture(direction: str, rows: list[dict[str, object]], peak: float, options: argparse.Namespace) -> None:
    """Bars of all algorithms of one direction, with SGEMM and the peer beside them."""
    mine = [row for row in rows if row["direction"] == direction]
    labels = list(dict.fromkeys(str(row["layer"]) for row in mine))
    names = list(dict.fromkeys(str(row["algorithm"]) for row in mine))
    series: dict[str, list[float]] = {name: [] for name in [*names, "sgemm", *(["torch"] if options.peer else [])]}
    for label in labels:
        found = {str(row["algorithm"]): row for row in mine if row["layer"] == label}
        for name, values in series.items():
            row = found.get(name)
            column = "GFLOPS" if name in names else name
            values.append(float((row or next(iter(found.values())))[column]) if row or name not in names else 0.0)  # type: ignore[arg-type]
    report.plot_bars(f"conv_{direction}", f"{direction}, float32, {options.threads} threads", labels, series, "GFLOPS",
                     peak, "FMA peak")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conv", description=__doc__)
    parser.add_argument("--peer", choices=["torch"], help="measure another framework beside ours")
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--layer", action="append", help="a part of a layer's name; may be repeated (default: all)")
    parser.add_argument(
        "--direction", dest="directions", action="append", choices=DIRECTIONS, help="default: all three"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="for each layer and direction")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of one thread instead of elapsed time")
    options = parser.parse_args()
    options.directions = options.directions or list(DIRECTIONS)
    if options.cpu_time:
        options.threads = 1
    config.set_num_threads(options.threads)
    chosen = {
        name: p for name, p in layers().items() if not options.layer or any(part in name for part in options.layer)
    }
    if not chosen:
        parser.error(f"--layer: expected a part of one of {', '.join(layers())}")
    rows = [row for name, p in chosen.items() for row in measure_layer(name, p, options)]
    peak = microkernels.peak_gflops("float32") * options.threads
    report.print_table(f"convolution, float32; FMA peak {peak:.0f} GFLOPS on {options.threads} threads", rows)
    print(report.write_csv("conv", rows))
    for direction in options.directions:
        picture(direction, rows, peak, options)


if __name__ == "__main__":
    main()
