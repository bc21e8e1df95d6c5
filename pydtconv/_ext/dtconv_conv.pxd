"""The structures of cext/include/dtconv_conv.h that more than one module hands over."""
from libc.stdint cimport int64_t
from libc.string cimport memset

ctypedef fused real:
    float
    double

cdef extern from "dtconv_both.h" nogil:
    ctypedef struct dtconv_conv:
        int64_t n, ih, iw, ci, oh, ow, co, kh, kw, sh, sw, dil_h, dil_w, pad_t, pad_l, groups, ldx, ldy
    ctypedef enum dtconv_activation:
        pass
    ctypedef struct dtconv_sconv_normalization:
        const float *mean
        const float *scale
        const float *beta
        int relu
    ctypedef struct dtconv_sconv_slopes:
        const float *x
        int64_t ldx
        const float *mean
        const float *scale
        const float *beta
        int relu
        float *sum
        float *sum_x
    ctypedef struct dtconv_sconv_args:
        float *x
        float *w
        float *y
        const float *bias
        dtconv_activation activation
        float alpha
        int accumulate
        dtconv_sconv_normalization reading
        float *mean
        float *variance
        dtconv_sconv_slopes slopes
        const float *residual
        int64_t ldr
    ctypedef struct dtconv_dconv_normalization:
        const double *mean
        const double *scale
        const double *beta
        int relu
    ctypedef struct dtconv_dconv_slopes:
        const double *x
        int64_t ldx
        const double *mean
        const double *scale
        const double *beta
        int relu
        double *sum
        double *sum_x
    ctypedef struct dtconv_dconv_args:
        double *x
        double *w
        double *y
        const double *bias
        dtconv_activation activation
        double alpha
        int accumulate
        dtconv_dconv_normalization reading
        double *mean
        double *variance
        dtconv_dconv_slopes slopes
        const double *residual
        int64_t ldr


cdef inline dtconv_conv problem_of(tuple sizes, int64_t ldx, int64_t ldy):
    """sizes: n ih iw ci oh ow co kh kw sh sw dil_h dil_w pad_t pad_l groups."""
    cdef dtconv_conv p
    p.n, p.ih, p.iw, p.ci, p.oh, p.ow, p.co, p.kh, p.kw = sizes[:9]
    p.sh, p.sw, p.dil_h, p.dil_w, p.pad_t, p.pad_l, p.groups = sizes[9:]
    p.ldx, p.ldy = ldx, ldy
    return p


cdef inline dtconv_sconv_args sconv_args_of(const float *x, const float *w, const float *y, const float *bias,
                                            int activation, double alpha, bint accumulate) noexcept nogil:
    """Arguments of a pass that neither normalizes nor gathers nor adds a residual."""
    cdef dtconv_sconv_args a
    memset(&a, 0, sizeof(a))
    a.x, a.w, a.y, a.bias = <float *> x, <float *> w, <float *> y, bias
    a.activation, a.alpha, a.accumulate = <dtconv_activation> activation, alpha, accumulate
    return a


cdef inline dtconv_dconv_args dconv_args_of(const double *x, const double *w, const double *y, const double *bias,
                                            int activation, double alpha, bint accumulate) noexcept nogil:
    """Arguments of a pass that neither normalizes nor gathers nor adds a residual."""
    cdef dtconv_dconv_args a
    memset(&a, 0, sizeof(a))
    a.x, a.w, a.y, a.bias = <double *> x, <double *> w, <double *> y, bias
    a.activation, a.alpha, a.accumulate = <dtconv_activation> activation, alpha, accumulate
    return a
