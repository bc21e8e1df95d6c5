/* Attention backward: FlashAttention's algorithm 4 (Dao et al., NeurIPS 2022, appendix B), from the sums that forward
 * has left (Dao, 2023).
 *
 *   D = row sums of dY * Y
 *   for a block of keys, packed once:     S = scale Q K^T,  dP = dY V^T       blocks of scores, in L2
 *     for a block of queries:             P = exp(S - sums)
 *                                         dS = scale P (dP - D)
 *                                         dV += P^T dY,   dK += dS^T Q,   dQ += dS K
 *
 * A thread takes one head of keys of one sample, with all queries that read it.  Where there are fewer of these than
 * threads, blocks of queries are dealt out for dQ, then blocks of keys for dK and dV: S and dP are computed twice. Both
 * ways add in the same order, so the result does not depend on the number of threads.
 */
#include "attention.h"

enum { ROWS = 56 };

typedef struct {
    tiling t;
    const real *q, *k, *v, *y, *dy, *sums;
    const uint8_t *mask;
    real *dots; /* D (n, heads, tq) */
    real *dq, *dk, *dv;
} job;

typedef struct {
    real *k_columns, *v_columns, *k_rows, *dy_rows, *q_rows, *s, *ds, *factors, *a_packed;
} scratch;

/* Which part of the work of one head of keys: queries [i, i_end), blocks of keys [block, block_end). */
typedef struct {
    int64_t b, group, h, h_end, i, i_end, block, block_end;
    int dq, dk, dv;
} part;

static scratch scratch_at(const tiling *t, char *memory, char **end) {
    const dtconv_attention *p = t->p;
    const int64_t nr = t->ukr->nr, d = round_up(p->d, nr), dv = round_up(p->dv, nr);
    scratch s;
    s.k_columns = take(&memory, t->keys * p->d);
    s.v_columns = take(&memory, t->keys * p->dv);
    s.k_rows = take(&memory, t->keys * d);
    s.dy_rows = take(&memory, t->rows * dv);
    s.q_rows = take(&memory, t->rows * d);
    s.s = take(&memory, t->rows * t->ld);
    s.ds = take(&memory, t->rows * t->ld);
    s.factors = take(&memory, t->keys);
    s.a_packed = take(&memory, t->ukr->mr * max_i64(max_i64(p->d, p->dv), max_i64(t->keys, t->rows)));
    *end = memory;
    return s;
}

static size_t scratch_bytes(const tiling *t) {
    char *start = (char *)64, *end;
    scratch_at(t, start, &end);
    return (size_t)(end - start);
}

static size_t dots_bytes(const dtconv_attention *p) {
    return ((size_t)(p->n * p->heads * p->tq) * sizeof(real) + 63) / 64 * 64;
}

/* P of a query that may attend to no key. */
static void empty_row(const dtconv_attention *p, int64_t count, real *s, real *ds) {
    for (int64_t j = 0; j < count; j++) s[j] = p->zero_empty ? 0 : 1 / (real)p->tk, ds[j] = 0;
}

/* Of one query: s from scores to P (with dropout), ds from dP to dS.  count: keys of the block. */
static void row_of(const job *w, const scratch *c, int64_t b, int64_t h, int64_t i, int64_t first, int64_t count,
                   real *restrict s, real *restrict ds) {
    const dtconv_attention *p = w->t.p;
    const int64_t at = (b * p->heads + h) * p->tq + i, n = reach(p, i, first, count);
    const real sum = w->sums[at], dot = w->dots[at], scale = (real)p->scale;
    if (sum == -(real)INFINITY) {
        empty_row(p, count, s, ds);
        return;
    }
    if (w->mask) {
        const uint8_t *allowed = w->mask + b * p->mask[0] + h * p->mask[1] + i * p->mask[2] + first * p->mask[3];
        for (int64_t j = 0; j < n; j++) s[j] = allowed[j * p->mask[3]] ? s[j] : -(real)INFINITY;
    }
    if (p->rate > 0) {
        draw(p, b, h, i, first, n, c->factors);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            const real e = exp_negative(s[j] - sum);
            ds[j] = e * (ds[j] * c->factors[j] - dot) * scale;
            s[j] = e * c->factors[j];
        }
    } else {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            const real e = exp_negative(s[j] - sum);
            ds[j] = e * (ds[j] - dot) * scale;
            s[j] = e;
        }
    }
    for (int64_t j = n; j < count; j++) s[j] = ds[j] = 0;
}

