"""Bindings of batch and layer normalization (cext/include/dtconv_nn_norm.h).

Images and matrices come as (rows, c) views: rows may lie apart, the elements of a row must not (see ops/rows.py).
"""

from cython cimport floating
from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport ld, matrix, vector
from pydtconv._ext.status cimport check

cdef extern from "dtconv_both.h" nogil:
    size_t dtconv_sbatchnorm_workspace(int64_t rows, int64_t c)
    size_t dtconv_dbatchnorm_workspace(int64_t rows, int64_t c)
    int dtconv_sbatchnorm_statistics(int64_t, int64_t, const float *, int64_t, float *, float *, void *, size_t)
    int dtconv_dbatchnorm_statistics(int64_t, int64_t, const double *, int64_t, double *, double *, void *, size_t)
    int dtconv_sbatchnorm_scale(int64_t, const float *, const float *, float, float *, float *)
    int dtconv_dbatchnorm_scale(int64_t, const double *, const double *, double, double *, double *)
    int dtconv_sbatchnorm_moving(int64_t, const float *, const float *, float, float *, float *)
    int dtconv_dbatchnorm_moving(int64_t, const double *, const double *, double, double *, double *)
    int dtconv_sbatchnorm_apply(int64_t, int64_t, const float *, int64_t, const float *, const float *, const float *,
                                int, float, float *, int64_t)
    int dtconv_dbatchnorm_apply(int64_t, int64_t, const double *, int64_t, const double *, const double *,
                                const double *, int, double, double *, int64_t)
    int dtconv_sbatchnorm_backward_sums(int64_t, int64_t, const float *, int64_t, const float *, int64_t, const float *,
                                        int64_t, const float *, const float *, const float *, const float *, int, float,
                                        float *, float *, void *, size_t)
    int dtconv_dbatchnorm_backward_sums(int64_t, int64_t, const double *, int64_t, const double *, int64_t,
                                        const double *, int64_t, const double *, const double *, const double *,
                                        const double *, int, double, double *, double *, void *, size_t)
    int dtconv_sbatchnorm_backward_apply(int64_t, int64_t, const float *, int64_t, const float *, int64_t,
                                         const float *, int64_t, const float *, const float *, const float *,
                                         const float *, int, float, const float *, const float *, int64_t, int, float *,
                                         int64_t)
    int dtconv_dbatchnorm_backward_apply(int64_t, int64_t, const double *, int64_t, const double *, int64_t,
                                         const double *, int64_t, const double *, const double *, const double *,
                                         const double *, int, double, const double *, const double *, int64_t, int,
                                         double *, int64_t)

    size_t dtconv_slayernorm_workspace(int64_t rows, int64_t k)
    int dtconv_slayernorm_forward(int64_t, int64_t, const float *, int64_t, const float *, const float *, float,
                                  float *, float *, float *, int64_t)
    int dtconv_slayernorm_backward(int64_t, int64_t, const float *, int64_t, const float *, const float *,
                                   const float *, const float *, int64_t, int, float *, int64_t, int, float *, int,
                                   float *, void *, size_t)
    size_t dtconv_dlayernorm_workspace(int64_t rows, int64_t k)
    int dtconv_dlayernorm_forward(int64_t, int64_t, const double *, int64_t, const double *, const double *, double,
                                  double *, double *, double *, int64_t)
    int dtconv_dlayernorm_backward(int64_t, int64_t, const double *, int64_t, const double *, const double *,
                                   const double *, const double *, int64_t, int, double *, int64_t, int, double *, int,
                                   double *, void *, size_t)


# ---- batch normalization ----

def batchnorm_workspace(int64_t rows, int64_t c, bint double_precision) -> int:
    return dtconv_dbatchnorm_workspace(rows, c) if double_precision else dtconv_sbatchnorm_workspace(rows, c)


def batchnorm_statistics(const floating[:, :] x, floating[::1] mean, floating[::1] variance,
                         unsigned char[::1] workspace):
    with nogil:
        if floating is float:
            check(dtconv_sbatchnorm_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &variance[0],
                                               &workspace[0], workspace.shape[0]))
        else:
            check(dtconv_dbatchnorm_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &variance[0],
                                               &workspace[0], workspace.shape[0]))


def batchnorm_scale(const floating[::1] variance, const floating[::1] gamma, double epsilon, floating[::1] inverse,
                    floating[::1] scale):
    with nogil:
        if floating is float:
            check(dtconv_sbatchnorm_scale(variance.shape[0], &variance[0], vector(gamma), epsilon, &inverse[0],
                                          &scale[0]))
        else:
            check(dtconv_dbatchnorm_scale(variance.shape[0], &variance[0], vector(gamma), epsilon, &inverse[0],
                                          &scale[0]))


