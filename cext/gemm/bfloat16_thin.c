/* Products of a large matrix of float32, weights of a dense layer or their gradient, with the few rows of a small
 * batch.
 *
 * Each element of the large matrix meets only a few others: rounding and packing it takes several times as long as
 * reading it once.  So what is thin is widened, and the product is float32's (../gemm/thin.c); weights are not rounded.
 */
#include "bfloat16_thin.h"

#pragma push_macro("DT")
#undef DT
#define DT RT
#include "dtconv_gemm.h"
#include "thin.h"
#pragma pop_macro("DT")

enum { LINE = 16 };

/* Elements of what is widened: A and the sums, or A and B. */
static int64_t elements(int64_t m, int64_t n, int64_t k) {
    return round_up(m * k, LINE) + (RT(gemm_has_few_rows)(m, n, k) ? m : k) * round_up(n, LINE) + LINE;
}

size_t DT(gemm_thin_bytes)(int64_t m, int64_t n, int64_t k, int threads) {
    if (!RT(gemm_has_few_rows)(m, n, k) && !RT(gemm_is_shallow)(m, n, k)) return 0;
    return (size_t)elements(m, n, k) * sizeof(real) + RT(gemm_workspace_on)(m, n, k, threads);
}

/* The matrix as float32: where it is, or widened into `to` in the order in which it lies in memory. */
static RT(matrix) widened(const dtconv_operand *x, int64_t rows, int64_t columns, real *to) {
    if (!x->bfloat16) return (RT(matrix)){(const real *)x->data, x->rs, x->cs};
    const int turned = x->cs != 1;
    const int64_t outer = turned ? columns : rows, inner = turned ? rows : columns;
    const int64_t outer_step = turned ? x->cs : x->rs, step = turned ? x->rs : x->cs;
    for (int64_t i = 0; i < outer; i++) {
        const elem *from = (const elem *)x->data + i * outer_step;
        real *row = to + i * inner;
        if (step == 1)
            for (int64_t j = 0; j < inner; j++) row[j] = widen(from[j]);
        else
            for (int64_t j = 0; j < inner; j++) row[j] = widen(from[j * step]);
    }
    return turned ? (RT(matrix)){to, 1, inner} : (RT(matrix)){to, inner, 1};
}

int DT(gemm_thin_of_float)(const dtconv_gemm_mixed_args *g, int threads, void *workspace, size_t bytes) {
    const int rows = RT(gemm_has_few_rows)(g->m, g->n, g->k) && !g->b.bfloat16;
    const int direct = g->bias == NULL && g->activation == DTCONV_LINEAR && !g->c_bfloat16;
    if (g->products != 1 || !(rows || (direct && RT(gemm_is_shallow)(g->m, g->n, g->k)))) return 0;
    if (bytes < DT(gemm_thin_bytes)(g->m, g->n, g->k, threads)) return 0;
    real *a_space = (real *)(((uintptr_t)workspace + 63) / 64 * 64), *space = a_space + round_up(g->m * g->k, LINE);
    const int64_t ld = round_up(g->n, LINE);
    char *rest = (char *)(space + (rows ? g->m : g->k) * ld);
    const RT(matrix) a = widened(&g->a, g->m, g->k, a_space);
    const RT(matrix) b = rows ? widened(&g->b, 0, 0, NULL) : widened(&g->b, g->k, g->n, space);
    const RT(gemm_args) product = {
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .pack_a = RT(pack_a_matrix),
        .a = &a,
        .pack_b = RT(pack_b_matrix),
        .b = &b,
        .c = rows ? space : (real *)g->c,
        .ldc = rows ? ld : g->ldc,
        .beta = rows ? 0 : g->beta,
        .threads = threads,
    };
    const size_t left = bytes - (size_t)(rest - (char *)workspace);
    if (RT(gemm_scaled)(&product, rows ? 1 : g->alpha, rest, left) != DTCONV_OK) return 0;
    if (rows) DT(gemm_finish)(g, space, ld, 0, g->m, 0, g->n);
    return 1;
}
