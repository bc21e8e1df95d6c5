/* Strassen's algorithm inside the packing and behind the micro-kernel, see dtconv_strassen.h.
 *
 *   C = beta * C + alpha * A * B,   parts of m x n, n x k and k x n: quarters, or quarters of quarters
 *
 *     jc     walks the columns of a part in steps of NC
 *     group  walks the products, seven at a time
 *       pb   walks the depth of a part in steps of KB: all threads pack the seven sums of parts of B[pb, jc]
 *         ic walks the rows of a part in steps of MC: pieces, which threads take as they come
 *           each of the seven products:
 *             pc   walks KB in steps of KC: packs the sum of parts of A[ic, pc]
 *               ir, jr   the micro-kernel, into a tile of its own; at the end of KB the tile is added to parts of C
 *
 * Rows of A are read, and those of C written, seven times in a row, while they are in cache; the sums of parts of B are
 * packed once.  Sums over KB are kept in tiles that a thread owns.  Every element of C is summed by one thread in the
 * same order, so results do not depend on the number of threads.
 */
#include <stdatomic.h>

#include "dtconv_real.h"
#include "dtconv_inline.h"
#include "dtconv_gemm.h"
#include "dtconv_strassen.h"
#include "dtconv_thread_id.h"
#include "blocks.h"
#include "parts.h"

enum { ALIGN = 64, READ_AHEAD = 1024 /* kernels load the step after the last one */ };
enum { LEVELS = 2, GROUP = 7, PRODUCTS = GROUP * GROUP };
enum { DEEPEST = 512, WIDEST = 1024 /* of packed panels, and columns of B that are packed at a time */ };
enum { STEPS = 16, PANELS = 4 /* of B: all their sums are made while the parts are in the first caches */ };
enum { PIECES = 4 /* of a thread, at least */ };
static const int64_t SUMS_OF_B = 32 << 20; /* bytes of a group's at most */

/* The seven products of a level: signs of the quarters (upper left, upper right, lower left, lower right) that are
 * summed of A, of B, and to which it is added in C. */
static const signed char OF_A[GROUP][4] = {{1, 0, 0, 1}, {0, 0, 1, 1},  {1, 0, 0, 0}, {0, 0, 0, 1},
                                           {1, 1, 0, 0}, {-1, 0, 1, 0}, {0, 1, 0, -1}};
static const signed char OF_B[GROUP][4] = {{1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, -1}, {-1, 0, 1, 0},
                                           {0, 0, 0, 1}, {1, 1, 0, 0}, {0, 0, 1, 1}};
static const signed char OF_C[GROUP][4] = {{1, 0, 0, 1},  {0, 0, 1, -1}, {0, 1, 0, 1}, {1, 0, 1, 0},
                                           {-1, 1, 0, 0}, {0, 0, 0, 1},  {1, 0, 0, 0}};

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
static size_t in_lines(int64_t elements) { return ((size_t)elements * sizeof(real) + ALIGN - 1) / ALIGN * ALIGN; }

typedef struct {
    int products, parts; /* parts: of each axis */
    int64_t m, n, k;     /* of a part, in whole tiles */
    int64_t mr, nr, mc, kc, kb, nc;
    int64_t nb; /* columns whose packed B stays in the second cache */
    size_t a_size, b_size, tile_size;
} plan;

typedef struct {
    const DT(gemm_args) * g;
    const DT(ukr_row) * ukr;
    plan s;
    DT(operand) a, b;
    DT(parts) of_a[PRODUCTS], of_b[PRODUCTS], of_c[PRODUCTS]; /* of_c: rows across, columns along */
    int first[PRODUCTS][MOST_TERMS];                          /* whether nothing has been added to this part before */
    real alpha;
    char *b_packed, *own;
    _Atomic int64_t taken[2];
} run_state;

