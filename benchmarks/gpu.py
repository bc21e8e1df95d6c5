"""Kernels for GPUs: `python -m benchmarks.gpu --static`, and where there is a GPU `--peer torch`.

--static needs no GPU: what NVIDIA's compiler says of every kernel (gpu_static.py), into gpu_static.csv, what
transforms ask of memory (gpu_counts.py), into gpu_counts.csv, and convgemm in the passes of networks (gpu_convgemm.py),
into gpu_convgemm.csv and, in TF32, gpu_convgemm_tf32.csv, with the memory that plans take, into gpu_memory.csv.  It
fails where a kernel spills registers.
--peer torch needs one: transforms beside cuFFT, convolutions beside cuDNN and training beside PyTorch on the same GPU
(gpu_peers.py), into gpu_fft.csv, gpu_layers.csv, gpu_table3.csv to gpu_table5.csv, gpu_sweep.csv and gpu_train.csv,
with ratios and pictures; with --precision high both sides round operands to TF32, and names end in _tf32.
--all --minutes 10 is for a GPU that is there for minutes: all parts, the most telling first, each row written as it
comes, until the time is over.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import gpu_convgemm, gpu_counts, gpu_peers, gpu_static, networks, report
from benchmarks.conv import layers
from benchmarks.fft_tables import mean, pictures
from benchmarks.gpu_peers import Row
from pydtconv import config
from pydtconv.conv import ConvProblem
from pydtconv.conv.problem import DIRECTIONS

#: the most telling first
PARTS = ("fft", "train", "table3", "layers", "table4", "sweep", "table5")


def static() -> int:
    """The tables of the compiler's figures and of counts; 1 where a kernel spills."""
    rows = list(gpu_static.table())
    report.write_csv("gpu_static", rows)
    known = {row["kernel"]: row for row in rows if (row["dtype"], row["architecture"]) == ("float32", "sm_90")}
    columns = ("registers", "spill_bytes", "occupancy")
    counts = (*gpu_counts.transforms(), *gpu_counts.squares())
    counted = [row | {name: known[row["kernel"]][name] for name in columns} for row in counts]
    report.print_table("transforms: counts, and the roofline of an H100", counted)
    report.write_csv("gpu_counts", counted)
    passes = [row | {name: known[str(row["kernel"])][name] for name in columns} for row in gpu_convgemm.table()]
    report.print_table("convgemm: counts, and the roofline of an H100", passes)
    report.write_csv("gpu_convgemm", passes)
    tf32 = [row | {name: known[str(row["kernel"])][name] for name in columns} for row in gpu_convgemm.table(tf32=True)]
    report.print_table("convgemm in TF32: counts, and the roofline of an H100", tf32)
    report.write_csv("gpu_convgemm_tf32", tf32)
    memory = list(gpu_convgemm.memory(networks.cases()))
    report.print_table("memory of training by the plan, beside im2col's", memory)
    report.write_csv("gpu_memory", memory)
    for kind, found in (("FMA", passes), ("TF32", tf32)):
        for network, shares in gpu_convgemm.shares(found).items():
            print(
                f"{network}, {kind}: {', '.join(f'{name} {share:.0%} of the peak' for name, share in shares.items())}"
            )
    worst = {name: max(int(str(row[name])) for row in rows) for name in ("registers", "spill_bytes", "shared_bytes")}
    least = min(float(str(row["occupancy"])) for row in rows)
    print(f"{len(rows)} rows: at most {worst}, occupancy at least {least:.3f}")
    return 1 if worst["spill_bytes"] else 0


def measured(options: argparse.Namespace) -> int:
    """All that needs a GPU; 1, with a line, where there is none."""
    from pydtconv import devices
    from pydtconv.devices.gpu import missing

    lacking = missing()
    if lacking is not None:
        print(lacking, file=sys.stderr)
        return 1
    import torch

    if not torch.cuda.is_available():
        print("--peer torch: expected PyTorch with CUDA, got one without", file=sys.stderr)
        return 1
    config.set_float32_matmul_precision(options.precision)
    peer = gpu_peers.Peer(torch, seconds=options.each)
    device: Any = devices.get("gpu")
    cudnn = torch.backends.cudnn.version()
    report.accelerator = f"{device.describe()[0][1]} (beside PyTorch {torch.__version__}, cuDNN {cudnn})"
    for name, rows in parts(device, peer, options):
        keep(name, rows)
    return 0


