"""Threads and build level of the C library."""

from libc.stdint cimport int64_t

cdef extern from "dtconv.h" nogil:
    enum:
        DTCONV_MOST_THREADS
    int dtconv_get_num_threads()
    void dtconv_set_num_threads(int threads)
    void dtconv_compute_alone()
    int dtconv_hold_num_threads(int threads)
    int64_t dtconv_spin_ns()
    void dtconv_rouse_threads()
    const char *dtconv_level()
    int64_t dtconv_cache_bytes(int level)
    void dtconv_set_cache_bytes(int level, int64_t nbytes)


#: the most that `set_num_threads` takes
MOST_THREADS = DTCONV_MOST_THREADS


def get_num_threads() -> int:
    return dtconv_get_num_threads()


def set_num_threads(int threads) -> None:
    dtconv_set_num_threads(threads)


def compute_alone() -> None:
    """From now on the calling thread computes without a team of other threads."""
    dtconv_compute_alone()


cdef class hold_num_threads:
    """Within, kernels that this thread calls use so many threads, whatever other threads set; default: those now set.

    What asks for a workspace and then uses it does both within one hold.  Not Python code, within which Ctrl-C could
    come before the end is noted: the thread would keep the number for ever.
    """

    cdef int _threads, _before

    def __init__(self, threads: int | None = None) -> None:
        self._threads = dtconv_get_num_threads() if threads is None else threads

    def __enter__(self) -> None:
        self._before = dtconv_hold_num_threads(self._threads)

    def __exit__(self, *_: object) -> None:
        dtconv_hold_num_threads(self._before)


def spin_seconds() -> float | None:
    """How long waiting threads spin before they sleep; None: OpenMP's library decides."""
    cdef int64_t ns = dtconv_spin_ns()
    return None if ns < 0 else 1e-9 * ns


def rouse_threads() -> None:
    """Threads that sleep until this one has work for them spin again: it will soon."""
    dtconv_rouse_threads()


def level() -> str:
    """The build of the C library in use: "generic", "x86-64-v3", "x86-64-v4" or "x86-64-v4-bf16"."""
    return dtconv_level().decode()


def cache_bytes(int level) -> int:
    """Bytes of the cache of a level (1, 2, 3) that blocks are cut for."""
    return dtconv_cache_bytes(level)


def set_cache_bytes(int level, int64_t nbytes) -> None:
    """Cuts blocks for a cache of another size from now on; 0: as the system says."""
    dtconv_set_cache_bytes(level, nbytes)
