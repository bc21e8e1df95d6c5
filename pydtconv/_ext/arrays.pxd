"""Addresses of arrays for C functions; None is NULL."""

from cython cimport floating
from libc.stdint cimport int64_t


cdef inline floating *vector(const floating[::1] a) noexcept nogil:
    return NULL if a is None else <floating *> &a[0]


cdef inline floating *matrix(const floating[:, :] a) noexcept nogil:
    return NULL if a is None else <floating *> &a[0, 0]


cdef inline int64_t ld(const floating[:, :] a) noexcept nogil:
    """Elements from row to row."""
    return 0 if a is None else a.strides[0] // <int64_t> sizeof(floating)
