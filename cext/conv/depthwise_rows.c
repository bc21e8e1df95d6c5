/* The ring of rows and the packed filters: see depthwise.h. */
#include "depthwise.h"

enum {
    RING_BYTES = 256 << 10, /* that a ring should not exceed */
    PIXELS = 4,             /* that are read for one load of what normalizes them */
};

static dtconv_depthwise_axis axis_of(int64_t x, int64_t y, int64_t taps, int64_t stride, int64_t dilation, int64_t pad,
                                     int turned) {
    return (dtconv_depthwise_axis){turned ? y : x, turned ? x : y, taps, stride, dilation, pad};
}

/* Rows or columns, from the first to the last, that the taps of a pixel can meet. */
static int64_t span(const dtconv_depthwise_axis *a, int turned) {
    const int64_t reach = (a->taps - 1) * a->dilation;
    return 1 + (turned ? dtconv_ceil_div(reach, a->stride) : reach);
}

/* Columns of a ring for so many that are written; of one alone no more than its taps, however far apart they lie. */
static int64_t width_of(const DT(depthwise_pass) * s, int64_t columns) {
    const dtconv_depthwise_axis *w = &s->w;
    if (!s->turned && columns == 1) return span(w, 0);
    if (!s->turned) return (dtconv_round_to(columns, DEPTHWISE_TILE) - 1) * w->stride + span(w, 0);
    const int64_t pixels = dtconv_round_to(dtconv_ceil_div(columns, w->stride), DEPTHWISE_TILE);
    return s->before + pixels + dtconv_ceil_div(w->pad, w->stride);
}

DT(depthwise_pass) DT(depthwise_prepare)(const dtconv_conv *p, int turned) {
    DT(depthwise_pass)
    s = {.turned = turned, .n = p->n, .ci = p->ci, .mult = p->co / p->ci, .threads = dtconv_threads_of(p)};
    s.d = axis_of(p->id, p->od, p->kd, p->sd, p->dil_d, p->pad_f, turned);
    s.h = axis_of(p->ih, p->oh, p->kh, p->sh, p->dil_h, p->pad_t, turned);
    s.w = axis_of(p->iw, p->ow, p->kw, p->sw, p->dil_w, p->pad_l, turned);
    s.ldr = turned ? p->ldy : p->ldx;
    s.of_read = turned ? s.mult : 1;
    s.slots = span(&s.h, turned);
    s.before = turned ? span(&s.w, 1) - 1 : s.w.pad;
    const int64_t line = 64 / (int64_t)sizeof(real), unit = DEPTHWISE_TILE * (turned ? s.w.stride : 1);
    const int64_t of_column = s.d.taps * s.slots * s.of_read * (int64_t)sizeof(real);
    const int64_t blocks = dtconv_ceil_div(line * width_of(&s, s.w.written) * of_column, RING_BYTES);
    s.columns = MIN(s.w.written, dtconv_round_to(dtconv_ceil_div(s.w.written, blocks), unit));
    s.width = width_of(&s, s.columns);
    if (!turned && s.width * of_column > RING_BYTES) s.columns = 1, s.width = width_of(&s, 1);
    const int64_t chunks = dtconv_ceil_div(s.ci, MAX(line, RING_BYTES / (s.width * of_column)));
    s.chunk = dtconv_round_to(dtconv_ceil_div(s.ci, chunks), line);
    return s;
}

size_t DT(depthwise_filters_bytes)(const DT(depthwise_pass) * s) {
    const int64_t vectors = dtconv_ceil_div(s->ci, V) * s->mult;
    return dtconv_round((size_t)(vectors * DT(depthwise_filter)(s)) * sizeof(real));
}

static size_t rows_bytes(const DT(depthwise_pass) * s) {
    const size_t rows = (size_t)(s->d.taps * s->h.taps), held = (size_t)(s->d.taps * s->slots);
    return dtconv_round(rows * (sizeof(real *) + sizeof(int64_t)) + held * sizeof(int64_t));
}

size_t DT(depthwise_ring_bytes)(const DT(depthwise_pass) * s) {
    const int64_t vectors = dtconv_ceil_div(s->chunk, V) * s->of_read;
    return rows_bytes(s) + dtconv_round((size_t)(vectors * DT(depthwise_vector)(s)) * sizeof(real));
}

