"""A bound on what Python and NumPy allocate."""

import contextlib
import tracemalloc


@contextlib.contextmanager
def memory_below(nbytes):
    """Within it no more than nbytes are allocated at any time, on top of what there is."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < nbytes
