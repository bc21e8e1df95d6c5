/* Shared by the two passes of recurrent layers: how samples are cut, packed weights, products of one step. */
#ifndef RECURRENCE_STEPS_H
#define RECURRENCE_STEPS_H

#include <string.h>

#include "dtconv_real.h"
#include "dtconv_gemm.h"
#include "dtconv_limits.h"
#include "dtconv_thread_id.h"
#include "dtconv_ukr.h"

#include "norm_common.h"
#include "recurrence.h"
#include "spans.h"

enum { MOST_ROWS = 64, MOST_AT_ONCE = 2, READ_AHEAD = 1024 /* micro-kernels load the step after the last one */ };

/* A matrix (k x n) in panels of NR columns. */
typedef struct {
    const real *data;
    int64_t k, n;
} packed;

/* Sizes of a pass.  A piece is some samples, which one thread takes through all steps: it waits for no other, and what
 * it computes for a sample does not depend on the others, so that the result does not depend on the number of threads.
 */
typedef struct {
    const dtconv_recurrence *p;
    const DT(ukr_row) * ukr;
    RT(unary_context) f, g;
    int64_t n, steps, u;
    int64_t gates; /* of z */
    int64_t saved; /* arrays of `units` that a step leaves in p->gates */
    int64_t ld;    /* elements from row to row of a product */
    int64_t rows;  /* samples of a piece */
    int threads;
} passes;

/* One of those that run at the same time, with its weights, in backward transposed.  w_inner: forward, what r h meets;
 * backward, what `side` or the gradient of k meets. */
typedef struct {
    passes t;
    packed w, w_inner;
} job;

INLINE int64_t gates_of(int cell) { return cell == RECURRENCE_SIMPLE ? 1 : cell == RECURRENCE_LSTM ? 4 : 3; }

INLINE RT(unary_context) context_of(int kind, const double *p) {
    return (RT(unary_context)){.kind = kind, .p = {(real)p[0], (real)p[1], (real)p[2]}};
}

/* With an even number of threads each half takes one of two through all steps. */
INLINE passes passes_of(const dtconv_recurrence *p, int count) {
    passes t = {.p = p, .ukr = DT(ukr_current)(), .n = p->n, .steps = p->steps, .u = p->units};
    t.f = context_of(p->f, p->f_parameters), t.g = context_of(p->g, p->g_parameters);
    t.gates = gates_of(p->cell);
    t.saved = p->cell == RECURRENCE_SIMPLE ? 1 : 4;
    t.ld = t.gates * t.u + 64 / (int64_t)sizeof(real); /* so that rows do not fall into the same sets of a cache */
    const int64_t products = t.n * t.steps * t.u * t.u * t.gates, n = max_i64(t.n, 1);
    const int64_t threads = min_i64(dtconv_threads_for(count * products), count * n);
    const int64_t each = min_i64(threads % count ? threads : threads / count, n);
    const int64_t pieces = (n + MOST_ROWS * each - 1) / (MOST_ROWS * each) * each;
    t.rows = (n + pieces - 1) / pieces;
    t.threads = (int)threads;
    return t;
}

INLINE int64_t pieces_of(const passes *t) { return (t->n + t->rows - 1) / t->rows; }

INLINE int fits(const dtconv_recurrence *p, int count) {
    if (count < 1 || count > MOST_AT_ONCE) return 0;
    for (int i = 1; i < count; i++)
        if (p[i].n != p->n || p[i].steps != p->steps || p[i].units != p->units || p[i].cell != p->cell) return 0;
    return DTCONV_ARE_SIZES(0, p->n, p->steps) && DTCONV_ARE_SIZES(1, p->units, 1) &&
           DTCONV_FIT_WITHIN(DTCONV_MOST_PRODUCTS, count, p->n, p->steps, 4 * p->units, p->units);
}

/* Where step s lies in arrays in the order of z, for sample b: a number of steps. */
INLINE int64_t place(const passes *t, int64_t b, int64_t s) {
    return b * t->steps + (t->p->backwards ? t->steps - 1 - s : s);
}