void DT(depthwise_pack)(const DT(depthwise_pass) * s, real *to) {
    const int64_t taps = s->d.taps * s->h.taps * s->w.taps, co = s->ci * s->mult;
#pragma omp for schedule(static)
    for (int64_t vector = 0; vector < dtconv_ceil_div(s->ci, V) * s->mult; vector++) {
        const int64_t c = vector / s->mult * V, i = vector % s->mult, count = MIN(V, s->ci - c);
        const real *from = s->args->w + c * s->mult + i;
        for (int64_t tap = 0; tap < taps; tap++, from += co) {
            vec f = {0};
            if (s->mult == 1)
                f = load_part(from, count);
            else
                for (int64_t j = 0; j < count; j++) f[j] = from[j * s->mult];
            store(to + (vector * taps + tap) * V, f);
        }
    }
}

DT(depthwise_ring) DT(depthwise_ring_on)(const DT(depthwise_pass) * s, void *memory) {
    const int64_t rows = s->d.taps * s->h.taps, held = s->d.taps * s->slots;
    char *place = memory;
    DT(depthwise_ring)
    ring = {.held = (int64_t *)place, .ring = (real *)(place + rows_bytes(s))};
    ring.rows.taps = ring.held + held;
    ring.rows.x = (const real **)(ring.rows.taps + rows);
    for (int64_t i = 0; i < held; i++) ring.held[i] = -1;
    memset(ring.ring, 0, DT(depthwise_ring_bytes)(s) - rows_bytes(s));
    return ring;
}

/* One vector of `count` channels of some pixels, for each of the vectors that are read of them: of_read, which is 1 but
 * for several filters of a channel. normalizes, act: constants where it is inlined, as the others may be. */
INLINE void read_channels(const DT(depthwise_pass) * s, int normalizes, dtconv_activation act, int64_t of_read,
                          const elem *pixel, int64_t pixels, int64_t first, int64_t c, int64_t count, real *to) {
    const normalizer f = normalizes ? normalizer_of(s->prologue, first + c, count) : (normalizer){0};
    for (int64_t i = 0; i < of_read; i++, to += DT(depthwise_vector)(s)) {
        UNROLL for (int64_t j = 0; j < pixels; j++) {
            const vec x = gather_channels(pixel + j * s->ldr + c * of_read + i, of_read, count);
            store(to + j * V, normalizes ? normalized(f, act, x) : x);
        }
    }
}

/* `pixels` neighbours from `pixel` on. */
INLINE void read_pixels(const DT(depthwise_pass) * s, int normalizes, dtconv_activation act, int64_t of_read,
                        const elem *pixel, int64_t pixels, int64_t first, int64_t channels, real *to) {
    const int64_t step = of_read * DT(depthwise_vector)(s);
    int64_t c = 0;
    for (; c + V <= channels; c += V, to += step)
        read_channels(s, normalizes, act, of_read, pixel, pixels, first, c, V, to);
    if (c < channels) read_channels(s, normalizes, act, of_read, pixel, pixels, first, c, channels - c, to);
}

INLINE void read_columns(const DT(depthwise_pass) * s, int normalizes, dtconv_activation act, int64_t of_read,
                         const elem *pixel, int64_t columns, int64_t first, int64_t channels, real *to) {
    for (; columns >= PIXELS; columns -= PIXELS, pixel += PIXELS * s->ldr, to += PIXELS * V)
        read_pixels(s, normalizes, act, of_read, pixel, PIXELS, first, channels, to);
    for (; columns > 0; columns--, pixel += s->ldr, to += V)
        read_pixels(s, normalizes, act, of_read, pixel, 1, first, channels, to);
}

/* The columns of the image that are in a ring. */
static void columns_of(const DT(depthwise_pass) * s, const DT(depthwise_ring) * ring, int64_t *from, int64_t *to) {
    *from = MAX(0, ring->origin);
    *to = MAX(*from, MIN(s->w.read, ring->origin + s->width));
}

/* Columns [from, to) of a row of a ring become zeros. */
static void clear_columns(const DT(depthwise_pass) * s, const DT(depthwise_ring) * ring, int64_t from, int64_t to,
                          real *row) {
    const int64_t vectors = dtconv_ceil_div(ring->channels, V) * s->of_read;
    for (int64_t v = 0; v < vectors && from < to; v++, row += DT(depthwise_vector)(s))
        memset(row + from * V, 0, (size_t)((to - from) * V) * sizeof(real));
}

