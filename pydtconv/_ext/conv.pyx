"""Convolution passes bound to arrays."""
from libc.stdint cimport int64_t

from pydtconv._ext.dtconv_conv cimport (
    dtconv_activation,
    dtconv_conv,
    dtconv_dconv_args,
    dtconv_dconv_normalization,
    dtconv_dconv_slopes,
    dtconv_sconv_args,
    dtconv_sconv_normalization,
    dtconv_sconv_slopes,
    dconv_args_of,
    problem_of,
    real,
    sconv_args_of,
)

cdef extern from "dtconv_both.h" nogil:
    ctypedef struct dtconv_sconv_entry:
        int (*run)(const dtconv_conv *, const dtconv_sconv_args *, void *, size_t) noexcept nogil
        size_t (*workspace)(const dtconv_conv *) noexcept nogil
    ctypedef struct dtconv_dconv_entry:
        int (*run)(const dtconv_conv *, const dtconv_dconv_args *, void *, size_t) noexcept nogil
        size_t (*workspace)(const dtconv_conv *) noexcept nogil
    const dtconv_sconv_entry *dtconv_sconv_find(const char *algorithm, const char *direction)
    const dtconv_dconv_entry *dtconv_dconv_find(const char *algorithm, const char *direction)
    int dtconv_sconv_bias_forward(int64_t, int64_t, float *, int64_t, const float *, dtconv_activation, float)
    int dtconv_dconv_bias_forward(int64_t, int64_t, double *, int64_t, const double *, dtconv_activation, double)
    int dtconv_sconv_bias_backward(int64_t, int64_t, const float *, int64_t, float *, int64_t, dtconv_activation, float,
                                   float *, void *, size_t)
    int dtconv_dconv_bias_backward(int64_t, int64_t, const double *, int64_t, double *, int64_t, dtconv_activation,
                                   double,
                                   double *, void *, size_t)
    size_t dtconv_sconv_bias_backward_workspace(int64_t co)
    size_t dtconv_dconv_bias_backward_workspace(int64_t co)


def exists(str algorithm, str direction) -> bool:
    """Whether the C library has this pass of this algorithm."""
    return dtconv_sconv_find(algorithm.encode(), direction.encode()) != NULL


def workspace_bytes(tuple sizes, str algorithm, str direction, bint double_precision) -> int:
    """Bytes of workspace that the pass wants with the threads now set; sizes as in `ConvProblem.sizes`."""
    cdef bytes name = algorithm.encode(), which = direction.encode()
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    if double_precision:
        return dtconv_dconv_find(name, which).workspace(&p)
    return dtconv_sconv_find(name, which).workspace(&p)


cdef class Bound:
    """One pass of a convolution with its arrays; a call allocates nothing and returns the C library's status."""

    cdef dtconv_conv problem
    cdef dtconv_sconv_args s
    cdef dtconv_dconv_args d
    cdef const dtconv_sconv_entry *s_entry
    cdef const dtconv_dconv_entry *d_entry
    cdef bint is_double
    cdef void *workspace
    cdef size_t nbytes
    cdef object arrays

    def __call__(self, unsigned char[::1] workspace=None) -> int:
        """Runs the pass; in `workspace` where none was bound."""
        cdef int status
        cdef void *space = self.workspace
        cdef size_t nbytes = self.nbytes
        if workspace is not None:
            nbytes = workspace.shape[0]
            space = &workspace[0] if nbytes else NULL
        with nogil:
            if self.is_double:
                status = self.d_entry.run(&self.problem, &self.d, space, nbytes)
            else:
                status = self.s_entry.run(&self.problem, &self.s, space, nbytes)
        return status


cdef const real *vector(const real[:, :, :, :] like, object array):
    """The elements of a vector of `like`'s type; NULL for None."""
    if array is None:
        return NULL
    cdef const real[::1] view = array
    return &view[0]


