"""Passes of separable convolutions bound to arrays."""

from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport element, reals
from pydtconv._ext.dtconv_conv cimport dtconv_conv, dtconv_conv_args, dtconv_conv_set_arrays, problem_of
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_conv_normalization:
        pass
    dtconv_dtype DTCONV_DTYPE(...)
    void dtconv_conv_set_moments(...)
    void dtconv_conv_set_prologue(...)
    void dtconv_conv_set_scale(...)
    void dtconv_conv_set_residual(...)
    void dtconv_conv_set_normalization(...)
    int dtconv_separable_fits(dtconv_dtype, const dtconv_conv *, int64_t)
    size_t dtconv_separable_forward_workspace(dtconv_dtype, const dtconv_conv *, int64_t)
    size_t dtconv_separable_backward_weights_workspace(dtconv_dtype, const dtconv_conv *, int64_t)
    int dtconv_separable_forward(dtconv_dtype, ...)
    int dtconv_separable_backward_weights(dtconv_dtype, ...)


def fits(tuple sizes, int64_t co, str dtype) -> bool:
    """Whether the depthwise result can be made row by row; sizes: `ConvProblem.sizes` of the depthwise convolution."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], co)
    return dtconv_separable_fits(dtype_of(dtype), &p, co)


def workspace_bytes(tuple sizes, int64_t co, str direction, str dtype) -> int:
    """Bytes of workspace that the pass wants with the threads now set."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], co)
    cdef dtconv_dtype of = dtype_of(dtype)
    if direction == "forward":
        return dtconv_separable_forward_workspace(of, &p, co)
    return dtconv_separable_backward_weights_workspace(of, &p, co)


cdef class Bound:
    """One pass with its arrays; a call allocates nothing and returns the C library's status."""

    cdef dtconv_conv problem
    cdef int64_t co
    cdef dtconv_conv_args args
    cdef const void *deep
    cdef dtconv_conv_normalization between
    cdef bint forward, normalizes
    cdef dtconv_dtype dtype
    cdef object arrays

    def __call__(self, unsigned char[::1] workspace=None) -> int:
        """Runs the pass."""
        cdef int status
        cdef size_t nbytes = 0 if workspace is None else workspace.shape[0]
        cdef void *space = &workspace[0] if nbytes else NULL
        cdef const void *between = &self.between if self.normalizes else NULL
        with nogil:
            if self.forward:
                status = dtconv_separable_forward(self.dtype, &self.problem, self.co, <const void *> &self.args,
                                                  self.deep, between, space, nbytes)
            else:
                status = dtconv_separable_backward_weights(self.dtype, &self.problem, self.co,
                                                           <const void *> &self.args, self.deep, space, nbytes)
        return status


def bind(tuple sizes, str direction, const element[:, :, :, :] x, deep, w, const element[:, :, :, :] y, int64_t ldx,
         int64_t ldy, bias=None, int activation=0, double alpha=0, mean=None, variance=None, tuple prologue=None,
         const element[:, :, :, :] residual=None, int64_t ldr=0, tuple scale=None, tuple between=None) -> Bound:
    """A Bound of arrays that the caller has checked: of forward, or of backward_weights, which writes w and reads y.

    sizes: of the depthwise convolution.  deep: its filters.  between: what the depthwise result is normalized with, as
    prologue says it of x; all else as in `conv.bind`.
    """
    cdef Bound bound = Bound()
    cdef const element *like = &x[0, 0, 0, 0]
    cdef void *args = &bound.args
    cdef int code
    bound.problem = problem_of(sizes, ldx, ldy)
    bound.co = y.shape[3]
    bound.deep = reals(like, deep)
    bound.forward = direction == "forward"
    bound.dtype = DTCONV_DTYPE(like)
    bound.normalizes = between is not None
    bound.arrays = (x, deep, w, y, bias, mean, variance, prologue, residual, scale, between)
    dtconv_conv_set_arrays(args, like, reals(like, w), &y[0, 0, 0, 0], reals(like, bias), activation, alpha, False)
    if mean is not None:
        dtconv_conv_set_moments(like, args, reals(like, mean), reals(like, variance))
    if prologue is not None:
        code = prologue[3]
        dtconv_conv_set_prologue(like, args, reals(like, prologue[0]), reals(like, prologue[1]),
                                 reals(like, prologue[2]), code)
    if scale is not None:
        dtconv_conv_set_scale(like, args, reals(like, scale[0]), reals(like, scale[1]))
    if residual is not None:
        dtconv_conv_set_residual(args, &residual[0, 0, 0, 0], ldr)
    if between is not None:
        code = between[3]
        dtconv_conv_set_normalization(like, <void *> &bound.between, reals(like, between[0]), reals(like, between[1]),
                                      reals(like, between[2]), code)
    return bound
