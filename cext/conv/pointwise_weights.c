/* Pointwise convolution, backward_weights, for `direct`: a product of matrices whose sum runs over pixels.
 *
 *   dw (ci x co) = act((x - mean) * scale + beta)^T (ci x pixels) * dy (pixels x co)          or of x as it is
 *
 * Both operands have the sum's dimension as their rows, which is what panels of the micro-kernel want: packing copies
 * rows and transposes nothing.  x is normalized as it is copied, with mean, scale and beta in registers.
 *
 *   slices   of pixels, each with a dw of its own, which are added in order
 *   parts    of the rows of dw; a unit of work is a part of a slice
 *     jc     walks co in steps of NC
 *       pc   walks the slice's pixels in steps of KC: packs dy[pc, jc], which stays in L2
 *         ic walks the part's channels in groups of panels: packs x[pc, ic], of which a panel stays in L1
 *
 * Packing alone would read short pieces of many rows, which no prefetcher follows: memory then takes as long as the
 * products.  So tens of KiB of whole rows are read in order first, all channels of most problems, and packed from L2.
 * Meanwhile what is packed next is prefetched.  Slices depend on the problem and the machine's caches alone, and so do
 * results.
 *
 * In bfloat16 two pixels make a row of pairs in both panels (dtconv_ukr.h); after the last one of an odd number come
 * zeros.  A normalized x is rounded, a few pixels at a time, before its pairs are made.  Where IN_REALS is defined
 * (conv/bfloat16_pointwise_weights.c), numbers are widened as they are packed, and all else is as in float32.
 */
#include "pointwise_weights.h"

#include "dtconv_burst.h"
#include "dtconv_lines.h"
#include "normalize.h"
#if defined(DTCONV_BFLOAT16) && !defined(IN_REALS)
#define PAIRS
#include "../gemm/bfloat16_pack.h" /* and micro-kernels */
#define UKR(name) HT(name)
typedef elem operand; /* as it is packed */
#else
#include "dtconv_of_reals.h"
#define UKR(name) RT(name)
typedef real operand;
#endif

#ifdef IN_REALS
#define PASS(name) DT(pointwise_weights_in_reals##name)
#else
#define PASS(name) DT(pointwise_weights##name)
#endif

enum {
    SUMS_BYTES = 4 << 20, /* of all slices */
    SLICES = 16,
    TILES = 512,                                  /* wanted in all slices together, ... */
    SOME_SLICES = 8,                              /* ... or this many, ... */
    LONG = 3,                                     /* ... of as many blocks of pixels at least */
    UNITS = 4,                                    /* wanted for each thread where there are slices, ... */
    FEW_UNITS = 2,                                /* ... or at least: a thread may lose its core for a while */
    FEW_PANELS = 8,                               /* of a part */
    DEEPEST = 256,                                /* pixels at a time */
    FEW_PIXELS = 8,                               /* whose rows stay in L1, also where they are 4 KiB apart */
    READ_AHEAD = 1024,                            /* bytes: kernels load the step after the last one */
    GAP = 64 / sizeof(operand),                   /* elements between panels: a vector of reals may end there */
    STEP = sizeof(operand) < sizeof(real) ? 2 : 1 /* pixels of a step of the micro-kernel */
};

typedef struct {
    const DT(conv_args) * args;
    const UKR(ukr_row) * ukr;
    int64_t pixels, ci, co, ldx, ldy;
    int64_t threads;                   /* of the team, and that the workspace has room for */
    int64_t kc, nc;                    /* pixels and columns of dw at a time */
    int64_t panels, group;             /* of x; group: panels that are packed at a time */
    int64_t slices, parts;             /* parts: of a slice's panels */
    const DT(made_rows) * made;        /* instead of x, or NULL */
    int64_t strip;                     /* rows that are made at a time */
    size_t sums, of_x, of_dy, of_rows; /* of_rows: a few pixels of x, normalized, or a strip of rows that are made */
    real *result;                      /* of slice 0 */
} pass_state;

