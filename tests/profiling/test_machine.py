"""The probe of memory."""

import numpy as np

from pydtconv.profiling import machine


def test_bandwidth_counts_the_bytes_of_all_threads(monkeypatch):
    monkeypatch.setattr(machine, "ARRAY_BYTES", 1 << 20)
    clock = iter(np.arange(0, 100, 0.5))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    # half a second a run by this clock: 3 MiB in it at best
    assert machine.memory_bandwidth(2, seconds=0.1) == 3 * 2**20 / 0.5 / 1e9
