/* See bfloat16_direct_pass.h. */
#include "bfloat16_direct_pass.h"

#ifdef WIDENED
#include "dtconv_of_reals.h"

/* Sizes of float32's micro-kernel. */
static const HT(ukr_row) kernel_of_reals = {.mr = DIRECT_MR, .nr = DIRECT_NR, .rows = 1, .depth = 1, .fetches = 1};
#else
#include "../gemm/bfloat16_matrix.h"
#endif

enum {
    BLOCK_BYTES = 1 << 20,   /* packed panels that are used at a time */
    PIECE_BYTES = 448 << 10, /* of the copy */
    PIECES = 16,             /* wanted, so that threads have equal shares */
    FEW_COLUMNS = 4,
    FEW_CHANNELS = 16,     /* fewer: the taps of a row are to be one run */
    FILTER_ROWS = 16,      /* that are packed at a time */
    TILE_BYTES = 28 << 10, /* of the first cache, for a panel and the rows of A that meet it */
    TILES = 4,             /* at most, whose rows meet a panel in one call */
};

static void cut(pass *s) {
    const int64_t width = count_of(&s->read.w, 0), high = count_of(&s->read.h, 0), n = s->read.n;
    s->by_column = !s->pointwise && !s->joined && width <= FEW_COLUMNS && n >= 16;
    s->in_order = WIDENS && !s->by_column && s->channels < FEW_CHANNELS;
    s->images = s->in_order    ? 1
                : s->by_column ? MIN(n, s->ukr->mr > 16 ? 32 : 16)
                               : DT(images_of_chunk)(n, width, s->ukr->rows, (WIDENS ? 4 : 1) * s->ukr->mr);
    s->rows = high;
    for (;;) {
        s->pixels =
            s->joined ? s->rows * width * s->images : DT(layout_pixels)(&s->read, s->images, s->rows, s->by_column);
        const int64_t pieces = dtconv_ceil_div(n, s->images) * dtconv_ceil_div(high, s->rows);
        const int large = s->pixels * s->pitch * s->halves * (int64_t)sizeof(number) > PIECE_BYTES;
        if (s->rows == 1 || (!large && (pieces >= PIECES || s->rows <= 4))) break;
        s->rows = MIN(s->rows - 1, dtconv_ceil_div(high, dtconv_ceil_div(high, s->rows) + 1));
    }
    s->chunks_of_images = dtconv_ceil_div(n, s->images);
    s->chunks_of_rows = dtconv_ceil_div(high, s->rows);
    s->chunks = s->chunks_of_images * s->chunks_of_rows * s->read.d.written;
}

/* Pixels in a row: pieces of it. */
static void cut_pointwise(pass *s) {
    const int64_t pixels = s->read.w.written, most = PIECE_BYTES / (s->pitch * s->halves * (int64_t)sizeof(number));
    const int64_t unit = MAX(s->tile, s->ukr->mr * MAX(1, 32 / s->ukr->mr));
    s->images = 1;
    s->rows = dtconv_round_to(MAX(1, MIN(most, dtconv_ceil_div(pixels, PIECES))), unit);
    s->pixels = s->rows;
    s->chunks_of_images = 1;
    s->chunks = s->chunks_of_rows = dtconv_ceil_div(pixels, s->rows);
}

/* Rows of a call: some tiles where these and a panel are in the first cache, which then is loaded once for all. */
static int64_t rows_of_call(const pass *s) {
    const int64_t depth = WIDENS ? s->panel / s->ukr->nr : s->depth; /* steps of all taps, or of one after the other */
    const int64_t mr = s->ukr->mr, step = depth * (int64_t)sizeof(number);
    const int64_t fit = (TILE_BYTES - s->ukr->nr * step) / (mr * step);
    return s->ukr->fetches ? mr * MAX(1, MIN(MIN(TILES, MOST_ROWS / mr), fit)) : mr;
}