/* An image, or a part of it from pixel p and channel i on, which lies at `data`; channels from `last` on are not there.
 */
typedef struct {
    const elem *data;
    int64_t ld, p, i, last;
} image;

/* A block of an image that is packed: pixels [p, p + k), channels [i, i + m). */
typedef struct {
    const image *of;
    int64_t p, k, i, m;
} block;

static const elem *first_of(const block *b) { return b->of->data + (b->p - b->of->p) * b->of->ld + b->i - b->of->i; }

#ifdef PAIRS
static int64_t deepest(void) { return DEEPEST; }
#else
static int64_t deepest(void) { return MIN(DEEPEST, RT(gemm_get_sizes)().kc); }
#endif

/* Elements from one panel of `width` to the next one, of k pixels. */
static int64_t panel_of(int64_t width, int64_t k) { return width * dtconv_round_to(k, STEP) + GAP; }

/* Slices and pieces of whole rows, of which a strip has at most as many pixels as a piece, or one row has more. */
static void cut_rows(pass_state *s) {
    const DT(made_rows) *made = s->made;
    while (s->slices > made->rows) s->slices /= 2;
    s->strip = MIN(made->rows, MAX(1, s->kc / made->pixels));
    const int64_t pixels = s->strip * made->pixels;
    s->kc = dtconv_round_to(dtconv_ceil_div(pixels, dtconv_ceil_div(pixels, s->kc)), STEP);
    const int64_t channels = dtconv_round_to(dtconv_ceil_div(s->ci, s->parts), made->unit);
    s->of_rows = dtconv_round((size_t)(pixels * dtconv_strip_ld(channels)) * sizeof(elem));
}

static dtconv_status prepare(const dtconv_conv *p, const DT(made_rows) * made, pass_state *s) {
    *s = (pass_state){.ukr = UKR(ukr_current)(), .threads = dtconv_threads_of(p), .made = made};
    if (!s->ukr) return DTCONV_KERNEL;
    const int64_t size = sizeof(operand), mr = s->ukr->mr, nr = s->ukr->nr;
#ifdef PAIRS /* which writes whole panels */
    if (!s->ukr->strided || s->ukr->rows != 1 || p->co % nr != 0) return DTCONV_UNSUPPORTED;
#endif
    s->pixels = dtconv_rows(p), s->ci = p->ci, s->co = p->co, s->ldx = p->ldx, s->ldy = p->ldy;
    s->panels = dtconv_ceil_div(s->ci, mr);
    const int64_t deep = deepest(), blocks = dtconv_ceil_div(s->pixels, deep);
    s->kc = dtconv_round_to(dtconv_ceil_div(s->pixels, blocks), STEP);
    const int64_t fit = MAX(1, dtconv_cache_bytes(2) / 2 / (mr * deep * size));
    s->group = dtconv_ceil_div(s->panels, dtconv_ceil_div(s->panels, fit));
    const int64_t columns = dtconv_round_to(s->co, nr);
    const int64_t most = MAX(nr, dtconv_cache_bytes(2) / 2 / (deep * size) / nr * nr);
    s->nc = dtconv_round_to(dtconv_ceil_div(columns, dtconv_ceil_div(columns, most)), nr);
    const int64_t dw = s->ci * s->co * (int64_t)sizeof(real), tiles = s->panels * (columns / nr), threads = s->threads;
    const int64_t wanted = MAX(MIN(SOME_SLICES, blocks / LONG), MIN(blocks, dtconv_ceil_div(TILES, tiles)));
    const int64_t slices = MIN(MIN(SLICES, SUMS_BYTES / dw), wanted);
    for (s->slices = 1; s->slices * 2 <= slices;) s->slices *= 2;
    const int enough = s->slices % threads == 0 && s->slices >= FEW_UNITS * threads;
    const int64_t units = s->slices > 1 ? UNITS : FEW_UNITS; /* of a thread: each packs its dy */
    s->parts = enough ? 1 : MAX(1, MIN(s->panels / FEW_PANELS, dtconv_ceil_div(units * threads, s->slices)));
    s->parts = MAX(s->parts, MIN(s->panels, dtconv_ceil_div(threads, s->slices)));
    if (made) cut_rows(s);
    s->sums = s->slices == 1 ? 0 : dtconv_round((size_t)(s->slices * dw));
    s->of_x = dtconv_round((size_t)(s->group * panel_of(mr, s->kc) * size)) + READ_AHEAD;
    s->of_dy = dtconv_round((size_t)(s->nc / nr * panel_of(nr, s->kc) * size)) + READ_AHEAD;
    if (!made) s->of_rows = STEP > 1 ? dtconv_round((size_t)(FEW_PIXELS * s->group * mr * size)) : 0;
    return DTCONV_OK;
}

