/* Direct convolution by products of bfloat16, backward_weights: products of matrices whose sums run over pixels.
 *
 *   dw[tap, ci, co] = sum over pixels of x[pixel * stride - pad + tap * dilation, ci] * dy[pixel, co]
 *
 * A piece of some thousand pixels of x, some channels of it, is transposed into the second cache (a row per channel,
 * its pixels in the order of bfloat16_direct_copy.c, padding as zeros, normalized where that is wanted): a tap is then
 * a distance along the row.  A block of dy, pairs of neighbouring pixels of NR channels, meets all these channels and
 * taps; it is so short that the first cache holds it together with what the taps of one row of filters read of MR
 * channels.  The sums stay in the second cache over all blocks of the piece.  Fewer channels make room for more pixels,
 * so that dw is seldom read and written; more channels spare packing of dy.  Where channels are few, rows of all taps
 * are made of the transposed ones and lie below each other.  Images in float32 are rounded, or split in two halves,
 * before both; three products of halves are three steps of a sum.
 *
 * With strides of one, dy and x change places where dy has fewer channels: fewer are transposed, and the sums are a
 * piece of the transposed dw.
 *
 * Without products of bfloat16 copies and panels are float32, and so is the micro-kernel, that of float32's direct
 * (WIDENED; bfloat16_direct_widened.c).  Its panels are rows of pixels, not of pairs.
 *
 * Most micro-kernels have another way for pointwise convolutions, without a transpose (conv/pointwise_weights.c).
 *
 * Sums are float32.  Pieces are cut into slices with sums of their own, which are added in order; pieces
 * and slices depend on the problem alone, and so do results.  Within a slice threads share out input channels.
 */
#include "pointwise_weights.h"
#include "bfloat16_direct_weights.h"
#include "bfloat16_finish.h"

enum {
    COPY_BYTES = 768 << 10, /* of the transposed x */
    FEWEST_PIXELS = 1024,   /* of a piece */
    MOST_PIXELS = 8192,
    BLOCK_PIXELS = 256,  /* of dy's halves */
    LONG_PIXELS = 512,   /* where there is one tap */
    MOST_ROWS = 576,     /* of sums: taps and channels of a part */
    MOST_CHANNELS = 256, /* of a part */
    STAGE_BYTES = 64 << 10,
    UNITS = 16,           /* wanted: slices and parts */
    SUMS_BYTES = 8 << 20, /* of all slices */
    SLICES = 16,
    ADDED = 4096, /* numbers of a slice at a time */
};

/* A thread's own memory. */
typedef struct {
    number *stage, *copy, *joint, *panel;
    term *steps;     /* of all taps, one after the other */
    int64_t *counts; /* of each tap */
    real *tiles;
} scratch;

/* All pixels of a pointwise convolution as rows of one image, where they make such. */
static dtconv_conv in_rows(const dtconv_conv *p) {
    dtconv_conv flat = *p;
    const int64_t pixels = dtconv_rows(p);
    int64_t row = LONG_PIXELS;
    if (!dtconv_is_pointwise(p) || pixels % SQUARE != 0) return flat;
    while (pixels % row != 0) row -= SQUARE;
    flat.n = flat.id = flat.od = 1;
    flat.ih = flat.oh = pixels / row;
    flat.iw = flat.ow = row;
    return flat;
}

/* Whether so few channels are transposed that rows of all taps are joined. */
static int joins(int64_t taps, int64_t channels, int64_t mr) {
    return taps > 1 && taps * dtconv_round_to(channels, mr) * 2 >= dtconv_round_to(taps * channels, mr) * 3;
}

