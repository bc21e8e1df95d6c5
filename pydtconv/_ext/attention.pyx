"""Attention, products of many matrices, rows of tables.

Arrays of attention come as four-dimensional views (sample, token, head, feature) whose features are neighbours, masks
as bytes (sample, head, query, key) of any strides.
"""

from cython cimport floating
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_random_key:
        uint64_t seed
        uint32_t stream
        uint32_t step
        int64_t first
    ctypedef struct dtconv_attention:
        int64_t n, heads, kv_heads, tq, tk, d, dv
        int64_t q[3]
        int64_t k[3]
        int64_t v[3]
        int64_t y[3]
        int64_t dy[3]
        int64_t dq[3]
        int64_t dk[3]
        int64_t dvalue[3]
        int64_t mask[4]
        double scale, rate
        bint causal, zero_empty, add_q, add_k, add_v
        dtconv_random_key key
    size_t dtconv_attention_workspace(dtconv_dtype, const dtconv_attention *, int backward)
    int dtconv_attention_forward(...)
    int dtconv_attention_backward(...)
    size_t dtconv_gemm_batched_workspace(dtconv_dtype, int64_t outer, int64_t m, int64_t n, int64_t k, int levels)
    int dtconv_gemm_batched(...)
    int dtconv_take_rows(...)
    int dtconv_add_to_rows(...)


cdef inline void steps(const floating[:, :, :, :] x, int64_t *strides) noexcept nogil:
    """Elements from sample to sample, token to token, head to head."""
    if x is not None:
        for axis in range(3):
            strides[axis] = x.strides[axis] // <int64_t> sizeof(floating)


cdef inline floating *start(const floating[:, :, :, :] x) noexcept nogil:
    return NULL if x is None else <floating *> &x[0, 0, 0, 0]


cdef inline void sizes(dtconv_attention *p, const floating[:, :, :, :] q, const floating[:, :, :, :] k,
                       const floating[:, :, :, :] v) noexcept nogil:
    p.n, p.tq, p.heads, p.d = q.shape[0], q.shape[1], q.shape[2], q.shape[3]
    p.tk, p.kv_heads, p.dv = k.shape[1], k.shape[2], v.shape[3]
    steps(q, p.q)
    steps(k, p.k)
    steps(v, p.v)


cdef inline const uint8_t *masked(dtconv_attention *p, const uint8_t[:, :, :, :] mask) noexcept nogil:
    if mask is None:
        return NULL
    for axis in range(4):
        p.mask[axis] = 0 if mask.shape[axis] == 1 else mask.strides[axis]
    return &mask[0, 0, 0, 0]


def attention_workspace(tuple shape, str dtype, bint backward) -> int:
    """Bytes of workspace of a pass; shape: n, heads, kv_heads, tq, tk, d, dv."""
    cdef dtconv_attention p
    p.n, p.heads, p.kv_heads, p.tq, p.tk, p.d, p.dv = shape
    return dtconv_attention_workspace(dtype_of(dtype), &p, backward)


def attention_forward(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, double rate, double scale,
                      bint causal, bint zero_empty, const floating[:, :, :, :] q, const floating[:, :, :, :] k,
                      const floating[:, :, :, :] v, const uint8_t[:, :, :, :] mask, floating[:, :, :, :] y,
                      floating[::1] sums, uint8_t[::1] workspace):
    """y = softmax(scale q k^T) v, and the logarithms of the sums (see cext/include/dtconv_attention.h)."""
    cdef dtconv_attention p
    cdef const uint8_t *allowed
    with nogil:
        sizes(&p, q, k, v)
        steps(y, p.y)
        p.scale, p.rate, p.causal, p.zero_empty = scale, rate, causal, zero_empty
        p.key = dtconv_random_key(seed, stream, step, first)
        allowed = masked(&p, mask)
        check(dtconv_attention_forward(&p, start(q), start(k), start(v), allowed, start(y), &sums[0], &workspace[0],
                                       workspace.shape[0]))


def attention_backward(uint64_t seed, uint32_t stream, uint32_t step, int64_t first, double rate, double scale,
                       bint causal, bint zero_empty, const floating[:, :, :, :] q, const floating[:, :, :, :] k,
                       const floating[:, :, :, :] v, const uint8_t[:, :, :, :] mask, const floating[:, :, :, :] y,
                       const floating[::1] sums, const floating[:, :, :, :] dy, bint add_q, floating[:, :, :, :] dq,
                       bint add_k, floating[:, :, :, :] dk, bint add_v, floating[:, :, :, :] dv,
                       uint8_t[::1] workspace):
    """dq, dk, dv (None: not wanted)."""
    cdef dtconv_attention p
    cdef const uint8_t *allowed
    with nogil:
        sizes(&p, q, k, v)
        steps(y, p.y)
        steps(dy, p.dy)
        steps(dq, p.dq)
        steps(dk, p.dk)
        steps(dv, p.dvalue)
        p.scale, p.rate, p.causal, p.zero_empty = scale, rate, causal, zero_empty
        p.add_q, p.add_k, p.add_v = add_q, add_k, add_v
        p.key = dtconv_random_key(seed, stream, step, first)
        allowed = masked(&p, mask)
        check(dtconv_attention_backward(&p, start(q), start(k), start(v), allowed, start(y), &sums[0], start(dy),
                                        start(dq), start(dk), start(dv), &workspace[0], workspace.shape[0]))


def gemm_batched_workspace(int64_t outer, int64_t m, int64_t n, int64_t k, str dtype, int levels=0) -> int:
    """Bytes of gemm_batched with so many levels of Strassen's algorithm."""
    return dtconv_gemm_batched_workspace(dtype_of(dtype), outer, m, n, k, levels)


def gemm_batched(const int64_t[:, ::1] offsets, int64_t inner, int64_t m, int64_t n, int64_t k, const floating[::1] a,
                 int64_t ars, int64_t acs, const floating[::1] b, int64_t brs, int64_t bcs, floating[::1] c,
                 int64_t ldc, bint accumulate, int levels, uint8_t[::1] workspace):
    """C[o] (+)= the sum of A[o, i] B[o, i] over i; offsets (outer, 1 + 2 inner): of C[o], A[o, 0], B[o, 0], ..."""
    with nogil:
        check(dtconv_gemm_batched(offsets.shape[0], inner, &offsets[0, 0], m, n, k, &a[0], ars, acs, &b[0], brs, bcs,
                                  &c[0], ldc, accumulate, levels, &workspace[0], workspace.shape[0]))


def take_rows(const int32_t[::1] index, const floating[:, ::1] table, floating[:, ::1] y):
    """y[i] = table[index[i]]"""
    with nogil:
        check(dtconv_take_rows(index.shape[0], table.shape[1], &index[0], &table[0, 0], &y[0, 0]))


def add_to_rows(const int32_t[::1] index, const floating[:, ::1] dy, bint accumulate, floating[:, ::1] table):
    """table[index[i]] += dy[i], from 0 on or added to what is there."""
    with nogil:
        check(dtconv_add_to_rows(index.shape[0], table.shape[1], table.shape[0], &index[0], &dy[0, 0], accumulate,
                                 &table[0, 0]))