def parts(device: Any, peer: gpu_peers.Peer, options: argparse.Namespace) -> Iterator[tuple[str, list[Row]]]:
    """The tables that are asked for, by the names of their files."""
    known: dict[str, Callable[[], Iterator[Row]]] = {
        "fft": lambda: gpu_peers.transforms(device, peer),
        "layers": lambda: gpu_peers.layers(device, peer, _layers()),
        "table3": lambda: gpu_peers.layers(device, peer, gpu_peers.table(3)),
        "table4": lambda: gpu_peers.layers(device, peer, gpu_peers.table(4)),
        "table5": lambda: gpu_peers.phases(device),
        "sweep": lambda: gpu_peers.sweep(device, peer, options.sample, options.seed, options.seconds),
        "train": lambda: gpu_peers.training(device, peer),
    }
    end = time.monotonic() + 60 * options.minutes
    for name in options.parts:
        file = f"gpu_{name}" + ("" if config.float32_matmul_precision() == "highest" else "_tf32")
        rows: list[Row] = []
        for row in known[name]():
            rows.append(row)
            report.write_csv(file, rows)
            if time.monotonic() > end:
                break
        yield file, rows
        if time.monotonic() > end:
            return


def _layers() -> dict[str, ConvProblem]:
    return {name: p for name, p in layers().items() if p.rank == 2}


def keep(name: str, rows: list[Row]) -> None:
    """Prints a table, and writes it with its picture."""
    report.print_table(name, rows)
    for ratio in ("to cuFFT", "to cuDNN", "to PyTorch"):
        if rows and ratio in rows[0]:
            print(f"geometric mean {ratio}: {mean(rows, ratio):.2f}")
    print(report.write_csv(name, rows))
    draw(name, rows)


def draw(name: str, rows: list[Row]) -> None:
    """The pictures of a table, which may say itself where it comes from."""
    if name == "gpu_sweep":
        pictures(rows, name, "cuDNN")
    elif name == "gpu_fft":
        for axes in (1, 2):
            mine = [row for row in rows if row["axes"] == axes]
            labels = [str(n) for n in dict.fromkeys(row["points"] for row in mine)]
            series = {
                f"batch of {batch}": [_ratio(mine, n, batch) for n in labels]
                for batch in dict.fromkeys(row["batch"] for row in mine)
            }
            title = f"Real transforms of {'rows' if axes == 1 else 'squares'}, to cuFFT"
            report.plot_bars(f"{name}_{axes}d", title, labels, series, "times as fast", 1.0, "cuFFT", mine)
    elif name.startswith("gpu_train"):
        columns = {"pydtconv": "images/s", "PyTorch": "PyTorch images/s"}
        report.plot_networks(name, "Training on a GPU", rows, columns, "images/s")
    elif rows and "to cuDNN" in rows[0]:
        labels = list(dict.fromkeys(str(row["layer"]) for row in rows))
        found = {(row["layer"], row["pass"]): float(str(row["to cuDNN"])) for row in rows}
        series = {each: [found.get((label, each), 0.0) for label in labels] for each in DIRECTIONS}
        report.plot_bars(name, f"{name}: passes, to cuDNN", labels, series, "times as fast", 1.0, "cuDNN", rows)


def _ratio(rows: list[Row], points: str, batch: object) -> float:
    found = (row["to cuFFT"] for row in rows if str(row["points"]) == points and row["batch"] == batch)
    return float(str(next(found, 0.0)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--static", action="store_true", help="what the compiler says of the kernels; needs no GPU")
    parser.add_argument("--peer", choices=["torch"], help="measure on a GPU beside PyTorch")
    parser.add_argument("--all", action="store_const", const="torch", dest="peer", help="the same as --peer torch")
    parser.add_argument("--minutes", type=float, default=math.inf, help="in which it ends (default: no limit)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what is measured (default: all)")
    parser.add_argument("--sample", type=int, default=300, help="configurations of the sweep (default: 300)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=1200.0, help="of the sweep (default: 1200)")
    parser.add_argument("--each", type=float, default=1.0, help="seconds for the algorithms of a pass (default: 1)")
    parser.add_argument("--precision", choices=["highest", "high"], default="highest", help="high: TF32, on both sides")
    options = parser.parse_args()
    if not options.static and not options.peer:
        parser.error("expected --static or --peer torch")
    sys.exit((static() if options.static else 0) or (measured(options) if options.peer else 0))


if __name__ == "__main__":
    main()
