"""Element-wise operators, reductions, copies and random operators (cext/nn).

Arrays come as flat memoryviews that reach from an operand's first element to its last; `layout` (int64) says where the
elements are (see cext/include/dtconv_nn_elem.h).  None stands for an operand that is not needed.  Arrays of bfloat16
are uint16: its bits.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pydtconv._ext.arrays cimport element, ld, matrix, reals, vector
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
    int dtconv_bilinear_forward(...)
    int dtconv_bilinear_backward(...)
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


def unary_forward(int kind, p, const int64_t[::1] layout, const element[::1] x, element[::1] y):
    """y = f(x); kind: a dtconv_unary, p: its three parameters; layout of x, y."""
    cdef const void *parameters = reals(&x[0], p)
    with nogil:
        check(dtconv_unary_forward(kind, parameters, &layout[0], &x[0], &y[0]))


def unary_backward(int kind, p, bint accumulate, const int64_t[::1] layout, const element[::1] v,
                   const element[::1] dy, element[::1] dx):
    """dx (+)= dy f'(v), v = y or x; layout of v, dy, dx."""
    cdef const void *parameters = reals(&v[0], p)
    with nogil:
        check(dtconv_unary_backward(kind, parameters, accumulate, &layout[0], &v[0], &dy[0], &dx[0]))


def add_activation(int kind, p, const int64_t[::1] layout, const element[::1] a,
                   const element[::1] b, element[::1] y):
    """y = f(a + b); layout of a, b, y."""
    cdef const void *parameters = reals(&a[0], p)
    with nogil:
        check(dtconv_add_activation(kind, parameters, &layout[0], &a[0], &b[0], &y[0]))


def binary_forward(int kind, const int64_t[::1] layout, const element[::1] a, const element[::1] b, element[::1] y):
    """y = a op b; kind: a dtconv_binary; layout of a, b, y."""
    with nogil:
        check(dtconv_binary_forward(kind, &layout[0], &a[0], &b[0], &y[0]))


def binary_backward(int kind, int operand, bint accumulate, const int64_t[::1] layout, const element[::1] dy,
                    const element[::1] a, const element[::1] b, const element[::1] y, element[::1] out):
    """out (+)= dy times the derivative by the operand; layout of dy, a, b, y, out."""
    with nogil:
        check(dtconv_binary_backward(kind, operand, accumulate, &layout[0], &dy[0], vector(a), vector(b),
                                      vector(y), &out[0]))


def copy(double factor, bint accumulate, const int64_t[::1] layout, const element[::1] x, element[::1] y):
    """y (+)= factor x; layout of x, y."""
    with nogil:
        check(dtconv_copy(factor, accumulate, &layout[0], &x[0], &y[0]))


def reduce_workspace(const int64_t[::1] layout, str dtype) -> int:
    """Bytes of workspace of `reduce`."""
    return dtconv_reduce_workspace(dtype_of(dtype), &layout[0])


def reduce(int kind, bint accumulate, double factor, const int64_t[::1] layout, const element[::1] x,
           const element[::1] x2, y, uint8_t[::1] workspace):
    """y (+)= factor times the reduction of x (or x * x2); kind: a dtconv_reduce; layout as in the header.

    y may be float32 where x is bfloat16.
    """
    cdef element[::1] elements
    cdef bint as_real = y.itemsize != sizeof(element)
    cdef void *target
    if as_real:
        target = reals(&x[0], y)
    else:
        elements = y
        target = &elements[0]
    with nogil:
        check(dtconv_reduce(kind, accumulate, factor, &layout[0], &x[0], vector(x2), target, as_real, &workspace[0],
                             workspace.shape[0]))


def permute(bint accumulate, const int64_t[::1] layout, const element[::1] x, element[::1] y):
    """y (+)= x, dimensions in another order; layout of x, y."""
    with nogil:
        check(dtconv_permute(accumulate, &layout[0], &x[0], &y[0]))


def bilinear_forward(const element[:, :, :, :] x, element[:, :, :, :] y, int64_t ldx, int64_t ldy):
    """y = x resized to y's rows and columns; x (n, ih, iw, c), y (n, oh, ow, c), pixels ldx and ldy apart."""
    with nogil:
        check(dtconv_bilinear_forward(x.shape[0], x.shape[1], x.shape[2], y.shape[1], y.shape[2], x.shape[3],
                                       &x[0, 0, 0, 0], ldx, &y[0, 0, 0, 0], ldy))


def bilinear_backward(bint accumulate, const element[:, :, :, :] dy, element[:, :, :, :] dx, int64_t lddy,
                      int64_t lddx):
    """dx (+)= the transpose of `bilinear_forward` applied to dy."""
    with nogil:
        check(dtconv_bilinear_backward(accumulate, dx.shape[0], dx.shape[1], dx.shape[2], dy.shape[1], dy.shape[2],
                                        dx.shape[3], &dy[0, 0, 0, 0], lddy, &dx[0, 0, 0, 0], lddx))


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
