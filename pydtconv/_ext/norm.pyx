"""Bindings of normalization, pooling, softmax and losses (cext/include/dtconv_nn_norm.h).

Images and matrices come as (rows, c) views: rows may lie apart, the elements of a row must not (see ops/rows.py).
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t

ctypedef fused real:
    float
    double

cdef extern from "dtconv_both.h" nogil:
    ctypedef enum dtconv_status:
        DTCONV_OK
        DTCONV_UNSUPPORTED
        DTCONV_WORKSPACE
        DTCONV_ARGUMENT
    ctypedef enum dtconv_activation:
        pass
    ctypedef enum dtconv_prediction:
        pass
    ctypedef enum dtconv_label_type:
        pass
    ctypedef enum dtconv_mean:
        pass
    ctypedef enum dtconv_loss:
        pass
    ctypedef struct dtconv_pool:
        int64_t n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left
    ctypedef struct dtconv_targets:
        const void *t
        double smoothing
        const void *labels
        dtconv_label_type label_type
        int use_ignore
        int64_t ignore

    size_t dtconv_sbatchnorm_workspace(int64_t rows, int64_t c)
    size_t dtconv_dbatchnorm_workspace(int64_t rows, int64_t c)
    int dtconv_sbatchnorm_statistics(int64_t, int64_t, const float *, int64_t, float *, float *, void *, size_t)
    int dtconv_dbatchnorm_statistics(int64_t, int64_t, const double *, int64_t, double *, double *, void *, size_t)
    int dtconv_sbatchnorm_scale(int64_t, const float *, const float *, float, float *, float *)
    int dtconv_dbatchnorm_scale(int64_t, const double *, const double *, double, double *, double *)
    int dtconv_sbatchnorm_moving(int64_t, const float *, const float *, float, float *, float *)
    int dtconv_dbatchnorm_moving(int64_t, const double *, const double *, double, double *, double *)
    int dtconv_sbatchnorm_apply(int64_t, int64_t, const float *, int64_t, const float *, const float *, const float *,
                                dtconv_activation, float, float *, int64_t)
    int dtconv_dbatchnorm_apply(int64_t, int64_t, const double *, int64_t, const double *, const double *,
                                const double *,
                                dtconv_activation, double, double *, int64_t)
    int dtconv_sbatchnorm_backward_sums(int64_t, int64_t, const float *, int64_t, const float *, int64_t, const float *,
                                        int64_t, const float *, const float *, const float *, const float *,
                                        dtconv_activation, float, float *, float *, void *, size_t)
    int dtconv_dbatchnorm_backward_sums(int64_t, int64_t, const double *, int64_t, const double *, int64_t,
                                        const double *,
                                        int64_t, const double *, const double *, const double *, const double *,
                                        dtconv_activation, double, double *, double *, void *, size_t)
    int dtconv_sbatchnorm_backward_apply(int64_t, int64_t, const float *, int64_t, const float *, int64_t,
                                         const float *,
                                         int64_t, const float *, const float *, const float *, const float *,
                                         dtconv_activation, float, const float *, const float *, int64_t, int, float *,
                                         int64_t)
    int dtconv_dbatchnorm_backward_apply(int64_t, int64_t, const double *, int64_t, const double *, int64_t,
                                         const double *, int64_t, const double *, const double *, const double *,
                                         const double *, dtconv_activation, double, const double *, const double *,
                                         int64_t, int, double *, int64_t)

    size_t dtconv_slayernorm_workspace(int64_t rows, int64_t k)
    int dtconv_slayernorm_forward(int64_t, int64_t, const float *, int64_t, const float *, const float *, float,
                                  float *,
                                   float *, float *, int64_t)
    int dtconv_slayernorm_backward(int64_t, int64_t, const float *, int64_t, const float *, const float *,
                                   const float *,
                                    const float *, int64_t, int, float *, int64_t, int, float *, int, float *, void *,
                                    size_t)
    size_t dtconv_dlayernorm_workspace(int64_t rows, int64_t k)
    int dtconv_dlayernorm_forward(int64_t, int64_t, const double *, int64_t, const double *, const double *, double,
                                  double *,
                                   double *, double *, int64_t)
    int dtconv_dlayernorm_backward(int64_t, int64_t, const double *, int64_t, const double *, const double *,
                                   const double *,
                                    const double *, int64_t, int, double *, int64_t, int, double *, int, double *,
                                    void *, size_t)

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
                                         float *,
                                         int64_t)
    int dtconv_dglobal_max_pool_backward(int64_t, int64_t, int64_t, const double *, int64_t, const int32_t *, int,
                                         double *,
                                         int64_t)

    int dtconv_ssoftmax_forward(int64_t, int64_t, int64_t, int, const float *, int64_t, float *, int64_t)
    int dtconv_dsoftmax_forward(int64_t, int64_t, int64_t, int, const double *, int64_t, double *, int64_t)
    int dtconv_ssoftmax_backward(int64_t, int64_t, int64_t, int, const float *, int64_t, const float *, int64_t, int,
                                 float *, int64_t)
    int dtconv_dsoftmax_backward(int64_t, int64_t, int64_t, int, const double *, int64_t, const double *, int64_t, int,
                                 double *, int64_t)

    int dtconv_scross_entropy_forward(int64_t, int64_t, int64_t, dtconv_prediction, float, const float *,
                                      const dtconv_targets *, float *, float *)
    int dtconv_dcross_entropy_forward(int64_t, int64_t, int64_t, dtconv_prediction, double, const double *,
                                      const dtconv_targets *, double *, double *)
    int dtconv_scross_entropy_backward(int64_t, int64_t, int64_t, dtconv_prediction, float, const float *,
                                       const dtconv_targets *, const float *, const float *, int, float *)
    int dtconv_dcross_entropy_backward(int64_t, int64_t, int64_t, dtconv_prediction, double, const double *,
                                       const dtconv_targets *, const double *, const double *, int, double *)

    int dtconv_selementwise_loss_forward(int64_t, int64_t, int64_t, dtconv_loss, float, float, const float *,
                                         const float *, float *, float *)
    int dtconv_delementwise_loss_forward(int64_t, int64_t, int64_t, dtconv_loss, double, double, const double *,
                                         const double *, double *, double *)
    int dtconv_selementwise_loss_backward(int64_t, int64_t, int64_t, dtconv_loss, float, float, const float *,
                                          const float *, const float *, const float *, int, float *)
    int dtconv_delementwise_loss_backward(int64_t, int64_t, int64_t, dtconv_loss, double, double, const double *,
                                          const double *, const double *, const double *, int, double *)

    int dtconv_sweighted_mean_forward(int64_t, int64_t, dtconv_mean, const float *, const float *, float *)
    int dtconv_dweighted_mean_forward(int64_t, int64_t, dtconv_mean, const double *, const double *, double *)
    int dtconv_sweighted_mean_backward(int64_t, int64_t, dtconv_mean, const float *, const float *, int, float *)
    int dtconv_dweighted_mean_backward(int64_t, int64_t, dtconv_mean, const double *, const double *, int, double *)
    int dtconv_sl1_l2_forward(int64_t, float, float, const float *, float *)
    int dtconv_dl1_l2_forward(int64_t, double, double, const double *, double *)
    int dtconv_sl1_l2_backward(int64_t, float, float, const float *, const float *, int, float *)
    int dtconv_dl1_l2_backward(int64_t, double, double, const double *, const double *, int, double *)


class LabelError(ValueError):
    """A label that is not one of the classes."""


cdef int check(int status) except -1:
    if status == DTCONV_WORKSPACE:
        raise ValueError("the workspace is smaller than this pass needs")
    if status == DTCONV_UNSUPPORTED:
        raise NotImplementedError("the kernel does not do this problem")
    if status != DTCONV_OK:
        raise ValueError("sizes or attributes contradict each other")
    return 0


cdef int check_labels(int status) except -1:
    if status == DTCONV_ARGUMENT:
        raise LabelError("a label is outside the classes")
    return check(status)


cdef inline real *vector(const real[::1] a) noexcept nogil:
    return NULL if a is None else <real *> &a[0]


cdef inline real *matrix(const real[:, :] a) noexcept nogil:
    return NULL if a is None else <real *> &a[0, 0]


cdef inline int64_t ld(const real[:, :] a) noexcept nogil:
    return 0 if a is None else a.strides[0] // <int64_t> sizeof(real)


# ---- batch normalization ----

def batchnorm_workspace(int64_t rows, int64_t c, bint double_precision) -> int:
    return dtconv_dbatchnorm_workspace(rows, c) if double_precision else dtconv_sbatchnorm_workspace(rows, c)


def batchnorm_statistics(const real[:, :] x, real[::1] mean, real[::1] variance, unsigned char[::1] workspace):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sbatchnorm_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &variance[0],
                                                  &workspace[0], workspace.shape[0])
        else:
            status = dtconv_dbatchnorm_statistics(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &variance[0],
                                                  &workspace[0], workspace.shape[0])
    check(status)


def batchnorm_scale(const real[::1] variance, const real[::1] gamma, double epsilon, real[::1] inverse,
                    real[::1] scale):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sbatchnorm_scale(variance.shape[0], &variance[0], vector(gamma), <float> epsilon,
                                             &inverse[0],
                                             &scale[0])
        else:
            status = dtconv_dbatchnorm_scale(variance.shape[0], &variance[0], vector(gamma), epsilon, &inverse[0],
                                             &scale[0])
    check(status)


def batchnorm_moving(const real[::1] mean, const real[::1] variance, double momentum, real[::1] moving_mean,
                     real[::1] moving_variance):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sbatchnorm_moving(mean.shape[0], &mean[0], &variance[0], <float> momentum, &moving_mean[0],
                                              &moving_variance[0])
        else:
            status = dtconv_dbatchnorm_moving(mean.shape[0], &mean[0], &variance[0], momentum, &moving_mean[0],
                                              &moving_variance[0])
    check(status)


def batchnorm_apply(const real[:, :] x, const real[::1] mean, const real[::1] scale, const real[::1] beta,
                    int activation, double alpha, real[:, :] y):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sbatchnorm_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &scale[0], vector(beta),
                                             <dtconv_activation> activation, <float> alpha, &y[0, 0], ld(y))
        else:
            status = dtconv_dbatchnorm_apply(x.shape[0], x.shape[1], &x[0, 0], ld(x), &mean[0], &scale[0], vector(beta),
                                             <dtconv_activation> activation, alpha, &y[0, 0], ld(y))
    check(status)


def batchnorm_backward_sums(const real[:, :] x, const real[:, :] y, const real[:, :] dy, const real[::1] mean,
                            const real[::1] inverse, const real[::1] scale, const real[::1] beta, int activation,
                            double alpha, real[::1] sum_dy, real[::1] sum_dy_xhat, unsigned char[::1] workspace):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sbatchnorm_backward_sums(
                x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0], ld(dy), &mean[0], &inverse[0],
                &scale[0], vector(beta), <dtconv_activation> activation, <float> alpha, &sum_dy[0], &sum_dy_xhat[0],
                &workspace[0], workspace.shape[0])
        else:
            status = dtconv_dbatchnorm_backward_sums(
                x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0], ld(dy), &mean[0], &inverse[0],
                &scale[0], vector(beta), <dtconv_activation> activation, alpha, &sum_dy[0], &sum_dy_xhat[0],
                &workspace[0], workspace.shape[0])
    check(status)


def batchnorm_backward_apply(const real[:, :] x, const real[:, :] y, const real[:, :] dy, const real[::1] mean,
                             const real[::1] inverse, const real[::1] scale, const real[::1] beta, int activation,
                             double alpha, const real[::1] sum_dy, const real[::1] sum_dy_xhat, int64_t count,
                             bint accumulate, real[:, :] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sbatchnorm_backward_apply(
                x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0], ld(dy), &mean[0], &inverse[0],
                &scale[0], vector(beta), <dtconv_activation> activation, <float> alpha, vector(sum_dy),
                vector(sum_dy_xhat), count, accumulate, &dx[0, 0], ld(dx))
        else:
            status = dtconv_dbatchnorm_backward_apply(
                x.shape[0], x.shape[1], &x[0, 0], ld(x), matrix(y), ld(y), &dy[0, 0], ld(dy), &mean[0], &inverse[0],
                &scale[0], vector(beta), <dtconv_activation> activation, alpha, vector(sum_dy), vector(sum_dy_xhat),
                count, accumulate, &dx[0, 0], ld(dx))
    check(status)


# ---- layer normalization ----

def layernorm_workspace(int64_t rows, int64_t k, bint double_precision) -> int:
    return dtconv_dlayernorm_workspace(rows, k) if double_precision else dtconv_slayernorm_workspace(rows, k)


def layernorm_forward(const real[:, :] x, const real[::1] gamma, const real[::1] beta, double epsilon, real[::1] mean,
                      real[::1] inverse, real[:, :] y):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_slayernorm_forward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), vector(beta),
                                               <float> epsilon, &mean[0], &inverse[0], &y[0, 0], ld(y))
        else:
            status = dtconv_dlayernorm_forward(x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), vector(beta),
                                               epsilon, &mean[0], &inverse[0], &y[0, 0], ld(y))
    check(status)


def layernorm_backward(const real[:, :] x, const real[::1] gamma, const real[::1] mean, const real[::1] inverse,
                       const real[:, :] dy, bint accumulate, real[:, :] dx, bint accumulate_gamma, real[::1] dgamma,
                       bint accumulate_beta, real[::1] dbeta, unsigned char[::1] workspace):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_slayernorm_backward(
                x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), &mean[0], &inverse[0], &dy[0, 0], ld(dy),
                accumulate, matrix(dx), ld(dx), accumulate_gamma, vector(dgamma), accumulate_beta, vector(dbeta),
                &workspace[0], workspace.shape[0])
        else:
            status = dtconv_dlayernorm_backward(
                x.shape[0], x.shape[1], &x[0, 0], ld(x), vector(gamma), &mean[0], &inverse[0], &dy[0, 0], ld(dy),
                accumulate, matrix(dx), ld(dx), accumulate_gamma, vector(dgamma), accumulate_beta, vector(dbeta),
                &workspace[0], workspace.shape[0])
    check(status)


# ---- pooling ----

cdef class PoolWindow:
    """Sizes of a pooling problem: n ih iw c oh ow kh kw sh sw top left."""

    cdef dtconv_pool p

    def __init__(self, n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left):
        self.p = dtconv_pool(n, ih, iw, c, oh, ow, kh, kw, sh, sw, top, left)


def max_pool_forward(PoolWindow window, const real[:, :] x, real[:, :] y, unsigned char[::1] argmax, int argmax_bytes):
    cdef int status
    cdef void *positions = NULL if argmax is None else <void *> &argmax[0]
    with nogil:
        if real is float:
            status = dtconv_smax_pool_forward(&window.p, &x[0, 0], ld(x), &y[0, 0], ld(y), positions, argmax_bytes)
        else:
            status = dtconv_dmax_pool_forward(&window.p, &x[0, 0], ld(x), &y[0, 0], ld(y), positions, argmax_bytes)
    check(status)


def max_pool_backward(PoolWindow window, const real[:, :] dy, const unsigned char[::1] argmax, int argmax_bytes,
                      bint accumulate, real[:, :] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_smax_pool_backward(&window.p, &dy[0, 0], ld(dy), &argmax[0], argmax_bytes, accumulate,
                                               &dx[0, 0], ld(dx))
        else:
            status = dtconv_dmax_pool_backward(&window.p, &dy[0, 0], ld(dy), &argmax[0], argmax_bytes, accumulate,
                                               &dx[0, 0], ld(dx))
    check(status)


def average_pool_forward(PoolWindow window, const real[:, :] x, bint include_pad, real[:, :] y):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_saverage_pool_forward(&window.p, &x[0, 0], ld(x), include_pad, &y[0, 0], ld(y))
        else:
            status = dtconv_daverage_pool_forward(&window.p, &x[0, 0], ld(x), include_pad, &y[0, 0], ld(y))
    check(status)


def average_pool_backward(PoolWindow window, const real[:, :] dy, bint include_pad, bint accumulate, real[:, :] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_saverage_pool_backward(&window.p, &dy[0, 0], ld(dy), include_pad, accumulate, &dx[0, 0],
                                                   ld(dx))
        else:
            status = dtconv_daverage_pool_backward(&window.p, &dy[0, 0], ld(dy), include_pad, accumulate, &dx[0, 0],
                                                   ld(dx))
    check(status)


def global_average_pool_forward(int64_t n, const real[:, :] x, real[:, :] y):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sglobal_average_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0],
                                                         ld(y))
        else:
            status = dtconv_dglobal_average_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0],
                                                         ld(y))
    check(status)


def global_average_pool_backward(int64_t n, const real[:, :] dy, bint accumulate, real[:, :] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sglobal_average_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy),
                                                          accumulate, &dx[0, 0], ld(dx))
        else:
            status = dtconv_dglobal_average_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy),
                                                          accumulate, &dx[0, 0], ld(dx))
    check(status)


def global_max_pool_forward(int64_t n, const real[:, :] x, real[:, :] y, int32_t[:, ::1] argmax):
    cdef int status
    cdef int32_t *positions = NULL if argmax is None else &argmax[0, 0]
    with nogil:
        if real is float:
            status = dtconv_sglobal_max_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y),
                                                     positions)
        else:
            status = dtconv_dglobal_max_pool_forward(n, x.shape[0] // n, x.shape[1], &x[0, 0], ld(x), &y[0, 0], ld(y),
                                                     positions)
    check(status)


def global_max_pool_backward(int64_t n, const real[:, :] dy, const int32_t[:, ::1] argmax, bint accumulate,
                             real[:, :] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sglobal_max_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy),
                                                      &argmax[0, 0], accumulate, &dx[0, 0], ld(dx))
        else:
            status = dtconv_dglobal_max_pool_backward(n, dx.shape[0] // n, dx.shape[1], &dy[0, 0], ld(dy),
                                                      &argmax[0, 0], accumulate, &dx[0, 0], ld(dx))
    check(status)


# ---- softmax: x is (outer * k * inner / columns, columns) with columns = k where inner is 1 ----

def softmax_forward(int64_t outer, int64_t k, int64_t inner, bint logarithm, const real[:, :] x, real[:, :] y):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_ssoftmax_forward(outer, k, inner, logarithm, &x[0, 0], ld(x), &y[0, 0], ld(y))
        else:
            status = dtconv_dsoftmax_forward(outer, k, inner, logarithm, &x[0, 0], ld(x), &y[0, 0], ld(y))
    check(status)


def softmax_backward(int64_t outer, int64_t k, int64_t inner, bint logarithm, const real[:, :] y, const real[:, :] dy,
                     bint accumulate, real[:, :] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_ssoftmax_backward(outer, k, inner, logarithm, &y[0, 0], ld(y), &dy[0, 0], ld(dy),
                                              accumulate,
                                              &dx[0, 0], ld(dx))
        else:
            status = dtconv_dsoftmax_backward(outer, k, inner, logarithm, &y[0, 0], ld(y), &dy[0, 0], ld(dy),
                                              accumulate,
                                              &dx[0, 0], ld(dx))
    check(status)


# ---- losses ----

cdef class Targets:
    """True classes: the address of distributions, or of labels of type 0 int32, 1 int64, 2 float32, 3 float64.

    array is kept alive; its memory is read whenever a loss runs.
    """

    cdef dtconv_targets a
    cdef readonly object array

    def __init__(self, array, const unsigned char[::1] data, bint sparse, int label_type, double smoothing, ignore):
        self.array = array
        self.a.t = NULL
        self.a.labels = NULL
        if sparse:
            self.a.labels = &data[0]
        else:
            self.a.t = &data[0]
        self.a.smoothing = smoothing
        self.a.label_type = <dtconv_label_type> label_type
        self.a.use_ignore = ignore is not None
        self.a.ignore = 0 if ignore is None else ignore


def cross_entropy_forward(int64_t outer, int64_t k, int64_t inner, int prediction, double epsilon, const real[::1] x,
                          Targets targets, real[::1] p, real[::1] loss):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_scross_entropy_forward(outer, k, inner, <dtconv_prediction> prediction, <float> epsilon,
                                                   &x[0],
                                                   &targets.a, vector(p), &loss[0])
        else:
            status = dtconv_dcross_entropy_forward(outer, k, inner, <dtconv_prediction> prediction, epsilon, &x[0],
                                                   &targets.a, vector(p), &loss[0])
    check_labels(status)


def cross_entropy_backward(int64_t outer, int64_t k, int64_t inner, int prediction, double epsilon, const real[::1] x,
                           Targets targets, const real[::1] dloss, const real[::1] dp, bint accumulate, real[::1] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_scross_entropy_backward(outer, k, inner, <dtconv_prediction> prediction, <float> epsilon,
                                                    &x[0], &targets.a, vector(dloss), vector(dp), accumulate, &dx[0])
        else:
            status = dtconv_dcross_entropy_backward(outer, k, inner, <dtconv_prediction> prediction, epsilon, &x[0],
                                                    &targets.a, vector(dloss), vector(dp), accumulate, &dx[0])
    check_labels(status)


def weighted_mean_forward(int64_t inner, int reduction, const real[::1] values, const real[::1] weights,
                          real[::1] result):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sweighted_mean_forward(values.shape[0], inner, <dtconv_mean> reduction, &values[0],
                                                   vector(weights), &result[0])
        else:
            status = dtconv_dweighted_mean_forward(values.shape[0], inner, <dtconv_mean> reduction, &values[0],
                                                   vector(weights), &result[0])
    check(status)


def weighted_mean_backward(int64_t inner, int reduction, const real[::1] dresult, const real[::1] weights,
                           bint accumulate,
                           real[::1] dvalues):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sweighted_mean_backward(dvalues.shape[0], inner, <dtconv_mean> reduction, vector(weights),
                                                    &dresult[0], accumulate, &dvalues[0])
        else:
            status = dtconv_dweighted_mean_backward(dvalues.shape[0], inner, <dtconv_mean> reduction, vector(weights),
                                                    &dresult[0], accumulate, &dvalues[0])
    check(status)


def l1_l2_forward(double l1, double l2, const real[::1] w, real[::1] result):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sl1_l2_forward(w.shape[0], <float> l1, <float> l2, &w[0], &result[0])
        else:
            status = dtconv_dl1_l2_forward(w.shape[0], l1, l2, &w[0], &result[0])
    check(status)


def l1_l2_backward(double l1, double l2, const real[::1] w, const real[::1] dresult, bint accumulate, real[::1] dw):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_sl1_l2_backward(w.shape[0], <float> l1, <float> l2, &w[0], &dresult[0], accumulate, &dw[0])
        else:
            status = dtconv_dl1_l2_backward(w.shape[0], l1, l2, &w[0], &dresult[0], accumulate, &dw[0])
    check(status)


def elementwise_loss_forward(int64_t outer, int64_t k, int64_t inner, int kind, double a, double smoothing,
                             const real[::1] x, const real[::1] t, real[::1] p, real[::1] loss):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_selementwise_loss_forward(outer, k, inner, <dtconv_loss> kind, <float> a, <float> smoothing,
                                                      &x[0], &t[0], vector(p), &loss[0])
        else:
            status = dtconv_delementwise_loss_forward(outer, k, inner, <dtconv_loss> kind, a, smoothing, &x[0], &t[0],
                                                      vector(p), &loss[0])
    check(status)


def elementwise_loss_backward(int64_t outer, int64_t k, int64_t inner, int kind, double a, double smoothing,
                              const real[::1] x, const real[::1] t, const real[::1] dloss, const real[::1] dp,
                              bint accumulate, real[::1] dx):
    cdef int status
    with nogil:
        if real is float:
            status = dtconv_selementwise_loss_backward(outer, k, inner, <dtconv_loss> kind, <float> a,
                                                       <float> smoothing,
                                                       &x[0], &t[0], vector(dloss), vector(dp), accumulate, &dx[0])
        else:
            status = dtconv_delementwise_loss_backward(outer, k, inner, <dtconv_loss> kind, a, smoothing, &x[0], &t[0],
                                                       vector(dloss), vector(dp), accumulate, &dx[0])
    check(status)