static plan plan_of(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int levels) {
    plan s = {.products = levels == 1 ? GROUP : PRODUCTS, .parts = 1 << levels, .mr = ukr->mr, .nr = ukr->nr};
    s.m = round_up(ceil_div(m, s.parts), s.mr), s.n = round_up(ceil_div(n, s.parts), s.nr), s.k = ceil_div(k, s.parts);
    const int64_t size = sizeof(real), most = SUMS_OF_B / GROUP / size, l2 = dtconv_cache_bytes(2) / size;
    const int64_t deepest = max(64, min(DEEPEST, dtconv_cache_bytes(1) * 5 / 8 / (s.mr * size) / 8 * 8));
    const int64_t pieces = ceil_div(s.k, deepest), deep = s.k + 8 * pieces;
    s.kc = pieces == 1 ? s.k : round_up(ceil_div(s.k, pieces), 8);
    s.mc = min(max(1, l2 / 4 / s.kc / s.mr) * s.mr, s.m);
    s.nc = round_up(ceil_div(s.n, ceil_div(s.n, WIDEST)), s.nr);
    s.kb = min(round_up(s.k, s.kc), max(1, most / s.nc / s.kc) * s.kc);
    s.nb = max(1, l2 / 2 / s.kc / s.nr) * s.nr;
    /* Of this problem and of every smaller one, see blocks.c. */
    const int64_t tiles = min(s.m, max(1, l2 / 4 / (deepest / 2) / s.mr) * s.mr) * min(s.n, round_up(WIDEST, s.nr));
    s.b_size = in_lines(min(deep * s.n, most));
    s.a_size = in_lines(min(s.m * deep, max(l2 / 4, deepest * s.mr)));
    s.tile_size = in_lines(s.k > deepest ? tiles : s.mr * s.nr);
    return s;
}

static size_t bytes_of(const plan *s, int threads) {
    return ALIGN + GROUP * s->b_size + (size_t)threads * (s->a_size + s->tile_size) + READ_AHEAD;
}

static int threads_for(const DT(gemm_args) * g) {
#ifdef _OPENMP
    if (omp_in_parallel()) return 1;
#endif
    int64_t products;
    if (__builtin_mul_overflow(g->m, g->n, &products) || __builtin_mul_overflow(products, g->k, &products))
        products = INT64_MAX;
    return g->threads > 0 ? g->threads : dtconv_threads_for(products);
}

size_t DT(gemm_strassen_workspace)(int64_t m, int64_t n, int64_t k, int levels) {
    const DT(ukr_row) *ukr = DT(ukr_current)();
    const DT(gemm_args) g = {.m = m, .n = n, .k = k};
    if (!ukr || levels < 1 || levels > LEVELS) return 0;
    const plan s = plan_of(ukr, max(m, 1), max(n, 1), max(k, 1), levels);
    return bytes_of(&s, threads_for(&g));
}

/* The parts of one product, of parts of `rows` x `columns`; of two levels, each sign is that of a quarter of a quarter.
 */
static DT(parts) parts_of(const signed char (*signs)[4], int product, int levels, int64_t rows, int64_t columns) {
    DT(parts) found = {0};
    for (int outer = 0; outer < (levels == 2 ? 4 : 1); outer++)
        for (int inner = 0; inner < 4; inner++) {
            const int sign = signs[product % GROUP][inner] * (levels == 2 ? signs[product / GROUP][outer] : 1);
            if (sign == 0) continue;
            found.across[found.count] = (outer / 2 * 2 + inner / 2) * rows;
            found.along[found.count] = (outer % 2 * 2 + inner % 2) * columns;
            found.sign[found.count++] = (real)sign;
        }
    return found;
}

static DT(parts) turned(DT(parts) x) {
    for (int t = 0; t < x.count; t++) {
        const int64_t across = x.across[t];
        x.across[t] = x.along[t], x.along[t] = across;
    }
    return x;
}