INLINE int is_masked(const passes *t, int64_t at) { return t->p->mask && !t->p->mask[at]; }

/* Of the rows of a piece those from the first to the last whose step is not masked: batches that are sorted by length,
 * or short, have few. */
typedef struct {
    int64_t first, count;
} active_rows;

INLINE active_rows active(const passes *t, int64_t first, int64_t m, int64_t step) {
    active_rows on = {0, m};
    while (on.count && is_masked(t, place(t, first + on.count - 1, step))) on.count--;
    while (on.first < on.count && is_masked(t, place(t, first + on.first, step))) on.first++;
    on.count -= on.first;
    return on;
}

/* The next `count` elements of scratch memory, aligned to 64 bytes. */
INLINE real *take(char **scratch, int64_t count) {
    real *part = (real *)*scratch;
    *scratch += ((size_t)count * sizeof(real) + READ_AHEAD + 63) / 64 * 64;
    return part;
}

INLINE int64_t packed_size(const passes *t, int64_t k, int64_t n) {
    return k * ((n + t->ukr->nr - 1) / t->ukr->nr * t->ukr->nr);
}

/* Packs B (k x n), element (p, j) at b[p * rs + j * cs], on all threads. */
INLINE packed pack(const passes *t, int64_t k, int64_t n, const real *b, int64_t rs, int64_t cs, char **scratch) {
    const int64_t nr = t->ukr->nr;
    const DT(matrix) matrix = {b, rs, cs};
    real *dst = take(scratch, packed_size(t, k, n));
    if (n)
#pragma omp parallel for schedule(static) num_threads(t->threads) if (t->threads > 1)
        for (int64_t j = 0; j < n; j += nr) DT(pack_b_matrix)(&matrix, 0, k, j, min_i64(nr, n - j), nr, dst + j * k);
    return (packed){dst, k, n};
}

/* C (m x n) = A (m x k) * B + beta * C, rows of A `rs` apart; a_packed: MR * k elements. */
INLINE void product(const passes *t, int64_t m, const real *a, int64_t rs, packed b, real beta, real *c, int64_t ldc,
                    real *a_packed) {
    const int64_t mr = t->ukr->mr, nr = t->ukr->nr;
    const int in_place = t->ukr->in_place && rs * (int64_t)sizeof(real) % 4096 != 0;
    const DT(matrix) matrix = {a, rs, 1};
    DT(ukr_call) call = {.k = b.k, .alpha = 1, .beta = beta, .ldc = ldc, .rs_a = rs, .cs_a = 1};
    if (!in_place) {
        DT(pack_a_matrix)(&matrix, 0, m, 0, b.k, mr, a_packed);
        call.rs_a = 1, call.cs_a = mr;
    }
    for (int64_t j = 0; j < b.n; j += nr) { /* a panel of B meets all rows while it is in cache */
        call.n = min_i64(nr, b.n - j);
        call.b = b.data + j * b.k;
        call.b_next = call.b + nr * b.k;
        for (int64_t i = 0; i < m; i += mr) {
            call.m = min_i64(mr, m - i);
            call.a = in_place ? a + i * rs : a_packed + i * b.k;
            call.a_next = call.a;
            call.c = c + i * ldc + j;
            t->ukr->run(t->ukr, &call);
        }
    }
}

INLINE void apply(const RT(unary_context) * activation, int64_t n, real *x) {
    const real *in[] = {x};
    RT(unary_forward_span)(activation, n, in, x);
}

/* dx = dx f'(y) */
INLINE void apply_slope(const RT(unary_context) * activation, int64_t n, const real *y, real *dx) {
    const real *in[] = {y, dx};
    RT(unary_backward_span)(activation, n, in, dx);
}

/* Memory of a piece: rows of states, products and gates. */
INLINE int64_t a_packed_size(const passes *t) {
    const int64_t mr = t->ukr->mr;
    return (t->rows + mr - 1) / mr * mr * t->gates * t->u;
}

#endif
