/* GEMM over micro-kernels: the five loops of BLIS with packing and epilogue as callbacks.
 *
 *   C (m x n) = beta * C + A (m x k) * B (k x n)          C row-major, rows ldc apart
 *
 * A is the operand whose elements are broadcast, B the one that is loaded as vectors along C's rows.  Packed panels:
 * A in panels of MR rows (element (i, p) of a panel at p * MR + i), B in panels of NR columns (element (p, j) at
 * p * NR + j); the last panel is filled up with zeros.
 * A micro-kernel that prefers columns (BLIS's skx_asm_32x12) serves with the operands exchanged, which its row in the
 * table has done already: MR = 12, NR = 32.
 *
 * No include guard: include it after dtconv_real.h, once; dtconv_both.h includes it once per precision.
 */

/* Packs rows [i, i + m) x columns [p, p + k) of A into `dst` as panels of `mr` rows, each k * mr elements. */
typedef void (*DT(pack_a_fn))(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst);

/* Packs rows [p, p + k) x columns [j, j + n) of B into `dst` as panels of `nr` columns, each k * nr elements. */
typedef void (*DT(pack_b_fn))(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst);

/* Called once for each finished block C[i : i + m, j : j + n], while it is in cache; c points to its first element. */
typedef void (*DT(epilogue_fn))(const void *context, int64_t i, int64_t m, int64_t j, int64_t n, real *c, int64_t ldc);

typedef struct {
    int64_t m, n, k;
    DT(pack_a_fn) pack_a;
    const void *a; /* context of pack_a */
    DT(pack_b_fn) pack_b;
    const void *b;
    real *c;
    int64_t ldc;
    real beta;             /* 0 overwrites, 1 adds; no other values */
    DT(epilogue_fn) epilogue; /* may be NULL */
    const void *e;
} DT(gemm_args);

/* Bytes of workspace that gemm wants with the threads now set: packed blocks only, independent of m (see block sizes). */
size_t DT(gemm_workspace)(int64_t m, int64_t n, int64_t k);

/* Runs on dtconv_get_num_threads() threads; the result does not depend on their number. */
dtconv_status DT(gemm)(const DT(gemm_args) * args, void *workspace, size_t bytes);

/* Context and packing of plain strided matrices: element (i, j) at data[i * rs + j * cs]. */
typedef struct {
    const real *data;
    int64_t rs, cs;
} DT(matrix);
void DT(pack_a_matrix)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst);
void DT(pack_b_matrix)(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst);