static void find_products(run_state *r, int levels) {
    const plan *s = &r->s;
    int seen[1 << LEVELS][1 << LEVELS] = {{0}};
    for (int i = 0; i < s->products; i++) {
        r->of_a[i] = parts_of(OF_A, i, levels, s->m, s->k);
        r->of_b[i] = turned(parts_of(OF_B, i, levels, s->k, s->n));
        r->of_c[i] = parts_of(OF_C, i, levels, s->m, s->n);
        for (int t = 0; t < r->of_c[i].count; t++) {
            int *of = &seen[r->of_c[i].across[t] / s->m][r->of_c[i].along[t] / s->n];
            r->first[i][t] = !*of;
            *of = 1;
        }
    }
}

/* This thread's part of the seven sums of parts of B[pb : pb + kb, jc : jc + nc]: some panels or, where these are few,
 * some steps.  All sums of some steps are made one after the other, while the parts are in cache. */
static void pack_b_share(const run_state *r, int group, int64_t pb, int64_t kb, int64_t jc, int64_t nc, int threads,
                         int id) {
    const plan *s = &r->s;
    const int64_t panels = nc / s->nr, by_panels = panels >= 4 * threads || panels % threads == 0;
    const int64_t first = by_panels ? panels * id / threads * s->nr : 0;
    const int64_t last = by_panels ? panels * (id + 1) / threads * s->nr : nc;
    for (int64_t pc = 0; pc < kb; pc += s->kc) {
        const int64_t kc = min(s->kc, kb - pc), begin = by_panels ? 0 : kc * id / threads;
        const int64_t end = by_panels ? kc : kc * (id + 1) / threads;
        for (int64_t j = first; j < last; j += PANELS * s->nr)
            for (int64_t p = begin; p < end; p += STEPS)
                for (int i = 0; i < GROUP; i++) {
                    real *b = (real *)(r->b_packed + (size_t)i * s->b_size) + pc * nc + j * kc + p * s->nr;
                    DT(pack_parts)(&r->b, &r->of_b[group * GROUP + i], jc + j, min(PANELS * s->nr, last - j),
                                   pb + pc + p, min(STEPS, end - p), s->nr, s->nr * kc, b);
                }
    }
}

/* c (m x n) = beta * c + sign * a tile; n: a constant or not. */
INLINE void add_rows(int64_t m, int64_t n, const real *restrict tile, int64_t nr, real sign, real beta,
                     real *restrict c, int64_t ldc) {
    for (int64_t i = 0; i < m; i++, tile += nr, c += ldc) {
        if (beta == 1)
            for (int64_t j = 0; j < n; j++) c[j] += sign * tile[j];
        else if (beta == 0)
            for (int64_t j = 0; j < n; j++) c[j] = sign * tile[j];
        else
            for (int64_t j = 0; j < n; j++) c[j] = beta * c[j] + sign * tile[j];
    }
}

/* Where a tile of a product goes. */
typedef struct {
    int count;
    int64_t m[MOST_TERMS], n[MOST_TERMS];
    real *c[MOST_TERMS], sign[MOST_TERMS], beta[MOST_TERMS];
} targets;

static targets targets_of(const run_state *r, int product, int64_t i, int64_t j, int begins) {
    const DT(parts) *of = &r->of_c[product];
    targets found = {0};
    for (int t = 0; t < of->count; t++) {
        const int64_t row = of->across[t] + i, column = of->along[t] + j, at = found.count;
        found.m[at] = min(r->s.mr, r->g->m - row), found.n[at] = min(r->s.nr, r->g->n - column);
        if (found.m[at] <= 0 || found.n[at] <= 0) continue;
        found.c[at] = r->g->c + row * r->g->ldc + column;
        found.sign[at] = of->sign[t];
        found.beta[at] = begins && r->first[product][t] ? r->g->beta : 1;
        found.count++;
    }
    return found;
}