/* What a block of queries of one head adds, to the first n of a block of keys. */
static void block_of(const job *w, const scratch *c, const part *of, int64_t h, int64_t i, int64_t rows, int64_t first,
                     int64_t keys, int64_t n) {
    const tiling *t = &w->t;
    const dtconv_attention *p = t->p;
    const real *q = w->q + of->b * p->q[0] + h * p->q[2] + i * p->q[1];
    const real *dy = w->dy + of->b * p->dy[0] + h * p->dy[2] + i * p->dy[1];
    const int64_t nr = t->ukr->nr;
    product(t, rows, n, p->d, (real)p->scale, q, p->q[1], 1, c->k_columns, 0, c->s, t->ld, c->a_packed);
    product(t, rows, n, p->dv, 1, dy, p->dy[1], 1, c->v_columns, 0, c->ds, t->ld, c->a_packed);
    for (int64_t r = 0; r < rows; r++) row_of(w, c, of->b, h, i + r, first, n, c->s + r * t->ld, c->ds + r * t->ld);
    if (of->dv) {
        pack(t, rows, p->dv, dy, p->dy[1], 1, c->dy_rows);
        real *dv = w->dv + of->b * p->dvalue[0] + of->group * p->dvalue[2] + first * p->dvalue[1];
        product(t, n, p->dv, rows, 1, c->s, 1, t->ld, c->dy_rows, 1, dv, p->dvalue[1], c->a_packed);
    }
    if (of->dk) {
        pack(t, rows, p->d, q, p->q[1], 1, c->q_rows);
        real *dk = w->dk + of->b * p->dk[0] + of->group * p->dk[2] + first * p->dk[1];
        product(t, n, p->d, rows, 1, c->ds, 1, t->ld, c->q_rows, 1, dk, p->dk[1], c->a_packed);
    }
    if (of->dq) {
        real *dq = w->dq + of->b * p->dq[0] + h * p->dq[2] + i * p->dq[1];
        /* the panels of K are `keys` steps long, of which the first n count */
        for (int64_t d = 0; d < p->d; d += nr)
            product(t, rows, min_i64(nr, p->d - d), n, 1, c->ds, t->ld, 1, c->k_rows + d * keys, first > 0 || p->add_q,
                    dq + d, p->dq[1], c->a_packed);
    }
}

/* Zeros to rows [from, to) of a gradient of keys or values that no query has reached. */
static void clear(real *x, const int64_t *strides, int64_t b, int64_t g, int64_t from, int64_t to, int64_t width) {
    for (int64_t j = from; j < to; j++)
        memset(x + b * strides[0] + g * strides[2] + j * strides[1], 0, (size_t)width * sizeof(real));
}

static void run_part(const job *w, const scratch *c, const part *of) {
    const tiling *t = &w->t;
    const dtconv_attention *p = t->p;
    const real *k = w->k + of->b * p->k[0] + of->group * p->k[2], *v = w->v + of->b * p->v[0] + of->group * p->v[2];
    for (int64_t block = of->block; block < of->block_end; block++) {
        const int64_t first = block * t->keys, keys = keys_of(t, block);
        int64_t reached = 0; /* keys of this block whose dK and dV have been written to */
        pack(t, p->d, keys, k + first * p->k[1], 1, p->k[1], c->k_columns);
        pack(t, p->dv, keys, v + first * p->v[1], 1, p->v[1], c->v_columns);
        if (of->dq) pack(t, keys, p->d, k + first * p->k[1], p->k[1], 1, c->k_rows);
        for (int64_t h = of->h; h < of->h_end; h++)
            for (int64_t i = of->i; i < of->i_end; i += t->rows) {
                const int64_t rows = min_i64(t->rows, of->i_end - i);
                const int64_t n = reach_of_rows(p, w->mask, i + rows - 1, first, keys);
                if (!n) continue;
                if (reached < n) { /* what comes for the first time */
                    if (of->dk && !p->add_k) clear(w->dk, p->dk, of->b, of->group, first + reached, first + n, p->d);
                    if (of->dv && !p->add_v)
                        clear(w->dv, p->dvalue, of->b, of->group, first + reached, first + n, p->dv);
                    reached = n;
                }
                block_of(w, c, of, h, i, rows, first, keys, n);
            }
        if (of->dk && !p->add_k) clear(w->dk, p->dk, of->b, of->group, first + reached, first + keys, p->d);
        if (of->dv && !p->add_v) clear(w->dv, p->dvalue, of->b, of->group, first + reached, first + keys, p->dv);
    }
}