/* Of a thread. */
static size_t own_bytes(const pass_state *s) {
    return s->of_x + s->of_dy + s->of_rows + (s->made ? dtconv_round(s->made->bytes) : 0);
}

static size_t bytes_of(const pass_state *s) { return 64 + s->sums + (size_t)s->threads * own_bytes(s); }

#ifdef PAIRS
#if defined(__AVX512BW__) && defined(__AVX512VL__)
/* The first `n` of V elements of two rows, of none where `second` is NULL, as `room` pairs. */
INLINE void copy_pairs(const elem *first, const elem *second, __mmask16 n, __mmask16 room, elem *to) {
    const __m256i x = _mm256_maskz_loadu_epi16(n, first);
    const __m256i y = second ? _mm256_maskz_loadu_epi16(n, second) : _mm256_setzero_si256();
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(x), y, 1);
    _mm512_mask_storeu_epi32(to, room, in_turns(both));
}

INLINE void copy_columns(const elem *rows, int64_t ld, int64_t pixels, int64_t n, int64_t room, int64_t width,
                         elem *to) {
    const __mmask16 some = (__mmask16)((1u << MAX(0, MIN(V, n))) - 1), all = (__mmask16)((1u << MIN(V, room)) - 1);
    int64_t k = 0;
    for (; k + 2 <= pixels; k += 2) copy_pairs(rows + k * ld, rows + (k + 1) * ld, some, all, to + k * width);
    if (k < pixels) copy_pairs(rows + k * ld, NULL, some, all, to + k * width);
}
#else
INLINE void copy_columns(const elem *rows, int64_t ld, int64_t pixels, int64_t n, int64_t room, int64_t width,
                         elem *to) {
    const int64_t count = MIN(V, n);
    for (int64_t k = 0; k < pixels; k += 2) {
        const elem *first = rows + k * ld, *second = first + ld;
        const bits_vec x = count > 0 ? (bits_vec)load_first(first, count) : (bits_vec){0};
        const bits_vec y = count > 0 && k + 1 < pixels ? (bits_vec)load_first(second, count) : (bits_vec){0};
        store_part((real *)(to + k * width), MIN(V, room), (vec)(x >> 16 | y));
    }
}
#endif

/* `width` columns of `pixels` rows, n of which exist or more, to rows of pairs of a panel, filled up with zeros to as
 * many and to an even number of pixels. */
static void copy_rows(const elem *rows, int64_t ld, int64_t pixels, int64_t n, int64_t width, elem *to) {
    for (int64_t v = 0; v < width; v += V) copy_columns(rows + v, ld, pixels, n - v, width - v, width, to + 2 * v);
}