/* x and dy exchanged: a dy of fewer channels is transposed in place of x, and taps move it the other way. */
static int exchange(dtconv_conv *p, int64_t taps, int64_t mr) {
    if (p->sd != 1 || p->sh != 1 || p->sw != 1 || p->co >= p->ci || joins(taps, p->co / p->groups, mr)) return 0;
    *p = (dtconv_conv){
        .n = p->n,
        .id = p->od,
        .ih = p->oh,
        .iw = p->ow,
        .ci = p->co,
        .ldx = p->ldy,
        .od = p->id,
        .oh = p->ih,
        .ow = p->iw,
        .co = p->ci,
        .ldy = p->ldx,
        .kd = p->kd,
        .kh = p->kh,
        .kw = p->kw,
        .sd = 1,
        .sh = 1,
        .sw = 1,
        .dil_d = p->dil_d,
        .dil_h = p->dil_h,
        .dil_w = p->dil_w,
        .pad_f = p->pad_f,
        .pad_t = p->pad_t,
        .pad_l = p->pad_l,
        .groups = p->groups,
    };
    return 1;
}

/* Slices, where there are few parts: as many as sums of their own may take, and as are small beside the images. */
static int64_t slices_of(const weights *s, int64_t parts) {
    const dtconv_conv *p = &s->p;
    const int64_t dw = s->taps * s->ci * p->co * (int64_t)sizeof(real);
    const int64_t images =
        p->n * (p->id * p->ih * p->iw * p->ci + p->od * p->oh * p->ow * p->co) * (int64_t)sizeof(elem);
    const int64_t most = MIN(MIN(SLICES, SUMS_BYTES / dw), MAX(2, images / (4 * dw)));
    int64_t slices = 1;
    while (slices * 2 <= most && slices * parts < UNITS) slices *= 2;
    return slices;
}

/* Pieces of about `pixels` pixels. */
static void cut(weights *s, int64_t pixels, int64_t parts) {
    const dtconv_conv *p = &s->p;
    s->images = p->n % SQUARE == 0 ? SQUARE : DT(images_of_chunk)(p->n, p->ow, MAX(2, s->ukr->depth), 32);
    while (s->images * p->ow * p->oh < pixels / 2 && s->images < MIN(p->n, 1024)) s->images *= 2;
    s->images = MIN(s->images, p->n);
    s->line = s->images * p->ow;
    s->depth = dtconv_round_to(s->line, s->ukr->depth);
    const int64_t rows = MIN(p->oh, MAX(1, pixels / s->depth));
    s->rows = dtconv_ceil_div(p->oh, dtconv_ceil_div(p->oh, rows));
    s->chunks_of_images = dtconv_ceil_div(p->n, s->images);
    s->chunks_of_rows = dtconv_ceil_div(p->oh, s->rows);
    s->chunks = s->chunks_of_images * s->chunks_of_rows * p->od;
    for (s->slices = slices_of(s, parts); s->slices > s->chunks;) s->slices /= 2;
}

/* Blocks: some rows, or where these are long, a span of columns of one. */
static void cut_blocks(weights *s) {
    const int64_t most = s->taps == 1 ? LONG_PIXELS : BLOCK_PIXELS / s->halves;
    s->spans = 1;
    for (int64_t k = 2; s->depth / s->spans > most && s->line == s->depth && k <= s->p.ow; k++)
        if (s->p.ow % k == 0 && s->line / k % s->ukr->depth == 0) s->spans = k;
    s->span = s->depth / s->spans;
    s->block = s->spans > 1 ? 1 : MIN(s->rows, MAX(1, most / s->depth));
}

#ifdef WIDENED
/* Sizes of float32's micro-kernel; pixels are packed in pairs, too. */
static const HT(ukr_row) kernel_of_reals = {.mr = DIRECT_MR, .nr = DIRECT_NR, .rows = 1, .depth = 2};
#endif

