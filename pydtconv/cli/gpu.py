"""What `pydtconv doctor` says of GPUs: which there are, and what kernels reach of the peak; or what is missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

Line = tuple[str, str]
#: elements of an array that is copied, points and channels of transforms, rows of a product
COPIED, TRANSFORMED, PRODUCT = 1 << 26, (32, 1 << 20), 4096


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
    """Kernels bound by memory as a share of its peak, and the product."""
    peak = device.memory_peak()
    for name, seconds, nbytes in (*_copies(device), *_transforms(device)):
        rate = nbytes / seconds
        yield "", f"{name:<24} {rate / 1e9:7.0f} GB/s, {rate / peak:4.0%} of the peak of {peak / 1e9:.0f} GB/s"
    n = PRODUCT
    a, b, c = (device.zeros((n, n), np.float32) for _ in range(3))
    yield (
        "",
        f"{'product, float32':<24} {2 * n**3 / seconds_of(device, device.launcher().gemm(a, b, c)) / 1e12:7.1f} TFLOPS",
    )


def _copies(device: Any) -> Iterator[tuple[str, float, int]]:
    launcher = device.launcher()
    x, y = (device.zeros((COPIED,), np.float32) for _ in range(2))
    yield "elementwise.copy", seconds_of(device, launcher.copy(x, y)), 2 * x.nbytes


def _transforms(device: Any) -> Iterator[tuple[str, float, int]]:
    from pydtconv.kernels.gpu.fourier import Transform, interleaved

    points, channels = TRANSFORMED
    x, y = (device.zeros((points, channels), np.complex64) for _ in range(2))
    side = interleaved(0, 0, 1, channels)
    call = Transform(points, False, (1, 1, channels), side, side, 0, points, points).bind(device.launcher(), x, y)
    yield f"fourier.forward_{points}", seconds_of(device, call), 2 * x.nbytes


def seconds_of(device: Any, call: Any, runs: int = 10) -> float:
    """Seconds of a call, of several that run one after the other."""
    call()
    device.synchronize()
    start = time.perf_counter()
    for _ in range(runs):
        call()
    device.synchronize()
    return (time.perf_counter() - start) / runs