/* Some pixels of a block from k on: as they are, or normalized in `rows`. */
static const elem *rows_of_x(const pass_state *s, const block *b, int64_t k, int64_t pixels, elem *rows, int64_t *ld) {
    const DT(conv_normalization) *f = &s->args->prologue;
    const int64_t i = b->i, m = b->m;
    const elem *x = first_of(b) + k * b->of->ld;
    *ld = f->mean ? m : b->of->ld;
    if (!f->mean) return x;
    HT(normalize_rows)(pixels, m, x, b->of->ld, f->mean + i, f->scale + i, f->beta ? f->beta + i : NULL,
                       f->activation == DTCONV_RELU, rows, m);
    return rows;
}
#else
/* A row of a panel is written in whole vectors.  What the last of them writes into the next row is written again with
 * that one: the last vectors of some rows come before the first ones, and a panel ends with a gap. */

/* Some rows: `pixels` of them, `columns` are wanted and `exist` can be read. */
typedef struct {
    const elem *rows;
    int64_t ld, pixels, columns, exist;
} piece;

/* A vector of columns from i on of all rows, n of whose elements exist; n: V, which is a constant, or less.  few:
 * whether there are FEW_PIXELS rows, a constant.  f: NULL, or how they are normalized. */
INLINE void pack_columns(const piece *x, int64_t i, int64_t n, int few, int64_t width, real *to,
                         const DT(conv_normalization) * f, dtconv_activation act) {
    const elem *rows = x->rows + i;
    const int64_t ld = x->ld;
    const normalizer of = f && n > 0 ? normalizer_of(f, i, n) : (normalizer){0};
    if (n <= 0) {
        for (int64_t k = 0; k < x->pixels; k++) store(to + k * width, (vec){0});
    } else if (few) {
        UNROLL for (int64_t k = 0; k < FEW_PIXELS; k++)
            store(to + k * width, read_vector(rows + k * ld, n, f != NULL, of, act));
    } else {
        for (int64_t k = 0; k < x->pixels; k++)
            store(to + k * width, read_vector(rows + k * ld, n, f != NULL, of, act));
    }
}

/* To panels of `width`, `panel` elements from each other. */
INLINE void pack_rows(const piece *x, int few, int64_t width, int64_t panel, real *to, const DT(conv_normalization) * f,
                      dtconv_activation act) {
    for (int64_t i = 0; i < x->columns; i += width, to += panel)
        for (int64_t v = (width - 1) / V * V; v >= 0; v -= V) {
            const int64_t n = x->exist - i - v;
            if (n >= V)
                pack_columns(x, i + v, V, few, width, to + v, f, act);
            else
                pack_columns(x, i + v, n, 0, width, to + v, f, act);
        }
}

INLINE void pack_kind(const piece *x, int64_t width, int64_t panel, real *to, const DT(conv_normalization) * f,
                      dtconv_activation act) {
    if (x->pixels == FEW_PIXELS)
        pack_rows(x, 1, width, panel, to, f, act);
    else
        pack_rows(x, 0, width, panel, to, f, act);
}

static void pack(const piece *x, int64_t width, int64_t panel, real *to, const DT(conv_normalization) * f) {
    if (!f)
        pack_kind(x, width, panel, to, NULL, DTCONV_LINEAR);
    else if (f->activation == DTCONV_RELU)
        pack_kind(x, width, panel, to, f, DTCONV_RELU);
    else if (f->activation == DTCONV_RELU6)
        pack_kind(x, width, panel, to, f, DTCONV_RELU6);
    else
        pack_kind(x, width, panel, to, f, DTCONV_LINEAR);
}
#endif

/* Where row k begins a burst: reads its rows of n columns, of `last` in all, one after the other. */
static void read_burst(const elem *rows, int64_t ld, int64_t k, int64_t last, int64_t n) {
    const int64_t size = sizeof(elem), burst = MAX(1, DTCONV_BURST / (n * size) / FEW_PIXELS) * FEW_PIXELS;
    if (k % burst == 0) dtconv_read_burst(rows + k * ld, ld * size, MIN(burst, last - k), n * size);
}