static weights prepare(const dtconv_conv *problem, int products) {
#ifdef WIDENED
    const HT(ukr_row) *ukr = &kernel_of_reals;
#else
    const HT(ukr_row) *ukr = HT(ukr_current)();
#endif
    weights s = {.p = in_rows(problem),
                 .ukr = ukr,
                 .threads = dtconv_get_num_threads(),
                 .taps = dtconv_taps(problem),
                 .products = products,
                 .halves = products == 1 ? 1 : 2};
    const dtconv_conv *p = &s.p;
    if (!s.ukr) return s;
    const int64_t mr = s.ukr->mr, nr = s.ukr->nr;
    s.exchanged = exchange(&s.p, s.taps, mr);
    s.ci = p->ci / p->groups, s.co = p->co / p->groups;
    s.x = (image){.d = {p->od, p->id, p->kd, p->sd, p->dil_d, p->pad_f, s.exchanged},
                  .h = {p->oh, p->ih, p->kh, p->sh, p->dil_h, p->pad_t, s.exchanged},
                  .w = {p->ow, p->iw, p->kw, p->sw, p->dil_w, p->pad_l, s.exchanged},
                  .n = p->n,
                  .channels = s.ci,
                  .ld = p->ldx};
    s.joined = joins(s.taps, s.ci, mr);
    s.joined_rows = s.joined ? dtconv_round_to(s.taps * s.ci, mr) : 0;
    const int64_t wide = MIN(MOST_CHANNELS, dtconv_round_to(dtconv_ceil_div(MOST_ROWS, s.taps), mr));
    s.channels = s.joined ? s.ci : dtconv_round_to(dtconv_ceil_div(s.ci, dtconv_ceil_div(s.ci, wide)), mr);
    const int64_t few = dtconv_ceil_div(s.ci, s.channels) * p->groups, all = p->n * p->od * p->oh * p->ow;
    const int64_t read = (s.joined ? s.joined_rows : s.channels * p->sh * p->sw * p->kd) * s.halves;
    int64_t wanted_pixels = MIN(MOST_PIXELS, COPY_BYTES / (read * (int64_t)sizeof(number)));
    wanted_pixels = MIN(wanted_pixels, all / slices_of(&s, few));
    cut(&s, MAX(FEWEST_PIXELS, wanted_pixels), few);
    /* kernels may read a row's length past its last pixel */
    const int64_t pixels = DT(layout_pixels)(&s.x, s.images, s.rows, 0) + s.depth + SQUARE;
    s.pitch = pitch_of(dtconv_round_to(pixels, SQUARE));
    const int64_t fit = MAX(mr, COPY_BYTES / (s.pitch * s.halves * (int64_t)sizeof(number)) / mr * mr);
    const int64_t wanted = dtconv_ceil_div(s.threads, s.slices);
    const int64_t parts =
        s.joined ? 1 : MAX(dtconv_ceil_div(s.ci, MIN(fit, s.channels)), MIN(wanted, dtconv_ceil_div(s.ci, mr)));
    s.channels = s.joined ? s.ci : dtconv_round_to(dtconv_ceil_div(s.ci, parts), mr);
    s.parts = dtconv_ceil_div(s.ci, s.channels);
    s.panels = dtconv_ceil_div(s.co, nr);
    s.joined_pitch = pitch_of(s.rows * s.depth);
    s.tiles = dtconv_ceil_div(s.joined ? s.taps * s.ci : s.channels, mr);
    s.tile = (size_t)(dtconv_round_to(mr, s.ukr->rows) * nr);
    cut_blocks(&s);
    const int64_t of_panel = (s.joined ? 1 : s.taps) * s.tiles * (int64_t)(s.tile * sizeof(real));
    s.together = MAX(1, MIN(s.panels, dtconv_cache_bytes(2) / 8 / of_panel));
    s.together = dtconv_ceil_div(s.panels, dtconv_ceil_div(s.panels, s.together));
    s.sums = s.slices == 1 ? 0 : dtconv_round((size_t)((s.slices - 1) * s.taps * s.ci * p->co) * sizeof(real));
    s.low_copy = dtconv_round_to(s.channels, MAX(mr, SQUARE)) * s.pitch;
    s.low_joint = s.joined_rows * s.joined_pitch;
    s.low_panel = s.together * panel_of(&s);
    const int64_t wide_stage = dtconv_round_to(s.channels, SQUARE) * s.images * s.halves * (int64_t)sizeof(number);
    s.stage_columns = MAX(1, MIN(p->iw, STAGE_BYTES / wide_stage));
    s.counts = dtconv_round((size_t)s.taps * sizeof(int64_t));
    s.low_stage = WAY(stage_elements)(&s);
    s.staged = dtconv_round((size_t)(s.halves * s.low_stage) * sizeof(number));
    s.copied = dtconv_round((size_t)(s.halves * s.low_copy) * sizeof(number));
    s.joint = dtconv_round((size_t)(s.halves * s.low_joint) * sizeof(number));
    s.panel = dtconv_round((size_t)(s.halves * s.low_panel) * sizeof(number)) + 8192; /* kernels look ahead */
    s.steps = dtconv_round((size_t)(MAX(s.rows, s.taps * s.block) * products) * sizeof(term));
    return s;
}

