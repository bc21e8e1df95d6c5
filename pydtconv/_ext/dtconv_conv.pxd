"""The structures of cext/include/dtconv_conv.h that more than one module hands over."""

from libc.stdint cimport int64_t

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_conv:
        int64_t n, ih, iw, ci, oh, ow, co, kh, kw, sh, sw, dil_h, dil_w, pad_t, pad_l, groups, ldx, ldy
        int64_t id, od, kd, sd, dil_d, pad_f, basis_h, basis_w
    ctypedef struct dtconv_conv_args:
        pass
    void dtconv_conv_set_arrays(...)


cdef inline dtconv_conv problem_of(tuple sizes, int64_t ldx, int64_t ldy):
    """sizes: n ih iw ci oh ow co kh kw sh sw dil_h dil_w pad_t pad_l groups id od kd sd dil_d pad_f, or with a basis
    behind them.
    """
    cdef dtconv_conv p
    p.n, p.ih, p.iw, p.ci, p.oh, p.ow, p.co, p.kh, p.kw = sizes[:9]
    p.sh, p.sw, p.dil_h, p.dil_w, p.pad_t, p.pad_l, p.groups = sizes[9:16]
    p.id, p.od, p.kd, p.sd, p.dil_d, p.pad_f = sizes[16:22]
    p.basis_h, p.basis_w = sizes[22:] if len(sizes) > 22 else (0, 0)
    p.ldx, p.ldy = ldx, ldy
    return p
