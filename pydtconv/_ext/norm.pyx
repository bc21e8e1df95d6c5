"""Bindings of batch and layer normalization (cext/include/dtconv_nn_norm.h).

Images and matrices come as (rows, c) views (see kernels/cpu/rows.py): rows may lie apart, the elements of a row not.
Those of bfloat16 are uint16, its bits; parameters and statistics are float32 then.
"""

from cython cimport floating
from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport element, ld, matrix, reals, vector
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    size_t dtconv_batchnorm_workspace(dtconv_dtype, int64_t rows, int64_t c)
    int dtconv_batchnorm_statistics(...)
    int dtconv_batchnorm_exact_statistics(...)
    int dtconv_batchnorm_scale(...)
    int dtconv_batchnorm_moving(...)
    int dtconv_batchnorm_apply(...)
    int dtconv_batchnorm_backward_sums(...)
    int dtconv_batchnorm_backward_apply(...)
    int dtconv_batchnorm_backward_means(...)
    int dtconv_normalized_sums(...)
    int dtconv_normalized_product(...)
    int dtconv_normalized_gradient(...)

    size_t dtconv_layernorm_workspace(dtconv_dtype, int64_t rows, int64_t k)
    int dtconv_layernorm_forward(...)
    int dtconv_layernorm_backward(...)


# ---- batch normalization ----

def batchnorm_workspace(int64_t rows, int64_t c, str dtype) -> int:
    return dtconv_batchnorm_workspace(dtype_of(dtype), rows, c)


def batchnorm_statistics(const element[:, :] x, mean, variance, unsigned char[::1] workspace):
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *variance_ = reals(&x[0, 0], variance)
    with nogil:
        check(dtconv_batchnorm_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), mean_, variance_, &workspace[0],
                                          workspace.shape[0]))


def batchnorm_exact_statistics(const element[:, :] x, double[::1] mean, double[::1] variance,
                               unsigned char[::1] workspace):
    with nogil:
        check(dtconv_batchnorm_exact_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &variance[0],
                                                &workspace[0], workspace.shape[0]))


def batchnorm_scale(const floating[::1] variance, const floating[::1] gamma, double epsilon, floating[::1] inverse,
                    floating[::1] scale):
    with nogil:
        check(dtconv_batchnorm_scale(variance.shape[0], &variance[0], vector(gamma), epsilon, &inverse[0], &scale[0]))


def batchnorm_moving(const floating[::1] mean, const floating[::1] variance, double momentum, floating[::1] moving_mean,
                     floating[::1] moving_variance):
    with nogil:
        check(dtconv_batchnorm_moving(mean.shape[0], &mean[0], &variance[0], momentum, &moving_mean[0],
                                      &moving_variance[0]))


def batchnorm_apply(const element[:, :] x, mean, scale, beta, int activation, double alpha, element[:, :] y):
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *scale_ = reals(&x[0, 0], scale)
    cdef void *beta_ = reals(&x[0, 0], beta)
    with nogil:
        check(dtconv_batchnorm_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), mean_, scale_, beta_, activation, alpha,
                                     &y[0, 0], ld(y)))


def batchnorm_backward_sums(const element[:, :] x, const element[:, :] y, const element[:, :] dy, mean, inverse, scale,
                            beta, int activation, double alpha, sum_dy, sum_dy_xhat, unsigned char[::1] workspace):
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *inverse_ = reals(&x[0, 0], inverse)
    cdef void *scale_ = reals(&x[0, 0], scale)
    cdef void *beta_ = reals(&x[0, 0], beta)
    cdef void *sum_dy_ = reals(&x[0, 0], sum_dy)
    cdef void *sum_dy_xhat_ = reals(&x[0, 0], sum_dy_xhat)
    with nogil:
        check(dtconv_batchnorm_backward_sums(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                             ld(dy), mean_, inverse_, scale_, beta_, activation, alpha, sum_dy_,
                                             sum_dy_xhat_, &workspace[0], workspace.shape[0]))


def batchnorm_backward_apply(const element[:, :] x, const element[:, :] y, const element[:, :] dy, mean, inverse, scale,
                             beta, int activation, double alpha, sum_dy, sum_dy_xhat, int64_t count, bint accumulate,
                             element[:, :] dx):
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *inverse_ = reals(&x[0, 0], inverse)
    cdef void *scale_ = reals(&x[0, 0], scale)
    cdef void *beta_ = reals(&x[0, 0], beta)
    cdef void *sum_dy_ = reals(&x[0, 0], sum_dy)
    cdef void *sum_dy_xhat_ = reals(&x[0, 0], sum_dy_xhat)
    with nogil:
        check(dtconv_batchnorm_backward_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                              ld(dy), mean_, inverse_, scale_, beta_, activation, alpha, sum_dy_,
                                              sum_dy_xhat_, count, accumulate, &dx[0, 0], ld(dx)))


