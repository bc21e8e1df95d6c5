"""Bindings of batch and layer normalization (cext/include/dtconv_nn_norm.h).

Images and matrices come as (rows, c) views (see kernels/cpu/rows.py): rows may lie apart, the elements of a row not.
Those of bfloat16 are uint16, its bits; parameters and statistics are float32 then.  What `bind_*` returns is called in
every step: it is bound to addresses, for a view of an array takes longer than the work of a small layer.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport (
    dtype_in,
    holding,
    reals_in,
    rows_in,
    rows_of,
    scratch,
    scratch_in,
)
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
    int dtconv_batchnorm_given_sums(...)
    int dtconv_batchnorm_backward_apply(...)
    int dtconv_batchnorm_mean_terms(...)
    int dtconv_batchnorm_backward_means(...)
    int dtconv_normalized_sums(...)
    int dtconv_normalized_product(...)
    int dtconv_normalized_gradient(...)

    size_t dtconv_layernorm_workspace(dtconv_dtype, int64_t rows, int64_t k)
    int dtconv_layernorm_forward(...)
    int dtconv_layernorm_backward(...)


# ---- batch normalization ----

cdef struct coefficients:
    void *mean
    void *inverse
    void *scale
    void *beta


cdef coefficients coefficients_in(mean, inverse, scale, beta, dtconv_dtype dtype) except *:
    """The vectors that normalize images of a dtype; None is NULL."""
    cdef coefficients found
    found.mean, found.inverse = reals_in(mean, dtype), reals_in(inverse, dtype)
    found.scale, found.beta = reals_in(scale, dtype), reals_in(beta, dtype)
    return found


def batchnorm_workspace(int64_t rows, int64_t c, str dtype) -> int:
    return dtconv_batchnorm_workspace(dtype_of(dtype), rows, c)


def bind_statistics(x, mean, variance) -> object:
    """A call that writes mean and biased variance of x; its argument is the workspace."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype)
    cdef void *mean_ = reals_in(mean, dtype)
    cdef void *variance_ = reals_in(variance, dtype)

    def run(unsigned char[::1] workspace):
        with nogil:
            check(dtconv_batchnorm_statistics(dtype, image.count, image.width, image.data, image.apart, mean_,
                                              variance_, &workspace[0], workspace.shape[0]))

    return holding(run, (x, mean, variance))


def bind_exact_statistics(x, double[::1] mean, double[::1] variance, workspace) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_batchnorm_exact_statistics(dtype, image.count, image.width, image.data, image.apart, &mean[0],
                                                    &variance[0], space.data, space.size))

    return holding(run, (x, workspace))


def bind_coefficients(variance, gamma, double epsilon, inverse, scale) -> object:
    cdef dtconv_dtype dtype = dtype_in(variance)
    cdef int64_t c = variance.shape[0]
    cdef void *variance_ = reals_in(variance, dtype)
    cdef void *gamma_ = reals_in(gamma, dtype)
    cdef void *inverse_ = reals_in(inverse, dtype)
    cdef void *scale_ = reals_in(scale, dtype)

    def run():
        with nogil:
            check(dtconv_batchnorm_scale(dtype, c, variance_, gamma_, epsilon, inverse_, scale_))

    return holding(run, (variance, gamma, inverse, scale))


def bind_moving(mean, variance, double momentum, moving_mean, moving_variance) -> object:
    cdef dtconv_dtype dtype = dtype_in(mean)
    cdef int64_t c = mean.shape[0]
    cdef void *mean_ = reals_in(mean, dtype)
    cdef void *variance_ = reals_in(variance, dtype)
    cdef void *moving_mean_ = reals_in(moving_mean, dtype)
    cdef void *moving_variance_ = reals_in(moving_variance, dtype)

    def run():
        with nogil:
            check(dtconv_batchnorm_moving(dtype, c, mean_, variance_, momentum, moving_mean_, moving_variance_))

    return holding(run, (mean, variance, moving_mean, moving_variance))


def bind_apply(x, mean, scale, beta, int activation, double alpha, y) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)
    cdef coefficients of = coefficients_in(mean, None, scale, beta, dtype)

    def run():
        with nogil:
            check(dtconv_batchnorm_apply(dtype, image.count, image.width, image.data, image.apart, of.mean, of.scale,
                                         of.beta, activation, alpha, out.data, out.apart))

    return holding(run, (x, mean, scale, beta, y))


