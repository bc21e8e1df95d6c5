"""Kernels for GPUs: `python -m benchmarks.gpu --static`, and where there is a GPU `--peer torch`.

--static needs no GPU: what NVIDIA's compiler says of every kernel (gpu_static.py), into gpu_static.csv.  It fails where
a kernel spills registers.
--peer torch needs one: Fourier transforms beside cuFFT, the convolutions of layers.txt beside cuDNN, and training steps
beside PyTorch on the same GPU, into gpu_fft.csv, gpu_conv.csv and gpu_train.csv with ratios.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import gpu_static, report

#: points, and the elements of a batch, as fbfft's figures have them (Vasilache et al., ICLR 2015)
LENGTHS, ELEMENTS = (8, 16, 32, 64, 128, 256), 1 << 24
DIRECTIONS = ("forward", "backward_data", "backward_weights")


def static() -> int:
    """The table of the compiler's figures; 1 where a kernel spills."""
    rows = list(gpu_static.table())
    report.write_csv("gpu_static", rows)
    worst = {name: max(int(str(row[name])) for row in rows) for name in ("registers", "spill_bytes", "shared_bytes")}
    least = min(float(str(row["occupancy"])) for row in rows)
    print(f"{len(rows)} rows: at most {worst}, occupancy at least {least:.3f}")
    return 1 if worst["spill_bytes"] else 0


def seconds_of(call: Callable[[], Any], wait: Callable[[], Any], runs: int = 20) -> float:
    """The median of five rounds of so many calls."""
    call()
    rounds = []
    for _ in range(5):
        wait()
        start = time.perf_counter()
        for _ in range(runs):
            call()
        wait()
        rounds.append((time.perf_counter() - start) / runs)
    return statistics.median(rounds)


