"""Convolution passes bound to arrays."""

from cython cimport floating
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport vector
from pydtconv._ext.dtconv_conv cimport dtconv_conv, dtconv_conv_args, dtconv_conv_set_arrays, problem_of
from pydtconv._ext.dtypes cimport DTCONV_FLOAT32, dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_conv_entry:
        int (*run)(const dtconv_conv *, const void *, void *, size_t) noexcept nogil
        size_t (*workspace)(const dtconv_conv *) noexcept nogil
    dtconv_dtype DTCONV_DTYPE(...)
    const dtconv_conv_entry *dtconv_conv_find(dtconv_dtype, const char *algorithm, const char *direction)
    void dtconv_conv_set_moments(...)
    void dtconv_conv_set_reading(...)
    void dtconv_conv_set_slopes(...)
    void dtconv_conv_set_residual(...)
    size_t dtconv_conv_bias_backward_workspace(dtconv_dtype, int64_t co)
    int dtconv_conv_bias_forward(...)
    int dtconv_conv_bias_backward(...)


def exists(str algorithm, str direction) -> bool:
    """Whether the C library has this pass of this algorithm."""
    return dtconv_conv_find(DTCONV_FLOAT32, algorithm.encode(), direction.encode()) != NULL


def workspace_bytes(tuple sizes, str algorithm, str direction, str dtype) -> int:
    """Bytes of workspace that the pass wants with the threads now set; sizes as in `ConvProblem.sizes`."""
    cdef bytes name = algorithm.encode(), which = direction.encode()
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    return dtconv_conv_find(dtype_of(dtype), name, which).workspace(&p)


cdef class Bound:
    """One pass of a convolution with its arrays; a call allocates nothing and returns the C library's status."""

    cdef dtconv_conv problem
    cdef dtconv_conv_args args
    cdef const dtconv_conv_entry *entry
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
            status = self.entry.run(&self.problem, &self.args, space, nbytes)
        return status


cdef const floating *elements(const floating[:, :, :, :] like, object array):
    """The elements of a vector of `like`'s type; NULL for None."""
    cdef const floating[::1] view = array
    return vector(view)


def bind(tuple sizes, str algorithm, str direction, const floating[:, :, :, :] x, const floating[:, :, :, :] w,
         const floating[:, :, :, :] y, int64_t ldx, int64_t ldy, const floating[::1] bias=None, int activation=0,
         double alpha=0, bint accumulate=False, floating[::1] mean=None, floating[::1] variance=None,
         tuple reading=None, tuple slopes=None, const floating[:, :, :, :] residual=None, int64_t ldr=0,
         unsigned char[::1] workspace=None) -> Bound:
    """A Bound of arrays that the caller has checked: x, w, y or their gradients; ldx, ldy: elements between pixels.

    reading: how x is normalized as it is read: mean, scale, beta or None, whether ReLU follows.  slopes: what was
    normalized and the elements between its pixels, the same four, and both sums.  residual: added to y, its pixels ldr
    elements apart; it may be y.
    """
    cdef Bound bound = Bound()
    cdef bytes name = algorithm.encode(), which = direction.encode()
    cdef const floating[:, :, :, :] image
    cdef void *args = &bound.args
    cdef int64_t ldi
    cdef int relu
    bound.problem = problem_of(sizes, ldx, ldy)
    bound.arrays = (x, w, y, bias, mean, variance, reading, slopes, residual, workspace)
    bound.entry = dtconv_conv_find(DTCONV_DTYPE(&x[0, 0, 0, 0]), name, which)
    if workspace is not None and workspace.shape[0]:
        bound.workspace, bound.nbytes = &workspace[0], workspace.shape[0]
    dtconv_conv_set_arrays(args, &x[0, 0, 0, 0], &w[0, 0, 0, 0], &y[0, 0, 0, 0], vector(bias), activation, alpha,
                           accumulate)
    if mean is not None:
        dtconv_conv_set_moments(args, &mean[0], &variance[0])
    if reading is not None:
        relu = reading[3]
        dtconv_conv_set_reading(args, elements(x, reading[0]), elements(x, reading[1]), elements(x, reading[2]), relu)
    if slopes is not None:
        image, ldi, relu = slopes[0], slopes[1], slopes[5]
        dtconv_conv_set_slopes(args, &image[0, 0, 0, 0], ldi, elements(x, slopes[2]), elements(x, slopes[3]),
                               elements(x, slopes[4]), relu, elements(x, slopes[6]), elements(x, slopes[7]))
    if residual is not None:
        dtconv_conv_set_residual(args, &residual[0, 0, 0, 0], ldr)
    return bound


def bias_forward(floating[:, :, :, :] y, int64_t ldy, const floating[::1] bias, int activation, double alpha) -> int:
    """y = act(y + bias) in place; bias may be None.  Returns the status."""
    cdef int status
    cdef int64_t pixels = y.shape[0] * y.shape[1] * y.shape[2]
    with nogil:
        status = dtconv_conv_bias_forward(pixels, y.shape[3], &y[0, 0, 0, 0], ldy, vector(bias), activation, alpha)
    return status


def bias_backward_workspace(int64_t co, str dtype) -> int:
    """Bytes of workspace of bias_backward."""
    return dtconv_conv_bias_backward_workspace(dtype_of(dtype), co)


def bias_backward(floating[:, :, :, :] dy, int64_t lddy, const floating[:, :, :, :] y, int64_t ldy, int activation,
                  double alpha, floating[::1] db, unsigned char[::1] workspace) -> int:
    """dy *= act'(y) in place, db = sum of dy over the pixels; y and db may be None.  Returns the status."""
    cdef int status
    cdef int64_t pixels = dy.shape[0] * dy.shape[1] * dy.shape[2]
    cdef size_t nbytes = 0 if workspace is None else workspace.shape[0]
    cdef void *space = &workspace[0] if nbytes else NULL
    cdef const floating *y_data = NULL
    if y is not None:
        y_data = &y[0, 0, 0, 0]
    with nogil:
        status = dtconv_conv_bias_backward(pixels, dy.shape[3], y_data, ldy, &dy[0, 0, 0, 0], lddy, activation, alpha,
                                           vector(db), space, nbytes)
    return status
