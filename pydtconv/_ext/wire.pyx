"""Numbers as they travel between processes: bfloat16, held in uint16 (see cext/include/dtconv_wire.h)."""

from cython cimport floating
from libc.stdint cimport int64_t, uint16_t

from pydtconv._ext.status cimport check

cdef extern from "dtconv_both.h" nogil:
    int dtconv_sto_bfloat16(int64_t, const float *, uint16_t *)
    int dtconv_dto_bfloat16(int64_t, const double *, uint16_t *)
    int dtconv_sfrom_bfloat16(int64_t, const uint16_t *, float *)
    int dtconv_dfrom_bfloat16(int64_t, const uint16_t *, double *)
    int dtconv_ssum_bfloat16(int64_t, int64_t, const uint16_t *, uint16_t *)


def to_bfloat16(const floating[::1] x, uint16_t[::1] y):
    """y = bfloat16(x)."""
    cdef int64_t n = x.shape[0]
    cdef int status
    if y.shape[0] != n:
        raise ValueError(f"y: expected {n} elements as x has, got {y.shape[0]}")
    if n == 0:
        return
    with nogil:
        if floating is float:
            status = dtconv_sto_bfloat16(n, &x[0], &y[0])
        else:
            status = dtconv_dto_bfloat16(n, &x[0], &y[0])
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
        if floating is float:
            status = dtconv_sfrom_bfloat16(n, &x[0], &y[0])
        else:
            status = dtconv_dfrom_bfloat16(n, &x[0], &y[0])
    check(status)


def sum_bfloat16(const uint16_t[:, ::1] x, uint16_t[::1] y):
    """y = the rows' sum, in float32, rounded once.  x (count, n)."""
    cdef int64_t n = x.shape[1]
    cdef int status
    if y.shape[0] != n or x.shape[0] == 0:
        raise ValueError(f"y: expected {n} elements as the rows of x have, got {y.shape[0]}")
    if n == 0:
        return
    with nogil:
        status = dtconv_ssum_bfloat16(x.shape[0], n, &x[0, 0], &y[0])
    check(status)