/* A few pixels at a time, all panels: their lines are in L1 for the next panel, which reads parts of the same; loaded:
 * in L2 already. */
static void pack_x(const pass_state *s, const block *b, int loaded, elem *rows, operand *packed) {
    const int64_t mr = s->ukr->mr, panel = panel_of(mr, b->k);
#ifndef PAIRS
    DT(conv_normalization) f = s->args->prologue; /* of the block's channels */
    if (f.mean) f.mean += b->i, f.scale += b->i, f.beta = f.beta ? f.beta + b->i : NULL;
#endif
    for (int64_t k = 0; k < b->k; k += FEW_PIXELS) {
        const int64_t some = MIN(FEW_PIXELS, b->k - k);
        if (!loaded) read_burst(first_of(b), b->of->ld, k, b->k, b->m);
#ifdef PAIRS
        int64_t ld;
        const elem *x = rows_of_x(s, b, k, some, rows, &ld);
        operand *to = packed + k * mr;
        for (int64_t i = 0; i < b->m; i += mr, to += panel) copy_rows(x + i, ld, some, b->m - i, mr, to);
#else
        (void)rows;
        const piece x = {first_of(b) + k * b->of->ld, b->of->ld, some, b->m, b->of->last - b->i};
        pack(&x, mr, panel, packed + k * mr, f.mean ? &f : NULL);
#endif
    }
}

/* Rows [p, p + k) of dy, columns [j, j + n); loaded: as above. */
static void pack_dy(const pass_state *s, int64_t p, int64_t k, int64_t j, int64_t n, int loaded, operand *packed) {
    const int64_t nr = s->ukr->nr, panel = panel_of(nr, k);
    const elem *dy = s->args->y + p * s->ldy + j;
    for (int64_t i = 0; i < k; i += FEW_PIXELS) {
        if (!loaded) read_burst(dy, s->ldy, i, k, n);
        const int64_t some = MIN(FEW_PIXELS, k - i);
        operand *to = packed + i * nr;
#ifdef PAIRS
        for (int64_t jr = 0; jr < n; jr += nr, to += panel)
            copy_rows(dy + i * s->ldy + jr, s->ldy, some, n - jr, nr, to);
#else
        const piece rows = {dy + i * s->ldy, s->ldy, some, n, s->co - j};
        pack(&rows, nr, panel, to, NULL);
#endif
    }
}

/* What will be packed next: lines of rows of x, then of dy. */
typedef struct {
    dtconv_lines x, dy;
} ahead;

static dtconv_lines lines_of(const block *b) {
    const int64_t size = sizeof(elem), lines = dtconv_ceil_div(b->m * size, 64);
    const char *start = (const char *)first_of(b);
    return (dtconv_lines){
        .start = start, .pitch = b->of->ld * size, .lines = lines, .left = b->m > 0 ? lines * b->k : 0};
}

static int64_t take(ahead *f, int64_t most, const void **lines) {
    const int64_t count = dtconv_take_lines(&f->x, most, lines);
    return count + dtconv_take_lines(&f->dy, most - count, lines + count);
}

/* Columns [j, j + n) of the rows of dw that belong to a packed block of x; what comes next is loaded into L2 on the
 * way, a line at each step of a sum: more at a time are dropped. */
