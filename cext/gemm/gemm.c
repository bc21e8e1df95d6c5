/* The five loops around the micro-kernel.
 *
 *   C (m x n) = beta * C + A (m x k) * B (k x n)
 *
 *     jc   walks n in steps of NC:  the columns of B that are packed at a time
 *     pb   walks k in steps of KB:  the depth that is packed of them; usually all of it, so that C is written once
 *            all threads pack B[pb, jc]; then each takes its share of rows and columns of C
 *       ic   walks m in steps of MC:  the rows of A that one thread works on
 *       pc   walks KB in steps of KC: packs A[ic, pc], unless it is read in place
 *         ir   walks the rows in steps of MR:    one panel of A, kept in L1, or read in place
 *         jr   walks the columns in steps of NR: the micro-kernel, with the panels of B from L2
 *
 * Two things differ from the textbook.  The loop on k is cut in two, pb outside of ic and pc inside.  And jr is inside
 * of ir, not outside: A's rows are then read once and in order, even from a plain matrix, and C is written row by row,
 * which is what tall products with few columns want, as convolutions are.
 *
 * Every element of C is summed by one thread in the same order, so results do not depend on the number of threads.
 * Where one matrix is thin, another way without packing takes over (thin.c).  Which loops the threads divide follows
 * from the sizes, or the caller says it (dtconv_gemm_ways.h).
 */
#include <stdatomic.h>

#include "dtconv_real.h"
#include "dtconv_gemm.h"
#include "dtconv_gemm_ways.h"
#include "dtconv_thread_id.h"
#include "blocks.h"
#include "thin.h"

