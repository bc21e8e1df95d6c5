"""Convolution passes bound to arrays."""

from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport element, reals
from pydtconv._ext.dtconv_conv cimport dtconv_conv, dtconv_conv_args, dtconv_conv_set_arrays, problem_of
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_conv_entry:
        int (*run)(const dtconv_conv *, const void *, void *, size_t) noexcept nogil
        size_t (*workspace)(const dtconv_conv *) noexcept nogil
    dtconv_dtype DTCONV_DTYPE(...)
    const dtconv_conv_entry *dtconv_conv_find(dtconv_dtype, const char *algorithm, const char *direction)
    double dtconv_fft_basis(dtconv_dtype, dtconv_conv *, int)
    int64_t dtconv_fft_spectra_size(dtconv_dtype, const dtconv_conv *, int, double *)
    int64_t dtconv_fft_dy_spectra_size(dtconv_dtype, const dtconv_conv *, int, int, double *)
    int dtconv_direct_is_along_taps(dtconv_dtype, const dtconv_conv *, int)
    int dtconv_direct_reads_in_place(dtconv_dtype, const dtconv_conv *)
    void dtconv_conv_set_moments(...)
    void dtconv_conv_set_prologue(...)
    void dtconv_conv_set_reductions(...)
    void dtconv_conv_set_scale(...)
    void dtconv_conv_set_residual(...)
    void dtconv_conv_set_spectra(...)
    size_t dtconv_conv_bias_backward_workspace(dtconv_dtype, int64_t co)
    int dtconv_conv_bias_forward(...)
    int dtconv_conv_bias_backward(...)
    const char *dtconv_activation_kind(int code, const char **group)


def activations() -> dict:
    """Functions of one argument by kind, in the order of their codes: "fused", "from output" or "from input"."""
    cdef const char *group = NULL
    cdef const char *kind = dtconv_activation_kind(0, &group)
    found = {}
    while kind != NULL:
        found[kind.decode()] = group.decode()
        kind = dtconv_activation_kind(len(found), &group)
    return found


def exists(str algorithm, str direction, str dtype="float32") -> bool:
    """Whether the C library has this pass of this algorithm."""
    return dtconv_conv_find(dtype_of(dtype), algorithm.encode(), direction.encode()) != NULL


def workspace_bytes(tuple sizes, str algorithm, str direction, str dtype) -> int:
    """Bytes of workspace that the pass wants with the threads now set; sizes as in `ConvProblem.sizes`."""
    cdef bytes name = algorithm.encode(), which = direction.encode()
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    return dtconv_conv_find(dtype_of(dtype), name, which).workspace(&p)


cdef int fft_pass(str algorithm, str direction):
    """The number of a pass of fft, or of fft_overlap_add."""
    return ("forward", "backward_data", "backward_weights").index(direction) + 3 * (algorithm == "fft_overlap_add")


def fft_basis(tuple sizes, str algorithm, str direction, str dtype) -> tuple:
    """(high, wide, seconds): the basis that fft is expected to be the fastest with, or that of `sizes`; zeros: none."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    cdef double seconds = dtconv_fft_basis(dtype_of(dtype), &p, fft_pass(algorithm, direction))
    return p.basis_h, p.basis_w, seconds


def fft_spectra(tuple sizes, str algorithm, str dtype) -> tuple:
    """(elements, seconds): of the transform of x that forward can leave for backward_weights, of sizes with a basis,
    and what that is expected to gain; zeros: none.
    """
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    cdef double gain = 0
    cdef int64_t elements = dtconv_fft_spectra_size(dtype_of(dtype), &p, fft_pass(algorithm, "forward"), &gain)
    return elements, gain


def fft_dy_spectra(tuple sizes, str data, str weights, str dtype) -> tuple:
    """The same of the transform of dy that backward_weights can leave for backward_data, each by its algorithm."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    cdef double gain = 0
    cdef int first = fft_pass(data, "backward_data"), second = fft_pass(weights, "backward_weights")
    cdef int64_t elements = dtconv_fft_dy_spectra_size(dtype_of(dtype), &p, first, second, &gain)
    return elements, gain


def direct_is_along_taps(tuple sizes, str direction, str dtype) -> bool:
    """Whether a pass of `direct` has its vectors along rows of taps, not along the few channels that it writes."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    return dtconv_direct_is_along_taps(dtype_of(dtype), &p, fft_pass("fft", direction))


def direct_reads_in_place(tuple sizes, str dtype) -> bool:
    """Whether forward of `direct` reads filters where they lie: pixels are few, and rows of filters whole vectors."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    return dtconv_direct_reads_in_place(dtype_of(dtype), &p)


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


