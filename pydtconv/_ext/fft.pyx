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
        int64_t signals, length, taps, start, stop, points, hop, part
    size_t dtconv_overlap_workspace(dtconv_dtype, const dtconv_overlap *)
    int dtconv_overlap_run(...)

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


cdef dtconv_overlap overlap_of(tuple sizes):
    """sizes: signals length taps start stop points hop part."""
    cdef dtconv_overlap p
    p.signals, p.length, p.taps, p.start, p.stop, p.points, p.hop, p.part = sizes
    return p


def overlap_workspace_bytes(tuple sizes, str dtype) -> int:
    """Bytes of workspace of `overlap` with the threads now set."""
    cdef dtconv_overlap p = overlap_of(sizes)
    return dtconv_overlap_workspace(dtype_of(dtype), &p)


def overlap(tuple sizes, const floating[:, ::1] a, const floating[::1] b, floating[:, ::1] y,
            unsigned char[::1] workspace) -> int:
    """y (signals, stop - start) = results of the convolution of each row of a with b.  Returns the status."""
    cdef int status
    cdef dtconv_overlap p = overlap_of(sizes)
    with nogil:
        status = dtconv_overlap_run(&p, &a[0, 0], &b[0], &y[0, 0], &workspace[0], workspace.shape[0])
    return status


def watch(double[::1] seconds) -> None:
    """Adds what phases of convolutions in float32 take to seconds[0 .. 3] (dtconv_fft_phases.h); None: no longer."""
    dtconv_sfft_watch(NULL if seconds is None else &seconds[0])