def batchnorm_backward_means(const element[:, :] x, mean, offset, slope, element[:, :] dx):
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *offset_ = reals(&x[0, 0], offset)
    cdef void *slope_ = reals(&x[0, 0], slope)
    with nogil:
        check(dtconv_batchnorm_backward_means(x.shape[0], x.shape[1], &x[0, 0], ld(x), mean_, offset_, slope_,
                                              &dx[0, 0], ld(dx)))


def normalized_sums(int64_t n, const element[:, :] x, mean, scale, beta, int activation, const element[:, :] dy,
                    double factor, bint accumulate, element[:, :] y):
    """y (n, c) (+)= factor times the sums over images of x as it is normalized, times dy (None: 1).

    mean None: of x as it is.
    """
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *scale_ = reals(&x[0, 0], scale)
    cdef void *beta_ = reals(&x[0, 0], beta)
    with nogil:
        check(dtconv_normalized_sums(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), mean_, scale_, beta_, activation,
                                     matrix(dy), ld(dy), factor, accumulate, &y[0, 0], ld(y)))


def normalized_product(int64_t n, const element[:, :] x, mean, scale, beta, int activation,
                       const element[:, :] factors, element[:, :] y):
    """y = x as it is normalized, times factors (n, c) of each image."""
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *scale_ = reals(&x[0, 0], scale)
    cdef void *beta_ = reals(&x[0, 0], beta)
    with nogil:
        check(dtconv_normalized_product(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), mean_, scale_, beta_,
                                        activation, &factors[0, 0], ld(factors), &y[0, 0], ld(y)))


def normalized_gradient(int64_t n, const element[:, :] x, mean, scale, beta, int activation, const element[:, :] dy,
                        double factor, bint accumulate, element[:, :] dz, total, total_x,
                        unsigned char[::1] workspace):
    """dz (+)= factor times dy (n, c) at each pixel of an image; sums of g = dz act', and of g times x - mean."""
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *scale_ = reals(&x[0, 0], scale)
    cdef void *beta_ = reals(&x[0, 0], beta)
    cdef void *total_ = reals(&x[0, 0], total)
    cdef void *total_x_ = reals(&x[0, 0], total_x)
    with nogil:
        check(dtconv_normalized_gradient(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), mean_, scale_, beta_,
                                         activation, &dy[0, 0], ld(dy), factor, accumulate, &dz[0, 0], ld(dz), total_,
                                         total_x_, &workspace[0], workspace.shape[0]))


# ---- layer normalization ----

def layernorm_workspace(int64_t rows, int64_t k, str dtype) -> int:
    return dtconv_layernorm_workspace(dtype_of(dtype), rows, k)


def layernorm_forward(bint rms, const element[:, :] x, gamma, beta, double epsilon, mean, inverse, element[:, :] y):
    cdef void *gamma_ = reals(&x[0, 0], gamma)
    cdef void *beta_ = reals(&x[0, 0], beta)
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *inverse_ = reals(&x[0, 0], inverse)
    with nogil:
        check(dtconv_layernorm_forward(x.shape[0], x.shape[1], rms, &x[0, 0], ld(x), gamma_, beta_, epsilon, mean_,
                                       inverse_, &y[0, 0], ld(y)))


def layernorm_backward(bint rms, const element[:, :] x, gamma, mean, inverse, const element[:, :] dy, bint accumulate,
                       element[:, :] dx, bint accumulate_gamma, dgamma, bint accumulate_beta, dbeta,
                       unsigned char[::1] workspace):
    cdef void *gamma_ = reals(&x[0, 0], gamma)
    cdef void *mean_ = reals(&x[0, 0], mean)
    cdef void *inverse_ = reals(&x[0, 0], inverse)
    cdef void *dgamma_ = reals(&x[0, 0], dgamma)
    cdef void *dbeta_ = reals(&x[0, 0], dbeta)
    with nogil:
        check(dtconv_layernorm_backward(x.shape[0], x.shape[1], rms, &x[0, 0], ld(x), gamma_, mean_, inverse_,
                                        &dy[0, 0], ld(dy), accumulate, matrix(dx), ld(dx), accumulate_gamma, dgamma_,
                                        accumulate_beta, dbeta_, &workspace[0], workspace.shape[0]))
