"""Fourier transforms of many arrays over one axis or two."""

from cython cimport floating
from libc.stdint cimport int64_t

from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    ctypedef int dtconv_fft_kind
    ctypedef struct dtconv_fft_problem:
        int64_t outer, high, wide, inner, x_high, x_wide
        dtconv_fft_kind kind
        double scale
    size_t dtconv_fft_batch_workspace(dtconv_dtype, const dtconv_fft_problem *)
    int dtconv_fft_batch(...)
    ctypedef struct dtconv_overlap:
        int64_t signals
        int64_t a[2]
        int64_t b[2]
        int64_t start[2]
        int64_t stop[2]
        int64_t block[2]
        int64_t part[2]
        int64_t steps[2]
        int64_t points[3]
        int method, is_private, threads
    size_t dtconv_overlap_plan_bytes(dtconv_dtype, const dtconv_overlap *)
    void dtconv_overlap_plan(dtconv_dtype, const dtconv_overlap *, void *)
    size_t dtconv_overlap_workspace(dtconv_dtype, const dtconv_overlap *)
    int dtconv_overlap_run(...)
    int64_t dtconv_overlap_values(dtconv_dtype, const dtconv_overlap *, int)
    int dtconv_overlap_layer(...)

cdef extern from *:
    """
    #define DT(name) dtconv_s##name
    #include "dtconv_fft_phases.h"
    #undef DT
    """
    void dtconv_sfft_watch(double *) nogil


cdef dtconv_fft_problem problem_of(tuple sizes, int kind, double scale):
    """sizes: outer high wide inner x_high x_wide."""
    cdef dtconv_fft_problem p
    p.outer, p.high, p.wide, p.inner, p.x_high, p.x_wide = sizes
    p.kind = <dtconv_fft_kind> kind
    p.scale = scale
    return p


def workspace_bytes(tuple sizes, int kind, str dtype) -> int:
    """Bytes of workspace of `run` with the threads now set."""
    cdef dtconv_fft_problem p = problem_of(sizes, kind, 1)
    return dtconv_fft_batch_workspace(dtype_of(dtype), &p)


def run(tuple sizes, int kind, double scale, const floating[::1] x, floating[::1] y,
        unsigned char[::1] workspace) -> int:
    """y = the transforms of x, both as their real numbers; kind: dtconv_fft_kind.  Returns the status."""
    cdef int status
    cdef dtconv_fft_problem p = problem_of(sizes, kind, scale)
    with nogil:
        status = dtconv_fft_batch(&p, &x[0], &y[0], &workspace[0], workspace.shape[0])
    return status


cdef class Overlap:
    """A convolution in blocks: its sizes, and the factors of its transforms, which later ones may share."""

    cdef dtconv_overlap p
    cdef dtconv_dtype dtype
    cdef readonly size_t workspace_bytes
    cdef readonly object plan
    cdef const void *_plan

    def __init__(self, str dtype, int64_t signals, tuple sizes, int method, bint private, int threads, plan=None):
        """sizes: a b start stop block part steps, of rows and of columns each, and points; dtconv_overlap has more.
        plan: that of another one with such points and dtype.
        """
        cdef int64_t *to = &self.p.a[0]
        self.p.signals, self.p.method, self.p.is_private, self.p.threads = signals, method, private, threads
        for i, size in enumerate(sizes):
            to[i] = size
        self.dtype = dtype_of(dtype)
        self.workspace_bytes = dtconv_overlap_workspace(self.dtype, &self.p)
        if self.workspace_bytes == 0:
            raise ValueError(f"blocks that contradict each other: {sizes}")
        if plan is None:
            plan = bytearray(dtconv_overlap_plan_bytes(self.dtype, &self.p))
            dtconv_overlap_plan(self.dtype, &self.p, <unsigned char *> plan)
        self.plan = plan
        self._plan = <const unsigned char *> plan

    def run(self, const floating[::1] a, const floating[::1] b, floating[::1] y, unsigned char[::1] workspace,
            int64_t[::1] counts=None) -> int:
        """y = the results of a, convolved with b; counts: what was done (dtconv_fft.h).  Returns the status."""
        cdef int status
        cdef int64_t *counted = NULL if counts is None else &counts[0]
        if (sizeof(floating) == 8) != (self.dtype == dtype_of("float64")):
            raise TypeError("arrays of another precision")
        with nogil:
            status = dtconv_overlap_run(&self.p, &a[0], &b[0], &y[0], counted, self._plan, &workspace[0],
                                        workspace.shape[0])
        return status

    def values(self, bint of_b) -> int:
        """Elements of the values of a layer's filter, or of its signals; 0 where there are none."""
        return dtconv_overlap_values(self.dtype, &self.p, of_b)

    def layer(self, int direction, const floating[::1] x, floating[::1] y, floating[::1] of_a, floating[::1] of_b,
              floating[::1] of_dy, unsigned char[::1] workspace) -> int:
        """A layer's pass (dtconv_fft.h); direction: dtconv_overlap_pass.  Returns the status."""
        cdef int status
        if (sizeof(floating) == 8) != (self.dtype == dtype_of("float64")):
            raise TypeError("arrays of another precision")
        with nogil:
            status = dtconv_overlap_layer(&self.p, direction, &x[0], &y[0], &of_a[0], &of_b[0], &of_dy[0], self._plan,
                                          &workspace[0], workspace.shape[0])
        return status


def watch(double[::1] seconds) -> None:
    """Adds what phases of convolutions in float32 take to seconds[0 .. 3] (dtconv_fft_phases.h); None: no longer."""
    dtconv_sfft_watch(NULL if seconds is None else &seconds[0])
