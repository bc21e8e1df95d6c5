"""Threads and build level of the C library."""

cdef extern from "dtconv.h" nogil:
    int dtconv_get_num_threads()
    void dtconv_set_num_threads(int threads)
    void dtconv_compute_alone()
    const char *dtconv_level()


def get_num_threads() -> int:
    return dtconv_get_num_threads()


def set_num_threads(int threads) -> None:
    dtconv_set_num_threads(threads)


def compute_alone() -> None:
    """From now on the calling thread computes without a team of other threads."""
    dtconv_compute_alone()


def level() -> str:
    """The build of the C library in use: "generic", "x86-64-v3" or "x86-64-v4"."""
    return dtconv_level().decode()