static size_t of_thread(const weights *s) {
    const size_t tiles = (size_t)(s->together * (s->joined ? s->tiles : s->taps * s->tiles)) * s->tile;
    return s->staged + s->copied + s->joint + s->panel + s->steps + s->counts + dtconv_round(sizeof(real) * tiles);
}

static size_t bytes_of(const weights *s) { return s->ukr ? 64 + s->sums + (size_t)s->threads * of_thread(s) : 0; }

static int64_t put_term(const weights *s, int products, int64_t a, int64_t b, int64_t low_a, int64_t low_b,
                        term *terms) {
#ifdef WIDENED
    (void)products, (void)low_a, (void)low_b;
    terms[0] = (term){a, b, s->span};
    return 1;
#else
    (void)s;
    return put_step(products, a, b, low_a, low_b, terms);
#endif
}

/* Terms of a tap: one for each of some rows of the piece whose pixels it finds; begin: pixel of the row. */
static int64_t make_steps(const weights *s, const image *x, const piece *at, const layout *l, int64_t tap,
                          int64_t first, int64_t rows, int64_t begin, int products, term *steps) {
    const int64_t kw = tap % x->w.taps, kh = tap / x->w.taps % x->h.taps, kd = tap / x->w.taps / x->h.taps;
    int64_t count = 0, down, across;
    if (plane_of(x, at->plane, kd) < 0) return 0;
    offset_of(&x->h, 0, kh, &down);
    offset_of(&x->w, 0, kw, &across);
    for (int64_t row = 0; row < rows; row++) {
        const int64_t source = (at->row + first + row) * step_of(&x->h) + down;
        if (source < 0 || source >= x->h.read) continue;
        count += put_term(s, products, layout_pixel(l, kd, source, across) + begin, row * s->span * s->ukr->nr,
                          s->low_copy, s->low_panel, steps + count);
    }
    return count;
}

/* Rows of taps and channels from rows of channels. */
static void join(const weights *s, const image *x, const piece *at, const layout *l, const scratch *own,
                 const number *copy, number *joint) {
    const int64_t line = at->images * s->p.ow;
    for (int64_t tap = 0; tap < s->taps; tap++) {
        number *dst = joint + tap * s->ci * s->joined_pitch;
        for (int64_t c = 0; c < s->ci; c++)
            memset(dst + c * s->joined_pitch, 0, (size_t)(s->rows * s->depth) * sizeof(number));
        const int64_t count = make_steps(s, x, at, l, tap, 0, at->rows, 0, 1, own->steps);
        for (int64_t k = 0; k < count; k++)
            for (int64_t c = 0; c < s->ci; c++)
                memcpy(dst + c * s->joined_pitch + own->steps[k].b / s->ukr->nr * s->spans,
                       copy + c * s->pitch + own->steps[k].a, (size_t)line * sizeof(number));
    }
}

