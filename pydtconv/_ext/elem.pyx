"""Element-wise operators, reductions, copies and random operators (cext/nn).

Arrays come as flat memoryviews that reach from an operand's first element to its last; `layout` (int64) says where the
elements are (see cext/include/dtconv_nn_elem.h).  None stands for an operand that is not needed.  Arrays of bfloat16
are uint16: its bits.  What `bind_*` returns is called in every step: it is bound to addresses.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pydtconv._ext.arrays cimport (
    dtype_in,
    element,
    elements_in,
    holding,
    layout_in,
    ld,
    matrix,
    reals_in,
    scratch,
    scratch_in,
)
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    int dtconv_unary_forward(...)
    int dtconv_unary_backward(...)
    int dtconv_add_activation(...)
    int dtconv_binary_forward(...)
    int dtconv_binary_backward(...)
    int dtconv_copy(...)
    int dtconv_permute(...)
    ctypedef struct dtconv_random_key:
        uint64_t seed
        uint32_t stream
        uint32_t step
        int64_t first
    int dtconv_dropout(...)
    int dtconv_gaussian_noise(...)
    int dtconv_random_window_forward(...)
    int dtconv_random_window_backward(...)
    size_t dtconv_reduce_workspace(dtconv_dtype, const int64_t *)
    int dtconv_reduce(...)


def bind_unary(int kind, p, layout, x, y) -> object:
    """A call for y = f(x); kind: a dtconv_activation, p: its three parameters; layout of x, y."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef void *p_ = reals_in(p, dtype)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *x_ = elements_in(x, dtype)
    cdef void *y_ = elements_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_unary_forward(dtype, kind, p_, layout_, x_, y_))

    return holding(run, (p, layout, x, y))


def bind_unary_backward(int kind, p, bint accumulate, layout, v, dy, dx) -> object:
    """A call for dx (+)= dy f'(v), v = y or x; layout of v, dy, dx."""
    cdef dtconv_dtype dtype = dtype_in(v)
    cdef void *p_ = reals_in(p, dtype)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *v_ = elements_in(v, dtype)
    cdef void *dy_ = elements_in(dy, dtype)
    cdef void *dx_ = elements_in(dx, dtype)

    def run():
        with nogil:
            check(dtconv_unary_backward(dtype, kind, p_, accumulate, layout_, v_, dy_, dx_))

    return holding(run, (p, layout, v, dy, dx))


def bind_add_activation(int kind, p, layout, a, b, y) -> object:
    """A call for y = f(a + b); layout of a, b, y."""
    cdef dtconv_dtype dtype = dtype_in(a)
    cdef void *p_ = reals_in(p, dtype)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *a_ = elements_in(a, dtype)
    cdef void *b_ = elements_in(b, dtype)
    cdef void *y_ = elements_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_add_activation(dtype, kind, p_, layout_, a_, b_, y_))

    return holding(run, (p, layout, a, b, y))


def bind_binary(int kind, layout, a, b, y) -> object:
    """A call for y = a op b; kind: a dtconv_binary; layout of a, b, y."""
    cdef dtconv_dtype dtype = dtype_in(a)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *a_ = elements_in(a, dtype)
    cdef void *b_ = elements_in(b, dtype)
    cdef void *y_ = elements_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_binary_forward(dtype, kind, layout_, a_, b_, y_))

    return holding(run, (layout, a, b, y))


def bind_binary_backward(int kind, int operand, bint accumulate, layout, dy, a, b, y, out) -> object:
    """A call for out (+)= dy times the derivative by the operand; layout of dy, a, b, y, out."""
    cdef dtconv_dtype dtype = dtype_in(dy)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *dy_ = elements_in(dy, dtype)
    cdef void *a_ = elements_in(a, dtype)
    cdef void *b_ = elements_in(b, dtype)
    cdef void *y_ = elements_in(y, dtype)
    cdef void *out_ = elements_in(out, dtype)

    def run():
        with nogil:
            check(dtconv_binary_backward(dtype, kind, operand, accumulate, layout_, dy_, a_, b_, y_, out_))

    return holding(run, (layout, dy, a, b, y, out))


def bind_copy(double factor, bint accumulate, layout, x, y) -> object:
    """A call for y (+)= factor x; layout of x, y."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *x_ = elements_in(x, dtype)
    cdef void *y_ = elements_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_copy(dtype, factor, accumulate, layout_, x_, y_))

    return holding(run, (layout, x, y))


def reduce_workspace(const int64_t[::1] layout, str dtype) -> int:
    """Bytes of workspace of `reduce`."""
    return dtconv_reduce_workspace(dtype_of(dtype), &layout[0])


def bind_reduce(int kind, bint accumulate, double factor, layout, x, x2, y, workspace) -> object:
    """A call for y (+)= factor times the reduction of x (or x * x2); kind: a dtconv_reduce; layout as in the header.

    y may be float32 where x is bfloat16.
    """
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef bint as_real = y.itemsize != x.itemsize
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *x_ = elements_in(x, dtype)
    cdef void *x2_ = elements_in(x2, dtype)
    cdef void *y_ = reals_in(y, dtype) if as_real else elements_in(y, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_reduce(dtype, kind, accumulate, factor, layout_, x_, x2_, y_, as_real, space.data, space.size))

    return holding(run, (layout, x, x2, y, workspace))


def bind_permute(bint accumulate, layout, x, y) -> object:
    """A call for y (+)= x, dimensions in another order; layout of x, y."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef const int64_t *layout_ = layout_in(layout)
    cdef void *x_ = elements_in(x, dtype)
    cdef void *y_ = elements_in(y, dtype)

    def run():
        with nogil:
            check(dtconv_permute(dtype, accumulate, layout_, x_, y_))

    return holding(run, (layout, x, y))


def dropout(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, double rate, bint accumulate,
            const element[:, :] x, element[:, :] y):
    """y (+)= x with some elements 0 and the others divided by 1 - rate; x None: ones.  Rows may be apart."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        check(dtconv_dropout(&key, rate, accumulate, y.shape[0], y.shape[1], matrix(x), ld(x), &y[0, 0], ld(y)))


def gaussian_noise(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, double stddev, const element[:, :] x,
                   element[:, :] y):
    """y = x + noise of standard deviation stddev.  Rows may be apart."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        check(dtconv_gaussian_noise(&key, stddev, y.shape[0], y.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y)))


def random_window_forward(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, int flip,
                          const element[:, :, :, :] x, element[:, :, :, :] y, int64_t ldx, int64_t ldy):
    """y = a random window of each image of x, mirrored at random (flip: 1 columns, 2 rows, 3 both)."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        check(dtconv_random_window_forward(&key, flip, x.shape[0], x.shape[1], x.shape[2], y.shape[1], y.shape[2],
                                            x.shape[3], &x[0, 0, 0, 0], ldx, &y[0, 0, 0, 0], ldy))


def random_window_backward(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, int flip, bint accumulate,
                           const element[:, :, :, :] dy, element[:, :, :, :] dx, int64_t lddy, int64_t lddx):
    """dx (+)= dy put back into the windows that `random_window_forward` took."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        check(dtconv_random_window_backward(&key, flip, accumulate, dx.shape[0], dx.shape[1], dx.shape[2],
                                             dy.shape[1], dy.shape[2], dx.shape[3], &dy[0, 0, 0, 0], lddy,
                                             &dx[0, 0, 0, 0], lddx))
