"""Bindings of batch and layer normalization (cext/include/dtconv_nn_norm.h).

Images and matrices come as (rows, c) views (see kernels/cpu/rows.py): rows may lie apart, the elements of a row not.
"""

from cython cimport floating
from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport ld, matrix, vector
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    size_t dtconv_batchnorm_workspace(dtconv_dtype, int64_t rows, int64_t c)
    int dtconv_batchnorm_statistics(...)
    int dtconv_batchnorm_scale(...)
    int dtconv_batchnorm_moving(...)
    int dtconv_batchnorm_apply(...)
    int dtconv_batchnorm_backward_sums(...)
    int dtconv_batchnorm_backward_apply(...)

    size_t dtconv_layernorm_workspace(dtconv_dtype, int64_t rows, int64_t k)
    int dtconv_layernorm_forward(...)
    int dtconv_layernorm_backward(...)


# ---- batch normalization ----

def batchnorm_workspace(int64_t rows, int64_t c, str dtype) -> int:
    return dtconv_batchnorm_workspace(dtype_of(dtype), rows, c)


def batchnorm_statistics(const floating[:, :] x, floating[::1] mean, floating[::1] variance,
                         unsigned char[::1] workspace):
    with nogil:
        check(dtconv_batchnorm_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &variance[0],
                                           &workspace[0], workspace.shape[0]))


def batchnorm_scale(const floating[::1] variance, const floating[::1] gamma, double epsilon, floating[::1] inverse,
                    floating[::1] scale):
    with nogil:
        check(dtconv_batchnorm_scale(variance.shape[0], &variance[0], vector(gamma), epsilon, &inverse[0],
                                      &scale[0]))


def batchnorm_moving(const floating[::1] mean, const floating[::1] variance, double momentum, floating[::1] moving_mean,
                     floating[::1] moving_variance):
    with nogil:
        check(dtconv_batchnorm_moving(mean.shape[0], &mean[0], &variance[0], momentum, &moving_mean[0],
                                       &moving_variance[0]))


def batchnorm_apply(const floating[:, :] x, const floating[::1] mean, const floating[::1] scale,
                    const floating[::1] beta, int activation, double alpha, floating[:, :] y):
    with nogil:
        check(dtconv_batchnorm_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &scale[0], vector(beta),
                                      activation, alpha, &y[0, 0], ld(y)))


def batchnorm_backward_sums(const floating[:, :] x, const floating[:, :] y, const floating[:, :] dy,
                            const floating[::1] mean, const floating[::1] inverse, const floating[::1] scale,
                            const floating[::1] beta, int activation, double alpha, floating[::1] sum_dy,
                            floating[::1] sum_dy_xhat, unsigned char[::1] workspace):
    with nogil:
        check(dtconv_batchnorm_backward_sums(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                              ld(dy), &mean[0], &inverse[0], &scale[0], vector(beta), activation,
                                              alpha, &sum_dy[0], &sum_dy_xhat[0], &workspace[0],
                                              workspace.shape[0]))


def batchnorm_backward_apply(const floating[:, :] x, const floating[:, :] y, const floating[:, :] dy,
                             const floating[::1] mean, const floating[::1] inverse, const floating[::1] scale,
                             const floating[::1] beta, int activation, double alpha, const floating[::1] sum_dy,
                             const floating[::1] sum_dy_xhat, int64_t count, bint accumulate, floating[:, :] dx):
    with nogil:
        check(dtconv_batchnorm_backward_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                               ld(dy), &mean[0], &inverse[0], &scale[0], vector(beta), activation,
                                               alpha, vector(sum_dy), vector(sum_dy_xhat), count, accumulate,
                                               &dx[0, 0], ld(dx)))


# ---- layer normalization ----

def layernorm_workspace(int64_t rows, int64_t k, str dtype) -> int:
    return dtconv_layernorm_workspace(dtype_of(dtype), rows, k)


def layernorm_forward(const floating[:, :] x, const floating[::1] gamma, const floating[::1] beta, double epsilon,
                      floating[::1] mean, floating[::1] inverse, floating[:, :] y):
    with nogil:
        check(dtconv_layernorm_forward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), vector(beta),
                                        epsilon, &mean[0], &inverse[0], &y[0, 0], ld(y)))


def layernorm_backward(const floating[:, :] x, const floating[::1] gamma, const floating[::1] mean,
                       const floating[::1] inverse, const floating[:, :] dy, bint accumulate, floating[:, :] dx,
                       bint accumulate_gamma, floating[::1] dgamma, bint accumulate_beta, floating[::1] dbeta,
                       unsigned char[::1] workspace):
    with nogil:
        check(dtconv_layernorm_backward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), &mean[0],
                                         &inverse[0], &dy[0, 0], ld(dy), accumulate, matrix(dx), ld(dx),
                                         accumulate_gamma, vector(dgamma), accumulate_beta, vector(dbeta),
                                         &workspace[0], workspace.shape[0]))
