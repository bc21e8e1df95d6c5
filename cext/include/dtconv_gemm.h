/* GEMM over micro-kernels: the five loops of BLIS with packing and epilogue as callbacks.
 *
 *   C (m x n) = beta * C + A (m x k) * B (k x n)          C row-major, rows ldc apart
 *
 * A is the operand whose elements are broadcast, B the one that is loaded as vectors along C's rows.  Packed panels:
 * A in panels of MR rows (element (i, p) of a panel at p * MR + i), B in panels of NR columns (element (p, j) at
 * p * NR + j); the last panel is filled up with zeros.  MR and NR are those of the micro-kernel in force
 * (dtconv_ukr.h).
 *
 * No include guard: include it after dtconv_real.h, once; dtconv_both.h includes it once per precision.
 */

/* Packs rows [i, i + m) x columns [p, p + k) of A into `dst` as panels of `mr` rows, each k * mr elements. */
typedef void (*DT(pack_a_fn))(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst);

/* Packs rows [p, p + k) x columns [j, j + n) of B into `dst` as panels of `nr` columns, each k * nr elements. */
typedef void (*DT(pack_b_fn))(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst);

/* Called once for each finished block C[i : i + m, j : j + n], while it is in cache; c points to its first element.
 * Threads call it at the same time, for different blocks. */
typedef void (*DT(epilogue_fn))(const void *context, int64_t i, int64_t m, int64_t j, int64_t n, real *c, int64_t ldc);

/* A plain strided matrix: element (i, j) at data[i * rs + j * cs].  The context of pack_a_matrix and pack_b_matrix. */
typedef struct {
    const real *data;
    int64_t rs, cs;
} DT(matrix);
void DT(pack_a_matrix)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst);
void DT(pack_b_matrix)(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst);

typedef struct {
    int64_t m, n, k;
    DT(pack_a_fn) pack_a;
    const void *a; /* context of pack_a */
    DT(pack_b_fn) pack_b;
    const void *b;
    real *c;
    int64_t ldc;
    real beta;                /* 0: C is not read; 1 adds; others scale */
    DT(epilogue_fn) epilogue; /* may be NULL */
    const void *e;
    /* A as a plain matrix, instead of pack_a and a: read in place, without packing, where the micro-kernel can and
     * where that is faster (1x1 convolutions, tall row-major A); packed by pack_a_matrix elsewhere.  May be NULL. */
    const DT(matrix) * a_in_place;
    int threads; /* 0: dtconv_get_num_threads().  1 wherever it is called from inside a parallel region. */
} DT(gemm_args);

/* Those of C = beta * C + A * B for plain matrices. */
static inline DT(gemm_args) DT(gemm_of_matrices)(int64_t m, int64_t n, int64_t k, const DT(matrix) * a,
                                                 const DT(matrix) * b, real *c, int64_t ldc, double beta) {
    return (DT(gemm_args)){
        .m = m,
        .n = n,
        .k = k,
        .pack_b = DT(pack_b_matrix),
        .b = b,
        .c = c,
        .ldc = ldc,
        .beta = (real)beta,
        .a_in_place = a,
    };
}

/* Bytes of workspace that gemm wants with the threads now set: packed blocks only, bounded whatever m, n and k are.
 * gemm_workspace_on: for a given number of threads (gemm_args.threads). */
size_t DT(gemm_workspace)(int64_t m, int64_t n, int64_t k);
size_t DT(gemm_workspace_on)(int64_t m, int64_t n, int64_t k, int threads);

/* Runs on `threads` threads; the result does not depend on their number.  DTCONV_KERNEL: no micro-kernel in force. */
dtconv_status DT(gemm)(const DT(gemm_args) * args, void *workspace, size_t bytes);

/* The same with alpha * A * B. */
dtconv_status DT(gemm_scaled)(const DT(gemm_args) * args, real alpha, void *workspace, size_t bytes);

/* MC, KC, NC and the MR and NR that gemm uses now, for callers that shape their own work after them. */
struct DT(ukr_row);
typedef struct {
    int64_t mr, nr, mc, kc, nc;
} DT(gemm_sizes);
DT(gemm_sizes) DT(gemm_get_sizes)(void);
DT(gemm_sizes) DT(gemm_sizes_of)(const struct DT(ukr_row) * ukr);
