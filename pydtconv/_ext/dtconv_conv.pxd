"""The structures of cext/include/dtconv_conv.h that more than one module hands over."""

from libc.stdint cimport int64_t

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_conv:
        int64_t n, ih, iw, ci, oh, ow, co, kh, kw, sh, sw, dil_h, dil_w, pad_t, pad_l, groups, ldx, ldy
    ctypedef struct dtconv_conv_args:
        pass
    void dtconv_conv_set_arrays(...)


cdef inline dtconv_conv problem_of(tuple sizes, int64_t ldx, int64_t ldy):
    """sizes: n ih iw ci oh ow co kh kw sh sw dil_h dil_w pad_t pad_l groups."""
    cdef dtconv_conv p
    p.n, p.ih, p.iw, p.ci, p.oh, p.ow, p.co, p.kh, p.kw = sizes[:9]
    p.sh, p.sw, p.dil_h, p.dil_w, p.pad_t, p.pad_l, p.groups = sizes[9:]
    p.ldx, p.ldy = ldx, ldy
    return p