/* Reads a row of the image, of which `row` is the first column; to: its place in the ring. */
static void read_row(const DT(depthwise_pass) * s, const DT(depthwise_ring) * ring, const elem *row, real *to) {
    int64_t from, end;
    columns_of(s, ring, &from, &end);
    if (s->columns < s->w.written) { /* else they are zeros from the beginning */
        clear_columns(s, ring, 0, MIN(s->width, from - ring->origin), to);
        clear_columns(s, ring, end - ring->origin, s->width, to);
    }
    row += from * s->ldr, to += (from - ring->origin) * V;
#define READ(normalizes, act, of_read) \
    read_columns(s, normalizes, act, of_read, row, end - from, ring->first, ring->channels, to)
#define READ_THROUGH(act) READ(1, act, 1)
    if (s->of_read > 1)
        READ(0, DTCONV_LINEAR, s->of_read); /* dy, which nothing normalizes */
    else if (!s->prologue)
        READ(0, DTCONV_LINEAR, 1);
    else
        FOR_ACTIVATIONS(s->prologue->activation, READ_THROUGH)
#undef READ_THROUGH
#undef READ
}

/* The position that tap k of a pixel at `at` meets, or -1. */
static inline int64_t meets(const dtconv_depthwise_axis *a, int turned, int64_t at, int64_t k) {
    const int64_t o = turned ? at + a->pad - k * a->dilation : at * a->stride - a->pad + k * a->dilation;
    if (o < 0 || (turned && o % a->stride)) return -1;
    const int64_t place = turned ? o / a->stride : o;
    return place < a->read ? place : -1;
}

/* A row of the image, of all planes, from the first channel of a ring on. */
static inline const elem *row_at(const DT(depthwise_pass) * s, const DT(depthwise_ring) * ring, int64_t line) {
    return s->read + line * s->w.read * s->ldr + ring->first * s->of_read;
}

void DT(depthwise_begin)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t first, int64_t channels,
                         int64_t column) {
    ring->first = first, ring->channels = channels;
    ring->origin = (s->turned ? column / s->w.stride : column * s->w.stride) - s->before;
    for (int64_t i = 0; i < s->d.taps * s->slots; i++) ring->held[i] = -1;
}

void DT(depthwise_meet)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t plane, int64_t row) {
    const int64_t image = plane / s->d.written, depth = plane % s->d.written;
    DT(depthwise_rows) *rows = &ring->rows;
    rows->count = 0;
    for (int64_t kd = 0; kd < s->d.taps; kd++) {
        const int64_t d = meets(&s->d, s->turned, depth, kd);
        for (int64_t kh = 0; d >= 0 && kh < s->h.taps; kh++) {
            const int64_t h = meets(&s->h, s->turned, row, kh);
            if (h < 0) continue;
            const int64_t slot = kd * s->slots + h % s->slots, line = (image * s->d.read + d) * s->h.read + h;
            real *to = ring->ring + slot * s->width * V;
            if (ring->held[slot] != line) read_row(s, ring, row_at(s, ring, line), to);
            ring->held[slot] = line;
            rows->x[rows->count] = to;
            rows->taps[rows->count++] = (kd * s->h.taps + kh) * s->w.taps;
        }
    }
}

dtconv_depthwise_ahead DT(depthwise_ahead)(const DT(depthwise_pass) * s, const DT(depthwise_ring) * ring, int64_t plane,
                                           int64_t row) {
    const int64_t image = plane / s->d.written, depth = plane % s->d.written, size = (int64_t)sizeof(elem);
    int64_t from, to;
    columns_of(s, ring, &from, &to);
    dtconv_depthwise_ahead a = {
        .pixels = to - from, .bytes = ring->channels * s->of_read * size, .step = s->ldr * size};
    for (int64_t kd = 0; kd < s->d.taps; kd++) {
        const int64_t d = meets(&s->d, s->turned, depth, kd);
        for (int64_t kh = 0; d >= 0 && kh < s->h.taps; kh++) {
            const int64_t h = meets(&s->h, s->turned, row, kh), line = (image * s->d.read + d) * s->h.read + h;
            if (h < 0 || ring->held[kd * s->slots + h % s->slots] == line || a.count == DEPTHWISE_AHEAD) continue;
            a.rows[a.count++] = (const char *)(row_at(s, ring, line) + from * s->ldr);
        }
    }
    if (a.pixels == 0) a.count = 0;
    return a;
}