static void multiply(const pass_state *s, const block *b, ahead *next, int64_t j, int64_t n, int add, const operand *x,
                     const operand *dy, real *dw) {
    const int64_t mr = s->ukr->mr, nr = s->ukr->nr, deep = dtconv_round_to(b->k, STEP);
    const int64_t of_x = panel_of(mr, b->k), of_dy = panel_of(nr, b->k);
    const int64_t calls = dtconv_ceil_div(b->m, mr) * dtconv_ceil_div(n, nr);
    const int64_t share = MIN(DEEPEST, dtconv_ceil_div(next->x.left + next->dy.left, calls)); /* lines of a call */
    const void *lines[DEEPEST];
    UKR(ukr_call) t = {.k = deep, .alpha = 1, .beta = add ? 1 : 0, .ldc = s->co, .fetch = lines};
    t.rs_a = STEP, t.cs_a = STEP * mr;
#ifdef PAIRS
    const dtconv_ukr_step here = {0, 0};
    t.steps = &here, t.step_count = 1;
#endif
    for (int64_t i = 0; i < b->m; i += mr) {
        t.m = MIN(mr, b->m - i);
        t.a = x + i / mr * of_x;
        t.b = dy;
        for (int64_t column = 0; column < n; column += nr, t.b += of_dy) {
            t.n = MIN(nr, n - column);
            const int64_t count = take(next, share, lines);
            t.fetch_count = s->ukr->fetches ? count : 0;
            for (int64_t k = 0; !s->ukr->fetches && k < count; k++) __builtin_prefetch(lines[k], 0, 2);
            t.a_next = column + nr < n ? t.a : t.a + of_x;
            t.b_next = column + nr < n ? t.b + of_dy : dy;
            t.c = dw + (b->i + i) * s->co + j + column;
            s->ukr->run(s->ukr, &t);
        }
    }
}

/* What a thread has at hand. */
typedef struct {
    operand *x, *dy;
    elem *rows;
    void *maker;
} scratch;

/* Adds pixels [p, p + k) to columns [j, j + n) of rows [first, last) of a slice's dw; x_after, dy_after: what is packed
 * next, and loaded meanwhile; loaded: whether these pixels have been; add: whether there are sums before. */
static void run_piece(const pass_state *s, const image *x, int64_t first, int64_t last, int64_t p, int64_t k, int64_t j,
                      int64_t n, const block *x_after, const block *dy_after, int loaded, int add, const scratch *own,
                      real *dw) {
    const int64_t most = s->group * s->ukr->mr;
    const int made = s->made != NULL; /* then x is in the cache */
    pack_dy(s, p, k, j, n, loaded, own->dy);
    for (int64_t i = first; i < last; i += most) {
        const int ends = i + most >= last;
        const block b = {x, p, k, i, MIN(most, last - i)}, more = {x, p, k, i + most, MIN(most, last - i - most)};
        pack_x(s, &b, made || loaded || (s->ukr->fetches && i > first), own->rows, own->x);
        ahead f = {0};
        if (!made) f.x = lines_of(ends ? x_after : &more);
        if (ends) f.dy = lines_of(dy_after);
        multiply(s, &b, &f, j, n, add, own->x, own->dy, dw);
    }
}

/* Columns [j, j + n) of rows [first, last) of a slice's dw, from pixels [begin, end). */
static void run_columns(const pass_state *s, const image *x, const image *y, int64_t first, int64_t last, int64_t begin,
                        int64_t end, int64_t j, int64_t n, const scratch *own, real *dw) {
    const int64_t most = s->group * s->ukr->mr;
    for (int64_t p = begin; p < end; p += s->kc) {
        const int64_t k = MIN(s->kc, end - p), then = MIN(s->kc, end - p - k);
        const block x_after = {x, p + k, then, first, MIN(most, last - first)}, dy_after = {y, p + k, then, j, n};
        run_piece(s, x, first, last, p, k, j, n, &x_after, &dy_after, s->ukr->fetches && p > begin, p > begin, own, dw);
    }
}

