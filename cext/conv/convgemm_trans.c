/* CONVGEMM_TRANS: backward_weights as a GEMM whose operand, the transposed im2col matrix, is packed straight from the
 * image.
 *
 *   dw (k x co) = im2col(x)^T (k x m) * dy (m x co),   m = n * od * oh * ow, k = kd * kh * kw * ci
 *
 * Method: Barrachina, Dolz, San Juan, Quintana-Orti, JPDC 2022, section 4.  Two things are ours.  As m is huge and dw
 * often small, m is cut into slices, each multiplied by one thread into a matrix of its own; these are added in order.
 * The cuts depend on the problem alone, so results do not depend on the number of threads.  And where it is cheaper the
 * transpose is computed, dw^T (co x k) = dy^T * im2col(x), for the image packs faster in wide panels.
 * Workspace: packed blocks and at most SUMS_BYTES of slices; nothing grows with the batch or the image.
 */
#include "conv_internal.h"

enum { SUMS_BYTES = 4 << 20, SLICES = 16, SLICE_ROWS = 512 };

typedef struct {
    int64_t k, co, rows, slices, slice_rows;
    int64_t threads;  /* that take slices, and that the workspace has room for */
    int gemm_threads; /* of each gemm */
    int flipped;      /* whether slices hold dw^T */
    size_t sum;       /* bytes of a slice's result */
    size_t space;     /* bytes of a slice's gemm */
} plan;

static double waste(int64_t size, int64_t unit) { return (double)(dtconv_ceil_div(size, unit) * unit) / (double)size; }

/* Cost per element of the im2col matrix, in units of a packed copy in wide panels: the product's and the packing's. */
static int is_flipped(int64_t k, int64_t co) {
    const DT(gemm_sizes) s = DT(gemm_get_sizes)();
    if (!s.mr) return 0;
    const double product = (double)co / 4;
    return product * waste(k, s.nr) * waste(co, s.mr) + 1 < product * waste(k, s.mr) * waste(co, s.nr) + 3;
}

static plan plan_of(const dtconv_conv *p) {
    plan s = {.k = dtconv_columns(p), .co = p->co / p->groups, .rows = dtconv_rows(p)};
    s.sum = dtconv_round((size_t)(s.k * s.co) * sizeof(real));
    const int64_t most = MIN(SLICES, (int64_t)(SUMS_BYTES / s.sum));
    s.slices = most < 4 ? 1 : MIN(most, dtconv_ceil_div(s.rows, SLICE_ROWS));
    s.slice_rows = dtconv_ceil_div(s.rows, s.slices);
    s.slices = dtconv_ceil_div(s.rows, s.slice_rows);
    s.flipped = s.sum * 4 <= SUMS_BYTES && is_flipped(s.k, s.co);
    if (s.slices == 1 && !s.flipped) s.sum = 0; /* straight into dw */
    const int64_t m = s.flipped ? s.co : s.k, n = s.flipped ? s.k : s.co;
    const int threads = dtconv_threads_for(s.rows * s.k * s.co);
    s.threads = s.slices > 1 ? MIN(s.slices, threads) : 1;
    s.gemm_threads = s.slices > 1 ? 1 : threads;
    s.space = dtconv_round(DT(gemm_workspace_on)(m, n, s.slice_rows, s.gemm_threads));
    return s;
}

static size_t bytes_of(const plan *s) { return (size_t)s->slices * s->sum + (size_t)s->threads * s->space; }

size_t DT(conv_convgemm_trans_backward_weights_workspace)(const dtconv_conv *p) {
    const plan s = plan_of(p);
    return bytes_of(&s);
}

/* Rows [first, first + rows) of the product into c, rows of which are ldc apart. */
static dtconv_status multiply(const dtconv_conv *p, const DT(conv_args) * a, const plan *s, int64_t group,
                              int64_t first, real *c, int64_t ldc, void *workspace) {
    const int64_t rows = MIN(s->slice_rows, s->rows - first);
    DT(image_matrix) image = DT(image_matrix_of)(p, a->x, group);
    image.first = first;
    const real *dy_data = a->y + group * s->co + first * p->ldy;
    const DT(matrix) dy = {dy_data, p->ldy, 1}, dy_trans = {dy_data, 1, p->ldy};
    DT(gemm_args) gemm = {.k = rows, .c = c, .ldc = ldc, .threads = s->gemm_threads};
    if (s->flipped) {
        gemm.m = s->co, gemm.pack_a = DT(pack_a_matrix), gemm.a = &dy_trans;
        gemm.n = s->k, gemm.pack_b = DT(pack_image_columns), gemm.b = &image;
    } else {
        gemm.m = s->k, gemm.pack_a = DT(pack_image_trans), gemm.a = &image;
        gemm.n = s->co, gemm.pack_b = DT(pack_b_matrix), gemm.b = &dy;
    }
    return DT(gemm)(&gemm, workspace, s->space);
}

/* dw = the sum of all slices, turned where they are flipped. */
static void add_slices(const plan *s, const real *sums, real *dw, int64_t lddw) {
    enum { BLOCK = 16 };
    const int64_t step = (int64_t)(s->sum / sizeof(real));
    const int64_t across = s->flipped ? s->k : 1, down = s->flipped ? 1 : s->co; /* of co and of k in a slice */
#pragma omp parallel for num_threads(dtconv_threads_to_move(s->slices * s->k * s->co)) schedule(static)
    for (int64_t i0 = 0; i0 < s->k; i0 += BLOCK) {
        const int64_t i1 = MIN(s->k, i0 + BLOCK);
        for (int64_t slice = 0; slice < s->slices; slice++) {
            const real *sum = sums + slice * step;
            if (!s->flipped) {
                for (int64_t i = i0; i < i1; i++)
                    for (int64_t j = 0; j < s->co; j++)
                        dw[i * lddw + j] = sum[i * down + j] + (slice ? dw[i * lddw + j] : 0);
                continue;
            }
            for (int64_t j = 0; j < s->co; j++)
                for (int64_t i = i0; i < i1; i++)
                    dw[i * lddw + j] = sum[j * across + i] + (slice ? dw[i * lddw + j] : 0);
        }
    }
}

dtconv_status DT(conv_convgemm_trans_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                       size_t bytes) {
    const plan s = plan_of(p);
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    real *sums = workspace;
    char *space = (char *)workspace + (size_t)s.slices * s.sum;
    for (int64_t group = 0; group < p->groups; group++) {
        real *dw = a->w + group * s.co;
        int failed = DTCONV_OK;
        if (s.slices == 1) {
            failed = multiply(p, a, &s, group, 0, s.sum ? sums : dw, s.sum ? s.flipped ? s.k : s.co : p->co, space);
        } else {
#pragma omp parallel for num_threads((int)s.threads) schedule(static) reduction(max : failed)
            for (int64_t slice = 0; slice < s.slices; slice++) {
                const dtconv_status status =
                    multiply(p, a, &s, group, slice * s.slice_rows, sums + slice * (int64_t)(s.sum / sizeof(real)),
                             s.flipped ? s.k : s.co, space + (size_t)dtconv_thread_id() * s.space);
                failed = MAX(failed, (int)status);
            }
        }
        if (failed) return (dtconv_status)failed;
        if (s.sum) add_slices(&s, sums, dw, p->co);
    }
    return DTCONV_OK;
}
