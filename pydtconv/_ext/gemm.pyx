"""GEMM on strided matrices."""
from libc.stdint cimport int64_t

ctypedef fused real:
    float
    double

cdef extern from "dtconv_both.h" nogil:
    ctypedef struct dtconv_smatrix:
        const float *data
        int64_t rs
        int64_t cs
    ctypedef struct dtconv_dmatrix:
        const double *data
        int64_t rs
        int64_t cs
    ctypedef void (*dtconv_spack_a_fn)(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, float *)
    ctypedef void (*dtconv_sepilogue_fn)(const void *, int64_t, int64_t, int64_t, int64_t, float *, int64_t)
    ctypedef void (*dtconv_spack_b_fn)(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, float *)
    ctypedef void (*dtconv_dpack_a_fn)(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, double *)
    ctypedef void (*dtconv_depilogue_fn)(const void *, int64_t, int64_t, int64_t, int64_t, double *, int64_t)
    ctypedef void (*dtconv_dpack_b_fn)(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, double *)
    ctypedef struct dtconv_sgemm_args:
        int64_t m
        int64_t n
        int64_t k
        dtconv_spack_a_fn pack_a
        const void *a
        dtconv_spack_b_fn pack_b
        const void *b
        float *c
        int64_t ldc
        float beta
        dtconv_sepilogue_fn epilogue
        const void *e
        const dtconv_smatrix *a_in_place
        int threads
    ctypedef struct dtconv_dgemm_args:
        int64_t m
        int64_t n
        int64_t k
        dtconv_dpack_a_fn pack_a
        const void *a
        dtconv_dpack_b_fn pack_b
        const void *b
        double *c
        int64_t ldc
        double beta
        dtconv_depilogue_fn epilogue
        const void *e
        const dtconv_dmatrix *a_in_place
        int threads
    void dtconv_spack_b_matrix(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, float *)
    void dtconv_dpack_b_matrix(const void *, int64_t, int64_t, int64_t, int64_t, int64_t, double *)
    size_t dtconv_sgemm_workspace(int64_t m, int64_t n, int64_t k)
    size_t dtconv_dgemm_workspace(int64_t m, int64_t n, int64_t k)
    int dtconv_sgemm_scaled(const dtconv_sgemm_args *args, float alpha, void *workspace, size_t bytes)
    int dtconv_dgemm_scaled(const dtconv_dgemm_args *args, double alpha, void *workspace, size_t bytes)


def workspace_bytes(int64_t m, int64_t n, int64_t k, bint double_precision) -> int:
    """Bytes of workspace of gemm for sizes m, n, k and the threads now set."""
    return dtconv_dgemm_workspace(m, n, k) if double_precision else dtconv_sgemm_workspace(m, n, k)


def gemm(const real[:, :] a, const real[:, :] b, real[:, :] out, double alpha, double beta,
         unsigned char[::1] workspace) -> int:
    """out = alpha * a @ b + beta * out; a (m, k), b (k, n) with any strides, rows of out contiguous.

    Returns the status.

    The caller has checked shapes, strides and overlap.
    """
    cdef int status
    cdef size_t bytes = workspace.shape[0]
    cdef void *space = &workspace[0] if bytes else NULL
    cdef dtconv_sgemm_args s
    cdef dtconv_dgemm_args d
    cdef dtconv_smatrix sa, sb
    cdef dtconv_dmatrix da, db
    if real is float:
        sa = dtconv_smatrix(&a[0, 0], a.strides[0] // 4, a.strides[1] // 4)
        sb = dtconv_smatrix(&b[0, 0], b.strides[0] // 4, b.strides[1] // 4)
        s = dtconv_sgemm_args(a.shape[0], b.shape[1], a.shape[1], NULL, NULL, dtconv_spack_b_matrix, &sb, &out[0, 0],
                              out.strides[0] // 4, beta, NULL, NULL, &sa, 0)
        with nogil:
            status = dtconv_sgemm_scaled(&s, alpha, space, bytes)
    else:
        da = dtconv_dmatrix(&a[0, 0], a.strides[0] // 8, a.strides[1] // 8)
        db = dtconv_dmatrix(&b[0, 0], b.strides[0] // 8, b.strides[1] // 8)
        d = dtconv_dgemm_args(a.shape[0], b.shape[1], a.shape[1], NULL, NULL, dtconv_dpack_b_matrix, &db, &out[0, 0],
                              out.strides[0] // 8, beta, NULL, NULL, &da, 0)
        with nogil:
            status = dtconv_dgemm_scaled(&d, alpha, space, bytes)
    return status