/* The same of all columns, with rows [row, end) that are made. */
static void run_rows(const pass_state *s, const image *y, int64_t first, int64_t last, int64_t row, int64_t end,
                     const scratch *own, real *dw) {
    const DT(made_rows) *made = s->made;
    const int64_t begin = row * made->pixels;
    for (; row < end; row += s->strip) {
        const int64_t after = MIN(end, row + s->strip), stop = after * made->pixels;
        const image x = {own->rows, dtconv_strip_ld(last - first), row * made->pixels, first, last};
        made->make(made->context, own->maker, row, after, first, last, own->rows, x.ld);
        for (int64_t p = x.p; p < stop; p += s->kc)
            for (int64_t j = 0; j < s->co; j += s->nc) {
                const int64_t k = MIN(s->kc, stop - p), next = j + s->nc < s->co ? j + s->nc : 0;
                const int64_t from = next ? p : p + k,
                              then = MIN(s->kc, (from < stop ? stop : end * made->pixels) - from);
                const block dy_after = {y, from, then, next, MIN(s->nc, s->co - next)};
                const int loaded = s->ukr->fetches && (p > begin || j > 0);
                run_piece(s, &x, first, last, p, k, j, MIN(s->nc, s->co - j), NULL, &dy_after, loaded, p > begin, own,
                          dw);
            }
    }
}

static void run_unit(const pass_state *s, int64_t unit, const scratch *own) {
    const int64_t slice = unit / s->parts, part = unit % s->parts, mr = s->ukr->mr;
    const image x = {s->args->x, s->ldx, 0, 0, s->ci}, y = {s->args->y, s->ldy, 0, 0, s->co};
    real *dw = s->result + slice * s->ci * s->co;
    if (s->made) {
        const int64_t most = dtconv_round_to(dtconv_ceil_div(s->ci, s->parts), s->made->unit), rows = s->made->rows;
        const int64_t first = part * most, last = MIN(s->ci, first + most);
        if (first < last)
            run_rows(s, &y, first, last, rows * slice / s->slices, rows * (slice + 1) / s->slices, own, dw);
        return;
    }
    const int64_t first = s->panels * part / s->parts * mr;
    const int64_t last = MIN(s->ci, s->panels * (part + 1) / s->parts * mr);
    const int64_t begin = s->pixels * slice / s->slices, end = s->pixels * (slice + 1) / s->slices;
    for (int64_t j = 0; j < s->co; j += s->nc)
        run_columns(s, &x, &y, first, last, begin, end, j, MIN(s->nc, s->co - j), own, dw);
}

static size_t workspace_of(const dtconv_conv *p, const DT(made_rows) * made) {
    pass_state s;
    return prepare(p, made, &s) ? 0 : bytes_of(&s);
}

static dtconv_status run(const dtconv_conv *p, const DT(conv_args) * a, const DT(made_rows) * made, void *workspace,
                         size_t bytes) {
    pass_state s;
    const dtconv_status status = prepare(p, made, &s);
    if (status) return status;
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    s.args = a;
    s.result = s.slices == 1 ? a->w : (real *)memory;
#pragma omp parallel num_threads((int)s.threads)
    {
        char *mine = memory + s.sums + (size_t)dtconv_thread_id() * own_bytes(&s), *rows = mine + s.of_x + s.of_dy;
        const scratch own = {(operand *)mine, (operand *)(mine + s.of_x), (elem *)rows, rows + s.of_rows};
        if (made) made->begin(made->context, own.maker);
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s.slices * s.parts; unit++) run_unit(&s, unit, &own);
        if (s.slices > 1) dtconv_add_slices(s.result, s.slices, s.ci * s.co, a->w);
    }
    return DTCONV_OK;
}

size_t PASS(_workspace)(const dtconv_conv *p) { return workspace_of(p, NULL); }

dtconv_status PASS()(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    return run(p, a, NULL, workspace, bytes);
}

#ifndef DTCONV_BFLOAT16
size_t DT(pointwise_weights_of_rows_workspace)(const dtconv_conv *p, const DT(made_rows) * made) {
    return workspace_of(p, made);
}

dtconv_status DT(pointwise_weights_of_rows)(const dtconv_conv *p, const DT(conv_args) * a, const DT(made_rows) * made,
                                            void *workspace, size_t bytes) {
    return run(p, a, made, workspace, bytes);
}
#endif
