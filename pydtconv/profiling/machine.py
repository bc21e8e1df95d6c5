"""What the machine can do: the bandwidth of its memory.  (The FMA peak is `pydtconv.microkernels.peak_gflops`.)"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

#: bytes of each array: larger than any cache
ARRAY_BYTES = 1 << 27


def memory_bandwidth(threads: int = 1, seconds: float = 0.2) -> float:
    """GB/s (1e9 bytes, reads and writes together) on so many threads: the best of a copy, a sum and a sum in place.

    Arrays of 128 MiB are cut among the threads; each count runs for `seconds`, and its best run is taken.  Each array
    counts once for every time that it is read or written by the program, as in STREAM (J. McCalpin, 1995); a sum in
    place is the one that writes no line which it has not read.
    """
    count = ARRAY_BYTES // 4 // threads
    parts = [[np.ones(count, np.float32) for _ in range(3)] for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:

        def rate(work: Callable[[list[np.ndarray]], object], arrays: int) -> float:
            best, end = 0.0, time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                list(pool.map(work, parts))
                stop = time.perf_counter()
                best = max(best, arrays * ARRAY_BYTES / (stop - start) / 1e9)
                if stop > end:
                    return best

        return max(
            rate(lambda p: np.copyto(p[0], p[1]), 2),
            rate(lambda p: np.add(p[1], p[2], out=p[0]), 3),
            rate(lambda p: np.subtract(p[1], p[2], out=p[1]), 3),
        )
