"""Sums in memory that several processes see, with all of them played by one."""

from types import SimpleNamespace

import numpy as np
import pytest

from pydtconv.distribution.gradients import shared_memory_all_reduce
from pydtconv.distribution.gradients.shared_memory_all_reduce import SharedMemoryAllReduce


def backends(processes, size=100):
    memory = SimpleNamespace(
        rows=np.arange(processes * size, dtype="float32").reshape(processes, size),
        counters=np.zeros((processes, 8), np.int64),
    )
    return memory, [SharedMemoryAllReduce(memory, rank) for rank in range(processes)]


@pytest.mark.parametrize("processes", [2, 4])
def test_counters_never_fall(processes):
    """Slices that are looked at in any order: one may be found ready by all when the one before it was not yet."""
    memory, ranks = backends(processes)
    expected = memory.rows.sum(0)
    parts = [slice(0, 40), slice(40, 60), slice(60, 100)]
    for backend in ranks:
        backend.begin(in_blocks=False)
    first = [ranks[0].start(memory.rows[0], part) for part in parts]
    assert not first[0].Test()
    others = [[backend.start(memory.rows[backend.rank], part) for part in parts] for backend in ranks[1:]]
    before = memory.counters.copy()
    under_way = [request for sums in zip(first, *others, strict=True) for request in sums][::-1]
    for _ in range(20):
        for request in list(under_way):
            if request.Test():
                under_way.remove(request)
            assert (memory.counters >= before).all()
            before = memory.counters.copy()
    assert not under_way
    assert (memory.counters[:, shared_memory_all_reduce.SUMMED] == len(parts)).all()
    np.testing.assert_array_equal(memory.rows, np.broadcast_to(expected, memory.rows.shape))