def bind_backward_sums(x, y, dy, mean, inverse, scale, beta, int activation, double alpha, sum_dy, sum_dy_xhat,
                       workspace) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype), gradient = rows_in(dy, dtype)
    cdef coefficients of = coefficients_in(mean, inverse, scale, beta, dtype)
    cdef void *sum_dy_ = reals_in(sum_dy, dtype)
    cdef void *sum_dy_xhat_ = reals_in(sum_dy_xhat, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_batchnorm_backward_sums(
                dtype, image.count, image.width, image.data, image.apart, out.data, out.apart, gradient.data,
                gradient.apart, of.mean, of.inverse, of.scale, of.beta, activation, alpha, sum_dy_, sum_dy_xhat_,
                space.data, space.size))

    return holding(run, (x, y, dy, mean, inverse, scale, beta, sum_dy, sum_dy_xhat, workspace))


def bind_given_sums(sums, sums_x, inverse, sum_dy, sum_dy_xhat) -> object:
    cdef dtconv_dtype dtype = dtype_in(sums)
    cdef int64_t c = sums.shape[0]
    cdef void *sums_ = reals_in(sums, dtype)
    cdef void *sums_x_ = reals_in(sums_x, dtype)
    cdef void *inverse_ = reals_in(inverse, dtype)
    cdef void *sum_dy_ = reals_in(sum_dy, dtype)
    cdef void *sum_dy_xhat_ = reals_in(sum_dy_xhat, dtype)

    def run():
        with nogil:
            check(dtconv_batchnorm_given_sums(dtype, c, sums_, sums_x_, inverse_, sum_dy_, sum_dy_xhat_))

    return holding(run, (sums, sums_x, inverse, sum_dy, sum_dy_xhat))


def bind_backward_apply(x, y, dy, mean, inverse, scale, beta, int activation, double alpha, sum_dy, sum_dy_xhat,
                        bint accumulate, dx) -> object:
    """A call whose argument is the number of samples behind the statistics."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype), gradient = rows_in(dy, dtype)
    cdef rows_of target = rows_in(dx, dtype)
    cdef coefficients of = coefficients_in(mean, inverse, scale, beta, dtype)
    cdef void *sum_dy_ = reals_in(sum_dy, dtype)
    cdef void *sum_dy_xhat_ = reals_in(sum_dy_xhat, dtype)

    def run(int64_t count):
        with nogil:
            check(dtconv_batchnorm_backward_apply(
                dtype, image.count, image.width, image.data, image.apart, out.data, out.apart, gradient.data,
                gradient.apart, of.mean, of.inverse, of.scale, of.beta, activation, alpha, sum_dy_, sum_dy_xhat_, count,
                accumulate, target.data, target.apart))

    return holding(run, (x, y, dy, mean, inverse, scale, beta, sum_dy, sum_dy_xhat, dx))


def bind_mean_terms(sum_dy, sum_dy_xhat, inverse, scale, bint accumulate, offset, slope) -> object:
    """A call whose argument is the number of samples behind the statistics."""
    cdef dtconv_dtype dtype = dtype_in(sum_dy)
    cdef int64_t c = sum_dy.shape[0]
    cdef void *sum_dy_ = reals_in(sum_dy, dtype)
    cdef void *sum_dy_xhat_ = reals_in(sum_dy_xhat, dtype)
    cdef void *inverse_ = reals_in(inverse, dtype)
    cdef void *scale_ = reals_in(scale, dtype)
    cdef void *offset_ = reals_in(offset, dtype)
    cdef void *slope_ = reals_in(slope, dtype)

    def run(int64_t count):
        with nogil:
            check(dtconv_batchnorm_mean_terms(dtype, c, sum_dy_, sum_dy_xhat_, inverse_, scale_, count, accumulate,
                                              offset_, slope_))

    return holding(run, (sum_dy, sum_dy_xhat, inverse, scale, offset, slope))


def bind_backward_means(x, mean, offset, slope, dx) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), target = rows_in(dx, dtype)
    cdef void *mean_ = reals_in(mean, dtype)
    cdef void *offset_ = reals_in(offset, dtype)
    cdef void *slope_ = reals_in(slope, dtype)

    def run():
        with nogil:
            check(dtconv_batchnorm_backward_means(dtype, image.count, image.width, image.data, image.apart, mean_,
                                                  offset_, slope_, target.data, target.apart))

    return holding(run, (x, mean, offset, slope, dx))


def bind_normalized_sums(int64_t n, x, mean, scale, beta, int activation, dy, double factor, bint accumulate,
                         y) -> object:
    """y (n, c) (+)= factor times the sums over images of x as it is normalized, times dy (None: 1).

    mean None: of x as it is.
    """
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), gradient = rows_in(dy, dtype), out = rows_in(y, dtype)
    cdef coefficients of = coefficients_in(mean, None, scale, beta, dtype)

    def run():
        with nogil:
            check(dtconv_normalized_sums(dtype, n, image.count // n, image.width, image.data, image.apart, of.mean,
                                         of.scale, of.beta, activation, gradient.data, gradient.apart, factor,
                                         accumulate, out.data, out.apart))

    return holding(run, (x, mean, scale, beta, dy, y))


def bind_normalized_product(int64_t n, x, mean, scale, beta, int activation, factors, y) -> object:
    """y = x as it is normalized, times factors (n, c) of each image."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), by = rows_in(factors, dtype), out = rows_in(y, dtype)
    cdef coefficients of = coefficients_in(mean, None, scale, beta, dtype)

    def run():
        with nogil:
            check(dtconv_normalized_product(dtype, n, image.count // n, image.width, image.data, image.apart, of.mean,
                                            of.scale, of.beta, activation, by.data, by.apart, out.data, out.apart))

    return holding(run, (x, mean, scale, beta, factors, y))