static void dots_of(const job *w, int threads) {
    const dtconv_attention *p = w->t.p;
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads)
    for (int64_t b = 0; b < p->n; b++)
        for (int64_t i = 0; i < p->tq; i++)
            for (int64_t h = 0; h < p->heads; h++) {
                const real *y = w->y + b * p->y[0] + i * p->y[1] + h * p->y[2];
                const real *dy = w->dy + b * p->dy[0] + i * p->dy[1] + h * p->dy[2];
                real sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t c = 0; c < p->dv; c++) sum += y[c] * dy[c];
                w->dots[(b * p->heads + h) * p->tq + i] = sum;
            }
}

/* Part number `item` of those that `split` makes: 0 whole heads of keys, 1 queries of a head, 2 blocks of keys. */
static part part_of(const job *w, int split, int64_t item) {
    const dtconv_attention *p = w->t.p;
    const int64_t group = p->heads / p->kv_heads;
    part of = {.i_end = p->tq, .block_end = w->t.blocks, .dq = w->dq != NULL, .dk = w->dk != NULL, .dv = w->dv != NULL};
    if (split == 1) {
        const int64_t pieces = ceil_div(p->tq, w->t.rows), head = item / pieces;
        of.b = head / p->heads, of.h = head % p->heads, of.h_end = of.h + 1, of.group = of.h / group;
        of.i = item % pieces * w->t.rows, of.i_end = min_i64(of.i + w->t.rows, p->tq);
        of.dk = of.dv = 0;
        return of;
    }
    const int64_t blocks = split ? w->t.blocks : 1, head = item / blocks;
    of.b = head / p->kv_heads, of.group = head % p->kv_heads;
    of.h = of.group * group, of.h_end = of.h + group;
    if (split) of.block = item % blocks, of.block_end = of.block + 1, of.dq = 0;
    return of;
}

static void run_parts(const job *w, int split, int64_t items, char *memory, int threads) {
    const size_t each = scratch_bytes(&w->t);
#pragma omp parallel for schedule(dynamic) num_threads((int)min_i64(items, threads))
    for (int64_t item = 0; item < items; item++) {
        char *end;
        const scratch c = scratch_at(&w->t, memory + (size_t)dtconv_thread_id() * each, &end);
        const part of = part_of(w, split, item);
        run_part(w, &c, &of);
    }
}

size_t DT(attention_backward_workspace)(const dtconv_attention *p) {
    const tiling t = tiling_of(p, ROWS);
    return t.ukr ? 64 + dots_bytes(p) + (size_t)dtconv_get_num_threads() * scratch_bytes(&t) : 0;
}

dtconv_status DT(attention_backward)(const dtconv_attention *p, const real *q, const real *k, const real *v,
                                     const uint8_t *mask, const real *y, const real *sums, const real *dy, real *dq,
                                     real *dk, real *dv, void *workspace, size_t bytes) {
    if (!fits(p) || p->dv < 1) return DTCONV_ARGUMENT;
    if (p->n == 0) return DTCONV_OK;
    job w = {.t = tiling_of(p, ROWS), .q = q, .k = k, .v = v, .y = y, .dy = dy, .sums = sums, .mask = mask};
    w.dq = dq, w.dk = dk, w.dv = dv;
    if (!w.t.ukr) return DTCONV_KERNEL;
    if (bytes < DT(attention_backward_workspace)(p)) return DTCONV_WORKSPACE;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    const int threads = threads_of(p);
    w.dots = (real *)memory;
    memory += dots_bytes(p);
    dots_of(&w, dtconv_threads_to_move(p->n * p->heads * p->tq * p->dv));
    const int64_t heads = p->n * p->kv_heads, pieces = ceil_div(p->tq, w.t.rows);
    if (heads >= threads || (pieces <= 1 && w.t.blocks <= 1)) {
        run_parts(&w, 0, heads, memory, threads);
        return DTCONV_OK;
    }
    if (dq) run_parts(&w, 1, p->n * p->heads * pieces, memory, threads);
    if (dk || dv) run_parts(&w, 2, heads * w.t.blocks, memory, threads);
    return DTCONV_OK;
}
