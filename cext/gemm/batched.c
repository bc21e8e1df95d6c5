/* Many products of one size: threads take whole matrices C, where there are enough of them; else, and by Strassen's
 * algorithm, which is for large ones, each product is one of all threads.  A product has the same bits on any number of
 * threads, so the result does not depend on it.
 */
#include "dtconv_real.h"
#include "dtconv_gemm.h"
#include "dtconv_products.h"
#include "dtconv_strassen.h"
#include "dtconv_thread_id.h"

typedef struct {
    int64_t inner, m, n, k;
    const int64_t *offsets;
    const real *a, *b;
    int64_t ars, acs, brs, bcs;
    real *c;
    int64_t ldc;
    int accumulate, levels;
} batch;

static size_t in_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Threads that take whole matrices; 1: all that are worth starting work on each. */
static int threads_of(int64_t outer, int64_t m, int64_t n, int64_t k, int levels) {
    const double products = (double)outer * (double)m * (double)n * (double)k;
    const int threads = dtconv_threads_for(products < 1e18 ? (int64_t)products : INT64_MAX);
    return outer >= threads && !levels ? threads : 1;
}

size_t DT(gemm_batched_workspace)(int64_t outer, int64_t m, int64_t n, int64_t k, int levels) {
    const int threads = threads_of(outer, m, n, k, levels);
    if (levels) return DT(gemm_strassen_workspace)(m, n, k, levels);
    if (threads == 1) return DT(gemm_workspace)(m, n, k);
    return 64 + (size_t)threads * in_lines(DT(gemm_workspace_on)(m, n, k, 1));
}

static dtconv_status one(const batch *t, int64_t o, int threads, void *workspace, size_t bytes) {
    const int64_t *at = t->offsets + o * (1 + 2 * t->inner);
    for (int64_t i = 0; i < t->inner; i++) {
        const DT(matrix) a = {t->a + at[1 + 2 * i], t->ars, t->acs}, b = {t->b + at[2 + 2 * i], t->brs, t->bcs};
        const DT(gemm_args) args = {
            .m = t->m,
            .n = t->n,
            .k = t->k,
            .pack_b = DT(pack_b_matrix),
            .b = &b,
            .c = t->c + at[0],
            .ldc = t->ldc,
            .beta = i > 0 || t->accumulate,
            .a_in_place = &a,
            .threads = threads,
        };
        const dtconv_status status =
            t->levels ? DT(gemm_strassen)(&args, 1, t->levels, workspace, bytes) : DT(gemm)(&args, workspace, bytes);
        if (status != DTCONV_OK) return status;
    }
    return DTCONV_OK;
}

dtconv_status DT(gemm_batched)(int64_t outer, int64_t inner, const int64_t *offsets, int64_t m, int64_t n, int64_t k,
                               const real *a, int64_t ars, int64_t acs, const real *b, int64_t brs, int64_t bcs,
                               real *c, int64_t ldc, int accumulate, int levels, void *workspace, size_t bytes) {
    const batch t = {inner, m, n, k, offsets, a, b, ars, acs, brs, bcs, c, ldc, accumulate, levels};
    if (bytes < DT(gemm_batched_workspace)(outer, m, n, k, levels)) return DTCONV_WORKSPACE;
    const int threads = threads_of(outer, m, n, k, levels);
    if (threads == 1) {
        for (int64_t o = 0; o < outer; o++) {
            const dtconv_status status = one(&t, o, 0, workspace, bytes);
            if (status != DTCONV_OK) return status;
        }
        return DTCONV_OK;
    }
    const size_t each = in_lines(DT(gemm_workspace_on)(m, n, k, 1));
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    int failed = DTCONV_OK;
#pragma omp parallel for schedule(dynamic, dtconv_piece(outer)) num_threads(threads) reduction(max : failed)
    for (int64_t o = 0; o < outer; o++) {
        char *mine = memory + (size_t)dtconv_thread_id() * each;
        const int status = one(&t, o, 1, mine, each);
        failed = status > failed ? status : failed;
    }
    return (dtconv_status)failed;
}
