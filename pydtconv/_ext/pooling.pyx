"""Bindings of pooling (cext/include/dtconv_nn_pooling.h).

Images and matrices come as (rows, c) views (see kernels/cpu/rows.py): rows may lie apart, the elements of a row not.
Those of bfloat16 are uint16: its bits.  What `bind_*` returns is called in every step: it is bound to addresses.
"""

from libc.stdint cimport int32_t, int64_t

from pydtconv._ext.arrays cimport dtype_in, holding, rows_in, rows_of, scratch, scratch_in
from pydtconv._ext.dtypes cimport dtconv_dtype
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


def bind_max_pool(PoolWindow window, x, y, argmax, int argmax_bytes) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)
    cdef scratch places = scratch_in(argmax)

    def run():
        with nogil:
            check(dtconv_max_pool_forward(dtype, &window.p, image.data, image.apart, out.data, out.apart, places.data,
                                          argmax_bytes))

    return holding(run, (x, y, argmax))


def bind_max_pool_backward(PoolWindow window, dy, argmax, int argmax_bytes, bint accumulate, dx) -> object:
    cdef dtconv_dtype dtype = dtype_in(dy)
    cdef rows_of gradient = rows_in(dy, dtype), target = rows_in(dx, dtype)
    cdef scratch places = scratch_in(argmax)

    def run():
        with nogil:
            check(dtconv_max_pool_backward(dtype, &window.p, gradient.data, gradient.apart, places.data, argmax_bytes,
                                           accumulate, target.data, target.apart))

    return holding(run, (dy, argmax, dx))


def bind_average_pool(PoolWindow window, x, bint include_pad, y) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_average_pool_forward(dtype, &window.p, image.data, image.apart, include_pad, out.data,
                                              out.apart))

    return holding(run, (x, y))


def bind_average_pool_backward(PoolWindow window, dy, bint include_pad, bint accumulate, dx) -> object:
    cdef dtconv_dtype dtype = dtype_in(dy)
    cdef rows_of gradient = rows_in(dy, dtype), target = rows_in(dx, dtype)

    def run():
        with nogil:
            check(dtconv_average_pool_backward(dtype, &window.p, gradient.data, gradient.apart, include_pad, accumulate,
                                               target.data, target.apart))

    return holding(run, (dy, dx))


def bind_global_average_pool(int64_t n, x, y) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_global_average_pool_forward(dtype, n, image.count // n, image.width, image.data, image.apart,
                                                     out.data, out.apart))

    return holding(run, (x, y))


def bind_global_average_pool_backward(int64_t n, dy, bint accumulate, dx) -> object:
    cdef dtconv_dtype dtype = dtype_in(dy)
    cdef rows_of gradient = rows_in(dy, dtype), target = rows_in(dx, dtype)

    def run():
        with nogil:
            check(dtconv_global_average_pool_backward(dtype, n, target.count // n, target.width, gradient.data,
                                                      gradient.apart, accumulate, target.data, target.apart))

    return holding(run, (dy, dx))


def bind_global_max_pool(int64_t n, x, y, int32_t[:, ::1] argmax) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)
    cdef int32_t *places = NULL if argmax is None else &argmax[0, 0]

    def run():
        with nogil:
            check(dtconv_global_max_pool_forward(dtype, n, image.count // n, image.width, image.data, image.apart,
                                                 out.data, out.apart, places))

    return holding(run, (x, y, argmax))


def bind_global_max_pool_backward(int64_t n, dy, const int32_t[:, ::1] argmax, bint accumulate, dx) -> object:
    cdef dtconv_dtype dtype = dtype_in(dy)
    cdef rows_of gradient = rows_in(dy, dtype), target = rows_in(dx, dtype)
    cdef const int32_t *places = &argmax[0, 0]

    def run():
        with nogil:
            check(dtconv_global_max_pool_backward(dtype, n, target.count // n, target.width, gradient.data,
                                                  gradient.apart, places, accumulate, target.data, target.apart))

    return holding(run, (dy, argmax, dx))