def transforms(device: Any, torch: Any) -> Iterator[dict[str, object]]:
    """Real transforms of rows, and of squares, beside cuFFT's by torch.fft."""
    from pydtconv.kernels.gpu.fourier import Side, Transform, interleaved

    for n in LENGTHS:
        for rank in (1, 2):
            batch = max(ELEMENTS // n**rank, 1)
            half, launcher = n // 2 + 1, device.launcher()
            x = device.zeros((batch, *[n] * rank), np.float32)
            y = device.zeros((batch, *[n] * (rank - 1), half), np.complex64)
            rows = batch * n ** (rank - 1)
            calls = [
                Transform(n, False, (1, 1, rows), Side(0, 0, n, 1), interleaved(0, 0, half, 1), 0, n, half).bind(
                    launcher, x, y
                )
            ]
            if rank == 2:
                side = interleaved(n * half, 0, 1, half)
                calls.append(Transform(n, False, (batch, 1, half), side, side, 0, n, n).bind(launcher, y, y))
            peer = torch.zeros((batch, *[n] * rank), device="cuda")
            theirs = torch.fft.rfft if rank == 1 else torch.fft.rfft2
            ours = seconds_of(lambda calls=calls: [call() for call in calls], device.synchronize)  # type: ignore[misc]
            cufft = seconds_of(lambda f=theirs, a=peer: f(a), torch.cuda.synchronize)  # type: ignore[misc]
            row = {"points": n, "axes": rank, "batch": batch, "ms": 1e3 * ours, "cuFFT ms": 1e3 * cufft}
            yield row | {"to cuFFT": cufft / ours}


def convolutions(device: Any, torch: Any) -> Iterator[dict[str, object]]:
    """Every algorithm that serves a layer, beside cuDNN's choice (channels_last, benchmark mode, no TF32)."""
    from benchmarks.conv import layers
    from pydtconv.kernels.gpu.convolutions import TABLE, algorithms

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    for name, p in layers().items():
        if p.rank != 2 or p.dtype != "float32":
            continue
        x, w, y = (device.zeros(shape, np.float32) for shape in (p.x_shape, p.w_shape, p.y_shape))
        for direction in DIRECTIONS:
            peer = seconds_of(_cudnn(torch, p, direction), torch.cuda.synchronize)
            for algorithm in algorithms(p, direction):
                found, launcher = TABLE[algorithm], device.launcher()
                workspace = device.zeros((found.workspace(p, direction),), np.uint8)
                if direction == "forward":
                    call = found.forward(launcher, p, x, w, y, workspace, False)
                elif direction == "backward_data":
                    call = found.backward_data(launcher, p, y, w, x, workspace, False)
                else:
                    call = found.backward_weights(launcher, p, x, y, w, workspace)
                ours = seconds_of(call, device.synchronize)
                row: dict[str, object] = {"layer": name, "direction": direction, "algorithm": algorithm}
                row |= {"ms": 1e3 * ours, "cuDNN ms": 1e3 * peer, "to cuDNN": peer / ours}
                yield row | {"GFLOPS": p.flops / ours / 1e9, "workspace MiB": workspace.nbytes / 2**20}


def _cudnn(torch: Any, p: Any, direction: str) -> Callable[[], Any]:
    (top, bottom), (left, right) = p.padding
    x = torch.zeros((p.n, p.ci, p.ih, p.iw), device="cuda")
    if (top, left) != (bottom, right):
        x = torch.nn.functional.pad(x, (left, right, top, bottom))
        top = left = 0
    x = x.to(memory_format=torch.channels_last)
    w = torch.zeros((p.co, p.ci // p.groups, p.kh, p.kw), device="cuda").to(memory_format=torch.channels_last)
    options = {"stride": p.strides, "padding": (top, left), "dilation": p.dilation, "groups": p.groups}
    if direction == "forward":
        return lambda: torch.nn.functional.conv2d(x, w, **options)
    dy = torch.zeros_like(torch.nn.functional.conv2d(x, w, **options))
    if direction == "backward_data":
        return lambda: torch.nn.grad.conv2d_input(x.shape, w, dy, **options)
    return lambda: torch.nn.grad.conv2d_weight(x, w.shape, dy, **options)


def training(torch: Any) -> Iterator[dict[str, object]]:
    """Steps of the eight configurations, images of 32 and 224 pixels, beside PyTorch's in channels_last."""
    import pydtconv as keras
    from benchmarks.networks import batch_of, cases, compiled

    for case in cases():
        model = compiled(case)
        x, y = batch_of(case, model)
        with keras.device("gpu"):
            ours = seconds_of(lambda m=model, a=x, b=y: m.train_on_batch(a, b), lambda: None, 5)  # type: ignore[misc]
        peer = _torch_step(torch, model, x, y)
        theirs = seconds_of(peer, torch.cuda.synchronize, 5)
        row = {"case": str(case), "images/s": case.batch / ours, "PyTorch images/s": case.batch / theirs}
        yield row | {"to PyTorch": theirs / ours}


def _torch_step(torch: Any, model: Any, x: Any, y: Any) -> Callable[[], Any]:
    from benchmarks.peers.description import describe
    from benchmarks.peers.torch_networks import Network

    network = Network(describe(model)).cuda().train()
    images = torch.tensor(np.moveaxis(x, -1, 1)).cuda().to(memory_format=torch.channels_last)
    network(images)  # gives the lazy modules their shapes
    network = network.to(memory_format=torch.channels_last)
    labels, loss = torch.tensor(y).cuda(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        loss(network(images), labels).backward()
        optimizer.step()

    return step


def measured() -> int:
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
    device = devices.get("gpu")
    parts = {
        "gpu_fft": transforms(device, torch),
        "gpu_conv": convolutions(device, torch),
        "gpu_train": training(torch),
    }
    for name, part in parts.items():
        rows = list(part)
        report.print_table(name, rows)
        report.write_csv(name, rows)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--static", action="store_true", help="what the compiler says of the kernels; needs no GPU")
    parser.add_argument("--peer", choices=["torch"], help="measure on a GPU beside PyTorch")
    options = parser.parse_args()
    if not options.static and not options.peer:
        parser.error("expected --static or --peer torch")
    sys.exit((static() if options.static else 0) or (measured() if options.peer else 0))


if __name__ == "__main__":
    main()