#ifdef WIDENED
/* A tile of m rows, a panel and the terms of a tap: C = sums, or where it is not the first block, C + sums. */
static void multiply(const weights *s, int64_t m, const number *a, int64_t rs_a, const number *b, const term *terms,
                     int64_t count, int first, real *c) {
    (void)s;
    RT(direct_tile) t; /* not all of it is read */
    for (int64_t i = 0; i < m; i++) t.a[i] = a + i * rs_a, t.c[i] = c + i * DIRECT_NR, t.added[i] = t.c[i];
    t.segments = terms, t.segment_count = count;
    t.a_step = 1, t.b_step = DIRECT_NR;
    t.scale = NULL;
    t.add = !first, t.relu = 0;
    t.beside = NULL;
    t.ahead = NULL, t.ahead_count = 0;
    RT(direct_run_tile)(&t, m, DIRECT_NR, b, NULL, 0);
}
#else
/* A tile of m rows, a panel and the terms of a tap: C = sums, or where it is not the first block, C + sums. */
static void multiply(const weights *s, int64_t m, const number *a, int64_t rs_a, const number *b, const term *terms,
                     int64_t count, int first, real *c) {
    HT(ukr_call)
    t = {.m = m,
         .n = s->ukr->nr,
         .k = s->span,
         .alpha = 1,
         .a = a,
         .rs_a = rs_a,
         .cs_a = 1,
         .b = b,
         .beta = first ? 0 : 1,
         .c = c,
         .ldc = s->ukr->nr,
         .steps = terms,
         .step_count = count};
    s->ukr->run(s->ukr, &t);
}
#endif

/* The sums of a panel, tiles of each tap, go on with a block, or begin with the first one. */
static void run_panel(const weights *s, const number *a, const number *b, int64_t height, const term *terms,
                      const int64_t *counts, real *tiles, int first) {
    const int64_t taps = s->joined ? 1 : s->taps, mr = s->ukr->mr, rs_a = s->joined ? s->joined_pitch : s->pitch;
    for (int64_t i = 0; i < s->tiles && i * mr < height; i++) {
        const term *at = terms;
        for (int64_t tap = 0; tap < taps; at += counts[tap++]) {
            real *c = tiles + (tap * s->tiles + i) * (int64_t)s->tile;
            if (counts[tap])
                multiply(s, MIN(mr, height - i * mr), a + i * mr * rs_a, rs_a, b, at, counts[tap], first, c);
            else if (first)
                memset(c, 0, s->tile * sizeof(real));
        }
    }
}

/* The sums of a tap and a panel, n columns, become a piece of dw, or are added to it. */
static void put_tap(const weights *s, const real *tiles, int64_t height, int64_t n, real *dw, int add) {
    const int64_t nr = s->ukr->nr, mr = s->ukr->mr, ld = s->exchanged ? s->p.ci : s->p.co;
    for (int64_t i = 0; i < height; i += mr, tiles += s->tile) {
        const int64_t rows = MIN(mr, height - i);
        if (s->exchanged)
            HT(put_turned)(rows, n, tiles, nr, dw + i, ld, add);
        else
            HT(put_sums)(rows, n, tiles, nr, dw + i * ld, ld, add);
    }
}

/* Where the sums of a tap begin in dw, from channel `first` of what is transposed and j of what is packed on. */
static int64_t place_of(const weights *s, int64_t tap, int64_t group, int64_t first, int64_t j) {
    return s->exchanged ? (tap * s->co + j) * s->p.ci + group * s->ci + first
                        : (tap * s->ci + first) * s->p.co + group * s->co + j;
}

static DT(conv_normalization) normalization_of(const DT(conv_args) * a, int64_t c) {
    DT(conv_normalization) f = a->prologue;
    if (f.mean) f.mean += c, f.scale += c;
    if (f.mean && f.beta) f.beta += c;
    return f;
}

/* What is transposed: channels of a group, from `first` on. */
static image channels_of(const weights *s, int64_t group, int64_t first, int64_t channels) {
    image x = s->x;
    const int64_t c = group * s->ci + first;
    x.data = (s->exchanged ? s->args->y : s->args->x) + c, x.channels = channels;
    if (!s->exchanged) x.prologue = normalization_of(s->args, c);
    return x;
}