enum { ALIGN = 64, READ_AHEAD = 1024 /* kernels load the step after the last one */ };

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static int team_size(void) {
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

static int threads_for(int threads, int64_t m, int64_t n, int64_t k) {
#ifdef _OPENMP
    if (omp_in_parallel()) return 1;
#endif
    int64_t products; /* more than 64 bits can hold where a matrix lies on itself, with strides of 0 */
    if (__builtin_mul_overflow(m, n, &products) || __builtin_mul_overflow(products, k, &products)) products = INT64_MAX;
    return threads > 0 ? threads : dtconv_threads_for(products);
}

static size_t in_lines(size_t elements) { return (elements * sizeof(real) + ALIGN - 1) / ALIGN * ALIGN; }

static size_t bytes_of(const DT(blocks) * s, int64_t m, int64_t n, int64_t k, int threads) {
    const size_t packed = in_lines(s->b_size) + (size_t)threads * in_lines(s->a_size) + READ_AHEAD;
    const size_t thin = DT(gemm_thin_workspace)(m, n, k, threads);
    return ALIGN + (packed > thin ? packed : thin);
}

static int threads_in(const int *ways) { return ways[0] * ways[1] * ways[2] * ways[3]; }

static size_t bytes_in_ways(const DT(blocks) * s, const int *ways) {
    return ALIGN + (size_t)ways[0] * in_lines(s->b_size) + (size_t)threads_in(ways) * in_lines(s->a_size) + READ_AHEAD;
}

static int set_ways[4]; /* of products on as many threads; first 0: none are set */

void DT(gemm_set_ways)(const int *ways) {
    for (int i = 0; i < 4; i++) set_ways[i] = ways ? ways[i] : 0;
}

static const int *ways_for(int threads) { return set_ways[0] && threads_in(set_ways) == threads ? set_ways : NULL; }

/* Of a call without ways of its own. */
static size_t usual_bytes(const DT(blocks) * s, int64_t m, int64_t n, int64_t k, int threads) {
    const size_t by_sizes = bytes_of(s, m, n, k, threads), in_ways = ways_for(threads) ? bytes_in_ways(s, set_ways) : 0;
    return by_sizes > in_ways ? by_sizes : in_ways;
}

size_t DT(gemm_workspace_on)(int64_t m, int64_t n, int64_t k, int threads) {
    const DT(ukr_row) *ukr = DT(ukr_current)();
    if (!ukr) return 0;
    const DT(blocks) s = DT(gemm_blocks)(ukr, m, n, k, 0);
    return usual_bytes(&s, m, n, k, threads_for(threads, m, n, k));
}

size_t DT(gemm_workspace)(int64_t m, int64_t n, int64_t k) { return DT(gemm_workspace_on)(m, n, k, 0); }

typedef struct {
    const DT(gemm_args) * g;
    const DT(ukr_row) * ukr;
    DT(blocks) s;
    real *b_packed, *a_packed; /* a_packed: the first thread's */
    int in_place;
    real alpha;
    _Atomic int64_t (*taken)[DTCONV_MOST_THREADS]; /* pieces of each thread's share, of this round and of the next */
    const int *ways;                               /* threads of loops jc, ic, jr and ir; NULL: by the sizes */
} run_state;

/* Packs this thread's part of B[p : p + k, j : j + n], whose pieces of KC steps lie one after the other: a range of
 * panels, or where panels are few a range of steps of each panel. */
static void pack_b_share(const run_state *r, int64_t p, int64_t k, int64_t j, int64_t n, int threads, int id,
                         real *b_packed) {
    const int64_t nr = r->s.nr, panels = (n + nr - 1) / nr;
    for (int64_t pc = 0; pc < k; pc += r->s.kc) {
        const int64_t kc = min(r->s.kc, k - pc);
        real *dst = b_packed + pc * panels * nr;
        if (panels % threads == 0 || panels > 4 * threads) {
            const int64_t first = panels * id / threads * nr, last = min(panels * (id + 1) / threads * nr, n);
            if (last > first) r->g->pack_b(r->g->b, p + pc, kc, j + first, last - first, nr, dst + first * kc);
            continue;
        }
        const int64_t first = kc * id / threads, depth = kc * (id + 1) / threads - first;
        for (int64_t jr = 0; jr < n && depth > 0; jr += nr)
            r->g->pack_b(r->g->b, p + pc + first, depth, j + jr, min(nr, n - jr), nr, dst + jr * kc + first * nr);
    }
}

/* Loops ir and jr: C[i : i + m, j : j + n] += A[i, p] * B[p, j] over a depth of k. */
static void macro_kernel(const run_state *r, int64_t i, int64_t m, int64_t j, int64_t n, int64_t p, int64_t k,
                         const real *a, const real *b, real beta) {
    const int64_t mr = r->s.mr, nr = r->s.nr;
    const DT(matrix) *plain = r->g->a_in_place;
    DT(ukr_call) t = {.k = k, .alpha = r->alpha, .beta = beta, .ldc = r->g->ldc, .rs_a = 1, .cs_a = mr};
    int64_t a_step = mr * k;
    if (r->in_place) {
        t.rs_a = plain->rs, t.cs_a = plain->cs;
        a = plain->data + i * plain->rs + p * plain->cs;
        a_step = mr * plain->rs;
    }
    for (int64_t ir = 0; ir < m; ir += mr) {
        t.m = min(mr, m - ir);
        t.a = a + ir / mr * a_step;
        t.a_next = t.a;
        for (int64_t jr = 0; jr < n; jr += nr) {
            t.n = min(nr, n - jr);
            t.b = b + jr * k;
            t.b_next = t.b + nr * k;
            if (jr + nr >= n) t.b_next = b, t.a_next = t.a + a_step;
            t.c = r->g->c + (i + ir) * r->g->ldc + j + jr;
            r->ukr->run(r->ukr, &t);
        }
    }
}

/* Loops ic and pc over one thread's share of C[:, jc : jc + nc], with B[p : p + k] packed. */
static void rows_of_share(const run_state *r, DT(share) share, int64_t jc, int64_t nc, int64_t p, int64_t k,
                          real *a_packed) {
    const DT(gemm_args) *g = r->g;
    const int64_t n_round = (nc + r->s.nr - 1) / r->s.nr * r->s.nr;
    const int last = p + k == g->k;
    for (int64_t ic = share.i; ic < share.i + share.m; ic += r->s.mc) {
        const int64_t mc = min(r->s.mc, share.i + share.m - ic);
        for (int64_t pc = 0; pc < k; pc += r->s.kc) {
            const int64_t kc = min(r->s.kc, k - pc);
            if (!r->in_place) g->pack_a(g->a, ic, mc, p + pc, kc, r->s.mr, a_packed);
            macro_kernel(r, ic, mc, jc + share.j, share.n, p + pc, kc, a_packed,
                         r->b_packed + pc * n_round + share.j * kc, p + pc == 0 ? g->beta : 1);
        }
        if (last && g->epilogue)
            g->epilogue(g->e, ic, mc, jc + share.j, share.n, g->c + ic * g->ldc + jc + share.j, g->ldc);
    }
}

/* Pieces of rows of a thread's share that nobody has taken: the thread's own work, or help for one that is late. */
static void pieces_of_share(const run_state *r, int owner, int threads, int round, int64_t jc, int64_t nc, int64_t p,
                            int64_t k, real *a_packed) {
    const DT(share) all = DT(gemm_share)(&r->s, r->g->m, nc, threads, owner);
    if (all.m <= 0 || all.n <= 0) return;
    const int64_t quarter = (all.m / 4 + r->s.mr) / r->s.mr * r->s.mr,
                  rows = threads > 1 ? min(r->s.mc, quarter) : all.m;
    for (;;) {
        const int64_t first = rows * atomic_fetch_add_explicit(&r->taken[round][owner], 1, memory_order_relaxed);
        if (first >= all.m) return;
        const DT(share) piece = {all.i + first, min(rows, all.m - first), all.j, all.n};
        rows_of_share(r, piece, jc, nc, p, k, a_packed);
    }
}

/* One thread does not wait: it may run inside a parallel region of the caller, whose barrier this is not. */
static void wait_for_team(int threads) {
    if (threads > 1) {
#pragma omp barrier
    }
}

/* Loops jc and pb, run by every thread of the team. */
static void run_thread(const run_state *r, int threads, int id) {
    const DT(gemm_args) *g = r->g;
    real *a_packed = (real *)((char *)r->a_packed + (size_t)id * in_lines(r->s.a_size));
    int round = 0;
    for (int64_t jc = 0; jc < g->n; jc += r->s.nc) {
        const int64_t nc = min(r->s.nc, g->n - jc);
        for (int64_t pb = 0; pb < g->k; pb += r->s.kb) {
            const int64_t kb = min(r->s.kb, g->k - pb);
            pack_b_share(r, pb, kb, jc, nc, threads, id, r->b_packed);
            wait_for_team(threads);
            for (int i = 0; i < threads; i++)
                pieces_of_share(r, (id + i) % threads, threads, round, jc, nc, pb, kb, a_packed);
            if (id == 0)
                for (int i = 0; i < threads; i++) atomic_store_explicit(&r->taken[!round][i], 0, memory_order_relaxed);
            round = !round;
            if (jc + nc < g->n || pb + kb < g->k) wait_for_team(threads);
        }
    }
}

/* Loops ic and pc over C[i : i + m, j : j + n] with B[p : p + k] packed; `share` threads pack A together.  Rounds are
 * those of `most` rows, so that all threads wait equally often. */
static void rows_in_ways(const run_state *r, int64_t i, int64_t m, int64_t most, int64_t j, int64_t n, int64_t p,
                         int64_t k, int share, int id, real *a_packed, const real *b_packed) {
    const DT(gemm_args) *g = r->g;
    const int64_t mr = r->s.mr, nr = r->s.nr, n_round = (n + nr - 1) / nr * nr;
    int64_t columns;
    const int64_t across = DT(gemm_part)(n, nr, r->ways[2], id / r->ways[3], &columns);
    for (int64_t ic = 0; ic < most; ic += r->s.mc) {
        const int64_t mc = max(0, min(r->s.mc, m - ic));
        int64_t rows, packed;
        const int64_t down = DT(gemm_part)(mc, mr, r->ways[3], id % r->ways[3], &rows);
        const int64_t first = DT(gemm_part)(mc, mr, share, id, &packed);
        for (int64_t pc = 0; pc < k; pc += r->s.kc) {
            const int64_t kc = min(r->s.kc, k - pc);
            if (!r->in_place && packed > 0)
                g->pack_a(g->a, i + ic + first, packed, p + pc, kc, mr, a_packed + first * kc);
            wait_for_team(share);
            if (rows > 0 && columns > 0)
                macro_kernel(r, i + ic + down, rows, j + across, columns, p + pc, kc, a_packed + down * kc,
                             b_packed + pc * n_round + across * kc, p + pc == 0 ? g->beta : 1);
            wait_for_team(share);
        }
        if (g->epilogue && p + k == g->k && rows > 0 && columns > 0)
            g->epilogue(g->e, i + ic + down, rows, j + across, columns, g->c + (i + ic + down) * g->ldc + j + across,
                        g->ldc);
    }
}

/* All loops, run by every thread of the team, with the threads of each that the caller wants. */
static void run_in_ways(const run_state *r, int id) {
    const DT(gemm_args) *g = r->g;
    const int *ways = r->ways, share = ways[2] * ways[3], group = ways[1] * share;
    const int64_t mr = r->s.mr, nr = r->s.nr, wide = (g->n + nr - 1) / nr, high = (g->m + mr - 1) / mr;
    const int64_t most_columns = (wide + ways[0] - 1) / ways[0] * nr, most_rows = (high + ways[1] - 1) / ways[1] * mr;
    real *b_packed = (real *)((char *)r->b_packed + (size_t)(id / group) * in_lines(r->s.b_size));
    real *a_packed = (real *)((char *)r->a_packed + (size_t)(id / share) * in_lines(r->s.a_size));
    int64_t columns, rows;
    const int64_t j = DT(gemm_part)(g->n, nr, ways[0], id / group, &columns);
    const int64_t i = DT(gemm_part)(g->m, mr, ways[1], id / share % ways[1], &rows);
    for (int64_t jc = 0; jc < most_columns; jc += r->s.nc) {
        const int64_t nc = max(0, min(r->s.nc, columns - jc));
        for (int64_t pb = 0; pb < g->k; pb += r->s.kb) {
            const int64_t kb = min(r->s.kb, g->k - pb);
            if (nc > 0) pack_b_share(r, pb, kb, j + jc, nc, group, id % group, b_packed);
            wait_for_team(group);
            rows_in_ways(r, i, rows, most_rows, j + jc, nc, pb, kb, share, id % share, a_packed, b_packed);
            wait_for_team(group);
        }
    }
}

/* k == 0: there is nothing to add, but C is scaled and finished all the same. */
static void empty_sum(const DT(gemm_args) * g) {
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) g->c[i * g->ldc + j] = g->beta == 0 ? 0 : g->beta * g->c[i * g->ldc + j];
    if (g->epilogue) g->epilogue(g->e, 0, g->m, 0, g->n, g->c, g->ldc);
}