pass WAY(prepare)(const dtconv_conv *p, int turned, int products) {
#ifdef WIDENED
    const HT(ukr_row) *ukr = &kernel_of_reals;
#else
    const HT(ukr_row) *ukr = HT(ukr_current)();
#endif
    pass s = {.ukr = ukr,
              .groups = p->groups,
              .threads = dtconv_get_num_threads(),
              .products = products,
              .halves = products == 1 ? 1 : 2};
    if (!s.ukr) return s;
    const int64_t ci = p->ci / p->groups, co = p->co / p->groups;
    s.read = (image){.d = {p->id, p->od, p->kd, p->sd, p->dil_d, p->pad_f, turned},
                     .h = {p->ih, p->oh, p->kh, p->sh, p->dil_h, p->pad_t, turned},
                     .w = {p->iw, p->ow, p->kw, p->sw, p->dil_w, p->pad_l, turned},
                     .n = p->n,
                     .channels = turned ? co : ci,
                     .ld = turned ? p->ldy : p->ldx};
    axis *axes[] = {&s.read.d, &s.read.h, &s.read.w};
    for (int i = 0; i < 3 && !turned; i++) {
        const int64_t in = axes[i]->written;
        axes[i]->written = axes[i]->read, axes[i]->read = in;
    }
    s.cw = turned ? ci : co, s.ldw = turned ? p->ldx : p->ldy;
    s.channels = s.read.channels, s.taps = dtconv_taps(p);
    s.pointwise = dtconv_is_pointwise(p);
    if (s.pointwise) { /* one row of pixels */
        s.read.n = s.read.d.written = s.read.d.read = s.read.h.written = s.read.h.read = 1;
        s.read.w.written = s.read.w.read = dtconv_rows(p);
    }
    const int64_t unit = s.ukr->depth, apart = s.taps * dtconv_round_to(s.channels, unit);
    const int64_t together = dtconv_round_to(s.taps * s.channels, unit);
    const int strided = turned && (p->sd > 1 || p->sh > 1 || p->sw > 1);
    s.joined = !WIDENS && !strided && s.taps > 1 && p->kd * p->kh <= JOINED_LINES &&
               (unit > 2 ? apart * 2 >= together * 3 : s.channels < 4);
    s.depth = s.joined ? together : dtconv_round_to(s.channels, unit);
    s.panels = dtconv_ceil_div(s.cw, s.ukr->nr);
    s.panel = (s.joined ? 1 : s.taps) * s.depth * s.ukr->nr;
    s.pitch = pitch_of(s.depth);
    s.tile = rows_of_call(&s);
    if (s.pointwise)
        cut_pointwise(&s);
    else
        cut(&s);
    s.apart = s.pitch * (s.in_order ? step_of(&s.read.w) : 1);
    s.blocks = dtconv_ceil_div(s.panels, MAX(1, BLOCK_BYTES / (s.panel * s.halves * (int64_t)sizeof(number))));
    s.block = dtconv_ceil_div(s.panels, s.blocks);
    s.blocks = dtconv_ceil_div(s.panels, s.block);
    s.low_b = s.groups * s.panels * s.panel;
    s.packed = dtconv_round((size_t)(s.halves * s.low_b) * sizeof(number)) + 8192; /* kernels look ahead */
    s.parts = DT(gather_parts_bytes)(s.chunks, s.groups * s.cw);
    const size_t copied = dtconv_round((size_t)((s.pixels + MOST_ROWS) * s.pitch) * sizeof(number));
    s.low_a = products == 1 ? 0 : (int64_t)(copied / sizeof(number));
    s.copied = (size_t)s.halves * copied + 1024;
    s.terms = dtconv_round((size_t)(s.taps * products) * sizeof(term));
    s.sums = DT(gather_sums_bytes)(s.block * s.ukr->nr);
    return s;
}

size_t WAY(bytes_of_thread)(const pass *s) {
    return s->copied + s->terms + s->sums + sizeof(real) * MOST_ROWS * TILE_COLUMNS;
}

size_t WAY(bytes)(const pass *s) {
    return s->ukr ? 64 + s->packed + s->parts + (size_t)s->threads * WAY(bytes_of_thread)(s) : 0;
}