/* What is packed. */
static packing packed_of(const weights *s, int64_t c, int64_t n) {
    packing f = {.data = (s->exchanged ? s->args->x : s->args->y) + c, .n = n};
    if (s->exchanged) f.prologue = normalization_of(s->args, c);
    return f;
}

/* The terms of all taps with a block; counts: of each. */
static void list_steps(const weights *s, const image *x, const piece *at, const layout *l, int64_t row, int64_t rows,
                       int64_t span, term *steps, int64_t *counts) {
    const int64_t begin = span * s->span;
    if (!s->joined) {
        for (int64_t tap = 0; tap < s->taps; steps += counts[tap++])
            counts[tap] = make_steps(s, x, at, l, tap, row, rows, begin, s->products, steps);
        return;
    }
    for (int64_t i = counts[0] = 0; i < rows; i++)
        counts[0] += put_term(s, s->products, (row + i) * s->depth + begin, i * s->span * s->ukr->nr, s->low_joint,
                              s->low_panel, steps + counts[0]);
}

static void run_piece(const weights *s, const piece *at, int64_t group, int64_t part, real *result, int add,
                      const scratch *own) {
    const int64_t first = part * s->channels, channels = MIN(s->channels, s->ci - first), nr = s->ukr->nr;
    const image x = channels_of(s, group, first, channels);
    const layout l = DT(layout_of)(&x, at, 1, 0);
    WAY(turn_piece)(s, &x, at, &l, own->stage, own->copy);
    for (int64_t k = 0; s->joined && k < s->halves; k++)
        join(s, &x, at, &l, own, own->copy + k * s->low_copy, own->joint + k * s->low_joint);
    const int64_t taps = s->joined ? 1 : s->taps, height = s->joined ? s->taps * s->ci : channels;
    const int64_t of_tap = s->tiles * (int64_t)s->tile;
    for (int64_t panel = 0; panel < s->panels; panel += s->together) {
        const int64_t j = panel * nr, n = MIN(s->together * nr, s->co - j);
        const packing dy = packed_of(s, group * s->co + j, n);
        for (int64_t row = 0; row < at->rows; row += s->block)
            for (int64_t span = 0; span < s->spans; span++) {
                const int64_t rows = MIN(s->block, at->rows - row);
                WAY(pack_piece)(s, at, &dy, row, rows, span, own->panel);
                list_steps(s, &x, at, &l, row, rows, span, own->steps, own->counts);
                for (int64_t k = 0; k * nr < n; k++)
                    run_panel(s, s->joined ? own->joint : own->copy, own->panel + k * panel_of(s), height, own->steps,
                              own->counts, own->tiles + k * taps * of_tap, row == 0 && span == 0);
            }
        for (int64_t k = 0; k * nr < n; k++)
            for (int64_t tap = 0; tap < taps; tap++)
                put_tap(s, own->tiles + (k * taps + tap) * of_tap, height, MIN(nr, n - k * nr),
                        result + place_of(s, tap, group, first, j + k * nr), add);
    }
}

static void run_unit(const weights *s, int64_t unit, const scratch *own) {
    const int64_t part = unit % s->parts, group = unit / s->parts % s->p.groups, slice = unit / s->parts / s->p.groups;
    const int64_t begin = s->chunks * slice / s->slices, end = s->chunks * (slice + 1) / s->slices;
    const int64_t size = s->taps * s->ci * s->p.co;
    real *result = slice ? s->result + (slice - 1) * size : s->args->w;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        piece at = {.first = chunk / s->chunks_of_rows % s->chunks_of_images * s->images,
                    .row = chunk % s->chunks_of_rows * s->rows,
                    .plane = chunk / s->chunks_of_images / s->chunks_of_rows};
        at.images = MIN(s->images, s->p.n - at.first);
        at.rows = MIN(s->rows, s->p.oh - at.row);
        run_piece(s, &at, group, part, result, chunk > begin, own);
    }
}

