"""Threads and build level of the C library."""

cdef extern from "dtconv.h" nogil:
    enum:
        DTCONV_MOST_THREADS
    int dtconv_get_num_threads()
    void dtconv_set_num_threads(int threads)
    void dtconv_compute_alone()
    int dtconv_hold_num_threads(int threads)
    const char *dtconv_level()


#: the most that `set_num_threads` takes
MOST_THREADS = DTCONV_MOST_THREADS


def get_num_threads() -> int:
    return dtconv_get_num_threads()


def set_num_threads(int threads) -> None:
    dtconv_set_num_threads(threads)


def compute_alone() -> None:
    """From now on the calling thread computes without a team of other threads."""
    dtconv_compute_alone()


def hold_num_threads(int threads) -> int:
    """Functions called by this thread use so many threads from now on; 0: the process's number.  Returns the former."""
    return dtconv_hold_num_threads(threads)


def level() -> str:
    """The build of the C library in use: "generic", "x86-64-v3" or "x86-64-v4"."""
    return dtconv_level().decode()
