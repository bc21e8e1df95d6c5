/* Dense layers: y = f(x w + b + r), finished block by block on the way out of the product.
 *
 * f whose derivative follows from its argument (GELU, ...) leave that argument, z, in a second array: backward needs
 * it, and has y again from it without a product.
 */
#include "dtconv_nn_elem.h"
#include "dtconv_gemm.h"
#include "dtconv_products.h"
#include "dtconv_strassen.h"
#include "norm_common.h"
#include "spans.h"

enum { SLICES = 32, SLICE_ROWS = 64, SPAN = 512 };

typedef struct {
    const real *bias, *residual;
    int64_t ldr;
    DT(unary_context) f;
    real *y; /* where f's result goes; NULL: over z */
    int64_t ldy;
} finish;

/* z += bias + residual, in one sweep. */
static void add_row(int64_t n, const real *restrict bias, const real *restrict residual, real *restrict z) {
    if (bias && residual)
        for (int64_t j = 0; j < n; j++) z[j] += bias[j] + residual[j];
    else if (bias)
        for (int64_t j = 0; j < n; j++) z[j] += bias[j];
    else if (residual)
        for (int64_t j = 0; j < n; j++) z[j] += residual[j];
}

static void finish_block(const void *context, int64_t i, int64_t m, int64_t j, int64_t n, real *c, int64_t ldc) {
    const finish *f = context;
    for (int64_t row = 0; row < m; row++) {
        for (int64_t at = 0; at < n; at += SPAN) {
            const int64_t width = min_i64(SPAN, n - at);
            real *z = c + row * ldc + at;
            add_row(width, f->bias ? f->bias + j + at : NULL,
                    f->residual ? f->residual + (i + row) * f->ldr + j + at : NULL, z);
            real *y = f->y ? f->y + (i + row) * f->ldy + j + at : z;
            if (f->f.kind != DTCONV_LINEAR) DT(unary_forward_span)(&f->f, width, (const real *const[]){z}, y);
        }
    }
}

dtconv_status DT(dense_forward)(int64_t m, int64_t n, int64_t k, const real *x, int64_t ldx, const real *w,
                                const real *bias, const real *residual, int64_t ldr, int kind, const real *p, real *z,
                                real *y, int64_t ldy, int levels, void *workspace, size_t bytes) {
    const DT(matrix) left = {x, ldx, 1}, right = {w, n, 1};
    const int adds = residual == y; /* the product is added to what lies there */
    const DT(unary_context) activation = {kind, 0, {p[0], p[1], p[2]}};
    const finish f = {bias, adds ? NULL : residual, ldr, activation, z ? y : NULL, ldy};
    const int plain = !f.bias && !f.residual && kind == DTCONV_LINEAR;
    if (adds && (z || ldr != ldy)) return DTCONV_ARGUMENT;
    const DT(gemm_args) args = {
        .m = m,
        .n = n,
        .k = k,
        .pack_b = DT(pack_b_matrix),
        .b = &right,
        .c = z ? z : y,
        .ldc = z ? n : ldy,
        .beta = adds,
        .a_in_place = &left,
        .epilogue = plain ? NULL : finish_block,
        .e = &f,
    };
    return levels ? DT(gemm_strassen)(&args, 1, levels, workspace, bytes) : DT(gemm)(&args, workspace, bytes);
}

INLINE int64_t slices_of(int64_t m) { return max_i64(1, min_i64(SLICES, m / SLICE_ROWS)); }

size_t DT(dense_bias_backward_workspace)(int64_t m, int64_t n) { return (size_t)(slices_of(m) * n) * sizeof(real); }

dtconv_status DT(dense_bias_backward)(int64_t m, int64_t n, int kind, const real *p, const real *v, int64_t ldv,
                                      real *dy, int64_t lddy, int accumulate, real *db, void *workspace, size_t bytes) {
    const int64_t slices = slices_of(m);
    const DT(unary_context) slope = {kind, 0, {p[0], p[1], p[2]}};
    real *sums = workspace;
    if (db && bytes < DT(dense_bias_backward_workspace)(m, n)) return DTCONV_WORKSPACE;
#pragma omp parallel for schedule(static) num_threads(dtconv_threads_to_move(m *n))
    for (int64_t s = 0; s < slices; s++) {
        real *sum = sums + s * n;
        if (db) memset(sum, 0, (size_t)n * sizeof(real));
        for (int64_t i = m * s / slices; i < m * (s + 1) / slices; i++) {
            real *row = dy + i * lddy;
            if (v) DT(unary_backward_span)(&slope, n, (const real *const[]){v + i * ldv, row}, row);
            if (db)
                for (int64_t j = 0; j < n; j++) sum[j] += row[j];
        }
    }
    for (int64_t j = 0; j < n && db; j++) {
        double sum = accumulate ? (double)db[j] : 0;
        for (int64_t s = 0; s < slices; s++) sum += (double)sums[s * n + j];
        db[j] = (real)sum;
    }
    return DTCONV_OK;
}
