/* Recurrent layers forward (recurrence.h).  W is packed once; a piece of the samples then goes through all steps:
 *
 *   for a step:        P = H W            on the micro-kernel of the GEMM, H and P in cache
 *     for a sample:    gates = f(z + P),  the state and the output
 */
#include "recurrence_steps.h"

typedef struct {
    real *h, *c, *product, *gates, *a_packed, *activated;
} scratch;

static scratch scratch_at(const passes *t, char *memory, char **end) {
    scratch s;
    s.h = take(&memory, t->rows * t->u);
    s.c = take(&memory, t->rows * t->u);
    s.product = take(&memory, t->rows * t->ld);
    s.gates = take(&memory, t->rows * t->saved * t->u);
    s.a_packed = take(&memory, a_packed_size(t));
    s.activated = take(&memory, t->u);
    *end = memory;
    return s;
}

static size_t scratch_bytes(const passes *t) {
    char *end;
    scratch_at(t, (char *)64, &end);
    return (size_t)(end - (char *)64);
}

/* y = f(a + b + c); b may be NULL */
static void sums(int64_t n, const real *a, const real *b, const real *c, real *y) {
    if (b)
#pragma omp simd
        for (int64_t j = 0; j < n; j++) y[j] = a[j] + (c[j] + b[j]);
    else
#pragma omp simd
        for (int64_t j = 0; j < n; j++) y[j] = a[j] + c[j];
}

static void simple_row(const passes *t, const real *z, const real *product, real *gates, real *h) {
    sums(t->u, z, NULL, product, gates);
    apply(&t->f, t->u, gates);
    memcpy(h, gates, (size_t)t->u * sizeof(real));
}

static void lstm_row(const passes *t, const real *z, const real *product, real *gates, real *activated, real *h,
                     real *c) {
    const int64_t u = t->u;
    sums(4 * u, z, NULL, product, gates);
    apply(&t->g, 2 * u, gates);
    apply(&t->f, u, gates + 2 * u);
    apply(&t->g, u, gates + 3 * u);
    const real *i = gates, *forget = gates + u, *k = gates + 2 * u, *o = gates + 3 * u;
#pragma omp simd
    for (int64_t j = 0; j < u; j++) activated[j] = c[j] = forget[j] * c[j] + i[j] * k[j];
    apply(&t->f, u, activated);
#pragma omp simd
    for (int64_t j = 0; j < u; j++) h[j] = o[j] * activated[j];
}

/* u and r, and what k is made of: h W + b, or r h. */
static void gru_gates(const passes *t, const real *z, const real *product, real *gates, const real *h) {
    const int64_t u = t->u;
    const real *b = t->p->b, *r = gates + u;
    real *inner = gates + 3 * u;
    sums(2 * u, z, b, product, gates);
    apply(&t->g, 2 * u, gates);
    if (t->p->cell == RECURRENCE_GRU_BEFORE)
#pragma omp simd
        for (int64_t j = 0; j < u; j++) inner[j] = r[j] * h[j];
    else
#pragma omp simd
        for (int64_t j = 0; j < u; j++) inner[j] = product[2 * u + j] + (b ? b[2 * u + j] : 0);
}

/* k = f(z + inner), and the state; inner is multiplied by r where there is one. */
static void gru_row(const passes *t, const real *z, const real *inner, const real *r, real *gates, real *h) {
    const int64_t u = t->u;
    real *k = gates + 2 * u;
    if (r)
#pragma omp simd
        for (int64_t j = 0; j < u; j++) k[j] = z[2 * u + j] + r[j] * inner[j];
    else
        sums(u, z + 2 * u, NULL, inner, k);
    apply(&t->f, u, k);
#pragma omp simd
    for (int64_t j = 0; j < u; j++) h[j] = gates[j] * h[j] + (1 - gates[j]) * k[j];
}

/* Where a sample's gates of a step go. */
static real *gates_at(const passes *t, const scratch *s, int64_t row, int64_t at) {
    real *gates = t->p->gates;
    return gates ? gates + at * t->saved * t->u : s->gates + row * t->saved * t->u;
}

/* GRU (before): the product of r h, and the states. */
static void inner_step(const job *w, const scratch *s, int64_t first, int64_t m, int64_t step) {
    const passes *t = &w->t;
    const int64_t u = t->u, apart = t->p->gates ? t->steps * t->saved * u : t->saved * u;
    real *gates = gates_at(t, s, 0, place(t, first, step)) + 3 * u;
    product(t, m, gates, apart, w->w_inner, 0, s->product, t->ld, s->a_packed);
    for (int64_t r = 0; r < m; r++) {
        const int64_t at = place(t, first + r, step);
        const real *z = (const real *)t->p->z + at * t->gates * u;
        if (!is_masked(t, at)) gru_row(t, z, s->product + r * t->ld, NULL, gates_at(t, s, r, at), s->h + r * u);
    }
}

