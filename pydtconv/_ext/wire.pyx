"""Sums over processes, in shared memory or of bfloat16, which is held in uint16 (see cext/include/dtconv_wire.h)."""

from cython cimport floating
from libc.stdint cimport int64_t, uint16_t

from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    int dtconv_to_bfloat16(...)
    int dtconv_from_bfloat16(...)
    int dtconv_ssum_bfloat16(int64_t, int64_t, const uint16_t *, uint16_t *)
    int dtconv_narrow_rows(...)
    int dtconv_widen_rows(...)
    int dtconv_sum_rows(...)
    void dtconv_publish(int64_t *, int64_t)
    int64_t dtconv_least(int64_t, int64_t, const int64_t *)


def to_bfloat16(const floating[::1] x, uint16_t[::1] y):
    """y = bfloat16(x)."""
    cdef int64_t n = x.shape[0]
    cdef int status
    if y.shape[0] != n:
        raise ValueError(f"y: expected {n} elements as x has, got {y.shape[0]}")
    if n == 0:
        return
    with nogil:
        status = dtconv_to_bfloat16(n, &x[0], &y[0])
    check(status)


def from_bfloat16(const uint16_t[::1] x, floating[::1] y):
    """y = x."""
    cdef int64_t n = x.shape[0]
    cdef int status
    if y.shape[0] != n:
        raise ValueError(f"y: expected {n} elements as x has, got {y.shape[0]}")
    if n == 0:
        return
    with nogil:
        status = dtconv_from_bfloat16(n, &x[0], &y[0])
    check(status)


cdef int check_rows(int64_t count, int64_t n, int64_t length) except -1:
    if count == 0:
        raise ValueError("x: expected one row or more, got none")
    if length != n:
        raise ValueError(f"y: expected {n} elements as the rows of x have, got {length}")
    return 0


def sum_bfloat16(const uint16_t[:, ::1] x, uint16_t[::1] y):
    """y = the rows' sum, in float32, rounded once.  x (count, n)."""
    cdef int64_t n = x.shape[1]
    cdef int status
    check_rows(x.shape[0], n, y.shape[0])
    if n == 0:
        return
    with nogil:
        status = dtconv_ssum_bfloat16(x.shape[0], n, &x[0, 0], &y[0])
    check(status)


def sum_rows(const floating[:, :] x, floating[::1] y):
    """y = the rows' sum, in their order.  x (count, n), each row contiguous; y may be one of them."""
    cdef int64_t n = x.shape[1]
    cdef int status
    check_rows(x.shape[0], n, y.shape[0])
    if n == 0:
        return
    if x.strides[1] != sizeof(floating):
        raise ValueError(f"x: expected contiguous rows, got a stride of {x.strides[1]} bytes")
    cdef int64_t ld = x.strides[0] // <int64_t>sizeof(floating)
    with nogil:
        status = dtconv_sum_rows(x.shape[0], n, &x[0, 0], ld, &y[0])
    check(status)


def publish(int64_t[:, ::1] counters, int64_t row, int64_t column, int64_t value):
    """Sets a counter that other processes read, after everything that this one has written before."""
    if not (0 <= row < counters.shape[0] and 0 <= column < counters.shape[1]):
        raise IndexError(f"expected a counter of {counters.shape[0]} x {counters.shape[1]}, got [{row}, {column}]")
    dtconv_publish(&counters[row, column], value)


def least(const int64_t[:, ::1] counters, int64_t column) -> int:
    """The least of a column, (processes, counters); what they had written before they set it can then be read."""
    if counters.shape[0] == 0 or not 0 <= column < counters.shape[1]:
        raise IndexError(f"expected a column of {counters.shape[0]} x {counters.shape[1]} counters, got {column}")
    return dtconv_least(counters.shape[0], counters.shape[1], &counters[0, column])


def narrow_rows(const floating[:, :] x, uint16_t[:, :] y):
    """y = bfloat16(x), bits; arrays of one shape, rows may be apart."""
    with nogil:
        check(dtconv_narrow_rows(x.shape[0], x.shape[1], &x[0, 0], x.strides[0] // <int64_t> sizeof(floating), &y[0, 0],
                                 y.strides[0] // 2))


def widen_rows(const uint16_t[:, :] x, floating[:, :] y):
    """y = x, which is bits of bfloat16; arrays of one shape, rows may be apart."""
    with nogil:
        check(dtconv_widen_rows(x.shape[0], x.shape[1], &x[0, 0], x.strides[0] // 2, &y[0, 0],
                                y.strides[0] // <int64_t> sizeof(floating)))
