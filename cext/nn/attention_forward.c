/* Attention forward: FlashAttention's algorithm 1 (Dao, Fu, Ermon, Rudra, Re, NeurIPS 2022) with the order of loops and
 * the single division at the end of FlashAttention-2 (Dao, 2023).
 *
 *   for a block of keys, packed once:     S = scale Q K^T                     a block of scores, in L1
 *     for a block of queries:             m' = max(m, row maxima of S)
 *                                         l  = l exp(m - m') + row sums of exp(S - m')
 *                                         Y  = Y exp(m - m') + exp(S - m') V
 *   at the end:                           Y  = Y / l,   sums = m + log l
 *
 * Products run on the micro-kernel of the GEMM.  A thread takes some queries of one head of one sample; what it
 * computes for a query does not depend on which others it takes, so the result does not depend on the number of
 * threads.
 */
#include "attention.h"

enum { ROWS = 28, CHUNK_MIN = 56, CHUNK_MAX = 512 };

typedef struct {
    tiling t;
    const real *q, *k, *v;
    const uint8_t *mask;
    real *y, *sums;
} job;

typedef struct {
    real *k_packed, *v_packed, *scores, *factors, *a_packed, *m, *l;
} scratch;

static scratch scratch_at(const tiling *t, char *memory, char **end) {
    const dtconv_attention *p = t->p;
    scratch s;
    s.k_packed = take(&memory, t->keys * p->d);
    s.v_packed = take(&memory, t->keys * round_up(p->dv, t->ukr->nr));
    s.scores = take(&memory, t->rows * t->ld);
    s.factors = take(&memory, t->keys);
    s.a_packed = take(&memory, t->ukr->mr * max_i64(p->d, t->keys));
    s.m = take(&memory, CHUNK_MAX);
    s.l = take(&memory, CHUNK_MAX);
    *end = memory;
    return s;
}

static size_t scratch_bytes(const tiling *t) {
    char *start = (char *)64, *end;
    scratch_at(t, start, &end);
    return (size_t)(end - start);
}

/* Queries that a thread takes at a time: many, for the packing of keys is repeated for each, but work for all. */
static int64_t chunk_of(const dtconv_attention *p) {
    const int64_t pieces = ceil_div(4 * dtconv_get_num_threads(), p->n * p->heads);
    return min_i64(CHUNK_MAX, max_i64(CHUNK_MIN, ceil_div(p->tq, pieces)));
}

INLINE real row_maximum(const real *x, int64_t n) { return n ? maximum(x, n, 1) : -(real)INFINITY; }

/* x = exp(x - m); returns the sum. */
static real exponentials(int64_t n, real m, real *x) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) {
        x[j] = exp_negative(x[j] - m);
        sum += x[j];
    }
    return sum;
}

/* One row of scores becomes a row of P, not yet divided; m, l and y go with the new maximum. */
static void row_of(const job *w, const scratch *s, int64_t b, int64_t h, int64_t i, int64_t first, int64_t count,
                   int64_t width, real *x, real *m, real *l, real *y) {
    const dtconv_attention *p = w->t.p;
    const int64_t n = min_i64(count, reach(p, i, first, count));
    if (w->mask) {
        const uint8_t *allowed = w->mask + b * p->mask[0] + h * p->mask[1] + i * p->mask[2] + first * p->mask[3];
        for (int64_t j = 0; j < n; j++) x[j] = allowed[j * p->mask[3]] ? x[j] : -(real)INFINITY;
    }
    const real most = row_maximum(x, n), now = most > *m || most != most ? most : *m;
    for (int64_t j = n; j < width; j++) x[j] = 0;
    if (n == 0 || now == -(real)INFINITY) {
        for (int64_t j = 0; j < n; j++) x[j] = x[j] != x[j] ? x[j] : 0; /* NaN stays NaN */
        return;
    }
    const real shrink = *m == -(real)INFINITY ? 0 : exp_negative(*m - now);
    *l = *l * shrink + exponentials(n, now, x);
    *m = now;
    if (p->rate > 0) {
        draw(p, b, h, i, first, n, s->factors);
        for (int64_t j = 0; j < n; j++) x[j] *= s->factors[j];
    }
    if (first > 0 && shrink != 1)
        for (int64_t c = 0; c < p->dv; c++) y[c] *= shrink;
}

/* The mean of all values, or 0, for a query that may attend to none. */
static void empty_row(const dtconv_attention *p, const real *v, real *y) {
    for (int64_t c = 0; c < p->dv; c++) y[c] = 0;
    for (int64_t j = 0; j < p->tk && !p->zero_empty; j++)
        for (int64_t c = 0; c < p->dv; c++) y[c] += v[j * p->v[1] + c];
    for (int64_t c = 0; c < p->dv; c++) y[c] /= (real)p->tk;
}

