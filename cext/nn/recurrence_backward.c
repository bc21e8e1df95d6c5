/* Recurrent layers backward through time (recurrence.h).  The transposed W is packed once; a piece of the samples goes
 * back through all steps with the gradients of its states:
 *
 *   for a sample:      dz from dh, dc and the gates that forward left
 *   for a step:        dh = dz W^T + what of dh does not go through the product
 *
 * The gradient of W is left to one product of all steps: of `previous` (or r h) and dz (or side).
 */
#include "recurrence_steps.h"

typedef struct {
    real *dh, *dc, *held, *product, *a_packed, *activated, *d;
} scratch;

static scratch scratch_at(const passes *t, char *memory, char **end) {
    scratch s;
    s.dh = take(&memory, t->rows * t->u);
    s.dc = take(&memory, t->rows * t->u);
    s.held = take(&memory, t->rows * t->u);
    s.product = take(&memory, t->rows * t->u);
    s.a_packed = take(&memory, a_packed_size(t));
    s.activated = take(&memory, t->u);
    s.d = take(&memory, t->u);
    *end = memory;
    return s;
}

static size_t scratch_bytes(const passes *t) {
    char *end;
    scratch_at(t, (char *)64, &end);
    return (size_t)(end - (char *)64);
}

static void lstm_row(const passes *t, const scratch *s, const real *gates, const real *c, const real *c_before,
                     real *dz, real *dh, real *dc) {
    const int64_t u = t->u;
    const real *i = gates, *forget = gates + u, *k = gates + 2 * u, *o = gates + 3 * u;
    real *activated = s->activated, *d = s->d;
    memcpy(activated, c, (size_t)u * sizeof(real));
    apply(&t->f, u, activated);
#pragma omp simd
    for (int64_t j = 0; j < u; j++) {
        dz[3 * u + j] = dh[j] * activated[j];
        d[j] = dh[j] * o[j];
        dh[j] = 0;
    }
    apply_slope(&t->f, u, activated, d);
#pragma omp simd
    for (int64_t j = 0; j < u; j++) {
        const real all = dc[j] + d[j];
        dz[j] = all * k[j];
        dz[u + j] = c_before ? all * c_before[j] : 0;
        dz[2 * u + j] = all * i[j];
        dc[j] = all * forget[j];
    }
    apply_slope(&t->g, 2 * u, gates, dz);
    apply_slope(&t->f, u, k, dz + 2 * u);
    apply_slope(&t->g, u, o, dz + 3 * u);
}

/* GRU: the gradients of u and k; of dh there stays what goes around them. */
static void gru_row(const passes *t, const real *gates, const real *previous, real *dz, real *dh) {
    const int64_t u = t->u;
    const real *k = gates + 2 * u;
#pragma omp simd
    for (int64_t j = 0; j < u; j++) {
        dz[j] = dh[j] * (previous[j] - k[j]);
        dz[2 * u + j] = dh[j] * (1 - gates[j]);
        dh[j] *= gates[j];
    }
    apply_slope(&t->g, u, gates, dz);
    apply_slope(&t->f, u, k, dz + 2 * u);
}

/* GRU: the gradient of r, from that of what it multiplies: dr = d factor, and d r is left in `rest`. */
static void reset_row(const passes *t, const real *gates, const real *d, const real *factor, real *dz, real *rest,
                      int adds) {
    const int64_t u = t->u;
    const real *r = gates + u;
#pragma omp simd
    for (int64_t j = 0; j < u; j++) {
        dz[u + j] = d[j] * factor[j];
        rest[j] = (adds ? rest[j] : 0) + d[j] * r[j];
    }
    apply_slope(&t->g, u, r, dz + u);
}

/* dy, and what later steps have repeated of it, into dh; returns whether the step is masked. */
static int take_output(const passes *t, const scratch *s, int64_t row, int64_t b, int64_t step) {
    const dtconv_recurrence *p = t->p;
    const int64_t u = t->u;
    const int masked = is_masked(t, place(t, b, step)), gone = masked && p->zero_output;
    const real *dy = NULL;
    if (p->dy && !gone && (p->sequences || step == t->steps - 1))
        dy = (const real *)p->dy + (p->sequences ? b * t->steps + step : b) * u;
    real *dh = s->dh + row * u, *held = s->held + row * u, *to = masked ? held : dh;
    for (int64_t j = 0; j < u && dy; j++) to[j] += dy[j];
    if (masked || !p->mask) return masked;
    for (int64_t j = 0; j < u; j++) dh[j] += held[j], held[j] = 0;
    return 0;
}

