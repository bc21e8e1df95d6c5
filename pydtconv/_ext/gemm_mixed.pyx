"""Products of matrices that are multiplied as bfloat16 and summed in float32 (cext/include/dtconv_gemm_mixed.h).

Matrices are float32, or uint16: the bits of bfloat16.
"""

from libc.stdint cimport int64_t, uint16_t

from pydtconv._ext.arrays cimport vector

cdef extern from "dtconv_gemm_mixed.h" nogil:
    ctypedef struct dtconv_operand:
        const void *data
        int64_t rs, cs
        int bfloat16, low
    ctypedef struct dtconv_gemm_mixed_args:
        int64_t m, n, k
        dtconv_operand a, b
        void *c
        int64_t ldc
        int c_bfloat16
        float alpha, beta
        const float *bias
        int activation
        float slope
        int products
    size_t dtconv_gemm_mixed_workspace(int64_t m, int64_t n, int64_t k, int products)
    int dtconv_gemm_mixed(const dtconv_gemm_mixed_args *args, void *workspace, size_t nbytes)


cdef dtconv_operand operand(object matrix):
    """Where the elements of a matrix lie, and of which type they are."""
    cdef const uint16_t[:, :] halves
    cdef const float[:, :] floats
    cdef dtconv_operand o
    o.bfloat16 = matrix.itemsize == 2
    o.low = 0
    if o.bfloat16:
        halves = matrix
        o.data, o.rs, o.cs = &halves[0, 0], halves.strides[0] // 2, halves.strides[1] // 2
    else:
        floats = matrix
        o.data, o.rs, o.cs = &floats[0, 0], floats.strides[0] // 4, floats.strides[1] // 4
    if matrix.shape[0] == 1:  # whose strides NumPy leaves open
        o.rs = matrix.shape[1]
    if matrix.shape[1] == 1:
        o.cs = 1
    return o


def workspace_bytes(int64_t m, int64_t n, int64_t k, int products=1) -> int:
    """Bytes of workspace of `gemm`, with the threads now set."""
    return dtconv_gemm_mixed_workspace(m, n, k, products)


def gemm(a, b, out, unsigned char[::1] workspace, double beta=0, const float[::1] bias=None,
         int activation=0, double slope=0, double alpha=1, int products=1) -> int:
    """out = act(alpha * a @ b + beta * out + bias); a (m, k), b (k, n), any strides; rows of out without gaps.

    products: 1, or 3 where a and b are float32: of their halves.  Returns the status.
    """
    cdef dtconv_gemm_mixed_args args
    cdef dtconv_operand c = operand(out)
    cdef size_t nbytes = 0 if workspace is None else workspace.shape[0]
    cdef void *space = &workspace[0] if nbytes else NULL
    cdef int status
    args.m, args.k, args.n = a.shape[0], a.shape[1], b.shape[1]
    args.a, args.b = operand(a), operand(b)
    args.c, args.ldc, args.c_bfloat16 = <void *> c.data, c.rs, c.bfloat16
    args.alpha, args.beta = alpha, beta
    args.bias, args.activation, args.slope, args.products = vector(bias), activation, slope, products
    with nogil:
        status = dtconv_gemm_mixed(&args, space, nbytes)
    return status
