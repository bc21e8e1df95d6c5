/* Forward and backward_data of depthwise convolutions: see depthwise.h.
 *
 * A unit of work is some rows of a plane, or of long ones a part, and a chunk of channels; what is gathered on request
 * (gather.h) is merged from the parts of the rows.
 */
#include "depthwise.h"

enum {
    TILE = DEPTHWISE_TILE,
    PIECES = 32,   /* pieces of all planes that are wanted */
    UNITS = 4,     /* wanted for each thread */
    ROWS = 6,      /* of a unit at least: those above and below are read again */
    MOST_TAPS = 7, /* of a row, that a tile has code for */
    LIST = 64      /* pixels that are gathered at a time */
};

/* Pixels of a row that meet the same taps, `step` apart, and where in the ring. */
typedef struct {
    int64_t first, step, count;
    int64_t taps, tap, tap_step;     /* of a row of filters */
    int64_t column, stride, between; /* tap k of pixel i meets column + i * stride + k * between */
} phase;

/* Of so many pixels of a row those whose column is r modulo the stride, in backward_data; all, in forward (r: 0). */
static phase phase_of(const DT(depthwise_pass) * s, int64_t columns, int64_t r) {
    const dtconv_depthwise_axis *w = &s->w;
    if (!s->turned) return (phase){0, 1, columns, w->taps, 0, 1, 0, columns > 1 ? w->stride : 0, w->dilation};
    phase f = {.first = r, .step = w->stride, .count = dtconv_ceil_div(columns - r, w->stride), .stride = 1};
    for (int64_t k = w->taps - 1; k >= 0; k--) {
        const int64_t at = r + w->pad - k * w->dilation;
        if (at % w->stride) continue;
        if (f.taps == 0) f.tap = k, f.column = s->before + at / w->stride;
        if (f.taps == 1) f.tap_step = k - f.tap, f.between = (f.tap - k) * w->dilation / w->stride;
        f.taps++;
    }
    return f;
}

/* The pass, and a row of it at hand. */
typedef struct {
    const DT(depthwise_pass) * s;
    const DT(depthwise_rows) * rows;
    const real *filters;  /* of the chunk's first channel */
    int64_t channels;     /* of ci */
    elem *written;        /* the row's first pixel, its first channel at hand */
    const elem *added;    /* likewise, or NULL */
    int64_t ldw, lda;     /* distances of pixels */
    int64_t outer, inner; /* vectors that are written for each of ci, vectors that are read for each that is written */
    dtconv_depthwise_ahead next;   /* what the next row reads */
    dtconv_depthwise_ahead beside; /* what is gathered with this row */
} row_of;

/* Adds the taps of one row of filters, K of them at neighbouring columns, to pixels S columns apart. */
INLINE void add_taps(vec *sum, int K, int S, const real *x, const real *w, int64_t step) {
    vec f[MOST_TAPS];
    UNROLL for (int k = 0; k < K; k++) f[k] = load(w + k * step);
    UNROLL for (int q = 0; q < (TILE - 1) * S + K; q++) {
        const vec pixel = load(x + q * V);
        UNROLL for (int k = 0; k < K; k++) {
            const int t = (q - k) / S;
            if (q >= k && (q - k) % S == 0 && t < TILE) sum[t] = multiply_add(pixel, f[k], sum[t]);
        }
    }
}

/* The same of any taps. */
INLINE void add_any_taps(vec *sum, const phase *f, const real *x, const real *w, int64_t step) {
    for (int64_t k = 0; k < f->taps; k++) {
        const vec tap = load(w + k * step);
        UNROLL for (int t = 0; t < TILE; t++) sum[t] =
            multiply_add(load(x + (t * f->stride + k * f->between) * V), tap, sum[t]);
    }
}

/* One pixel of `count` channels that lie `apart`. */
INLINE void write_pixel(vec sum, int64_t apart, int64_t count, elem *y, const elem *added) {
    scatter_channels(y, apart, count, added ? sum + gather_channels(added, apart, count) : sum);
}

