"""GEMM on strided matrices."""

from cython cimport floating
from libc.stdint cimport int64_t

from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    size_t dtconv_gemm_workspace(dtconv_dtype, int64_t m, int64_t n, int64_t k)
    int dtconv_gemm_strided(...)


def workspace_bytes(int64_t m, int64_t n, int64_t k, str dtype) -> int:
    """Bytes of workspace of gemm for sizes m, n, k and the threads now set."""
    return dtconv_gemm_workspace(dtype_of(dtype), m, n, k)


def gemm(const floating[:, :] a, const floating[:, :] b, floating[:, :] out, double alpha, double beta,
         unsigned char[::1] workspace) -> int:
    """out = alpha * a @ b + beta * out; a (m, k), b (k, n) with any strides, rows of out contiguous.

    Returns the status.  The caller has checked shapes, strides and overlap.
    """
    cdef int status
    cdef size_t bytes = workspace.shape[0]
    cdef void *space = &workspace[0] if bytes else NULL
    cdef int64_t size = sizeof(floating)
    with nogil:
        status = dtconv_gemm_strided(a.shape[0], b.shape[1], a.shape[1], &a[0, 0], a.strides[0] // size,
                                     a.strides[1] // size, &b[0, 0], b.strides[0] // size, b.strides[1] // size,
                                     &out[0, 0], out.strides[0] // size, alpha, beta, space, bytes)
    return status
