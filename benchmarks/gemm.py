"""Micro-kernels in cache, and products beside a peer's: `python -m benchmarks.gemm [--dtype bfloat16 --peer torch]`.

The peer is NumPy's BLAS, or PyTorch, which alone has bfloat16.  Both sides run in turns, each turn in a process of its
own, and the median counts.  NumPy's BLAS reads its number of threads at import, and its kernel where OPENBLAS_CORETYPE
forces one, which is taken out here.  --cpu-time measures the CPU time of one thread, for a machine that others use at
the same time.  --ways measures instead which loops threads may divide (see gemm_ways.py), --algorithms Strassen's
algorithm beside the classic product (gemm_strassen.py).
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import gemm_strassen, gemm_ways, report
from benchmarks.timing import medians

ROUNDS = 3
SQUARE = [("square 2048", 2048, 2048, 2048)]
# m = n*oh*ow, n = co, k = kh*kw*ci of layers of ResNet, VGG, DenseNet; the last two are gradients of filters
CONVOLUTIONS = [
    ("3x3 64-64 32x32", 65536, 64, 576),
    ("3x3 3-64 32x32", 65536, 64, 27),
    ("3x3 128-128 16x16", 16384, 128, 1152),
    ("3x3 256-256 8x8", 4096, 256, 2304),
    ("3x3 512-512 4x4", 1024, 512, 4608),
    ("3x3 128-32 32x32", 65536, 32, 1152),
    ("1x1 256-128 32x32", 65536, 128, 256),
    ("1x1 480-192 16x16", 16384, 192, 480),
    ("dw 3x3 64-64", 576, 64, 65536),
    ("dw 1x1 64-64", 64, 64, 65536),
]


def kernel_rows(dtype: str) -> list[dict[str, object]]:
    from pydtconv import microkernels

    chosen = microkernels.selected(dtype).name
    peak = microkernels.peak_gflops(dtype)
    rows: list[dict[str, object]] = []
    for kernel in microkernels.available(dtype):
        rate = microkernels.measure(kernel.name, dtype) if kernel.usable else None
        rows.append(
            {
                "kernel": kernel.name,
                "dtype": dtype,
                "MR": kernel.mr,
                "NR": kernel.nr,
                "MC": kernel.mc,
                "KC": kernel.kc,
                "NC": kernel.nc,
                "GFLOPS": rate,
                "share": rate and rate / peak,
                "in force": "*" if kernel.name == chosen else "",
                "remark": kernel.reason,
            }
        )
    rows.append({"kernel": "FMA peak", "dtype": dtype, "GFLOPS": peak, "share": 1.0})
    return [{name: row.get(name) for name in rows[0]} for row in rows]


def measure_side(side: str, dtype: str, threads: int, shapes: list, seconds: float, cpu_time: bool) -> dict[str, Any]:
    """Median seconds of each shape for one side, and the peak of this process's threads: runs in a fresh process."""
    import numpy as np

    from pydtconv import config, microkernels
    from pydtconv.gemm import gemm

    config.set_num_threads(threads)
    rng = np.random.default_rng(0)
    times = {}
    short = dtype == "bfloat16"
    for name, m, n, k in shapes:
        a, b, c = (rng.random(shape, "float32" if short else dtype) for shape in ((m, k), (k, n), (m, n)))
        expected = np.einsum("ij,jk->ik", a[:: max(m // 8, 1)], b)
        if short:
            import ml_dtypes

            a, b, c = (array.astype(ml_dtypes.bfloat16) for array in (a, b, c))
        call = {"pydtconv": functools.partial(gemm, a, b, c), "numpy": functools.partial(np.matmul, a, b, out=c)}.get(
            side
        ) or _torch_product(threads, a, b, c)
        call()
        if not np.allclose(c[:: max(m // 8, 1)].astype("float32"), expected, rtol=2e-2 if short else 1e-3):
            raise SystemExit(f"error: {name}: {side} is wrong")
        clock = time.thread_time if cpu_time else time.perf_counter
        times[name] = medians({side: call}, seconds, clock)[side]
    return {"times": times, "peak": microkernels.peak_gflops(dtype, threads)}


def _torch_product(threads: int, a: Any, b: Any, c: Any) -> Callable[[], Any]:
    """PyTorch's product of the arrays, in their own memory."""
    import numpy as np
    import torch

    def tensor(array: Any) -> Any:
        bits = array.dtype.name == "bfloat16"
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if bits else torch.from_numpy(array)

    torch.set_num_threads(threads)
    return functools.partial(torch.mm, tensor(a), tensor(b), out=tensor(c))


def product_rows(
    dtype: str, threads: int, shapes: list, seconds: float, cpu_time: bool, peer: str = "numpy"
) -> list[dict[str, object]]:
    """Both sides in fresh processes that take turns: their thread pools would spin on each other's cores in one."""
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        environment[name] = str(threads)
    found: dict[str, list[dict[str, Any]]] = {"pydtconv": [], peer: []}
    for _ in range(ROUNDS):
        for side, results in found.items():
            job = json.dumps([side, dtype, threads, shapes, seconds / ROUNDS / 2, cpu_time])
            command = [sys.executable, "-m", "benchmarks.gemm", "--job", job]
            result = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, check=True)
            results.append(json.loads(result.stdout))
    peak = max(result["peak"] for result in found["pydtconv"])
    rows = []
    for name, m, n, k in shapes:
        rate = {
            side: 2e-9 * m * n * k / statistics.median(result["times"][name] for result in results)
            for side, results in found.items()
        }
        rows.append(
            {
                "shape": name,
                "m": m,
                "n": n,
                "k": k,
                "dtype": dtype,
                "threads": threads,
                **rate,
                "ratio": rate["pydtconv"] / rate[peer],
                "share of peak": rate["pydtconv"] / peak,
                "peak": peak,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gemm", description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="thread counts (default: 1 2)")
    dtypes = ["float32", "float64", "bfloat16"]
    parser.add_argument("--dtypes", "--dtype", nargs="+", default=dtypes[:2], choices=dtypes)
    parser.add_argument("--peer", default="numpy", choices=["numpy", "torch"], help="bfloat16 has torch alone")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each shape (default: 1)")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time instead of the wall's; one thread")
    parser.add_argument("--ways", action="store_true", help="which loops threads divide, instead; float32 and float64")
    parser.add_argument(
        "--algorithms", nargs="+", choices=list(gemm_strassen.ALGORITHMS), help="compares these instead of a peer"
    )
    parser.add_argument("--kernels-only", action="store_true", help="only the micro-kernels")
    parser.add_argument("--shape", action="append", help="a part of a shape's name; may be repeated (default: all)")
    parser.add_argument("--name", help="of the files in benchmarks/results/ (default: gemm_ what is compared)")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure_side(*json.loads(options.job))))
        return
    if "bfloat16" in options.dtypes and options.peer != "torch":
        parser.error("--dtype bfloat16: expected --peer torch, as NumPy's BLAS has no bfloat16")
    known = gemm_strassen.SHAPES if options.algorithms else SQUARE + CONVOLUTIONS
    name = options.name or ("gemm_bfloat16" if options.dtypes == ["bfloat16"] else "gemm")
    shapes = [shape for shape in known if not options.shape or any(part in str(shape[0]) for part in options.shape)]
    if not shapes:
        parser.error(f"--shape: expected a part of one of {', '.join(str(row[0]) for row in known)}")
    reals = [dtype for dtype in options.dtypes if dtype != "bfloat16"]
    if options.cpu_time and (options.algorithms or options.ways):
        parser.error("--cpu-time: expected beside a peer, got it with --algorithms or --ways, which take the wall's")
    if options.algorithms:
        chosen = options.name or "gemm_strassen"
        gemm_strassen.run(options.algorithms, reals, options.threads, shapes, options.seconds, chosen)
        return
    if options.ways:
        gemm_ways.run(reals, options.threads, shapes, options.seconds, options.name or "gemm_ways")
        return
    kernels = [row for dtype in options.dtypes for row in kernel_rows(dtype)]
    report.print_table("Micro-kernels in cache, one core", kernels)
    print(report.write_csv(f"{name}_kernels", kernels))
    if options.kernels_only:
        return
    threads = [1] if options.cpu_time else options.threads
    products = [
        row
        for dtype in options.dtypes
        for count in threads
        for row in product_rows(
            dtype,
            count,
            [shape for shape in shapes if dtype != "float64" or shape in SQUARE],
            options.seconds,
            options.cpu_time,
            options.peer,
        )
    ]
    clock = "CPU time" if options.cpu_time else "wall time"
    report.print_table(f"Products, GFLOPS (medians of rounds of both sides in turn, {clock})", products)
    print(report.write_csv(name, products))
    for count in threads:
        rows = [row for row in products if row["threads"] == count and row["dtype"] == "float32"]
        if rows:
            series = {side: [float(str(row[side])) for row in rows] for side in ("pydtconv", options.peer)}
            print(
                report.plot_bars(
                    f"{name}_{count}",
                    f"SGEMM, {count} thread{'s' * (count > 1)}",
                    [str(row["shape"]) for row in rows],
                    series,
                    "GFLOPS",
                    float(str(rows[0]["peak"])),
                    "FMA peak",
                )
            )


if __name__ == "__main__":
    main()