#ifdef WIDENED
/* Rows (tap, channel that is read) of a panel; taps of a row in the order of the columns that they read. */
void WAY(pack_filters)(const pass *s) {
    const int turned = s->read.w.turned;
    const int64_t taps = s->taps, columns = s->groups * (turned ? s->channels : s->cw);
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->panels * taps; unit++) {
        const int64_t tap = unit % taps, panel = unit / taps % s->panels, group = unit / taps / s->panels;
        const int64_t j = panel * DIRECT_NR, kw = tap % s->read.w.taps;
        const int64_t place = turned ? tap + s->read.w.taps - 1 - 2 * kw : tap;
        const real *w = s->args->w + tap * (turned ? s->cw : s->channels) * columns;
        const RT(matrix) plain = {w + group * s->cw, columns, 1}, trans = {w + group * s->channels, 1, columns};
        RT(pack_b_matrix)(turned ? &trans : &plain, 0, s->channels, j, MIN(DIRECT_NR, s->cw - j), DIRECT_NR,
                          s->filters + (group * s->panels + panel) * s->panel + place * s->channels * DIRECT_NR);
    }
}
#else
/* A panel of rows (tap, co) of a few channels: from all over the filters. */
static void pack_joined(const pass *s, const dtconv_operand *filters, int64_t j, int64_t n, half *dst) {
    const int64_t nr = s->ukr->nr;
    for (int64_t p = 0; p < s->depth; p++)
        for (int64_t i = 0; i < nr; i++) {
            const int64_t t = p / s->channels, c = p % s->channels;
            const int exists = t < s->taps && i < n;
            dst[p / 2 * 2 * nr + 2 * i + p % 2] = exists ? matrix_element(filters, c, t * s->cw + j + i) : 0;
        }
}

/* Rows of a tap of plain filters, all panels: filters are read in their order. */
static void pack_rows_of_filters(const pass *s, const real *w, int64_t columns, int64_t row, int64_t rows, half *dst) {
    const int64_t nr = s->ukr->nr, k = MIN(rows, s->channels - row);
    for (int low = 0; low < s->halves; low++, dst += s->low_b)
        for (int64_t panel = 0; panel < s->panels; panel++) {
            const int64_t j = panel * nr;
            const dtconv_operand plain = {w + row * columns, columns, 1, 0, low};
            HT(pack_panel)(&plain, MAX(0, k), rows, j, MIN(nr, s->cw - j), nr, dst + panel * s->panel + row * nr);
        }
}

static void pack_plain_filters(const pass *s) {
    const int64_t pieces = dtconv_ceil_div(s->depth, FILTER_ROWS), columns = s->groups * s->cw;
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->taps * pieces; unit++) {
        const int64_t row = unit % pieces * FILTER_ROWS, tap = unit / pieces % s->taps, group = unit / pieces / s->taps;
        pack_rows_of_filters(s, s->args->w + tap * s->channels * columns + group * s->cw, columns, row,
                             MIN(FILTER_ROWS, s->depth - row),
                             s->filters + group * s->panels * s->panel + tap * s->depth * s->ukr->nr);
    }
}

/* Called by all threads of a team. */
void WAY(pack_filters)(const pass *s) {
    if (!s->joined && !s->read.w.turned) {
        pack_plain_filters(s);
        return;
    }
    const int turned = s->read.w.turned;
    const int64_t taps = s->joined ? 1 : s->taps, nr = s->ukr->nr;
    const int64_t columns = s->groups * (turned ? s->channels : s->cw), of_tap = turned ? s->cw : s->channels;
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->panels * taps; unit++) {
        const int64_t tap = unit % taps, panel = unit / taps % s->panels, group = unit / taps / s->panels,
                      j = panel * nr;
        const real *w = s->args->w + tap * of_tap * columns;
        half *dst = s->filters + (group * s->panels + panel) * s->panel + tap * s->depth * nr;
        const int64_t n = MIN(nr, s->cw - j);
        for (int low = 0; low < s->halves; low++, dst += s->low_b) {
            const dtconv_operand plain = {w + group * s->cw, columns, 1, 0, low};
            const dtconv_operand trans = {w + group * s->channels, 1, columns, 0, low};
            if (!s->joined || !turned)
                HT(pack_panel)(turned ? &trans : &plain, s->joined ? s->taps * s->channels : s->channels, s->depth, j,
                               n, nr, dst);
            else
                pack_joined(s, &trans, j, n, dst);
        }
    }
}
#endif