static void finish_row(const job *w, int64_t b, int64_t h, int64_t i, real m, real l, const real *v, real *y) {
    const dtconv_attention *p = w->t.p;
    real *sum = w->sums + (b * p->heads + h) * p->tq + i;
    *sum = m + (real)log((double)l);
    if (m == -(real)INFINITY) {
        empty_row(p, v, y);
        return;
    }
    const real share = 1 / l;
    for (int64_t c = 0; c < p->dv; c++) y[c] *= share;
}

/* Queries [from, to) of head h of sample b. */
static void attend(const job *w, const scratch *s, int64_t b, int64_t h, int64_t from, int64_t to) {
    const tiling *t = &w->t;
    const dtconv_attention *p = t->p;
    const int64_t g = h / (p->heads / p->kv_heads);
    const real *q = w->q + b * p->q[0] + h * p->q[2], *k = w->k + b * p->k[0] + g * p->k[2];
    const real *v = w->v + b * p->v[0] + g * p->v[2];
    real *y = w->y + b * p->y[0] + h * p->y[2];
    for (int64_t i = from; i < to; i++) s->m[i - from] = -(real)INFINITY, s->l[i - from] = 0;
    for (int64_t block = 0; block < t->blocks; block++) {
        const int64_t first = block * t->keys, keys = keys_of(t, block);
        const int64_t most = reach_of_rows(p, w->mask, to - 1, first, keys);
        if (!most) break;
        pack(t, p->d, most, k + first * p->k[1], 1, p->k[1], s->k_packed);
        pack(t, most, p->dv, v + first * p->v[1], p->v[1], 1, s->v_packed);
        for (int64_t i = from; i < to; i += t->rows) {
            const int64_t rows = min_i64(t->rows, to - i);
            const int64_t n = reach_of_rows(p, w->mask, i + rows - 1, first, keys);
            if (!n) continue;
            product(t, rows, n, p->d, (real)p->scale, q + i * p->q[1], p->q[1], 1, s->k_packed, 0, s->scores, t->ld,
                    s->a_packed);
            for (int64_t r = 0; r < rows; r++)
                row_of(w, s, b, h, i + r, first, n, n, s->scores + r * t->ld, s->m + i + r - from, s->l + i + r - from,
                       y + (i + r) * p->y[1]);
            /* the panels of V are `most` steps long, of which the first n count */
            for (int64_t c = 0; c < p->dv; c += t->ukr->nr)
                product(t, rows, min_i64(t->ukr->nr, p->dv - c), n, 1, s->scores, t->ld, 1, s->v_packed + c * most,
                        first > 0, y + i * p->y[1] + c, p->y[1], s->a_packed);
        }
    }
    for (int64_t i = from; i < to; i++) finish_row(w, b, h, i, s->m[i - from], s->l[i - from], v, y + i * p->y[1]);
}

size_t DT(attention_backward_workspace)(const dtconv_attention *p);

size_t DT(attention_workspace)(const dtconv_attention *p, int backward) {
    if (!fits(p)) return 0;
    if (backward) return DT(attention_backward_workspace)(p);
    const tiling t = tiling_of(p, ROWS);
    return t.ukr ? 64 + (size_t)dtconv_get_num_threads() * scratch_bytes(&t) : 0;
}

dtconv_status DT(attention_forward)(const dtconv_attention *p, const real *q, const real *k, const real *v,
                                    const uint8_t *mask, real *y, real *sums, void *workspace, size_t bytes) {
    if (!fits(p)) return DTCONV_ARGUMENT;
    if (p->n == 0 || p->tq == 0 || p->dv == 0) return DTCONV_OK;
    const job w = {.t = tiling_of(p, ROWS), .q = q, .k = k, .v = v, .mask = mask, .y = y, .sums = sums};
    if (!w.t.ukr) return DTCONV_KERNEL;
    if (bytes < DT(attention_workspace)(p, 0)) return DTCONV_WORKSPACE;
    const int64_t chunk = chunk_of(p), chunks = ceil_div(p->tq, chunk), items = p->n * p->heads * chunks;
    const int threads = (int)min_i64(items, threads_of(p));
    const size_t each = scratch_bytes(&w.t);
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t item = 0; item < items; item++) {
        char *end;
        const scratch s = scratch_at(&w.t, memory + (size_t)dtconv_thread_id() * each, &end);
        const int64_t head = item / chunks, from = item % chunks * chunk;
        attend(&w, &s, head / p->heads, head % p->heads, from, min_i64(from + chunk, p->tq));
    }
    return DTCONV_OK;
}
