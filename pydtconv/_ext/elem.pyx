"""Element-wise operators, reductions, copies and random operators (cext/nn).

Arrays come as flat memoryviews that reach from an operand's first element to its last; `layout` (int64) says where the
elements are (see cext/include/dtconv_nn_elem.h).  None stands for an operand that is not needed.
"""

from cython cimport floating
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pydtconv._ext.arrays cimport ld, matrix, vector
from pydtconv._ext.status cimport check

cdef extern from "dtconv_both.h" nogil:
    int dtconv_sunary_forward(int, const float *, const int64_t *, const float *, float *)
    int dtconv_dunary_forward(int, const double *, const int64_t *, const double *, double *)
    int dtconv_sunary_backward(int, const float *, int, const int64_t *, const float *, const float *, float *)
    int dtconv_dunary_backward(int, const double *, int, const int64_t *, const double *, const double *, double *)
    int dtconv_sadd_activation(int, const float *, const int64_t *, const float *, const float *, float *)
    int dtconv_dadd_activation(int, const double *, const int64_t *, const double *, const double *, double *)
    int dtconv_sbinary_forward(int, const int64_t *, const float *, const float *, float *)
    int dtconv_dbinary_forward(int, const int64_t *, const double *, const double *, double *)
    int dtconv_sbinary_backward(int, int, int, const int64_t *, const float *, const float *, const float *,
                                const float *, float *)
    int dtconv_dbinary_backward(int, int, int, const int64_t *, const double *, const double *, const double *,
                                const double *, double *)
    int dtconv_scopy(float, int, const int64_t *, const float *, float *)
    int dtconv_dcopy(double, int, const int64_t *, const double *, double *)
    int dtconv_spermute(int, const int64_t *, const float *, float *)
    int dtconv_dpermute(int, const int64_t *, const double *, double *)
    int dtconv_sbilinear_forward(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const float *, int64_t, float *,
                                 int64_t)
    int dtconv_dbilinear_forward(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const double *, int64_t,
                                 double *, int64_t)
    int dtconv_sbilinear_backward(int, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const float *, int64_t,
                                  float *, int64_t)
    int dtconv_dbilinear_backward(int, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const double *, int64_t,
                                  double *, int64_t)
    ctypedef struct dtconv_random_key:
        uint64_t seed
        uint32_t stream
        uint32_t step
        int64_t first
    int dtconv_sdropout(const dtconv_random_key *, double, int, int64_t, int64_t, const float *, int64_t, float *,
                        int64_t)
    int dtconv_sgaussian_noise(const dtconv_random_key *, double, int64_t, int64_t, const float *, int64_t, float *,
                               int64_t)
    int dtconv_srandom_window_forward(const dtconv_random_key *, int, int64_t, int64_t, int64_t, int64_t, int64_t,
                                      int64_t, const float *, int64_t, float *, int64_t)
    int dtconv_srandom_window_backward(const dtconv_random_key *, int, int, int64_t, int64_t, int64_t, int64_t, int64_t,
                                       int64_t, const float *, int64_t, float *, int64_t)
    int dtconv_ddropout(const dtconv_random_key *, double, int, int64_t, int64_t, const double *, int64_t, double *,
                        int64_t)
    int dtconv_dgaussian_noise(const dtconv_random_key *, double, int64_t, int64_t, const double *, int64_t, double *,
                               int64_t)
    int dtconv_drandom_window_forward(const dtconv_random_key *, int, int64_t, int64_t, int64_t, int64_t, int64_t,
                                      int64_t, const double *, int64_t, double *, int64_t)
    int dtconv_drandom_window_backward(const dtconv_random_key *, int, int, int64_t, int64_t, int64_t, int64_t, int64_t,
                                       int64_t, const double *, int64_t, double *, int64_t)
    size_t dtconv_sreduce_workspace(const int64_t *)
    size_t dtconv_dreduce_workspace(const int64_t *)
    int dtconv_sreduce(int, int, float, const int64_t *, const float *, const float *, float *, void *, size_t)
    int dtconv_dreduce(int, int, double, const int64_t *, const double *, const double *, double *, void *, size_t)


