"""Winograd's convolution: size of tiles, filters that are transformed ahead."""
from libc.stdint cimport int64_t

ctypedef fused real:
    float
    double

cdef extern from "dtconv_both.h" nogil:
    ctypedef struct dtconv_conv:
        int64_t n, ih, iw, ci, oh, ow, co, kh, kw, sh, sw, dil_h, dil_w, pad_t, pad_l, groups, ldx, ldy
    ctypedef enum dtconv_activation:
        pass
    ctypedef struct dtconv_sconv_args:
        float *x
        float *w
        float *y
        const float *bias
        dtconv_activation activation
        float alpha
        int accumulate
    ctypedef struct dtconv_dconv_args:
        double *x
        double *w
        double *y
        const double *bias
        dtconv_activation activation
        double alpha
        int accumulate
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


cdef dtconv_conv problem_of(tuple sizes, int64_t ldx, int64_t ldy):
    """sizes: n ih iw ci oh ow co kh kw sh sw dil_h dil_w pad_t pad_l groups."""
    cdef dtconv_conv p
    p.n, p.ih, p.iw, p.ci, p.oh, p.ow, p.co, p.kh, p.kw = sizes[:9]
    p.sh, p.sw, p.dil_h, p.dil_w, p.pad_t, p.pad_l, p.groups = sizes[9:]
    p.ldx, p.ldy = ldx, ldy
    return p


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
            s = dtconv_sconv_args(<float *> &x[0, 0, 0, 0], NULL, <float *> &y[0, 0, 0, 0], bias_data,
                                  <dtconv_activation> activation, alpha, accumulate)
            status = dtconv_swinograd_with_filters(&p, backward_data, &s, &u[0], &workspace[0], workspace.shape[0])
        else:
            d = dtconv_dconv_args(<double *> &x[0, 0, 0, 0], NULL, <double *> &y[0, 0, 0, 0], bias_data,
                                  <dtconv_activation> activation, alpha, accumulate)
            status = dtconv_dwinograd_with_filters(&p, backward_data, &d, &u[0], &workspace[0], workspace.shape[0])
    return status