def batchnorm_moving(const floating[::1] mean, const floating[::1] variance, double momentum, floating[::1] moving_mean,
                     floating[::1] moving_variance):
    with nogil:
        if floating is float:
            check(dtconv_sbatchnorm_moving(mean.shape[0], &mean[0], &variance[0], momentum, &moving_mean[0],
                                           &moving_variance[0]))
        else:
            check(dtconv_dbatchnorm_moving(mean.shape[0], &mean[0], &variance[0], momentum, &moving_mean[0],
                                           &moving_variance[0]))


def batchnorm_apply(const floating[:, :] x, const floating[::1] mean, const floating[::1] scale,
                    const floating[::1] beta, int activation, double alpha, floating[:, :] y):
    with nogil:
        if floating is float:
            check(dtconv_sbatchnorm_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &scale[0], vector(beta),
                                          activation, alpha, &y[0, 0], ld(y)))
        else:
            check(dtconv_dbatchnorm_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &scale[0], vector(beta),
                                          activation, alpha, &y[0, 0], ld(y)))


def batchnorm_backward_sums(const floating[:, :] x, const floating[:, :] y, const floating[:, :] dy,
                            const floating[::1] mean, const floating[::1] inverse, const floating[::1] scale,
                            const floating[::1] beta, int activation, double alpha, floating[::1] sum_dy,
                            floating[::1] sum_dy_xhat, unsigned char[::1] workspace):
    with nogil:
        if floating is float:
            check(dtconv_sbatchnorm_backward_sums(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                                  ld(dy), &mean[0], &inverse[0], &scale[0], vector(beta), activation,
                                                  alpha, &sum_dy[0], &sum_dy_xhat[0], &workspace[0],
                                                  workspace.shape[0]))
        else:
            check(dtconv_dbatchnorm_backward_sums(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                                  ld(dy), &mean[0], &inverse[0], &scale[0], vector(beta), activation,
                                                  alpha, &sum_dy[0], &sum_dy_xhat[0], &workspace[0],
                                                  workspace.shape[0]))


def batchnorm_backward_apply(const floating[:, :] x, const floating[:, :] y, const floating[:, :] dy,
                             const floating[::1] mean, const floating[::1] inverse, const floating[::1] scale,
                             const floating[::1] beta, int activation, double alpha, const floating[::1] sum_dy,
                             const floating[::1] sum_dy_xhat, int64_t count, bint accumulate, floating[:, :] dx):
    with nogil:
        if floating is float:
            check(dtconv_sbatchnorm_backward_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                                   ld(dy), &mean[0], &inverse[0], &scale[0], vector(beta), activation,
                                                   alpha, vector(sum_dy), vector(sum_dy_xhat), count, accumulate,
                                                   &dx[0, 0], ld(dx)))
        else:
            check(dtconv_dbatchnorm_backward_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0],
                                                   ld(dy), &mean[0], &inverse[0], &scale[0], vector(beta), activation,
                                                   alpha, vector(sum_dy), vector(sum_dy_xhat), count, accumulate,
                                                   &dx[0, 0], ld(dx)))


# ---- layer normalization ----

def layernorm_workspace(int64_t rows, int64_t k, bint double_precision) -> int:
    return dtconv_dlayernorm_workspace(rows, k) if double_precision else dtconv_slayernorm_workspace(rows, k)


def layernorm_forward(const floating[:, :] x, const floating[::1] gamma, const floating[::1] beta, double epsilon,
                      floating[::1] mean, floating[::1] inverse, floating[:, :] y):
    with nogil:
        if floating is float:
            check(dtconv_slayernorm_forward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), vector(beta),
                                            epsilon, &mean[0], &inverse[0], &y[0, 0], ld(y)))
        else:
            check(dtconv_dlayernorm_forward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), vector(beta),
                                            epsilon, &mean[0], &inverse[0], &y[0, 0], ld(y)))


def layernorm_backward(const floating[:, :] x, const floating[::1] gamma, const floating[::1] mean,
                       const floating[::1] inverse, const floating[:, :] dy, bint accumulate, floating[:, :] dx,
                       bint accumulate_gamma, floating[::1] dgamma, bint accumulate_beta, floating[::1] dbeta,
                       unsigned char[::1] workspace):
    with nogil:
        if floating is float:
            check(dtconv_slayernorm_backward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), &mean[0],
                                             &inverse[0], &dy[0, 0], ld(dy), accumulate, matrix(dx), ld(dx),
                                             accumulate_gamma, vector(dgamma), accumulate_beta, vector(dbeta),
                                             &workspace[0], workspace.shape[0]))
        else:
            check(dtconv_dlayernorm_backward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), &mean[0],
                                             &inverse[0], &dy[0, 0], ld(dy), accumulate, matrix(dx), ld(dx),
                                             accumulate_gamma, vector(dgamma), accumulate_beta, vector(dbeta),
                                             &workspace[0], workspace.shape[0]))