static void row_of(const passes *t, const scratch *s, int64_t row, int64_t b, int64_t step) {
    const dtconv_recurrence *p = t->p;
    const int64_t u = t->u, at = place(t, b, step), before = place(t, b, step - 1);
    const real *gates = (const real *)p->gates + at * t->saved * u, *previous = (const real *)p->previous + at * u;
    real *dz = (real *)p->dz + at * t->gates * u, *dh = s->dh + row * u, *dc = s->dc + row * u;
    real *side = p->side ? (real *)p->side + at * u : NULL;
    if (take_output(t, s, row, b, step)) {
        memset(dz, 0, (size_t)(t->gates * u) * sizeof(real));
        if (side) memset(side, 0, (size_t)u * sizeof(real));
        return;
    }
    if (p->cell == RECURRENCE_SIMPLE) {
        memcpy(dz, dh, (size_t)u * sizeof(real));
        memset(dh, 0, (size_t)u * sizeof(real));
        apply_slope(&t->f, u, gates, dz);
    } else if (p->cell == RECURRENCE_LSTM) {
        const real *c = (const real *)p->cells, *c0 = p->c0;
        lstm_row(t, s, gates, c + at * u, step ? c + before * u : c0 ? c0 + b * u : NULL, dz, dh, dc);
    } else {
        gru_row(t, gates, previous, dz, dh);
        if (side) reset_row(t, gates, dz + 2 * u, gates + 3 * u, dz, side, 0);
    }
}

/* GRU (before): the gradient of r h, and through it those of r and h. */
static void inner_step(const job *w, const scratch *s, int64_t first, int64_t m, int64_t step) {
    const passes *t = &w->t;
    const int64_t u = t->u, apart = t->steps * t->gates * u;
    product(t, m, (real *)t->p->dz + place(t, first, step) * t->gates * u + 2 * u, apart, w->w_inner, 0, s->product, u,
            s->a_packed);
    for (int64_t r = 0; r < m; r++) {
        const int64_t at = place(t, first + r, step);
        if (is_masked(t, at)) continue;
        reset_row(t, (const real *)t->p->gates + at * t->saved * u, s->product + r * u,
                  (const real *)t->p->previous + at * u, (real *)t->p->dz + at * t->gates * u, s->dh + r * u, 1);
    }
}

static void start(const passes *t, const void *given, int64_t first, int64_t m, real *own) {
    if (given)
        memcpy(own, (const real *)given + first * t->u, (size_t)(m * t->u) * sizeof(real));
    else
        memset(own, 0, (size_t)(m * t->u) * sizeof(real));
}

static void run_piece(const job *w, const scratch *s, int64_t first, int64_t m) {
    const passes *t = &w->t;
    const dtconv_recurrence *p = t->p;
    const int64_t u = t->u;
    start(t, p->dh, first, m, s->dh);
    start(t, p->dc, first, m, s->dc);
    start(t, NULL, first, m, s->held);
    for (int64_t step = t->steps - 1; step >= 0; step--) {
        for (int64_t r = 0; r < m; r++) row_of(t, s, r, first + r, step);
        const active_rows on = active(t, first, m, step);
        if (!on.count) continue;
        if (p->cell == RECURRENCE_GRU_BEFORE) inner_step(w, s, first, m, step);
        const int64_t at = place(t, first + on.first, step), columns = t->gates * u;
        real *dh = s->dh + on.first * u;
        product(t, on.count, (const real *)p->dz + at * columns, t->steps * columns, w->w, 1, dh, u, s->a_packed);
        if (p->side)
            product(t, on.count, (const real *)p->side + at * u, t->steps * u, w->w_inner, 1, dh, u, s->a_packed);
    }
    if (p->dh0) memcpy((real *)p->dh0 + first * u, s->dh, (size_t)(m * u) * sizeof(real));
    if (p->dc0) memcpy((real *)p->dc0 + first * u, s->dc, (size_t)(m * u) * sizeof(real));
}

size_t DT(recurrence_backward_workspace)(const dtconv_recurrence *p, int count) {
    const passes t = passes_of(p, count);
    if (!t.ukr) return 0;
    const size_t weights = (size_t)packed_size(&t, t.gates * t.u, t.u) * sizeof(real) + 2 * (READ_AHEAD + 64);
    return 64 + (size_t)count * weights + (size_t)t.threads * scratch_bytes(&t);
}

int DT(recurrence_backward)(const dtconv_recurrence *p, int count, void *workspace, size_t bytes) {
    if (!fits(p, count)) return DTCONV_ARGUMENT;
    if (p->n == 0 || p->steps == 0) return DTCONV_OK;
    const passes t = passes_of(p, count);
    if (!t.ukr) return DTCONV_KERNEL;
    if (bytes < DT(recurrence_backward_workspace)(p, count)) return DTCONV_WORKSPACE;
    const int64_t u = t.u, columns = t.gates * u, inner = t.gates == 3 ? u : 0;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    job jobs[MOST_AT_ONCE];
    for (int i = 0; i < count; i++) {
        jobs[i].t = passes_of(p + i, count);
        jobs[i].w = pack(&t, columns - inner, u, p[i].w, 1, columns, &memory);
        jobs[i].w_inner = pack(&t, inner, inner, (const real *)p[i].w + 2 * inner, 1, columns, &memory);
    }
    const size_t each = scratch_bytes(&t);
    const int64_t pieces = pieces_of(&t);
#pragma omp parallel for schedule(dynamic) num_threads(t.threads) if (t.threads > 1)
    for (int64_t i = 0; i < count * pieces; i++) {
        char *end;
        const scratch s = scratch_at(&t, memory + (size_t)dtconv_thread_id() * each, &end);
        const int64_t first = i % pieces * t.rows;
        run_piece(&jobs[i / pieces], &s, first, min_i64(t.rows, t.n - first));
    }
    return DTCONV_OK;
}
