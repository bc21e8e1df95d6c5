"""How fast micro-kernels are, and the peak that they are measured against."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pydtconv._ext import cpu, ukr
from pydtconv.microkernels.listing import checked, find, rows_of, verdict


def measure(name: str, dtype: str = "float32", seconds: float = 0.05) -> float:
    """GFLOPS of one kernel on one core, on panels that stay in cache: the best of some runs within `seconds`."""
    dtype = checked(dtype)
    rows = rows_of(dtype)
    found = find(dtype, name)
    if found is None:
        raise ValueError(f"measure: {name} is no micro-kernel for {dtype}")
    index = [row[0] for row in rows].index(found)
    _, mr, nr, bits, *_ = rows[index]
    reason = verdict(dtype, index, found, bits)
    if reason:
        raise ValueError(f"measure: micro-kernel {found} cannot be used: {reason}")
    k = 256
    stored, summed = ("uint16", "float32") if dtype == "bfloat16" else (dtype, dtype)
    a, b = (_aligned(count, stored) for count in ((mr + 8) * k, (nr + 8) * k))
    c = _aligned(mr * nr + 64, summed)
    return _best_rate(lambda count: (ukr.repeat(index, count, k, a, b, c), 2.0 * count * mr * nr * k)[1], 20, seconds)


def _aligned(count: int, dtype: str) -> np.ndarray:
    """Zeros at the start of a cache line."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def _best_rate(work: Callable[[int], float], count: int, seconds: float) -> float:
    """Best GFLOPS of `work(count)`, which returns the operations it did, run again and again for `seconds`."""
    best, end = 0.0, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        operations = work(count)
        stop = time.perf_counter()
        best = max(best, operations / (stop - start) * 1e-9)
        if stop - start < 1e-3:
            count *= 2
        elif stop > end:
            return best


def peak_gflops(dtype: str = "float32", threads: int = 1, seconds: float = 0.05) -> float:
    """The FMA peak of `threads` cores together, measured with multiply-adds in registers only."""
    dtype = checked(dtype)
    bits = sum(cpu.FEATURES[feature] for feature in cpu.features())

    def one(_: int) -> float:
        return _best_rate(lambda count: ukr.peak(dtype, bits, count), 1000, seconds)

    if threads == 1:
        return one(0)
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(one, range(threads)))