def bind_normalized_gradient(int64_t n, x, mean, scale, beta, int activation, dy, double factor, bint accumulate, dz,
                             total, total_x, workspace) -> object:
    """dz (+)= factor times dy (n, c) at each pixel of an image; sums of g = dz act', and of g times x - mean."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), gradient = rows_in(dy, dtype), target = rows_in(dz, dtype)
    cdef coefficients of = coefficients_in(mean, None, scale, beta, dtype)
    cdef void *total_ = reals_in(total, dtype)
    cdef void *total_x_ = reals_in(total_x, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_normalized_gradient(
                dtype, n, image.count // n, image.width, image.data, image.apart, of.mean, of.scale, of.beta,
                activation, gradient.data, gradient.apart, factor, accumulate, target.data, target.apart, total_,
                total_x_, space.data, space.size))

    return holding(run, (x, mean, scale, beta, dy, dz, total, total_x, workspace))


# ---- layer normalization ----

def layernorm_workspace(int64_t rows, int64_t k, str dtype) -> int:
    return dtconv_layernorm_workspace(dtype_of(dtype), rows, k)


def bind_layernorm(bint rms, x, gamma, beta, double epsilon, mean, inverse, y) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)
    cdef void *gamma_ = reals_in(gamma, dtype)
    cdef void *beta_ = reals_in(beta, dtype)
    cdef void *mean_ = reals_in(mean, dtype)
    cdef void *inverse_ = reals_in(inverse, dtype)

    def run():
        with nogil:
            check(dtconv_layernorm_forward(dtype, image.count, image.width, rms, image.data, image.apart, gamma_, beta_,
                                           epsilon, mean_, inverse_, out.data, out.apart))

    return holding(run, (x, gamma, beta, mean, inverse, y))


def bind_layernorm_backward(bint rms, x, gamma, mean, inverse, dy, bint accumulate, dx, bint accumulate_gamma, dgamma,
                            bint accumulate_beta, dbeta, workspace) -> object:
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), gradient = rows_in(dy, dtype), target = rows_in(dx, dtype)
    cdef void *gamma_ = reals_in(gamma, dtype)
    cdef void *mean_ = reals_in(mean, dtype)
    cdef void *inverse_ = reals_in(inverse, dtype)
    cdef void *dgamma_ = reals_in(dgamma, dtype)
    cdef void *dbeta_ = reals_in(dbeta, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_layernorm_backward(
                dtype, image.count, image.width, rms, image.data, image.apart, gamma_, mean_, inverse_, gradient.data,
                gradient.apart, accumulate, target.data, target.apart, accumulate_gamma, dgamma_, accumulate_beta,
                dbeta_, space.data, space.size))

    return holding(run, (x, gamma, mean, inverse, dy, dx, dgamma, dbeta, workspace))