/* Called by all threads of a team. */
static void add_slices(const weights *s) {
    const int64_t size = s->taps * s->ci * s->p.co;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < size; i += ADDED) {
        real *w = s->args->w + i;
        for (int64_t slice = 1; slice < s->slices; slice++)
            HT(put_sums)(1, MIN(ADDED, size - i), s->result + (slice - 1) * size + i, 0, w, 0, 1);
    }
}

static dtconv_status run(const dtconv_conv *p, const DT(conv_args) * a, int products, void *workspace, size_t bytes) {
    weights s = prepare(p, products);
    if (!s.ukr) return DTCONV_KERNEL;
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    s.args = a;
    s.result = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s.result + s.sums;
#pragma omp parallel num_threads(s.threads)
    {
        char *mine = memory + (size_t)dtconv_thread_id() * of_thread(&s);
        scratch own;
        own.stage = (number *)mine;
        own.copy = (number *)(mine += s.staged);
        own.joint = (number *)(mine += s.copied);
        own.panel = (number *)(mine += s.joint);
        own.steps = (term *)(mine += s.panel);
        own.counts = (int64_t *)(mine += s.steps);
        own.tiles = (real *)(mine + s.counts);
        if (s.ukr->begin) s.ukr->begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s.slices * p->groups * s.parts; unit++) run_unit(&s, unit, &own);
        if (s.ukr->end) s.ukr->end();
        if (s.slices > 1) add_slices(&s);
    }
    return DTCONV_OK;
}

#if defined(WIDENED)
size_t DT(weights_widened_workspace)(const dtconv_conv *p) {
    const weights s = prepare(p, 1);
    return bytes_of(&s);
}

dtconv_status DT(weights_widened)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    return run(p, a, 1, workspace, bytes);
}
#elif defined(DTCONV_BFLOAT16)
size_t DT(weights_widened_workspace)(const dtconv_conv *p);
dtconv_status DT(weights_widened)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes);

static size_t workspace_of(const dtconv_conv *p) {
    const weights s = prepare(p, 1);
    return bytes_of(&s);
}

static dtconv_status run_pairs(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    return run(p, a, 1, workspace, bytes);
}

/* How a pass is done. */
typedef struct {
    size_t (*workspace)(const dtconv_conv *p);
    dtconv_status (*run)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes);
} way;

static way way_of(const dtconv_conv *p) {
    const way in_pairs = {DT(pointwise_weights_workspace), DT(pointwise_weights)};
    const way in_reals = {DT(pointwise_weights_in_reals_workspace), DT(pointwise_weights_in_reals)};
    const HT(ukr_row) *ukr = HT(ukr_current)();
    if (ukr && dtconv_is_pointwise(p) && p->groups == 1) {
        const way pointwise = ukr->widens ? in_reals : in_pairs;
        if (pointwise.workspace(p)) return pointwise; /* else it is none for this kernel or these channels */
    }
    if (ukr && ukr->widens && !ukr->models_amx) return (way){DT(weights_widened_workspace), DT(weights_widened)};
    return (way){workspace_of, run_pairs};
}

size_t DT(conv_direct_backward_weights_workspace)(const dtconv_conv *p) { return way_of(p).workspace(p); }

dtconv_status DT(conv_direct_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                               size_t bytes) {
    return way_of(p).run(p, a, workspace, bytes);
}
#else
#define PASS(algorithm, products)                                                                        \
    size_t DT(conv_##algorithm##_backward_weights_workspace)(const dtconv_conv *p) {                     \
        const weights s = prepare(p, products);                                                          \
        return bytes_of(&s);                                                                             \
    }                                                                                                    \
    dtconv_status DT(conv_##algorithm##_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, \
                                                          void *workspace, size_t bytes) {               \
        return run(p, a, products, workspace, bytes);                                                    \
    }

PASS(direct_bf16, 1)
PASS(direct_bf16x3, 3)
#endif
