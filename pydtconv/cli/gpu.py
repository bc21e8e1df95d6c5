"""What `pydtconv doctor` says of GPUs: which there are, and what kernels reach of the peak; or what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Line = tuple[str, str]
#: elements of an array that is swept, of all transforms of a length, rows of a product; image and filters of im2col
SWEPT, TRANSFORMED, PRODUCT, IMAGE = 1 << 26, 1 << 25, 4096, (32, 56, 56, 64)


def report(measure: bool) -> Iterator[Line]:
    """The lines of all GPUs."""
    from pydtconv import devices
    from pydtconv.devices.gpu import count, missing

    lacking = missing()
    if lacking is not None:
        yield "GPU", lacking.removeprefix("device gpu: ")
        return
    for number in range(count()):
        device: Any = devices.get(f"gpu:{number}")
        yield from device.describe()
        if measure:
            yield from speeds(device)


def speeds(device: Any) -> Iterator[Line]:
    """Kernels bound by memory as a share of its peak, and the product as one of the arithmetic's."""
    peak = device.memory_peak()
    for name, call, nbytes in (*_sweeps(device), *_transforms(device)):
        rate = nbytes / seconds_of(device, call)
        share = f", {rate / peak:4.0%} of the peak of {peak / 1e9:.0f} GB/s" if peak else ""
        yield "", f"{name:<24} {rate / 1e9:7.0f} GB/s{share}"
    n, most = PRODUCT, device.rates().flops
    a, b, c = (device.zeros((n, n), np.float32) for _ in range(3))
    rate = 2 * n**3 / seconds_of(device, device.launcher().gemm(a, b, c))
    yield "", f"{'product, float32':<24} {rate / 1e12:7.1f} TFLOPS, {rate / most:4.0%} of the peak of {most / 1e12:.1f}"


def _sweeps(device: Any) -> Iterator[tuple[str, Any, int]]:
    """Kernels that move arrays: name, call, and the bytes that it moves."""
    from pydtconv.conv.problem import ConvProblem
    from pydtconv.kernels.gpu.columns import bind_column_sums, sums_bytes
    from pydtconv.kernels.gpu.convolutions.im2col import bind_im2col, sizes_of
    from pydtconv.ops.base import spec_of

    launcher = device.launcher()
    x, y, z, v = (device.zeros((SWEPT,), np.float32) for _ in range(4))
    yield "elementwise.copy", launcher.copy(x, y), 2 * x.nbytes
    rows, sums = x.reshape((-1, 64)), device.zeros((64,), np.float32)
    workspace = device.zeros((sums_bytes(spec_of(rows)),), np.uint8)
    yield "columns.column_sums", bind_column_sums(launcher, rows, sums, workspace), x.nbytes
    numbers = launcher.constant(np.array([1.0, 1e-3, 0.1, 1e-3, 1e-7]))
    yield (
        "optimizers.adam",
        launcher.each("optimizers.adam", "float32", SWEPT, SWEPT, numbers, x, y, z, v, None),
        7 * x.nbytes,
    )
    p = ConvProblem(*IMAGE, 1, (3, 3), padding="same")
    image, columns = device.zeros(IMAGE, np.float32), device.zeros((9, *IMAGE), np.float32)
    call = bind_im2col(launcher, p, sizes_of(launcher, p), image, 0, p.ci, columns)
    yield "convolution.im2col", call, image.nbytes + columns.nbytes


def _transforms(device: Any) -> Iterator[tuple[str, Any, int]]:
    """Complex transforms of all lengths, forward and back."""
    from pydtconv.kernels.gpu.fourier import LENGTHS, Transform, interleaved

    for points in LENGTHS:
        channels = max(TRANSFORMED // points, 1)
        x, y = (device.zeros((points, channels), np.complex64) for _ in range(2))
        side = interleaved(0, 0, 1, channels)
        for name in ("forward", "inverse"):
            batch = (1, 1, channels)
            made = Transform(points, name == "inverse", batch, side, side, 0, points, points)
            yield f"fourier.{name}_{points}", made.bind(device.launcher(), x, y), 2 * x.nbytes


def seconds_of(device: Any, call: Any, runs: int = 10) -> float:
    """Seconds of a call, of several that run one after the other."""

    def several() -> None:
        for _ in range(runs):
            call()

    call()
    return float(device.seconds_of(several)) / runs
