"""GEMM on strided matrices, and dense layers with what follows their products.

What `bind_*` returns is called in every step: it is bound to addresses.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport (
    dtype_in,
    holding,
    reals_in,
    rows_in,
    rows_of,
    scratch,
    scratch_in,
    strided,
    strided_in,
)
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    size_t dtconv_gemm_workspace(dtconv_dtype, int64_t m, int64_t n, int64_t k)
    int dtconv_gemm_strided(...)
    int dtconv_dense_forward(...)
    size_t dtconv_dense_bias_backward_workspace(dtconv_dtype, int64_t m, int64_t n)
    int dtconv_dense_bias_backward(...)

cdef extern from "dtconv_gemm_ways.h" nogil:
    void dtconv_sgemm_set_ways(const int *ways)
    void dtconv_dgemm_set_ways(const int *ways)
    size_t dtconv_gemm_workspace_in_ways(dtconv_dtype, int64_t m, int64_t n, int64_t k, const int *ways)
    int dtconv_gemm_strided_in_ways(...)

cdef extern from "dtconv_strassen.h" nogil:
    size_t dtconv_gemm_strassen_workspace(dtconv_dtype, int64_t m, int64_t n, int64_t k, int levels)
    int dtconv_gemm_strided_strassen(...)


def workspace_bytes(int64_t m, int64_t n, int64_t k, str dtype, ways=None, int strassen=0) -> int:
    """Bytes of workspace of gemm for sizes m, n, k and the threads now set, or these ways; see bind_gemm."""
    cdef int[4] each
    if strassen:
        return dtconv_gemm_strassen_workspace(dtype_of(dtype), m, n, k, strassen)
    if ways is None:
        return dtconv_gemm_workspace(dtype_of(dtype), m, n, k)
    each[0], each[1], each[2], each[3] = ways
    return dtconv_gemm_workspace_in_ways(dtype_of(dtype), m, n, k, each)


def set_ways(ways) -> None:
    """Threads of the loops jc, ic, jr and ir of products that run on as many threads; None: by their sizes."""
    cdef int[4] each
    if ways is None:
        dtconv_sgemm_set_ways(NULL)
        dtconv_dgemm_set_ways(NULL)
        return
    each[0], each[1], each[2], each[3] = ways
    dtconv_sgemm_set_ways(each)
    dtconv_dgemm_set_ways(each)


def bind_gemm(a, b, out, double alpha, double beta, workspace, ways=None, int strassen=0) -> object:
    """A call for out = alpha * a @ b + beta * out; a (m, k), b (k, n) with any strides, rows of out contiguous.

    ways: threads of the loops jc, ic, jr and ir; None: by sizes.  strassen: levels of Strassen's algorithm.
    It returns the status.  The caller has checked shapes, strides and overlap.
    """
    cdef dtconv_dtype dtype = dtype_in(out)
    cdef strided left = strided_in(a, dtype), right = strided_in(b, dtype), result = strided_in(out, dtype)
    cdef scratch space = scratch_in(workspace)
    cdef bint divided = ways is not None
    cdef int jc, ic, jr, ir
    jc, ic, jr, ir = ways if divided else (1, 1, 1, 1)

    def run() -> int:
        cdef int status
        cdef int[4] each
        each[0], each[1], each[2], each[3] = jc, ic, jr, ir
        with nogil:
            if strassen:
                status = dtconv_gemm_strided_strassen(
                    dtype, left.rows, right.columns, left.columns, left.data, left.row_step, left.column_step,
                    right.data, right.row_step, right.column_step, result.data, result.row_step, alpha, beta, strassen,
                    space.data, space.size)
            elif divided:
                status = dtconv_gemm_strided_in_ways(
                    dtype, left.rows, right.columns, left.columns, left.data, left.row_step, left.column_step,
                    right.data, right.row_step, right.column_step, result.data, result.row_step, alpha, beta, each,
                    space.data, space.size)
            else:
                status = dtconv_gemm_strided(
                    dtype, left.rows, right.columns, left.columns, left.data, left.row_step, left.column_step,
                    right.data, right.row_step, right.column_step, result.data, result.row_step, alpha, beta,
                    space.data, space.size)
        return status

    return holding(run, (a, b, out, workspace))


def bind_dense(x, w, bias, residual, int kind, p, z, y, workspace, int strassen=0) -> object:
    """A call for y = f(x w + bias + residual); z None, or what f is applied to.  w and z are dense.

    strassen: levels of Strassen's algorithm.
    """
    if not (w.flags.c_contiguous and (z is None or z.flags.c_contiguous)):
        raise ValueError(f"w, z: expected dense matrices, got strides {w.strides} and {z if z is None else z.strides}")
    cdef dtconv_dtype dtype = dtype_in(y)
    cdef rows_of left = rows_in(x, dtype), right = rows_in(w, dtype), added = rows_in(residual, dtype)
    cdef rows_of before = rows_in(z, dtype), result = rows_in(y, dtype)
    cdef void *bias_ = reals_in(bias, dtype)
    cdef void *p_ = reals_in(p, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_dense_forward(
                dtype, left.count, right.width, right.count, left.data, left.apart, right.data, bias_, added.data,
                added.apart, kind, p_, before.data, result.data, result.apart, strassen, space.data, space.size))

    return holding(run, (x, w, bias, residual, p, z, y, workspace))


def dense_bias_backward_workspace(int64_t m, int64_t n, str dtype) -> int:
    return dtconv_dense_bias_backward_workspace(dtype_of(dtype), m, n)


def bind_dense_bias_backward(int kind, p, v, dy, bint accumulate, db, workspace) -> object:
    """A call for dy = dy f'(v) (v None: as it is), db (+)= the sums of its columns (None: not wanted)."""
    cdef dtconv_dtype dtype = dtype_in(dy)
    cdef rows_of gradient = rows_in(dy, dtype), argument = rows_in(v, dtype)
    cdef void *p_ = reals_in(p, dtype)
    cdef void *db_ = reals_in(db, dtype)
    cdef scratch space = scratch_in(workspace)

    def run():
        with nogil:
            check(dtconv_dense_bias_backward(
                dtype, gradient.count, gradient.width, kind, p_, argument.data, argument.apart, gradient.data,
                gradient.apart, accumulate, db_, space.data, space.size))

    return holding(run, (p, v, dy, db, workspace))