/* A tile of them; full: a constant, whether all its pixels are there. */
INLINE void write_tile(const vec *sum, int full, int64_t pixels, int64_t apart, int64_t count, elem *y, int64_t ldy,
                       const elem *added, int64_t lda) {
    if (full && added) {
        UNROLL for (int t = 0; t < TILE; t++) write_pixel(sum[t], apart, count, y + t * ldy, added + t * lda);
    } else if (full) {
        UNROLL for (int t = 0; t < TILE; t++) write_pixel(sum[t], apart, count, y + t * ldy, NULL);
    } else {
        vec some[TILE]; /* in memory; the sums are in registers */
        UNROLL for (int t = 0; t < TILE; t++) some[t] = sum[t];
        for (int64_t t = 0; t < pixels; t++)
            write_pixel(some[t], apart, count, y + t * ldy, added ? added + t * lda : NULL);
    }
}

/* A tile of pixels from i on of one vector of channels that is written; K: taps of a row, neighbours, S columns for
 * each pixel, 0: any; single: whether each channel makes one; constants all where it is inlined. */
INLINE void sum_tile(row_of *j, const phase *f, int K, int S, int single, int64_t vector, int64_t i) {
    const DT(depthwise_pass) *s = j->s;
    const int64_t step = f->tap_step * V, of_read = DT(depthwise_vector)(s), of_filter = DT(depthwise_filter)(s);
    const int64_t inner = single ? 1 : j->inner, outer = single ? 1 : j->outer;
    vec sum[TILE];
    UNROLL for (int t = 0; t < TILE; t++) sum[t] = (vec){0};
    for (int64_t m = 0; m < inner; m++) {
        const int64_t at = (vector / outer * inner + m) * of_read + (f->column + i * f->stride) * V;
        const real *filter = j->filters + (vector * inner + m) * of_filter + f->tap * V;
        for (int64_t r = 0; r < j->rows->count; r++) {
            const real *x = j->rows->x[r] + at, *w = filter + j->rows->taps[r] * V;
            if (K)
                add_taps(sum, K, S, x, w, step);
            else
                add_any_taps(sum, f, x, w, step);
        }
    }
    const int64_t c = vector / outer * V, count = MIN(V, j->channels - c), channel = c * outer + vector % outer;
    const int64_t pixel = f->first + i * f->step, pixels = MIN(TILE, f->count - i);
    elem *y = j->written + pixel * j->ldw + channel;
    const elem *added = j->added ? j->added + pixel * j->lda + channel : NULL;
#define WRITE(full, apart, count) \
    write_tile(sum, full, pixels, apart, count, y, f->step * j->ldw, added, f->step * j->lda)
    if (!single)
        WRITE(0, outer, count);
    else if (count == V && pixels == TILE)
        WRITE(1, 1, V);
    else if (count == V)
        WRITE(0, 1, V);
    else
        WRITE(0, 1, count);
#undef WRITE
}

/* The pixels of a phase: two vectors of channels, which share lines of cache, side by side. */
INLINE void run_phase(row_of *j, const phase *f, int K, int S, int single) {
    const int64_t vectors = dtconv_ceil_div(j->channels, V) * j->outer;
    for (int64_t first = 0; first < vectors; first += 2)
        for (int64_t i = 0; i < f->count; i += TILE)
            for (int64_t vector = first; vector < MIN(vectors, first + 2); vector++) {
                dtconv_look_ahead(&j->next);
                dtconv_look_ahead(&j->beside);
                sum_tile(j, f, K, S, single, vector, i);
            }
}

#define PHASE(K, S) \
    NOINLINE void phase_##K##_##S(row_of *j, const phase *f) { run_phase(j, f, K, S, 1); }
PHASE(1, 1)
PHASE(2, 1)
PHASE(3, 1)
PHASE(4, 1)
PHASE(5, 1)
PHASE(7, 1)
PHASE(3, 2)
PHASE(5, 2)
PHASE(7, 2)
#undef PHASE