def bind(tuple sizes, str algorithm, str direction, const element[:, :, :, :] x, w, const element[:, :, :, :] y,
         int64_t ldx, int64_t ldy, bias=None, int activation=0, double alpha=0, bint accumulate=False, mean=None,
         variance=None, tuple prologue=None, tuple reductions=None, const element[:, :, :, :] residual=None,
         int64_t ldr=0, tuple scale=None, spectra=None, dy_spectra=None, unsigned char[::1] workspace=None) -> Bound:
    """A Bound of arrays that the caller has checked: x, w, y or their gradients; ldx, ldy: elements between pixels.

    prologue: how x is normalized as it is read: mean, scale, beta or None, the code of an activation.  reductions:
    what was normalized and the elements between its pixels, the same four, both sums, and whether x is the gradient
    of what was normalized.  residual: added to y, its pixels ldr elements apart; it may be y.  scale: what y is
    multiplied by and what is added then, before the residual, which is not y then.  spectra: the transform of x, left
    by forward or found by backward_weights; dy_spectra: of dy, left by backward_data.  Images of bfloat16
    are uint16, its bits; all vectors and filters are float32 then.
    """
    cdef Bound bound = Bound()
    cdef bytes name = algorithm.encode(), which = direction.encode()
    cdef const element[:, :, :, :] image
    cdef const element *like = &x[0, 0, 0, 0]
    cdef void *args = &bound.args
    cdef int64_t ldi
    cdef int code, bypass
    bound.problem = problem_of(sizes, ldx, ldy)
    bound.arrays = (x, w, y, bias, mean, variance, prologue, reductions, residual, scale, spectra, dy_spectra,
                    workspace)
    bound.entry = dtconv_conv_find(DTCONV_DTYPE(like), name, which)
    if workspace is not None and workspace.shape[0]:
        bound.workspace, bound.nbytes = &workspace[0], workspace.shape[0]
    dtconv_conv_set_arrays(args, like, reals(like, w.reshape(-1)), &y[0, 0, 0, 0], reals(like, bias), activation,
                           alpha, accumulate)
    if mean is not None:
        dtconv_conv_set_moments(like, args, reals(like, mean), reals(like, variance))
    if prologue is not None:
        code = prologue[3]
        dtconv_conv_set_prologue(like, args, reals(like, prologue[0]), reals(like, prologue[1]),
                                 reals(like, prologue[2]), code)
    if reductions is not None:
        image, ldi, code, bypass = reductions[0], reductions[1], reductions[5], reductions[8]
        dtconv_conv_set_reductions(args, &image[0, 0, 0, 0], ldi, reals(like, reductions[2]),
                                   reals(like, reductions[3]), reals(like, reductions[4]), code,
                                   reals(like, reductions[6]), reals(like, reductions[7]), bypass)
    if scale is not None:
        dtconv_conv_set_scale(like, args, reals(like, scale[0]), reals(like, scale[1]))
    if residual is not None:
        dtconv_conv_set_residual(args, &residual[0, 0, 0, 0], ldr)
    if spectra is not None or dy_spectra is not None:
        dtconv_conv_set_spectra(like, args, reals(like, spectra), reals(like, dy_spectra))
    return bound


def bias_forward(element[:, :, :, :] y, int64_t ldy, bias, int activation, double alpha) -> int:
    """y = act(y + bias) in place; bias may be None.  Returns the status."""
    cdef int status
    cdef int64_t pixels = y.shape[0] * y.shape[1] * y.shape[2]
    cdef void *added = reals(&y[0, 0, 0, 0], bias)
    with nogil:
        status = dtconv_conv_bias_forward(pixels, y.shape[3], &y[0, 0, 0, 0], ldy, added, activation, alpha)
    return status


def bias_backward_workspace(int64_t co, str dtype) -> int:
    """Bytes of workspace of bias_backward."""
    return dtconv_conv_bias_backward_workspace(dtype_of(dtype), co)


def bias_backward(element[:, :, :, :] dy, int64_t lddy, const element[:, :, :, :] y, int64_t ldy, int activation,
                  double alpha, db, unsigned char[::1] workspace) -> int:
    """dy *= act'(y) in place, db = sum of dy over the pixels; y and db may be None.  Returns the status."""
    cdef int status
    cdef int64_t pixels = dy.shape[0] * dy.shape[1] * dy.shape[2]
    cdef size_t nbytes = 0 if workspace is None else workspace.shape[0]
    cdef void *space = &workspace[0] if nbytes else NULL
    cdef const element *y_data = NULL
    cdef void *sums = reals(&dy[0, 0, 0, 0], db)
    if y is not None:
        y_data = &y[0, 0, 0, 0]
    with nogil:
        status = dtconv_conv_bias_backward(pixels, dy.shape[3], y_data, ldy, &dy[0, 0, 0, 0], lddy, activation, alpha,
                                           sums, space, nbytes)
    return status
