"""Bindings of pooling (cext/include/dtconv_nn_pooling.h).

Images and matrices come as (rows, c) views (see kernels/cpu/rows.py): rows may lie apart, the elements of a row not.
Those of bfloat16 are uint16: its bits.
"""

from libc.stdint cimport int32_t, int64_t

from pydtconv._ext.arrays cimport element, ld
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_pool:
        int64_t n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left, id, od, kd, sd, front

    int dtconv_max_pool_forward(...)
    int dtconv_max_pool_backward(...)
    int dtconv_average_pool_forward(...)
    int dtconv_average_pool_backward(...)
    int dtconv_global_average_pool_forward(...)
    int dtconv_global_average_pool_backward(...)
    int dtconv_global_max_pool_forward(...)
    int dtconv_global_max_pool_backward(...)


cdef class PoolWindow:
    """Sizes of a pooling problem: n ih iw c oh ow kh kw sh sw top left, and of its depth id od kd sd front."""

    cdef dtconv_pool p

    def __init__(self, n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left, id=1, od=1, kd=1, sd=1, front=0):
        self.p = dtconv_pool(n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left, id, od, kd, sd, front)


def max_pool_forward(PoolWindow window, const element[:, :] x, element[:, :] y, unsigned char[::1] argmax,
                     int argmax_bytes):
    cdef void *positions = NULL if argmax is None else <void *> &argmax[0]
    with nogil:
        check(dtconv_max_pool_forward(&window.p, &x[0, 0], ld(x), &y[0, 0], ld(y), positions, argmax_bytes))


def max_pool_backward(PoolWindow window, const element[:, :] dy, const unsigned char[::1] argmax, int argmax_bytes,
                      bint accumulate, element[:, :] dx):
    with nogil:
        check(dtconv_max_pool_backward(&window.p, &dy[0, 0], ld(dy), &argmax[0], argmax_bytes, accumulate,
                                        &dx[0, 0], ld(dx)))


def average_pool_forward(PoolWindow window, const element[:, :] x, bint include_pad, element[:, :] y):
    with nogil:
        check(dtconv_average_pool_forward(&window.p, &x[0, 0], ld(x), include_pad, &y[0, 0], ld(y)))


def average_pool_backward(PoolWindow window, const element[:, :] dy, bint include_pad, bint accumulate,
                          element[:, :] dx):
    with nogil:
        check(dtconv_average_pool_backward(&window.p, &dy[0, 0], ld(dy), include_pad, accumulate, &dx[0, 0],
                                            ld(dx)))


def global_average_pool_forward(int64_t n, const element[:, :] x, element[:, :] y):
    with nogil:
        check(dtconv_global_average_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y)))


def global_average_pool_backward(int64_t n, const element[:, :] dy, bint accumulate, element[:, :] dx):
    with nogil:
        check(dtconv_global_average_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy), accumulate,
                                                   &dx[0, 0], ld(dx)))


def global_max_pool_forward(int64_t n, const element[:, :] x, element[:, :] y, int32_t[:, ::1] argmax):
    cdef int32_t *positions = NULL if argmax is None else &argmax[0, 0]
    with nogil:
        check(dtconv_global_max_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y),
                                              positions))


def global_max_pool_backward(int64_t n, const element[:, :] dy, const int32_t[:, ::1] argmax, bint accumulate,
                             element[:, :] dx):
    with nogil:
        check(dtconv_global_max_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy), &argmax[0, 0],
                                               accumulate, &dx[0, 0], ld(dx)))