typedef void phase_fn(row_of *j, const phase *f);

static void phase_any(row_of *j, const phase *f) { run_phase(j, f, 0, 0, 0); }

static phase_fn *function_of(row_of *j, const phase *f) {
    static phase_fn *const at_one[MOST_TAPS + 1] = {[1] = phase_1_1, [2] = phase_2_1, [3] = phase_3_1,
                                                    [4] = phase_4_1, [5] = phase_5_1, [7] = phase_7_1};
    static phase_fn *const at_two[MOST_TAPS + 1] = {[3] = phase_3_2, [5] = phase_5_2, [7] = phase_7_2};
    const int neighbours = f->taps == 1 || f->between == 1;
    phase_fn *found = NULL;
    if (j->inner * j->outer == 1 && neighbours && f->taps <= MOST_TAPS)
        found = f->stride == 1 ? at_one[f->taps] : f->stride == 2 ? at_two[f->taps] : NULL;
    return found ? found : phase_any;
}

/* What is gathered of a row of pixels: channels [first, first + n). */
static void gather_row(const DT(gather_parts) * parts, DT(gather_sums) * sums, elem *row, int64_t ldw, const elem *x,
                       int64_t ldx, int64_t pixels, int64_t first, int64_t n) {
    elem *written[LIST];
    const elem *read[LIST];
    for (int64_t from = 0; from < pixels; from += LIST) {
        const int64_t count = MIN(LIST, pixels - from);
        for (int64_t i = 0; i < count; i++) {
            written[i] = row + (from + i) * ldw;
            read[i] = x ? x + (from + i) * ldx : NULL;
        }
        DT(gather_add)(sums, parts, count, written, read, first, n, 0, 0);
        DT(gather_count)(sums, count);
    }
}

/* The pass's own. */
typedef struct {
    DT(depthwise_pass) read;
    elem *written;
    const elem *added;
    int64_t ldw, lda, per; /* distances of pixels; channels that are written for each of ci */
    int64_t rows, pieces;  /* of a unit, of all planes one after the other; of all rows */
    int64_t blocks;        /* of columns */
    DT(gather_parts) gathered;
} pass;

static pass prepare(const dtconv_conv *p, int turned) {
    pass s = {.read = DT(depthwise_prepare)(p, turned), .ldw = turned ? p->ldx : p->ldy};
    const int64_t rows = s.read.n * s.read.d.written * s.read.h.written;
    s.per = turned ? 1 : s.read.mult;
    s.rows = MAX(ROWS, dtconv_ceil_div(rows, PIECES));
    s.pieces = dtconv_ceil_div(rows, s.rows);
    s.blocks = dtconv_ceil_div(s.read.w.written, s.read.columns);
    const int64_t line = 64 / (int64_t)sizeof(real), units = s.pieces * s.blocks; /* of all channels */
    const int64_t chunks = dtconv_ceil_div(UNITS * s.read.threads, units);
    s.read.chunk = MIN(s.read.chunk, dtconv_round_to(dtconv_ceil_div(s.read.ci, chunks), line));
    return s;
}

/* A thread's work at hand: `count` pixels of rows from `row` to `end` of all planes, the first one in `column`. */
typedef struct {
    int64_t row, end, column, count;
    int64_t channel, n; /* channels that are written */
} unit_of;

static unit_of find_unit(const pass *s, int64_t unit, int64_t *part, int64_t *first) {
    const DT(depthwise_pass) *read = &s->read;
    const int64_t block = unit % s->blocks, piece = unit / s->blocks % s->pieces;
    unit_of u = {.row = piece * s->rows, .column = block * read->columns};
    *part = unit % (s->blocks * s->pieces);
    *first = unit / (s->blocks * s->pieces) * read->chunk;
    u.end = MIN(read->n * read->d.written * read->h.written, u.row + s->rows);
    u.count = MIN(read->columns, read->w.written - u.column);
    u.channel = *first * s->per, u.n = MIN(read->chunk, read->ci - *first) * s->per;
    return u;
}