static void add_tile(const run_state *r, const targets *to, const real *tile) {
    const int64_t nr = r->s.nr, ldc = r->g->ldc;
    for (int t = 0; t < to->count; t++) {
        const real sign = to->sign[t], beta = to->beta[t];
        if (to->n[t] == 32)
            add_rows(to->m[t], 32, tile, nr, sign, beta, to->c[t], ldc);
        else if (to->n[t] == 16)
            add_rows(to->m[t], 16, tile, nr, sign, beta, to->c[t], ldc);
        else
            add_rows(to->m[t], to->n[t], tile, nr, sign, beta, to->c[t], ldc);
    }
}

/* A piece of a product's rows and columns. */
typedef struct {
    int64_t i, m, j, n; /* of a part */
    int64_t jc, nc;     /* the columns that are packed */
} piece;

/* Loops ir and jr: tiles += A * B over a depth of kc; `adds`: at its end, to C. */
static void macro_kernel(const run_state *r, int product, const piece *x, int64_t kc, int starts, int adds, int begins,
                         const real *a, const real *b, real *tiles) {
    const int64_t mr = r->s.mr, nr = r->s.nr, tile = mr * nr;
    DT(ukr_call)
    t = {.m = mr, .n = nr, .k = kc, .alpha = r->alpha, .beta = starts ? 0 : 1, .ldc = nr, .rs_a = 1, .cs_a = mr};
    for (int64_t jb = 0; jb < x->n; jb += r->s.nb) {
        const int64_t end = min(jb + r->s.nb, x->n);
        for (int64_t ir = 0; ir < x->m; ir += mr)
            for (int64_t jr = jb; jr < end; jr += nr) {
                t.a = t.a_next = a + ir * kc;
                t.b = b + jr * kc, t.b_next = t.b + nr * kc;
                t.c = starts && adds ? tiles : tiles + (ir / mr * (x->n / nr) + jr / nr) * tile;
                r->ukr->run(r->ukr, &t);
                if (!adds) continue;
                const targets to = targets_of(r, product, x->i + ir, x->j + jr, begins);
                add_tile(r, &to, t.c);
            }
    }
}

/* The seven products of a group on a piece, then what finishes C. */
static void run_piece(const run_state *r, int group, const piece *x, int64_t pb, int64_t kb, char *own) {
    const plan *s = &r->s;
    real *a_packed = (real *)own, *tiles = (real *)(own + s->a_size);
    for (int i = 0; i < GROUP; i++) {
        const int product = group * GROUP + i;
        const real *b = (const real *)(r->b_packed + (size_t)i * s->b_size);
        for (int64_t pc = 0; pc < kb; pc += s->kc) {
            const int64_t kc = min(s->kc, kb - pc);
            DT(pack_parts)(&r->a, &r->of_a[product], x->i, x->m, pb + pc, kc, s->mr, s->mr * kc, a_packed);
            macro_kernel(r, product, x, kc, pc == 0, pc + kc == kb, pb == 0, a_packed,
                         b + pc * x->nc + (x->j - x->jc) * kc, tiles);
        }
    }
    const DT(gemm_args) *g = r->g;
    if (!g->epilogue || group + 1 < s->products / GROUP || pb + kb < s->k) return;
    for (int part = 0; part < s->parts * s->parts; part++) {
        const int64_t i = part / s->parts * s->m + x->i, j = part % s->parts * s->n + x->j;
        const int64_t m = min(x->m, g->m - i), n = min(x->n, g->n - j);
        if (m > 0 && n > 0) g->epilogue(g->e, i, m, j, n, g->c + i * g->ldc + j, g->ldc);
    }
}

static void wait_for_team(int threads) {
    if (threads > 1) {
#pragma omp barrier
    }
}