def unary_forward(int kind, const floating[::1] p, const int64_t[::1] layout, const floating[::1] x, floating[::1] y):
    """y = f(x); kind: a dtconv_unary, p: its three parameters; layout of x, y."""
    with nogil:
        if floating is float:
            check(dtconv_sunary_forward(kind, &p[0], &layout[0], &x[0], &y[0]))
        else:
            check(dtconv_dunary_forward(kind, &p[0], &layout[0], &x[0], &y[0]))


def unary_backward(int kind, const floating[::1] p, bint accumulate, const int64_t[::1] layout, const floating[::1] v,
                   const floating[::1] dy, floating[::1] dx):
    """dx (+)= dy f'(v), v = y or x; layout of v, dy, dx."""
    with nogil:
        if floating is float:
            check(dtconv_sunary_backward(kind, &p[0], accumulate, &layout[0], &v[0], &dy[0], &dx[0]))
        else:
            check(dtconv_dunary_backward(kind, &p[0], accumulate, &layout[0], &v[0], &dy[0], &dx[0]))


def add_activation(int kind, const floating[::1] p, const int64_t[::1] layout, const floating[::1] a,
                   const floating[::1] b, floating[::1] y):
    """y = f(a + b); layout of a, b, y."""
    with nogil:
        if floating is float:
            check(dtconv_sadd_activation(kind, &p[0], &layout[0], &a[0], &b[0], &y[0]))
        else:
            check(dtconv_dadd_activation(kind, &p[0], &layout[0], &a[0], &b[0], &y[0]))


def binary_forward(int kind, const int64_t[::1] layout, const floating[::1] a, const floating[::1] b, floating[::1] y):
    """y = a op b; kind: a dtconv_binary; layout of a, b, y."""
    with nogil:
        if floating is float:
            check(dtconv_sbinary_forward(kind, &layout[0], &a[0], &b[0], &y[0]))
        else:
            check(dtconv_dbinary_forward(kind, &layout[0], &a[0], &b[0], &y[0]))


def binary_backward(int kind, int operand, bint accumulate, const int64_t[::1] layout, const floating[::1] dy,
                    const floating[::1] a, const floating[::1] b, const floating[::1] y, floating[::1] out):
    """out (+)= dy times the derivative by the operand; layout of dy, a, b, y, out."""
    with nogil:
        if floating is float:
            check(dtconv_sbinary_backward(kind, operand, accumulate, &layout[0], &dy[0], vector(a), vector(b),
                                          vector(y), &out[0]))
        else:
            check(dtconv_dbinary_backward(kind, operand, accumulate, &layout[0], &dy[0], vector(a), vector(b),
                                          vector(y), &out[0]))


def copy(floating factor, bint accumulate, const int64_t[::1] layout, const floating[::1] x, floating[::1] y):
    """y (+)= factor x; layout of x, y."""
    with nogil:
        if floating is float:
            check(dtconv_scopy(factor, accumulate, &layout[0], &x[0], &y[0]))
        else:
            check(dtconv_dcopy(factor, accumulate, &layout[0], &x[0], &y[0]))


def reduce_workspace(const int64_t[::1] layout, int itemsize) -> int:
    """Bytes of workspace of `reduce` for elements of itemsize bytes."""
    return dtconv_sreduce_workspace(&layout[0]) if itemsize == 4 else dtconv_dreduce_workspace(&layout[0])


def reduce(int kind, bint accumulate, floating factor, const int64_t[::1] layout, const floating[::1] x,
           const floating[::1] x2, floating[::1] y, uint8_t[::1] workspace):
    """y (+)= factor times the reduction of x (or x * x2); kind: a dtconv_reduce; layout as in the header."""
    with nogil:
        if floating is float:
            check(dtconv_sreduce(kind, accumulate, factor, &layout[0], &x[0], vector(x2), &y[0], &workspace[0],
                                 workspace.shape[0]))
        else:
            check(dtconv_dreduce(kind, accumulate, factor, &layout[0], &x[0], vector(x2), &y[0], &workspace[0],
                                 workspace.shape[0]))


def permute(bint accumulate, const int64_t[::1] layout, const floating[::1] x, floating[::1] y):
    """y (+)= x, dimensions in another order; layout of x, y."""
    with nogil:
        if floating is float:
            check(dtconv_spermute(accumulate, &layout[0], &x[0], &y[0]))
        else:
            check(dtconv_dpermute(accumulate, &layout[0], &x[0], &y[0]))