/* The pixels of the row at hand, of which there are `count`. */
static void run_row(row_of *j, int64_t count) {
    for (int64_t r = 0; r < (j->s->turned ? MIN(count, j->s->w.stride) : 1); r++) {
        const phase f = phase_of(j->s, count, r);
        function_of(j, &f)(j, &f);
    }
}

void DT(depthwise_rows_to)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t first, int64_t channels,
                           int64_t row, int64_t end, elem *to, int64_t ld, const elem *added) {
    const int64_t height = s->h.written, columns = s->w.written;
    row_of j = {.s = s, .rows = &ring->rows, .channels = channels, .ldw = ld, .lda = ld, .inner = s->of_read};
    j.filters = s->filters + first / V * s->mult * DT(depthwise_filter)(s);
    j.outer = s->turned ? 1 : s->mult;
    const int64_t calls = dtconv_ceil_div(columns, TILE) * dtconv_ceil_div(channels, V) * j.outer;
    if (ring->first != first || ring->channels != channels) DT(depthwise_begin)(s, ring, first, channels, 0);
    for (; row < end; row++, to += columns * ld) {
        DT(depthwise_meet)(s, ring, row / height, row % height);
        j.next = (dtconv_depthwise_ahead){0};
        if (row + 1 < end) j.next = DT(depthwise_ahead)(s, ring, (row + 1) / height, (row + 1) % height);
        dtconv_spread(&j.next, calls);
        j.written = to, j.added = added;
        run_row(&j, columns);
        if (added) added += columns * ld;
    }
}

/* Spreads what the next row reads, if there is one, and what is gathered with row h, whose first pixel is given, over
 * the tiles of row h. */
static void load_ahead(const pass *s, const DT(depthwise_ring) * ring, const unit_of *u, int64_t h, int64_t pixel,
                       row_of *j) {
    const DT(conv_reductions) *of = s->gathered.reductions;
    const int64_t calls = dtconv_ceil_div(u->count, TILE) * dtconv_ceil_div(u->n, V), size = (int64_t)sizeof(elem);
    j->next = j->beside = (dtconv_depthwise_ahead){0};
    const int64_t height = s->read.h.written;
    if (h + 1 < u->end) j->next = DT(depthwise_ahead)(&s->read, ring, (h + 1) / height, (h + 1) % height);
    if (of)
        j->beside = (dtconv_depthwise_ahead){.rows = {(const char *)(of->x + pixel * of->ldx + u->channel)},
                                             .count = 1,
                                             .pixels = u->count,
                                             .bytes = u->n * size,
                                             .step = of->ldx * size};
    dtconv_spread(&j->next, calls);
    dtconv_spread(&j->beside, calls);
}

static void run_unit(const pass *s, int64_t unit, DT(depthwise_ring) * ring, DT(gather_sums) * sums) {
    const DT(depthwise_pass) *read = &s->read;
    const DT(conv_args) *a = read->args;
    const DT(conv_reductions) *of = s->gathered.reductions;
    int64_t part, first;
    const unit_of u = find_unit(s, unit, &part, &first);
    row_of j = {.s = read, .rows = &ring->rows, .ldw = s->ldw, .lda = s->lda, .outer = s->per};
    j.filters = read->filters + first / V * read->mult * DT(depthwise_filter)(read);
    j.channels = u.n / s->per, j.inner = read->of_read;
    DT(bias_activation)
    finish = {.bias = a->bias,
              .scale = a->scale,
              .beta = a->beta,
              .activation = a->activation,
              .alpha = a->alpha,
              .ldr = s->lda};
    const int finishes = !read->turned && (a->bias || a->scale || a->activation != DTCONV_LINEAR);
    DT(depthwise_begin)(read, ring, first, j.channels, u.column);
    if (sums) DT(gather_begin)(sums);
    for (int64_t h = u.row; h < u.end; h++) {
        const int64_t pixel = h * read->w.written + u.column;
        elem *row = s->written + pixel * s->ldw;
        DT(depthwise_meet)(read, ring, h / read->h.written, h % read->h.written);
        load_ahead(s, ring, &u, h, pixel, &j);
        j.written = row + u.channel;
        const elem *added = s->added ? s->added + pixel * s->lda : NULL;
        j.added = added && !finish.scale ? added + u.channel : NULL; /* what is scaled is so before */
        if (finish.scale) finish.residual = added;
        run_row(&j, u.count);
        if (finishes) DT(bias_activation_epilogue)(&finish, 0, u.count, u.channel, u.n, row + u.channel, s->ldw);
        if (sums)
            gather_row(&s->gathered, sums, row, s->ldw, of ? of->x + pixel * of->ldx : NULL, of ? of->ldx : 0, u.count,
                       u.channel, u.n);
    }
    if (sums) DT(gather_end)(sums, &s->gathered, part, u.channel, u.n);
}