def bind(tuple sizes, str algorithm, str direction, const real[:, :, :, :] x, const real[:, :, :, :] w,
         const real[:, :, :, :] y, int64_t ldx, int64_t ldy, const real[::1] bias=None, int activation=0,
         double alpha=0, bint accumulate=False, real[::1] mean=None, real[::1] variance=None,
         tuple reading=None, tuple slopes=None, const real[:, :, :, :] residual=None, int64_t ldr=0,
         unsigned char[::1] workspace=None) -> Bound:
    """A Bound of arrays that the caller has checked: x, w, y or their gradients; ldx, ldy: elements between pixels.

    reading: how x is normalized as it is read: mean, scale, beta or None, whether ReLU follows.  slopes: what was
    normalized and the elements between its pixels, the same four, and both sums.  residual: added to y, its pixels ldr
    elements apart; it may be y.
    """
    cdef Bound bound = Bound()
    cdef bytes name = algorithm.encode(), which = direction.encode()
    bound.problem = problem_of(sizes, ldx, ldy)
    bound.arrays = (x, w, y, bias, mean, variance, reading, slopes, residual, workspace)
    if workspace is not None and workspace.shape[0]:
        bound.workspace, bound.nbytes = &workspace[0], workspace.shape[0]
    cdef const real *bias_data = NULL
    cdef const real[:, :, :, :] image
    if bias is not None:
        bias_data = &bias[0]
    if slopes is not None:
        image = slopes[0]
    if real is float:
        bound.s = sconv_args_of(&x[0, 0, 0, 0], &w[0, 0, 0, 0], &y[0, 0, 0, 0], bias_data, activation, alpha,
                                accumulate)
        if mean is not None:
            bound.s.mean, bound.s.variance = &mean[0], &variance[0]
        if reading is not None:
            bound.s.reading = dtconv_sconv_normalization(vector(x, reading[0]), vector(x, reading[1]),
                                                         vector(x, reading[2]), reading[3])
        if slopes is not None:
            bound.s.slopes = dtconv_sconv_slopes(&image[0, 0, 0, 0], slopes[1], vector(x, slopes[2]),
                                                 vector(x, slopes[3]), vector(x, slopes[4]), slopes[5],
                                                 <float *> vector(x, slopes[6]), <float *> vector(x, slopes[7]))
        if residual is not None:
            bound.s.residual, bound.s.ldr = &residual[0, 0, 0, 0], ldr
        bound.s_entry = dtconv_sconv_find(name, which)
    else:
        bound.is_double = True
        bound.d = dconv_args_of(&x[0, 0, 0, 0], &w[0, 0, 0, 0], &y[0, 0, 0, 0], bias_data, activation, alpha,
                                accumulate)
        if mean is not None:
            bound.d.mean, bound.d.variance = &mean[0], &variance[0]
        if reading is not None:
            bound.d.reading = dtconv_dconv_normalization(vector(x, reading[0]), vector(x, reading[1]),
                                                         vector(x, reading[2]), reading[3])
        if slopes is not None:
            bound.d.slopes = dtconv_dconv_slopes(&image[0, 0, 0, 0], slopes[1], vector(x, slopes[2]),
                                                 vector(x, slopes[3]), vector(x, slopes[4]), slopes[5],
                                                 <double *> vector(x, slopes[6]), <double *> vector(x, slopes[7]))
        if residual is not None:
            bound.d.residual, bound.d.ldr = &residual[0, 0, 0, 0], ldr
        bound.d_entry = dtconv_dconv_find(name, which)
    return bound


def bias_forward(real[:, :, :, :] y, int64_t ldy, const real[::1] bias, int activation, double alpha) -> int:
    """y = act(y + bias) in place; bias may be None.  Returns the status."""
    cdef int status
    cdef int64_t pixels = y.shape[0] * y.shape[1] * y.shape[2], co = y.shape[3]
    cdef real *y_data = &y[0, 0, 0, 0]
    cdef const real *bias_data = NULL
    if bias is not None:
        bias_data = &bias[0]
    with nogil:
        if real is float:
            status = dtconv_sconv_bias_forward(pixels, co, y_data, ldy, bias_data, <dtconv_activation> activation,
                                               alpha)
        else:
            status = dtconv_dconv_bias_forward(pixels, co, y_data, ldy, bias_data, <dtconv_activation> activation,
                                               alpha)
    return status


def bias_backward_workspace(int64_t co, bint double_precision) -> int:
    """Bytes of workspace of bias_backward."""
    return dtconv_dconv_bias_backward_workspace(co) if double_precision else dtconv_sconv_bias_backward_workspace(co)


def bias_backward(real[:, :, :, :] dy, int64_t lddy, const real[:, :, :, :] y, int64_t ldy, int activation,
                  double alpha,
                  real[::1] db, unsigned char[::1] workspace) -> int:
    """dy *= act'(y) in place, db = sum of dy over the pixels; y and db may be None.  Returns the status."""
    cdef int status
    cdef int64_t pixels = dy.shape[0] * dy.shape[1] * dy.shape[2], co = dy.shape[3]
    cdef size_t nbytes = 0 if workspace is None else workspace.shape[0]
    cdef void *space = &workspace[0] if nbytes else NULL
    cdef const real *y_data = NULL
    cdef real *db_data = NULL
    cdef real *dy_data = &dy[0, 0, 0, 0]
    if y is not None:
        y_data = &y[0, 0, 0, 0]
    if db is not None:
        db_data = &db[0]
    with nogil:
        if real is float:
            status = dtconv_sconv_bias_backward(pixels, co, y_data, ldy, dy_data, lddy, <dtconv_activation> activation,
                                                alpha, db_data, space, nbytes)
        else:
            status = dtconv_dconv_bias_backward(pixels, co, y_data, ldy, dy_data, lddy, <dtconv_activation> activation,
                                                alpha, db_data, space, nbytes)
    return status