/* All pieces of a group that nobody has taken. */
static void run_pieces(run_state *r, int group, int64_t pb, int64_t kb, int64_t jc, int64_t nc, int threads, int round,
                       char *own) {
    const plan *s = &r->s;
    const int64_t rows = min(s->mc, round_up(ceil_div(s->m, threads > 1 ? PIECES * threads : 1), s->mr));
    const int64_t high = ceil_div(s->m, rows), panels = nc / s->nr, across = min(panels, ceil_div(threads, high));
    for (;;) {
        const int64_t taken = atomic_fetch_add_explicit(&r->taken[round], 1, memory_order_relaxed);
        if (taken >= high * across) return;
        piece x = {.i = taken / across * rows, .jc = jc, .nc = nc};
        x.m = min(rows, s->m - x.i);
        x.j = DT(gemm_part)(nc, s->nr, across, taken % across, &x.n);
        x.j += jc;
        run_piece(r, group, &x, pb, kb, own);
    }
}

static void run_thread(run_state *r, int threads, int id) {
    const plan *s = &r->s;
    char *own = r->own + (size_t)id * (s->a_size + s->tile_size);
    int round = 0;
    for (int64_t jc = 0; jc < s->n; jc += s->nc)
        for (int group = 0; group < s->products / GROUP; group++)
            for (int64_t pb = 0; pb < s->k; pb += s->kb) {
                const int64_t nc = min(s->nc, s->n - jc), kb = min(s->kb, s->k - pb);
                pack_b_share(r, group, pb, kb, jc, nc, threads, id);
                if (id == 0) atomic_store_explicit(&r->taken[!round], 0, memory_order_relaxed);
                wait_for_team(threads);
                run_pieces(r, group, pb, kb, jc, nc, threads, round, own);
                wait_for_team(threads);
                round = !round;
            }
}

static int team_size(void) {
#ifdef _OPENMP
    return omp_get_num_threads();
#else
    return 1;
#endif
}

dtconv_status DT(gemm_strassen)(const DT(gemm_args) * g, real alpha, int levels, void *workspace, size_t bytes) {
    if (levels < 1 || levels > LEVELS || !g->a_in_place || g->pack_b != DT(pack_b_matrix)) return DTCONV_ARGUMENT;
    if (g->m <= 0 || g->n <= 0 || g->k <= 0) return DT(gemm_scaled)(g, alpha, workspace, bytes);
    if (g->ldc < g->n) return DTCONV_ARGUMENT;
    const DT(ukr_row) *ukr = DT(ukr_current)();
    if (!ukr) return DTCONV_KERNEL;
    const DT(matrix) *a = g->a_in_place, *b = g->b;
    run_state r = {.g = g, .ukr = ukr, .s = plan_of(ukr, g->m, g->n, g->k, levels), .alpha = alpha};
    const int threads = threads_for(g);
    if (bytes < bytes_of(&r.s, threads)) return DTCONV_WORKSPACE;
    r.a = (DT(operand)){a->data, a->rs, a->cs, g->m, g->k};
    r.b = (DT(operand)){b->data, b->cs, b->rs, g->n, g->k};
    find_products(&r, levels);
    r.b_packed = (char *)(((uintptr_t)workspace + ALIGN - 1) / ALIGN * ALIGN);
    r.own = r.b_packed + GROUP * r.s.b_size;
    if (threads == 1) {
        run_thread(&r, 1, 0);
        return DTCONV_OK;
    }
#pragma omp parallel num_threads(threads)
    run_thread(&r, team_size(), dtconv_thread_id());
    return DTCONV_OK;
}

dtconv_status DT(gemm_strided_strassen)(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs,
                                        const real *b, int64_t brs, int64_t bcs, real *c, int64_t ldc, double alpha,
                                        double beta, int levels, void *workspace, size_t bytes) {
    const DT(matrix) left = {a, ars, acs}, right = {b, brs, bcs};
    const DT(gemm_args) args = DT(gemm_of_matrices)(m, n, k, &left, &right, c, ldc, beta);
    return DT(gemm_strassen)(&args, (real)alpha, levels, workspace, bytes);
}
