"""Bindings of pooling (cext/include/dtconv_nn_pooling.h).

Images and matrices come as (rows, c) views: rows may lie apart, the elements of a row must not (see ops/rows.py).
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t

from pydtconv._ext.arrays cimport ld
from pydtconv._ext.status cimport check

cdef extern from "dtconv_both.h" nogil:
    ctypedef struct dtconv_pool:
        int64_t n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left

    int dtconv_smax_pool_forward(const dtconv_pool *, const float *, int64_t, float *, int64_t, void *, int)
    int dtconv_dmax_pool_forward(const dtconv_pool *, const double *, int64_t, double *, int64_t, void *, int)
    int dtconv_smax_pool_backward(const dtconv_pool *, const float *, int64_t, const void *, int, int, float *, int64_t)
    int dtconv_dmax_pool_backward(const dtconv_pool *, const double *, int64_t, const void *, int, int, double *,
                                  int64_t)
    int dtconv_saverage_pool_forward(const dtconv_pool *, const float *, int64_t, int, float *, int64_t)
    int dtconv_daverage_pool_forward(const dtconv_pool *, const double *, int64_t, int, double *, int64_t)
    int dtconv_saverage_pool_backward(const dtconv_pool *, const float *, int64_t, int, int, float *, int64_t)
    int dtconv_daverage_pool_backward(const dtconv_pool *, const double *, int64_t, int, int, double *, int64_t)
    int dtconv_sglobal_average_pool_forward(int64_t, int64_t, int64_t, const float *, int64_t, float *, int64_t)
    int dtconv_dglobal_average_pool_forward(int64_t, int64_t, int64_t, const double *, int64_t, double *, int64_t)
    int dtconv_sglobal_average_pool_backward(int64_t, int64_t, int64_t, const float *, int64_t, int, float *, int64_t)
    int dtconv_dglobal_average_pool_backward(int64_t, int64_t, int64_t, const double *, int64_t, int, double *, int64_t)
    int dtconv_sglobal_max_pool_forward(int64_t, int64_t, int64_t, const float *, int64_t, float *, int64_t, int32_t *)
    int dtconv_dglobal_max_pool_forward(int64_t, int64_t, int64_t, const double *, int64_t, double *, int64_t,
                                        int32_t *)
    int dtconv_sglobal_max_pool_backward(int64_t, int64_t, int64_t, const float *, int64_t, const int32_t *, int,
                                         float *, int64_t)
    int dtconv_dglobal_max_pool_backward(int64_t, int64_t, int64_t, const double *, int64_t, const int32_t *, int,
                                         double *, int64_t)


cdef class PoolWindow:
    """Sizes of a pooling problem: n ih iw c oh ow kh kw sh sw top left."""

    cdef dtconv_pool p

    def __init__(self, n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left):
        self.p = dtconv_pool(n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left)


def max_pool_forward(PoolWindow window, const floating[:, :] x, floating[:, :] y, unsigned char[::1] argmax,
                     int argmax_bytes):
    cdef void *positions = NULL if argmax is None else <void *> &argmax[0]
    with nogil:
        if floating is float:
            check(dtconv_smax_pool_forward(&window.p, &x[0, 0], ld(x), &y[0, 0], ld(y), positions, argmax_bytes))
        else:
            check(dtconv_dmax_pool_forward(&window.p, &x[0, 0], ld(x), &y[0, 0], ld(y), positions, argmax_bytes))


def max_pool_backward(PoolWindow window, const floating[:, :] dy, const unsigned char[::1] argmax, int argmax_bytes,
                      bint accumulate, floating[:, :] dx):
    with nogil:
        if floating is float:
            check(dtconv_smax_pool_backward(&window.p, &dy[0, 0], ld(dy), &argmax[0], argmax_bytes, accumulate,
                                            &dx[0, 0], ld(dx)))
        else:
            check(dtconv_dmax_pool_backward(&window.p, &dy[0, 0], ld(dy), &argmax[0], argmax_bytes, accumulate,
                                            &dx[0, 0], ld(dx)))


def average_pool_forward(PoolWindow window, const floating[:, :] x, bint include_pad, floating[:, :] y):
    with nogil:
        if floating is float:
            check(dtconv_saverage_pool_forward(&window.p, &x[0, 0], ld(x), include_pad, &y[0, 0], ld(y)))
        else:
            check(dtconv_daverage_pool_forward(&window.p, &x[0, 0], ld(x), include_pad, &y[0, 0], ld(y)))


def average_pool_backward(PoolWindow window, const floating[:, :] dy, bint include_pad, bint accumulate,
                          floating[:, :] dx):
    with nogil:
        if floating is float:
            check(dtconv_saverage_pool_backward(&window.p, &dy[0, 0], ld(dy), include_pad, accumulate, &dx[0, 0],
                                                ld(dx)))
        else:
            check(dtconv_daverage_pool_backward(&window.p, &dy[0, 0], ld(dy), include_pad, accumulate, &dx[0, 0],
                                                ld(dx)))


def global_average_pool_forward(int64_t n, const floating[:, :] x, floating[:, :] y):
    with nogil:
        if floating is float:
            check(dtconv_sglobal_average_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y)))
        else:
            check(dtconv_dglobal_average_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y)))


def global_average_pool_backward(int64_t n, const floating[:, :] dy, bint accumulate, floating[:, :] dx):
    with nogil:
        if floating is float:
            check(dtconv_sglobal_average_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy), accumulate,
                                                       &dx[0, 0], ld(dx)))
        else:
            check(dtconv_dglobal_average_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy), accumulate,
                                                       &dx[0, 0], ld(dx)))


def global_max_pool_forward(int64_t n, const floating[:, :] x, floating[:, :] y, int32_t[:, ::1] argmax):
    cdef int32_t *positions = NULL if argmax is None else &argmax[0, 0]
    with nogil:
        if floating is float:
            check(dtconv_sglobal_max_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y),
                                                  positions))
        else:
            check(dtconv_dglobal_max_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y),
                                                  positions))


def global_max_pool_backward(int64_t n, const floating[:, :] dy, const int32_t[:, ::1] argmax, bint accumulate,
                             floating[:, :] dx):
    with nogil:
        if floating is float:
            check(dtconv_sglobal_max_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy), &argmax[0, 0],
                                                   accumulate, &dx[0, 0], ld(dx)))
        else:
            check(dtconv_dglobal_max_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy), &argmax[0, 0],
                                                   accumulate, &dx[0, 0], ld(dx)))
