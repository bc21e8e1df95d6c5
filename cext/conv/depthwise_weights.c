/* Filter gradients of depthwise convolutions: see depthwise.h.
 *
 * Fixed slices of the rows of y are summed for a chunk of channels each, and then added in order. A row of dy is copied
 * vector by vector of channels, as the rows of x in the ring are; the sums of a few rows of filters are in registers
 * while the pixels of the row pass by.
 */
#include "depthwise.h"

enum {
    SLICES = 16,
    MOST_SUMS = 16, /* in registers */
    LANES = 4       /* sums of one tap that need not wait for one another */
};

/* The pass's own, and what a thread has at hand. */
typedef struct {
    DT(depthwise_pass) read;
    int64_t ldy;
    real *parts; /* (SLICES, vector of filters, tap, V) */
} pass;

typedef struct {
    DT(depthwise_ring) ring;
    real *dy; /* (vector, column, V) of a row */
} scratch;

static size_t dy_bytes(const pass *s) {
    const int64_t vectors = dtconv_ceil_div(s->read.chunk, V) * s->read.mult;
    return dtconv_round((size_t)(vectors * s->read.columns * V) * sizeof(real));
}

/* Adds the products of a row of dy and of R rows of x to the sums of their K taps, neighbours; all constants. */
INLINE void sum_rows(int R, int K, int S, int64_t pixels, const real *const *x, int64_t at, const real *dy, real *dw,
                     const int64_t *taps) {
    vec sum[MOST_SUMS];
    const real *rows[MOST_SUMS];
    UNROLL for (int i = 0; i < R * K; i++) sum[i] = (vec){0};
    UNROLL for (int r = 0; r < R; r++) rows[r] = x[r] + at;
    for (int64_t i = 0; i < pixels; i++) {
        const vec d = load(dy + i * V);
        UNROLL for (int r = 0; r < R; r++) {
            UNROLL for (int k = 0; k < K; k++) sum[r * K + k] =
                multiply_add(load(rows[r] + (i * S + k) * V), d, sum[r * K + k]);
        }
    }
    UNROLL for (int r = 0; r < R; r++) {
        UNROLL for (int k = 0; k < K; k++) {
            real *to = dw + (taps[r] + k) * V;
            store(to, load(to) + sum[r * K + k]);
        }
    }
}

#define ROWS(R, K, S)                                                                                              \
    NOINLINE void rows_##R##_##K##_##S(int64_t pixels, const real *const *x, int64_t at, const real *dy, real *dw, \
                                       const int64_t *taps) {                                                      \
        sum_rows(R, K, S, pixels, x, at, dy, dw, taps);                                                            \
    }
ROWS(1, 3, 1)
ROWS(2, 3, 1)
ROWS(3, 3, 1)
ROWS(1, 3, 2)
ROWS(2, 3, 2)
ROWS(3, 3, 2)
ROWS(1, 5, 1)
ROWS(2, 5, 1)
ROWS(1, 5, 2)
ROWS(2, 5, 2)
ROWS(1, 7, 1)
ROWS(1, 7, 2)
#undef ROWS

typedef void rows_fn(int64_t pixels, const real *const *x, int64_t at, const real *dy, real *dw, const int64_t *taps);

/* Rows that are summed together at most, and the functions by their number, less one; 0: none for such taps. */
static int64_t functions_of(int64_t taps, int64_t stride, rows_fn *const **functions) {
    static rows_fn *const three[2][3] = {{rows_1_3_1, rows_2_3_1, rows_3_3_1}, {rows_1_3_2, rows_2_3_2, rows_3_3_2}};
    static rows_fn *const five[2][2] = {{rows_1_5_1, rows_2_5_1}, {rows_1_5_2, rows_2_5_2}};
    static rows_fn *const seven[2][1] = {{rows_1_7_1}, {rows_1_7_2}};
    if (stride > 2) return 0;
    *functions = taps == 3 ? three[stride - 1] : taps == 5 ? five[stride - 1] : seven[stride - 1];
    return taps == 3 ? 3 : taps == 5 ? 2 : taps == 7 ? 1 : 0;
}

