"""Winograd's convolution: size of tiles, filters that are transformed ahead."""
from libc.stdint cimport int64_t

from pydtconv._ext.dtconv_conv cimport (
    dconv_args_of,
    dtconv_conv,
    dtconv_dconv_args,
    dtconv_sconv_args,
    problem_of,
    real,
    sconv_args_of,
)

cdef extern from "dtconv_both.h" nogil:
    int dtconv_swinograd_tile(int64_t oh, int64_t ow)
    size_t dtconv_swinograd_filters_bytes(const dtconv_conv *, int)
    size_t dtconv_dwinograd_filters_bytes(const dtconv_conv *, int)
    size_t dtconv_swinograd_with_filters_workspace(const dtconv_conv *, int)
    size_t dtconv_dwinograd_with_filters_workspace(const dtconv_conv *, int)
    int dtconv_swinograd_filters(const dtconv_conv *, int, const float *, float *, void *, size_t)
    int dtconv_dwinograd_filters(const dtconv_conv *, int, const double *, double *, void *, size_t)
    int dtconv_swinograd_with_filters(const dtconv_conv *, int, const dtconv_sconv_args *, const float *, void *,
                                      size_t)
    int dtconv_dwinograd_with_filters(const dtconv_conv *, int, const dtconv_dconv_args *, const double *, void *,
                                      size_t)


def tile(int64_t oh, int64_t ow) -> int:
    """m of the m x m outputs of a tile that images of oh x ow outputs are cut into."""
    return dtconv_swinograd_tile(oh, ow)


def filters_bytes(tuple sizes, bint backward_data, bint double_precision) -> int:
    """Bytes of the transformed filters; sizes as in `ConvProblem.sizes`."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    if double_precision:
        return dtconv_dwinograd_filters_bytes(&p, backward_data)
    return dtconv_swinograd_filters_bytes(&p, backward_data)


def workspace_bytes(tuple sizes, bint backward_data, bint double_precision) -> int:
    """Bytes of workspace of `filters` and `run` with the threads now set."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    if double_precision:
        return dtconv_dwinograd_with_filters_workspace(&p, backward_data)
    return dtconv_swinograd_with_filters_workspace(&p, backward_data)


def filters(tuple sizes, bint backward_data, const real[:, :, :, ::1] w, real[::1] u,
            unsigned char[::1] workspace) -> int:
    """u = the transformed w; u is aligned to 64.  Returns the status."""
    cdef int status
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    with nogil:
        if real is float:
            status = dtconv_swinograd_filters(&p, backward_data, &w[0, 0, 0, 0], &u[0], &workspace[0],
                                              workspace.shape[0])
        else:
            status = dtconv_dwinograd_filters(&p, backward_data, &w[0, 0, 0, 0], &u[0], &workspace[0],
                                              workspace.shape[0])
    return status


def run(tuple sizes, bint backward_data, const real[:, :, :, :] x, const real[::1] u, const real[:, :, :, :] y,
        int64_t ldx, int64_t ldy, const real[::1] bias, int activation, double alpha, bint accumulate,
        unsigned char[::1] workspace) -> int:
    """The pass with transformed filters on arrays that the caller has checked.  Returns the status."""
    cdef int status
    cdef dtconv_conv p = problem_of(sizes, ldx, ldy)
    cdef dtconv_sconv_args s
    cdef dtconv_dconv_args d
    cdef const real *bias_data = NULL
    if bias is not None:
        bias_data = &bias[0]
    with nogil:
        if real is float:
            s = sconv_args_of(&x[0, 0, 0, 0], NULL, &y[0, 0, 0, 0], bias_data, activation, alpha, accumulate)
            status = dtconv_swinograd_with_filters(&p, backward_data, &s, &u[0], &workspace[0], workspace.shape[0])
        else:
            d = dconv_args_of(&x[0, 0, 0, 0], NULL, &y[0, 0, 0, 0], bias_data, activation, alpha, accumulate)
            status = dtconv_dwinograd_with_filters(&p, backward_data, &d, &u[0], &workspace[0], workspace.shape[0])
    return status
