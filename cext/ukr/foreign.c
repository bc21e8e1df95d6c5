/* Calls BLIS's micro-kernels through our contract.
 *
 * BLIS computes C (mr x nr) = beta * C + alpha * A * B from packed panels, with any row and column stride of C.  A
 * kernel that prefers columns loads its A as vectors: exchanging the operands and the strides of C turns it into ours.
 * Below 1.0 the kernel knows full tiles only: an edge tile goes through a small one on the stack.
 */
#include "dtconv_real.h"
#include "dtconv_ukr.h"
#include "foreign.h"

/* BLIS's auxinfo_t: panel addresses to prefetch, panel strides, and fields that real kernels leave alone.  The layout
 * of 0.7 to 1.x begins with these; room is left for what follows in newer ones. */
typedef struct {
    int schema_a, schema_b;
    const void *a_next, *b_next;
    int64_t stride_a, stride_b;
    int64_t more[16];
} auxinfo;

typedef void (*blis_0)(int64_t k, const real *alpha, const real *a, const real *b, const real *beta, real *c,
                       int64_t rs_c, int64_t cs_c, auxinfo *data, void *cntx);
typedef void (*blis_1)(int64_t m, int64_t n, int64_t k, const real *alpha, const real *a, const real *b,
                       const real *beta, real *c, int64_t rs_c, int64_t cs_c, auxinfo *data, void *cntx);

static void call_full(const DT(ukr_row) * row, const DT(ukr_call) * t, const real *beta, real *c, int64_t ldc) {
    auxinfo data = {.a_next = t->a_next, .b_next = t->b_next, .stride_a = row->mr * t->k, .stride_b = row->nr * t->k};
    const real *a = t->a, *b = t->b;
    int64_t rs = ldc, cs = 1, m = row->mr, n = row->nr;
    if (row->exchanged) {
        a = t->b, b = t->a, rs = 1, cs = ldc, m = row->nr, n = row->mr;
        data = (auxinfo){.a_next = t->b_next, .b_next = t->a_next, .stride_a = m * t->k, .stride_b = n * t->k};
    }
    if (row->abi == DTCONV_ABI_BLIS_1)
        ((blis_1)row->foreign)(m, n, t->k, &t->alpha, a, b, beta, c, rs, cs, &data, row->context);
    else
        ((blis_0)row->foreign)(t->k, &t->alpha, a, b, beta, c, rs, cs, &data, row->context);
}

void DT(ukr_run_foreign)(const DT(ukr_row) * row, const DT(ukr_call) * t) {
    if (t->m == row->mr && t->n == row->nr) {
        call_full(row, t, &t->beta, t->c, t->ldc);
        return;
    }
    real tile[DTCONV_UKR_MAX_MR * DTCONV_UKR_MAX_NR] __attribute__((aligned(64)));
    const real zero = 0;
    call_full(row, t, &zero, tile, row->nr);
    for (int64_t i = 0; i < t->m; i++) {
        const real *from = tile + i * row->nr;
        real *to = t->c + i * t->ldc;
        for (int64_t j = 0; j < t->n; j++) to[j] = t->beta == 0 ? from[j] : from[j] + t->beta * to[j];
    }
}