/* The same of one tap. */
static void sum_tap(int64_t pixels, int64_t stride, const real *x, const real *dy, real *dw) {
    vec sum[LANES] = {{0}};
    int64_t i = 0;
    for (; i + LANES <= pixels; i += LANES) {
        UNROLL for (int t = 0; t < LANES; t++) sum[t] =
            multiply_add(load(x + (i + t) * stride * V), load(dy + (i + t) * V), sum[t]);
    }
    for (; i < pixels; i++) sum[0] = multiply_add(load(x + i * stride * V), load(dy + i * V), sum[0]);
    store(dw, load(dw) + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

/* Adds what pixels of a row of dy make of the taps that they meet; dw: of the chunk's first channel. */
static void add_row(const DT(depthwise_pass) * s, const scratch *own, int64_t pixels, dtconv_depthwise_ahead *of_x,
                    dtconv_depthwise_ahead *of_dy, real *dw) {
    const DT(depthwise_rows) *rows = &own->ring.rows;
    const int64_t vectors = dtconv_ceil_div(own->ring.channels, V) * s->mult;
    rows_fn *const *functions = NULL;
    const int64_t most = s->w.dilation == 1 ? functions_of(s->w.taps, s->w.stride, &functions) : 0;
    for (int64_t vector = 0; vector < vectors; vector++) {
        const int64_t at = vector / s->mult * DT(depthwise_vector)(s);
        const real *dy = own->dy + vector * pixels * V;
        real *to = dw + vector * DT(depthwise_filter)(s);
        dtconv_look_ahead(of_x);
        dtconv_look_ahead(of_dy);
        for (int64_t r = 0; r < rows->count;) {
            if (most) {
                const int64_t count = MIN(most, rows->count - r);
                functions[count - 1](pixels, rows->x + r, at, dy, to, rows->taps + r);
                r += count;
                continue;
            }
            for (int64_t k = 0; k < s->w.taps; k++)
                sum_tap(pixels, s->w.stride, rows->x[r] + at + k * s->w.dilation * V, dy, to + (rows->taps[r] + k) * V);
            r++;
        }
    }
}

/* Copies pixels of a row of dy. */
static void read_dy(const pass *s, const elem *row, int64_t pixels, int64_t channels, real *to) {
    const int64_t mult = s->read.mult;
    for (int64_t i = 0; i < pixels; i++, row += s->ldy) {
        real *place = to + i * V;
        for (int64_t c = 0; c < channels; c += V)
            for (int64_t m = 0; m < mult; m++, place += pixels * V) {
                const int64_t count = MIN(V, channels - c);
                if (mult == 1 && count == V)
                    store(place, load_elem(row + c));
                else
                    store(place, gather_channels(row + c * mult + m, mult, count));
            }
    }
}

/* Rows [row, end) of all planes of dy, `pixels` of each from `column` on. */
static void add_rows(const pass *s, int64_t row, int64_t end, int64_t column, int64_t pixels, scratch *own, real *dw) {
    const DT(depthwise_pass) *read = &s->read;
    DT(depthwise_ring) *ring = &own->ring;
    const int64_t height = read->h.written, of_row = read->w.written * s->ldy, size = (int64_t)sizeof(elem);
    const int64_t vectors = dtconv_ceil_div(ring->channels, V) * read->mult;
    const elem *dy = read->args->y + row * of_row + column * s->ldy + ring->first * read->mult;
    for (; row < end; row++, dy += of_row) {
        DT(depthwise_meet)(read, ring, row / height, row % height);
        read_dy(s, dy, pixels, ring->channels, own->dy);
        dtconv_depthwise_ahead of_x = {0}, of_dy = {0};
        if (row + 1 < end) {
            of_x = DT(depthwise_ahead)(read, ring, (row + 1) / height, (row + 1) % height);
            of_dy = (dtconv_depthwise_ahead){.rows = {(const char *)(dy + of_row)},
                                             .count = 1,
                                             .pixels = pixels,
                                             .bytes = ring->channels * read->mult * size,
                                             .step = s->ldy * size};
            dtconv_spread(&of_x, vectors);
            dtconv_spread(&of_dy, vectors);
        }
        add_row(read, own, pixels, &of_x, &of_dy, dw);
    }
}

static void run_unit(const pass *s, int64_t unit, scratch *own) {
    const DT(depthwise_pass) *read = &s->read;
    const int64_t slice = unit % SLICES, first = unit / SLICES * read->chunk;
    const int64_t channels = MIN(read->chunk, read->ci - first), rows = read->n * read->d.written * read->h.written;
    const int64_t of_slice = (int64_t)(DT(depthwise_filters_bytes)(read) / sizeof(real));
    const int64_t of_chunk = dtconv_ceil_div(channels, V) * read->mult * DT(depthwise_filter)(read);
    real *dw = s->parts + slice * of_slice + first / V * read->mult * DT(depthwise_filter)(read);
    memset(dw, 0, (size_t)of_chunk * sizeof(real));
    for (int64_t column = 0; column < read->w.written; column += read->columns) {
        DT(depthwise_begin)(read, &own->ring, first, channels, column);
        add_rows(s, rows * slice / SLICES, rows * (slice + 1) / SLICES, column,
                 MIN(read->columns, read->w.written - column), own, dw);
    }
}

/* Adds the slices of one vector of filters. */
static void merge(const pass *s, int64_t vector) {
    const DT(depthwise_pass) *read = &s->read;
    const int64_t of_slice = (int64_t)(DT(depthwise_filters_bytes)(read) / sizeof(real)), mult = read->mult;
    const int64_t taps = DT(depthwise_filter)(read) / V, c = vector / mult * V, count = MIN(V, read->ci - c);
    for (int64_t tap = 0; tap < taps; tap++) {
        vec sum = {0};
        for (int64_t slice = 0; slice < SLICES; slice++)
            sum += load(s->parts + slice * of_slice + (vector * taps + tap) * V);
        real *to = read->args->w + tap * read->ci * mult + c * mult + vector % mult;
        if (mult == 1)
            store_part(to, count, sum);
        else
            for (int64_t i = 0; i < count; i++) to[i * mult] = sum[i];
    }
}

static pass prepare(const dtconv_conv *p) { return (pass){.read = DT(depthwise_prepare)(p, 0), .ldy = p->ldy}; }

static size_t own_bytes(const pass *s) { return DT(depthwise_ring_bytes)(&s->read) + dy_bytes(s); }

size_t DT(conv_depthwise_backward_weights_workspace)(const dtconv_conv *p) {
    if (p->groups != p->ci) return 0;
    const pass s = prepare(p);
    return 64 + SLICES * DT(depthwise_filters_bytes)(&s.read) + (size_t)s.read.threads * own_bytes(&s);
}

dtconv_status DT(conv_depthwise_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                  size_t bytes) {
    if (p->groups != p->ci) return DTCONV_UNSUPPORTED;
    if (bytes < DT(conv_depthwise_backward_weights_workspace)(p)) return DTCONV_WORKSPACE;
    pass s = prepare(p);
    s.read.args = a;
    s.read.read = a->x;
    s.read.prologue = a->prologue.mean ? &a->prologue : NULL;
    s.parts = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s.parts + SLICES * DT(depthwise_filters_bytes)(&s.read);
    const int64_t units = SLICES * dtconv_ceil_div(s.read.ci, s.read.chunk);
#pragma omp parallel num_threads((int)s.read.threads)
    {
        char *mine = memory + (size_t)dtconv_thread_id() * own_bytes(&s);
        scratch own = {DT(depthwise_ring_on)(&s.read, mine), (real *)(mine + DT(depthwise_ring_bytes)(&s.read))};
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < units; unit++) run_unit(&s, unit, &own);
#pragma omp for schedule(static)
        for (int64_t vector = 0; vector < dtconv_ceil_div(s.read.ci, V) * s.read.mult; vector++) merge(&s, vector);
    }
    return DTCONV_OK;
}
