"""Recurrent layers over all steps of a sequence (cext/nn/recurrence.h)."""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from pydtconv._ext.arrays cimport dtype_in, holding, reals_in, scratch, scratch_in
from pydtconv._ext.dtypes cimport DTCONV_FLOAT64, dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "../nn/recurrence.h" nogil:
    ctypedef struct dtconv_recurrence:
        int64_t n, steps, units
        int cell, backwards, sequences, zero_output, f, g
        double f_parameters[3]
        double g_parameters[3]
        const void *z
        const void *w
        const void *b
        const void *h0
        const void *c0
        const uint8_t *mask
        void *y
        void *h
        void *c
        void *gates
        void *cells
        void *previous
        const void *dy
        const void *dh
        const void *dc
        void *dz
        void *side
        void *dh0
        void *dc0
    size_t dtconv_srecurrence_workspace(const dtconv_recurrence *, int, int backward)
    size_t dtconv_drecurrence_workspace(const dtconv_recurrence *, int, int backward)
    int dtconv_srecurrence_forward(const dtconv_recurrence *, int, void *, size_t)
    int dtconv_drecurrence_forward(const dtconv_recurrence *, int, void *, size_t)
    int dtconv_srecurrence_backward(const dtconv_recurrence *, int, void *, size_t)
    int dtconv_drecurrence_backward(const dtconv_recurrence *, int, void *, size_t)

#: cells, in the order of their codes
CELLS = ("simple", "lstm", "gru", "gru_before")


cdef void set_sizes(dtconv_recurrence *p, int64_t n, int64_t steps, int64_t units, str cell):
    memset(p, 0, sizeof(dtconv_recurrence))
    p.n, p.steps, p.units, p.cell = n, steps, units, CELLS.index(cell)


def workspace_bytes(int64_t n, int64_t steps, int64_t units, str cell, str dtype, int count, bint backward) -> int:
    cdef dtconv_recurrence p[2]
    for i in range(count):
        set_sizes(&p[i], n, steps, units, cell)
    if dtype_of(dtype) == DTCONV_FLOAT64:
        return dtconv_drecurrence_workspace(p, count, backward)
    return dtconv_srecurrence_workspace(p, count, backward)


cdef void *elements(dict arrays, str name, dtconv_dtype dtype) except? NULL:
    array = arrays.get(name)
    return NULL if array is None else reals_in(array.reshape(-1), dtype)


cdef int set_arrays(
    dtconv_recurrence *p, tuple options, tuple f, tuple g, const uint8_t[:, ::1] mask, dict arrays, dtconv_dtype dtype
) except -1:
    p.backwards, p.sequences, p.zero_output = options
    p.f, p.g = f[0], g[0]
    for i in range(3):
        p.f_parameters[i], p.g_parameters[i] = f[1 + i], g[1 + i]
    p.mask = NULL if mask is None else <uint8_t *> &mask[0, 0]
    p.z, p.w, p.b = elements(arrays, "z", dtype), elements(arrays, "w", dtype), elements(arrays, "b", dtype)
    p.h0, p.c0 = elements(arrays, "h0", dtype), elements(arrays, "c0", dtype)
    p.y, p.h, p.c = elements(arrays, "y", dtype), elements(arrays, "h", dtype), elements(arrays, "c", dtype)
    p.gates, p.cells = elements(arrays, "gates", dtype), elements(arrays, "cells", dtype)
    p.previous = elements(arrays, "previous", dtype)
    p.dy, p.dh, p.dc = elements(arrays, "dy", dtype), elements(arrays, "dh", dtype), elements(arrays, "dc", dtype)
    p.dz, p.side = elements(arrays, "dz", dtype), elements(arrays, "side", dtype)
    p.dh0, p.dc0 = elements(arrays, "dh0", dtype), elements(arrays, "dc0", dtype)
    return 0


def bind(bint backward, tuple shape, str cell, tuple parts, workspace) -> object:
    """A call for a pass of one recurrence, or of two at the same time.

    shape: n, steps, units.  parts, of each: backwards, sequences, zero_output; f, g: codes of the activations and three
    parameters; mask (n, steps) or None; arrays: dense ones, by the names of dtconv_recurrence.
    """
    cdef dtconv_recurrence p[2]
    cdef int count = len(parts)
    cdef dtconv_dtype dtype = dtype_in(parts[0][4]["w"])
    cdef scratch space = scratch_in(workspace)
    for i in range(count):
        set_sizes(&p[i], shape[0], shape[1], shape[2], cell)
        options, f, g, mask, arrays = parts[i]
        set_arrays(&p[i], options, f, g, mask, arrays, dtype)

    def run():
        with nogil:
            if dtype == DTCONV_FLOAT64 and backward:
                check(dtconv_drecurrence_backward(p, count, space.data, space.size))
            elif dtype == DTCONV_FLOAT64:
                check(dtconv_drecurrence_forward(p, count, space.data, space.size))
            elif backward:
                check(dtconv_srecurrence_backward(p, count, space.data, space.size))
            else:
                check(dtconv_srecurrence_forward(p, count, space.data, space.size))

    return holding(run, (parts, workspace))