static void row_of(const passes *t, const scratch *s, int64_t row, int64_t at) {
    const int64_t u = t->u;
    const real *z = (const real *)t->p->z + at * t->gates * u, *product = s->product + row * t->ld;
    real *gates = gates_at(t, s, row, at), *h = s->h + row * u, *c = s->c + row * u;
    if (is_masked(t, at))
        memset(gates, 0, (size_t)(t->saved * u) * sizeof(real));
    else if (t->p->cell == RECURRENCE_SIMPLE)
        simple_row(t, z, product, gates, h);
    else if (t->p->cell == RECURRENCE_LSTM)
        lstm_row(t, z, product, gates, s->activated, h, c);
    else
        gru_gates(t, z, product, gates, h);
    if (t->p->cell == RECURRENCE_GRU && !is_masked(t, at)) gru_row(t, z, gates + 3 * u, gates + u, gates, h);
    if (t->p->cells) memcpy((real *)t->p->cells + at * u, c, (size_t)u * sizeof(real));
}

static void output(const passes *t, const real *h, int64_t b, int64_t step) {
    const dtconv_recurrence *p = t->p;
    const size_t bytes = (size_t)t->u * sizeof(real);
    const int masked = is_masked(t, place(t, b, step));
    real *y = (real *)p->y + (p->sequences ? b * t->steps + step : b) * t->u;
    if (!masked)
        memcpy(y, h, bytes);
    else if (step == 0 || p->zero_output)
        memset(y, 0, bytes);
    else if (p->sequences)
        memcpy(y, y - t->u, bytes);
}

static void run_piece(const job *w, const scratch *s, int64_t first, int64_t m) {
    const passes *t = &w->t;
    const dtconv_recurrence *p = t->p;
    const int64_t u = t->u;
    const size_t bytes = (size_t)(m * u) * sizeof(real);
    for (int state = 0; state < 2; state++) {
        const real *given = state ? p->c0 : p->h0;
        real *own = state ? s->c : s->h;
        if (given)
            memcpy(own, given + first * u, bytes);
        else
            memset(own, 0, bytes);
    }
    for (int64_t step = 0; step < t->steps; step++) {
        for (int64_t r = 0; r < m && p->previous; r++)
            memcpy((real *)p->previous + place(t, first + r, step) * u, s->h + r * u, (size_t)u * sizeof(real));
        const active_rows on = active(t, first, m, step);
        if (on.count)
            product(t, on.count, s->h + on.first * u, u, w->w, 0, s->product + on.first * t->ld, t->ld, s->a_packed);
        for (int64_t r = 0; r < m; r++) row_of(t, s, r, place(t, first + r, step));
        if (on.count && p->cell == RECURRENCE_GRU_BEFORE) inner_step(w, s, first, m, step);
        for (int64_t r = 0; r < m; r++) output(t, s->h + r * u, first + r, step);
    }
    memcpy((real *)p->h + first * u, s->h, bytes);
    if (p->c) memcpy((real *)p->c + first * u, s->c, bytes);
}

size_t DT(recurrence_backward_workspace)(const dtconv_recurrence *p, int count);

size_t DT(recurrence_workspace)(const dtconv_recurrence *p, int count, int backward) {
    if (!fits(p, count)) return 0;
    if (backward) return DT(recurrence_backward_workspace)(p, count);
    const passes t = passes_of(p, count);
    if (!t.ukr) return 0;
    const int64_t weights = packed_size(&t, t.u, t.gates * t.u) + t.u * t.ukr->nr; /* two matrices are rounded up */
    const size_t packed_bytes = (size_t)weights * sizeof(real) + 2 * (READ_AHEAD + 64);
    return 64 + (size_t)count * packed_bytes + (size_t)t.threads * scratch_bytes(&t);
}

int DT(recurrence_forward)(const dtconv_recurrence *p, int count, void *workspace, size_t bytes) {
    if (!fits(p, count)) return DTCONV_ARGUMENT;
    if (p->n == 0 || p->steps == 0) return DTCONV_OK;
    const passes t = passes_of(p, count);
    if (!t.ukr) return DTCONV_KERNEL;
    if (bytes < DT(recurrence_workspace)(p, count, 0)) return DTCONV_WORKSPACE;
    const int64_t u = t.u, columns = t.gates * u, inner = p->cell == RECURRENCE_GRU_BEFORE ? u : 0;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    job jobs[MOST_AT_ONCE];
    for (int i = 0; i < count; i++) {
        jobs[i].t = passes_of(p + i, count);
        jobs[i].w = pack(&t, u, columns - inner, p[i].w, columns, 1, &memory);
        jobs[i].w_inner = pack(&t, u, inner, (const real *)p[i].w + 2 * inner, columns, 1, &memory);
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
