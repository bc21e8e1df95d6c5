/* Block sizes from the caches and the micro-kernel, and the division of C among threads.
 *
 *   a panel of A (MR x kc) stays in half of L1 while the panels of B pass by;
 *   a block of B (kc x nc) stays in three quarters of L2 while the panels of A pass by;
 *   where all of B fits into B_WHOLE bytes, all of it is packed at once (kb = k, nc = n), so that a block of C (mc x n)
 * is written once and stays in cache over the loop on k; else kb = kc, and C is passed once per kc.
 *
 * The sizes depend on the machine, the kernel and the problem but not on the number of threads: so do results.
 */
#include "dtconv_real.h"
#include "dtconv_gemm.h"
#include "blocks.h"

enum { B_WHOLE = 4 << 20, ROWS_IN_PLACE = 448, PANEL_OF_ANOTHER = 4 };

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

DT(blocks) DT(gemm_blocks)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int in_place) {
    const int64_t l1 = dtconv_cache_bytes(1), l2 = dtconv_cache_bytes(2), size = sizeof(real),
                  n_round = round_up(max(n, 1), ukr->nr);
    DT(blocks) s = {.mr = ukr->mr, .nr = ukr->nr};
    const int64_t kc_most = max(128, min(384, l1 / 2 / (s.mr * size) / 8 * 8));
    /* equal pieces: 416 is one of 416 or two of 208, never 384 and 32 */
    s.kc = k <= kc_most * 5 / 4 ? max(k, 1) : round_up(ceil_div(k, ceil_div(k, kc_most)), 8);
    const int whole = round_up(k, s.kc) * n_round * size <= B_WHOLE;
    s.kb = whole ? round_up(max(k, 1), s.kc) : s.kc;
    s.nc = whole ? n_round : min(n_round, max(1, l2 * 3 / 4 / (s.kc * size) / s.nr) * s.nr);
    s.nc = round_up(ceil_div(n_round, ceil_div(n_round, s.nc)), s.nr);
    const int64_t mc = in_place ? ROWS_IN_PLACE : l2 / 4 / (s.kc * size);
    s.mc = min(max(1, mc / s.mr) * s.mr, round_up(max(m, 1), s.mr));
    /* Room for the blocks of this problem and of every smaller one: a caller that cuts its last piece shorter gets
     * other blocks but needs no more than it has asked for. */
    const int64_t kc_limit = round_up(kc_most * 5 / 4, 8), pieces = ceil_div(max(k, 1), kc_most / 2);
    const int64_t b_limit = max(max(B_WHOLE, l2 * 3 / 4) / size, kc_limit * s.nr);
    s.b_size = (size_t)min((max(k, 1) + 8 * pieces) * n_round, b_limit);
    const int64_t a_limit = max(l2 / 4 / size, kc_limit * s.mr);
    s.a_size = in_place ? 0 : (size_t)min(round_up(max(m, 1), s.mr) * round_up(max(k, 1), 8), a_limit);
    return s;
}

DT(gemm_sizes) DT(gemm_sizes_of)(const DT(ukr_row) * ukr) {
    const DT(blocks) s = DT(gemm_blocks)(ukr, 1 << 20, 1 << 20, 1 << 20, 0);
    return (DT(gemm_sizes)){.mr = s.mr, .nr = s.nr, .mc = s.mc, .kc = s.kc, .nc = s.nc};
}

DT(gemm_sizes) DT(gemm_get_sizes)(void) {
    const DT(ukr_row) *ukr = DT(ukr_current)();
    return ukr ? DT(gemm_sizes_of)(ukr) : (DT(gemm_sizes)){0};
}

int64_t DT(gemm_part)(int64_t count, int64_t unit, int64_t parts, int64_t id, int64_t *number) {
    const int64_t units = ceil_div(count, unit);
    const int64_t first = min(units * id / parts * unit, count), last = min(units * (id + 1) / parts * unit, count);
    *number = last - first;
    return first;
}

/* A grid of threads over C.  The largest share counts, in halves of tiles: one more for each row of tiles, whose A is
 * packed, and some for each panel of B that another thread has packed, and so has in its cache. */
DT(share) DT(gemm_share)(const DT(blocks) * s, int64_t m, int64_t n, int threads, int id) {
    const int64_t rows = ceil_div(m, s->mr), columns = ceil_div(n, s->nr);
    int64_t best = INT64_MAX, best_columns = 1;
    for (int64_t parts = 1; parts <= threads; parts++) {
        if (threads % parts) continue;
        const int64_t across = ceil_div(columns, parts), others = across - ceil_div(columns, threads);
        const int64_t cost = ceil_div(rows, threads / parts) * (2 * across + 1) + PANEL_OF_ANOTHER * others;
        if (cost < best) best = cost, best_columns = parts;
    }
    DT(share) share;
    share.i = DT(gemm_part)(m, s->mr, threads / best_columns, id / best_columns, &share.m);
    share.j = DT(gemm_part)(n, s->nr, best_columns, id % best_columns, &share.n);
    return share;
}