/* Whether A is better read in place than packed: rows are contiguous, and do not all fall into the same sets of L1. */
static int reads_well(const DT(matrix) * a, int64_t n, int64_t nr) {
    return a->cs == 1 && (a->rs * (int64_t)sizeof(real) % 4096 != 0 || n <= 4 * nr);
}

size_t DT(gemm_workspace_in_ways)(int64_t m, int64_t n, int64_t k, const int *ways) {
    const DT(ukr_row) *ukr = DT(ukr_current)();
    if (!ukr) return 0;
    const DT(blocks) s = DT(gemm_blocks)(ukr, m, n, k, 0);
    return bytes_in_ways(&s, ways);
}

/* Runs r on as many threads as its ways have; on fewer, where there are fewer, these divide the rows. */
static void start_in_ways(run_state *r) {
#pragma omp parallel num_threads(threads_in(r->ways))
    {
        run_state own = *r;
        const int rows_only[] = {1, team_size(), 1, 1};
        if (team_size() != threads_in(r->ways)) own.ways = rows_only;
        run_in_ways(&own, dtconv_thread_id());
    }
}

static dtconv_status run(const DT(gemm_args) * args, real alpha, const int *ways, void *workspace, size_t bytes) {
    if (args->m < 0 || args->n < 0 || args->k < 0 || args->ldc < args->n) return DTCONV_ARGUMENT;
    if (args->m == 0 || args->n == 0) return DTCONV_OK;
    if (args->k == 0) {
        empty_sum(args);
        return DTCONV_OK;
    }
    const DT(ukr_row) *ukr = DT(ukr_current)();
    if (!ukr) return DTCONV_KERNEL;
    DT(gemm_args) g = *args;
    const int in_place = g.a_in_place && ukr->in_place && reads_well(g.a_in_place, g.n, ukr->nr);
    if (g.a_in_place) g.pack_a = DT(pack_a_matrix), g.a = g.a_in_place;
    run_state r = {
        .g = &g, .ukr = ukr, .s = DT(gemm_blocks)(ukr, g.m, g.n, g.k, in_place), .in_place = in_place, .alpha = alpha};
    const int threads = threads_for(g.threads, g.m, g.n, g.k);
    r.ways = ways ? ways : ways_for(threads);
    if (bytes < (ways ? bytes_in_ways(&r.s, ways) : usual_bytes(&r.s, g.m, g.n, g.k, threads))) return DTCONV_WORKSPACE;
    r.b_packed = (real *)(((uintptr_t)workspace + ALIGN - 1) / ALIGN * ALIGN);
    if (!ways && DT(gemm_thin)(&g, alpha, threads, r.b_packed)) return DTCONV_OK;
    if (r.ways) {
        r.a_packed = (real *)((char *)r.b_packed + (size_t)r.ways[0] * in_lines(r.s.b_size));
        start_in_ways(&r);
        return DTCONV_OK;
    }
    r.a_packed = (real *)((char *)r.b_packed + in_lines(r.s.b_size));
    _Atomic int64_t taken[2][DTCONV_MOST_THREADS];
    for (int i = 0; i < threads; i++) taken[0][i] = taken[1][i] = 0;
    r.taken = taken;
    if (threads == 1) {
        run_thread(&r, 1, 0);
        return DTCONV_OK;
    }
#pragma omp parallel num_threads(threads)
    run_thread(&r, team_size(), dtconv_thread_id());
    return DTCONV_OK;
}

dtconv_status DT(gemm)(const DT(gemm_args) * args, void *workspace, size_t bytes) {
    return run(args, 1, NULL, workspace, bytes);
}

dtconv_status DT(gemm_scaled)(const DT(gemm_args) * args, real alpha, void *workspace, size_t bytes) {
    return run(args, alpha, NULL, workspace, bytes);
}

dtconv_status DT(gemm_strided_in_ways)(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs,
                                       const real *b, int64_t brs, int64_t bcs, real *c, int64_t ldc, double alpha,
                                       double beta, const int *ways, void *workspace, size_t bytes) {
    const DT(matrix) left = {a, ars, acs}, right = {b, brs, bcs};
    const DT(gemm_args) args = DT(gemm_of_matrices)(m, n, k, &left, &right, c, ldc, beta);
    return run(&args, (real)alpha, ways, workspace, bytes);
}