static size_t sums_bytes(const pass *s) { return DT(gather_sums_bytes)(s->read.chunk * s->per); }
static size_t parts_bytes(const pass *s) { return DT(gather_parts_bytes)(s->pieces * s->blocks, s->read.ci * s->per); }
static size_t own_bytes(const pass *s) { return DT(depthwise_ring_bytes)(&s->read) + sums_bytes(s); }

static size_t workspace_of(const dtconv_conv *p, int turned) {
    if (p->groups != p->ci) return 0;
    const pass s = prepare(p, turned);
    return 64 + DT(depthwise_filters_bytes)(&s.read) + parts_bytes(&s) + (size_t)s.read.threads * own_bytes(&s);
}

static dtconv_status run(const dtconv_conv *p, const DT(conv_args) * a, int turned, void *workspace, size_t bytes) {
    if (p->groups != p->ci || a->reductions.bypass) return DTCONV_UNSUPPORTED;
    if (bytes < workspace_of(p, turned)) return DTCONV_WORKSPACE;
    pass s = prepare(p, turned);
    s.read.args = a;
    s.read.read = turned ? a->y : a->x;
    s.read.prologue = !turned && a->prologue.mean ? &a->prologue : NULL;
    s.written = turned ? a->x : a->y;
    s.added = !turned ? a->residual : a->accumulate ? a->x : NULL;
    s.lda = turned ? s.ldw : a->ldr;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    real *filters = (real *)memory;
    s.read.filters = filters;
    memory += DT(depthwise_filters_bytes)(&s.read);
    s.gathered = DT(gather_parts_on)(memory, s.pieces * s.blocks, s.read.ci * s.per, a, turned);
    memory += parts_bytes(&s);
    const int64_t units = s.pieces * s.blocks * dtconv_ceil_div(s.read.ci, s.read.chunk);
#pragma omp parallel num_threads((int)s.read.threads)
    {
        char *mine = memory + (size_t)dtconv_thread_id() * own_bytes(&s);
        DT(depthwise_ring) ring = DT(depthwise_ring_on)(&s.read, mine);
        DT(gather_sums) sums = DT(gather_sums_on)(mine + DT(depthwise_ring_bytes)(&s.read), s.read.chunk * s.per);
        DT(depthwise_pack)(&s.read, filters);
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < units; unit++) run_unit(&s, unit, &ring, s.gathered.wanted ? &sums : NULL);
        DT(gather_merge)(&s.gathered);
    }
    return DTCONV_OK;
}

size_t DT(conv_depthwise_forward_workspace)(const dtconv_conv *p) { return workspace_of(p, 0); }

dtconv_status DT(conv_depthwise_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    return run(p, a, 0, workspace, bytes);
}

size_t DT(conv_depthwise_backward_data_workspace)(const dtconv_conv *p) { return workspace_of(p, 1); }

dtconv_status DT(conv_depthwise_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                               size_t bytes) {
    return run(p, a, 1, workspace, bytes);
}