def bilinear_forward(const floating[:, :, :, :] x, floating[:, :, :, :] y, int64_t ldx, int64_t ldy):
    """y = x resized to y's rows and columns; x (n, ih, iw, c), y (n, oh, ow, c), pixels ldx and ldy apart."""
    with nogil:
        if floating is float:
            check(dtconv_sbilinear_forward(x.shape[0], x.shape[1], x.shape[2], y.shape[1], y.shape[2], x.shape[3],
                                           &x[0, 0, 0, 0], ldx, &y[0, 0, 0, 0], ldy))
        else:
            check(dtconv_dbilinear_forward(x.shape[0], x.shape[1], x.shape[2], y.shape[1], y.shape[2], x.shape[3],
                                           &x[0, 0, 0, 0], ldx, &y[0, 0, 0, 0], ldy))


def bilinear_backward(bint accumulate, const floating[:, :, :, :] dy, floating[:, :, :, :] dx, int64_t lddy,
                      int64_t lddx):
    """dx (+)= the transpose of `bilinear_forward` applied to dy."""
    with nogil:
        if floating is float:
            check(dtconv_sbilinear_backward(accumulate, dx.shape[0], dx.shape[1], dx.shape[2], dy.shape[1], dy.shape[2],
                                            dx.shape[3], &dy[0, 0, 0, 0], lddy, &dx[0, 0, 0, 0], lddx))
        else:
            check(dtconv_dbilinear_backward(accumulate, dx.shape[0], dx.shape[1], dx.shape[2], dy.shape[1], dy.shape[2],
                                            dx.shape[3], &dy[0, 0, 0, 0], lddy, &dx[0, 0, 0, 0], lddx))


def dropout(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, double rate, bint accumulate,
            const floating[:, :] x, floating[:, :] y):
    """y (+)= x with some elements 0 and the others divided by 1 - rate; x None: ones.  Rows may be apart."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        if floating is float:
            check(dtconv_sdropout(&key, rate, accumulate, y.shape[0], y.shape[1], matrix(x), ld(x), &y[0, 0], ld(y)))
        else:
            check(dtconv_ddropout(&key, rate, accumulate, y.shape[0], y.shape[1], matrix(x), ld(x), &y[0, 0], ld(y)))


def gaussian_noise(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, double stddev, const floating[:, :] x,
                   floating[:, :] y):
    """y = x + noise of standard deviation stddev.  Rows may be apart."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        if floating is float:
            check(dtconv_sgaussian_noise(&key, stddev, y.shape[0], y.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y)))
        else:
            check(dtconv_dgaussian_noise(&key, stddev, y.shape[0], y.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y)))


def random_window_forward(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, int flip,
                          const floating[:, :, :, :] x, floating[:, :, :, :] y, int64_t ldx, int64_t ldy):
    """y = a random window of each image of x, mirrored at random (flip: 1 columns, 2 rows, 3 both)."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        if floating is float:
            check(dtconv_srandom_window_forward(&key, flip, x.shape[0], x.shape[1], x.shape[2], y.shape[1], y.shape[2],
                                                x.shape[3], &x[0, 0, 0, 0], ldx, &y[0, 0, 0, 0], ldy))
        else:
            check(dtconv_drandom_window_forward(&key, flip, x.shape[0], x.shape[1], x.shape[2], y.shape[1], y.shape[2],
                                                x.shape[3], &x[0, 0, 0, 0], ldx, &y[0, 0, 0, 0], ldy))


def random_window_backward(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, int flip, bint accumulate,
                           const floating[:, :, :, :] dy, floating[:, :, :, :] dx, int64_t lddy, int64_t lddx):
    """dx (+)= dy put back into the windows that `random_window_forward` took."""
    cdef dtconv_random_key key = dtconv_random_key(seed, stream, step, first)
    with nogil:
        if floating is float:
            check(dtconv_srandom_window_backward(&key, flip, accumulate, dx.shape[0], dx.shape[1], dx.shape[2],
                                                 dy.shape[1], dy.shape[2], dx.shape[3], &dy[0, 0, 0, 0], lddy,
                                                 &dx[0, 0, 0, 0], lddx))
        else:
            check(dtconv_drandom_window_backward(&key, flip, accumulate, dx.shape[0], dx.shape[1], dx.shape[2],
                                                 dy.shape[1], dy.shape[2], dx.shape[3], &dy[0, 0, 0, 0], lddy,
                                                 &dx[0, 0, 0, 0], lddx))
