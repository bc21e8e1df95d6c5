/* Direct convolution by products of bfloat16, forward and backward_data: a product of matrices whose left operand is
 * read from a copy of the image in the cache, tap by tap.
 *
 *   forward         y[pixel, co] = sum over taps, c   x[pixel * stride - pad + tap * dilation, c] * w[tap, c, co]
 *   backward_data  dx[pixel, ci] = sum over taps, co dy[(pixel + pad - tap * dilation) / stride, co] * w[tap, ci, co]
 *
 * Both gather: a pixel that is written sums over the taps that meet an existing pixel, in float32, and is written once.
 * A piece of the image (images and rows) is copied such that the pixels that a tile reads with a tap lie at one
 * distance (direct_copy.c); then tiles of MR pixels meet panels of NR filters.  Where an image has few columns, a tile
 * is one pixel of many images, and taps on padding are left out.  Where channels are few, the copy is the matrix of
 * im2col. Pointwise convolutions read x in place (without products of bfloat16: pointwise_in_reals.c).  Each tile is
 * finished while it is in the first cache (finish.c), and what is gathered is gathered there (../conv/gather.h).
 *
 * Images in float32 (direct_bf16, direct_bf16x3) are rounded, or split in two halves, as they are copied, and so are
 * filters as they are packed; three products of halves are three steps of a sum.
 *
 * Filters are packed once per call, as bfloat16.  A unit of work is a piece and a block of panels that fits into the
 * second cache; results do not depend on the threads that do it.
 */
#include "direct.h"
#include "finish.h"
#include "matrix.h"
#ifdef DTCONV_BFLOAT16
#include "pointwise_in_reals.h"
#endif

enum {
    BLOCK_BYTES = 1 << 20,   /* packed panels that are used at a time */
    PIECE_BYTES = 448 << 10, /* of the copy */
    PIECES = 16,             /* wanted, so that threads have equal shares */
    FEW_COLUMNS = 4,
    FILTER_ROWS = 16, /* that are packed at a time */
    MOST_LINES = 512,
    TILE_BYTES = 28 << 10, /* of the first cache, for a panel and the rows of A that meet it */
    TILES = 4,             /* at most, whose rows meet a panel in one call */
    MOST_ROWS = 64,        /* of these tiles */
};
_Static_assert((int)MOST_ROWS >= (int)TILE_ROWS, "a tile fits");

typedef struct {
    const HT(ukr_row) * ukr;
    const DT(conv_args) * args;
    image read; /* of group 0 */
    int64_t cw, ldw, lda, groups;
    int64_t taps, channels, depth, panels, panel; /* depth: of a step; panel: elements */
    int64_t halves;                               /* of each number: 1, or 2 */
    int64_t tile;                                 /* rows of a call of the micro-kernel */
    int pointwise, joined, by_column, in_place;
    int64_t images, rows, chunks_of_images, chunks_of_rows, chunks;
    int64_t block, blocks, pitch, pixels; /* pixels: most in a copy */
    size_t packed, parts, copied, steps, sums;
    int threads, products;
    int bypass;           /* what is written is the gradient of what was normalized (see DT(conv_reductions)) */
    int64_t low_a, low_b; /* elements from high halves to low ones: of copies, of filters */
    const elem *added;
    elem *written;
    half *filters;
    DT(gather_parts) gathered;
} pass;

/* A thread's own memory. */
typedef struct {
    half *copy;
    dtconv_ukr_step *steps;
    DT(gather_sums) * sums; /* NULL: nothing is gathered */
    real *tile;
} scratch;

/* Pixels that make a tile, and lines of what is read for the next one. */
typedef struct {
    int64_t count, line_count;
    const void *lines[MOST_LINES];
    elem *to[MOST_ROWS];
    const elem *added[MOST_ROWS], *x[MOST_ROWS];
} tile_rows;

static void cut(pass *s) {
    const int64_t width = count_of(&s->read.w, 0), high = count_of(&s->read.h, 0), n = s->read.n;
    s->by_column = !s->pointwise && !s->joined && width <= FEW_COLUMNS && n >= 16;
    s->images =
        s->by_column ? MIN(n, s->ukr->mr > 16 ? 32 : 16) : DT(images_of_chunk)(n, width, s->ukr->rows, s->ukr->mr);
    s->rows = high;
    for (;;) {
        s->pixels =
            s->joined ? s->rows * width * s->images : DT(layout_pixels)(&s->read, s->images, s->rows, s->by_column);
        const int64_t pieces = dtconv_ceil_div(n, s->images) * dtconv_ceil_div(high, s->rows);
        const int large = s->pixels * s->pitch * s->halves * (int64_t)sizeof(half) > PIECE_BYTES;
        if (s->rows == 1 || (!large && (pieces >= PIECES || s->rows <= 4))) break;
        s->rows = MIN(s->rows - 1, dtconv_ceil_div(high, dtconv_ceil_div(high, s->rows) + 1));
    }
    s->chunks_of_images = dtconv_ceil_div(n, s->images);
    s->chunks_of_rows = dtconv_ceil_div(high, s->rows);
    s->chunks = s->chunks_of_images * s->chunks_of_rows * s->read.d.written;
}

/* Pixels in a row: pieces of it. */
static void cut_pointwise(pass *s) {
    const int64_t pixels = s->read.w.written, most = PIECE_BYTES / (s->pitch * s->halves * (int64_t)sizeof(half));
    const int64_t unit = MAX(s->tile, s->ukr->mr * MAX(1, 32 / s->ukr->mr));
    s->images = 1;
    s->rows = dtconv_round_to(MAX(1, MIN(most, dtconv_ceil_div(pixels, PIECES))), unit);
    s->pixels = s->rows;
    s->chunks_of_images = 1;
    s->chunks = s->chunks_of_rows = dtconv_ceil_div(pixels, s->rows);
}

/* Rows of a call: some tiles where these and a panel are in the first cache, which then is loaded once for all. */
static int64_t rows_of_call(const pass *s) {
    const int64_t mr = s->ukr->mr, step = s->depth * (int64_t)sizeof(half);
    const int64_t fit = (TILE_BYTES - s->ukr->nr * step) / (mr * step);
    return s->ukr->fetches ? mr * MAX(1, MIN(MIN(TILES, MOST_ROWS / mr), fit)) : mr;
}

static pass prepare(const dtconv_conv *p, int turned, int products) {
    pass s = {.ukr = HT(ukr_current)(),
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
    s.joined = !strided && s.taps > 1 && p->kd * p->kh <= JOINED_LINES &&
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
    s.blocks = dtconv_ceil_div(s.panels, MAX(1, BLOCK_BYTES / (s.panel * s.halves * (int64_t)sizeof(half))));
    s.block = dtconv_ceil_div(s.panels, s.blocks);
    s.blocks = dtconv_ceil_div(s.panels, s.block);
    s.low_b = s.groups * s.panels * s.panel;
    s.packed = dtconv_round((size_t)(s.halves * s.low_b) * sizeof(half)) + 8192; /* kernels look ahead */
    s.parts = DT(gather_parts_bytes)(s.chunks, s.groups * s.cw);
    const size_t copied = dtconv_round((size_t)((s.pixels + MOST_ROWS) * s.pitch) * sizeof(half));
    s.low_a = products == 1 ? 0 : (int64_t)(copied / sizeof(half));
    s.copied = (size_t)s.halves * copied + 1024;
    s.steps = dtconv_round((size_t)(s.taps * products) * sizeof(dtconv_ukr_step));
    s.sums = DT(gather_sums_bytes)(s.block * s.ukr->nr);
    return s;
}

static size_t of_thread(const pass *s) {
    return s->copied + s->steps + s->sums + sizeof(real) * MOST_ROWS * TILE_COLUMNS;
}

static size_t bytes_of(const pass *s) {
    return s->ukr ? 64 + s->packed + s->parts + (size_t)s->threads * of_thread(s) : 0;
}

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
static void pack_filters(const pass *s) {
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

/* What kernels load while they multiply panel `panel` of a block [first, last): what this tile writes, adds and reduces
 * at its end, and a share of what is read for the next one.  Returns the number of lines. */
static int64_t lines_of_call(const pass *s, const tile_rows *rows, int64_t first, int64_t last, int64_t panel,
                             const void **lines) {
    const int64_t from = rows->line_count * (panel - first) / (last - first), j = panel * s->ukr->nr;
    const int64_t count = rows->line_count * (panel + 1 - first) / (last - first) - from, m = rows->count;
    int64_t made = 0;
    if (!s->ukr->fetches) return 0;
    for (int64_t r = 0; r < m; r++) lines[made++] = rows->to[r] + j;
    if (s->added && s->added != s->written)
        for (int64_t r = 0; r < m; r++) lines[made++] = rows->added[r] + j;
    if (s->gathered.reductions)
        for (int64_t r = 0; r < m; r++) lines[made++] = rows->x[r] + j;
    memcpy(lines + made, rows->lines + from, (size_t)count * sizeof *lines);
    return made + count;
}

/* A tile meets the panels of a block: pixels a, rs_a apart, with the steps at hand. */
static void run_tile(const pass *s, const scratch *own, int64_t group, int64_t block, const half *a, int64_t rs_a,
                     int64_t step_count, const tile_rows *rows) {
    const int64_t nr = s->ukr->nr, first = block * s->block, last = MIN(s->panels, first + s->block);
    const int turned = s->read.w.turned;
    const dtconv_activation activation = turned ? DTCONV_LINEAR : s->args->activation;
    const void *lines[MOST_LINES + 3 * MOST_ROWS];
    elem *to[MOST_ROWS];
    const elem *added[MOST_ROWS];
    HT(ukr_call)
    call = {.m = rows->count,
            .n = nr,
            .k = s->depth,
            .alpha = 1,
            .a = a,
            .rs_a = rs_a,
            .cs_a = 1,
            .c = own->tile,
            .ldc = nr,
            .fetch = lines,
            .steps = own->steps,
            .step_count = step_count};
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t j = panel * nr, n = MIN(nr, s->cw - j);
        const real *bias = turned || !s->args->bias ? NULL : s->args->bias + group * s->cw + j;
        call.b = s->filters + (group * s->panels + panel) * s->panel;
        call.fetch_count = lines_of_call(s, rows, first, last, panel, lines);
        for (int64_t r = 0; r < rows->count; r++) to[r] = rows->to[r] + j;
        for (int64_t r = 0; s->added && r < rows->count; r++) added[r] = rows->added[r] + j;
#ifdef DTCONV_BFLOAT16
        const HT(ukr_finish) finish = {to, s->added ? added : NULL, bias, activation == DTCONV_RELU};
        const int fits = n == nr && !s->bypass && (activation == DTCONV_RELU || activation == DTCONV_LINEAR);
        call.finish = s->ukr->finishes && fits ? &finish : NULL;
#endif
        s->ukr->run(s->ukr, &call);
        if (s->bypass) {
            DT(reductions_bypass)(own->sums, s->gathered.reductions, rows->count, own->tile, nr, rows->to, rows->x, j,
                                  n, group * s->cw + j, j - first * nr, s->args->accumulate);
            continue;
        }
        if (!call.finish) {
            const finishing f = {bias, activation, s->args->alpha};
            DT(finish_tile)(&f, rows->count, n, own->tile, nr, s->added ? added : NULL, to);
        }
        if (own->sums)
            DT(gather_add)(own->sums, &s->gathered, rows->count, rows->to, rows->x, j, n, group * s->cw,
                           j - first * nr);
    }
    if (own->sums) DT(gather_count)(own->sums, rows->count);
}

static void set_row(const pass *s, int64_t group, int64_t pixel, int64_t r, tile_rows *rows) {
    rows->to[r] = s->written + pixel * s->ldw + group * s->cw;
    if (s->added) rows->added[r] = s->added + pixel * s->lda + group * s->cw;
    if (s->gathered.reductions) rows->x[r] = s->args->reductions.x + pixel * s->args->reductions.ldx + group * s->cw;
}

/* Lines of some pixels that begin at x; none where the kernel does not load them. */
static void set_lines(const pass *s, const elem *x, int64_t pixels, tile_rows *rows) {
    const int64_t line = 64 / (int64_t)sizeof(elem);
    rows->line_count = 0;
    if (!s->ukr->fetches) return;
    for (int64_t r = 0; r < pixels; r++)
        for (int64_t c = 0; c < s->channels && rows->line_count < MOST_LINES; c += line)
            rows->lines[rows->line_count++] = x + r * s->read.ld + c;
}

/* Pixels side by side, as they are wanted. */
static void copy_pixels(const pass *s, int64_t group, const elem *x, int64_t count, half *copy) {
    image of = s->read;
    DT(conv_normalization) *f = &of.prologue;
    if (f->mean) {
        f->mean += group * s->channels, f->scale += group * s->channels;
        if (f->beta) f->beta += group * s->channels;
    }
#ifdef DTCONV_BFLOAT16
    if (f->mean && s->depth == s->channels) {
        HT(normalize_rows)(count, s->depth, x, s->read.ld, f->mean, f->scale, f->beta, f->activation == DTCONV_RELU,
                           copy, s->pitch);
        return;
    }
#endif
    for (int64_t i = 0; i < count; i++)
        DT(copy_pixel)(&of, x + i * s->read.ld, s->depth, copy + i * s->pitch, s->low_a);
}

static void run_pointwise(const pass *s, const scratch *own, int64_t group, int64_t block, int64_t chunk) {
    const int64_t tile = s->tile, first = chunk * s->rows, last = MIN(s->read.w.written, first + s->rows);
    const elem *x = s->read.data + group * s->channels;
    tile_rows rows;
    const int64_t count = put_step(s->products, 0, 0, s->low_a, s->low_b, own->steps);
    for (int64_t pixel = first; pixel < last; pixel += tile) {
        const half *a = own->copy;
        int64_t rs_a = s->pitch;
        rows.count = MIN(tile, last - pixel);
        for (int64_t r = 0; r < rows.count; r++) set_row(s, group, pixel + r, r, &rows);
        set_lines(s, x + (pixel + tile) * s->read.ld, MIN(tile, MAX(0, last - pixel - tile)), &rows);
        if (s->in_place && pixel + dtconv_round_to(rows.count, s->ukr->rows) <= s->read.w.written) {
            a = (const half *)(x + pixel * s->read.ld), rs_a = s->read.ld;
        } else {
            copy_pixels(s, group, x + pixel * s->read.ld, rows.count, own->copy);
        }
        run_tile(s, own, group, block, a, rs_a, count, &rows);
    }
}

/* The taps that the pixels of a row meet, or where column is not -1, the pixel of that column. */
static int64_t make_steps(const pass *s, const piece *at, const layout *l, const int64_t *phase, int64_t row,
                          int64_t column, dtconv_ukr_step *steps) {
    const image *x = &s->read;
    int64_t count = 0, down, across;
    for (int64_t kd = 0; kd < x->d.taps; kd++) {
        if (plane_of(x, at->plane, kd) < 0) continue;
        for (int64_t kh = 0; kh < x->h.taps; kh++) {
            if (!offset_of(&x->h, phase[0], kh, &down)) continue;
            const int64_t source = row * step_of(&x->h) + down;
            if (source < 0 || source >= x->h.read) continue;
            for (int64_t kw = 0; kw < x->w.taps; kw++) {
                if (!offset_of(&x->w, phase[1], kw, &across)) continue;
                if (column >= 0) across += column * step_of(&x->w);
                if (column >= 0 && (across < 0 || across >= x->w.read)) continue;
                const int64_t tap = (kd * x->h.taps + kh) * x->w.taps + kw;
                count += put_step(s->products, layout_pixel(l, kd, source, across) * l->pitch,
                                  tap * s->depth * s->ukr->nr, s->low_a, s->low_b, steps + count);
            }
        }
    }
    return count;
}

/* One row of one phase: tiles of its pixels, all images of the piece. */
static void run_row(const pass *s, const scratch *own, int64_t group, int64_t block, const piece *at, const layout *l,
                    const int64_t *phase, int64_t row) {
    const image *x = &s->read;
    const int64_t width = count_of(&x->w, phase[1]), images = at->images, tile = s->tile;
    const int64_t down = phases_of(&x->h), across = phases_of(&x->w);
    const int64_t unit = s->by_column ? images : width * images; /* tiles do not go past it */
    const int64_t line = (at->plane * x->h.written + phase[0] + row * down) * x->w.written + phase[1];
    const int64_t image_size = x->d.written * x->h.written * x->w.written;
    int64_t count = 1;
    if (s->joined)
        count = put_step(s->products, (row - at->row) * width * images * s->pitch, 0, s->low_a, s->low_b, own->steps);
    else if (!s->by_column)
        count = make_steps(s, at, l, phase, row, -1, own->steps);
    tile_rows rows;
    rows.line_count = 0;
    for (int64_t begin = 0; begin < width * images; begin += unit) {
        if (s->by_column) count = make_steps(s, at, l, phase, row, begin / images, own->steps);
        for (int64_t q = 0; q < unit; q += tile) {
            rows.count = MIN(tile, unit - q);
            int64_t column = (begin + q) / images, i = (begin + q) % images;
            for (int64_t r = 0; r < rows.count; r++) {
                set_row(s, group, (at->first + i) * image_size + line + column * across, r, &rows);
                if (++i == images) i = 0, column++;
            }
            run_tile(s, own, group, block, own->copy + q * s->pitch, s->pitch, count, &rows);
        }
    }
}

static void run_piece(const pass *s, const scratch *own, int64_t group, int64_t block, int64_t chunk) {
    image x = s->read;
    x.data += group * s->channels;
    if (x.prologue.mean) {
        x.prologue.mean += group * s->channels, x.prologue.scale += group * s->channels;
        if (x.prologue.beta) x.prologue.beta += group * s->channels;
    }
    piece at = {.first = chunk % s->chunks_of_images * s->images,
                .row = chunk / s->chunks_of_images % s->chunks_of_rows * s->rows,
                .plane = chunk / s->chunks_of_images / s->chunks_of_rows};
    at.images = MIN(s->images, x.n - at.first);
    at.rows = MIN(s->rows, count_of(&x.h, 0) - at.row);
    const layout l = DT(layout_of)(&x, &at, s->pitch, s->by_column);
    if (s->joined)
        DT(join_piece)(&x, &at, s->depth, s->pitch, own->copy, s->low_a);
    else
        DT(copy_piece)(&x, &at, &l, s->depth, own->copy, s->low_a);
    for (int64_t row = at.row; row < at.row + at.rows; row++) {
        int64_t phase[2];
        for (phase[0] = 0; phase[0] < phases_of(&x.h); phase[0]++) {
            if (row >= count_of(&x.h, phase[0])) continue;
            for (phase[1] = 0; phase[1] < phases_of(&x.w); phase[1]++)
                if (count_of(&x.w, phase[1]) > 0) run_row(s, own, group, block, &at, &l, phase, row);
        }
    }
}

static void run_unit(const pass *s, int64_t unit, const scratch *own) {
    const int64_t chunk = unit % s->chunks, block = unit / s->chunks % s->blocks, group = unit / s->chunks / s->blocks;
    if (own->sums) DT(gather_begin)(own->sums);
    if (s->pointwise)
        run_pointwise(s, own, group, block, chunk);
    else
        run_piece(s, own, group, block, chunk);
    const int64_t j = block * s->block * s->ukr->nr, n = MIN(s->block * s->ukr->nr, s->cw - j);
    if (own->sums) DT(gather_end)(own->sums, &s->gathered, chunk, group * s->cw + j, n);
}

static dtconv_status run(pass *s, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (!s->ukr) return DTCONV_KERNEL;
    if (bytes < bytes_of(s)) return DTCONV_WORKSPACE;
    const int turned = s->read.w.turned;
    s->args = a;
    s->read.data = turned ? a->y : a->x;
    s->written = turned ? a->x : a->y;
    s->added = !turned ? a->residual : a->accumulate ? a->x : NULL;
    s->lda = turned ? s->ldw : a->ldr;
    s->bypass = turned && a->reductions.sum && a->reductions.bypass;
    if (s->bypass) s->added = NULL;
    if (!turned) s->read.prologue = a->prologue;
    s->in_place = sizeof(elem) == sizeof(half) && s->depth == s->channels && !s->read.prologue.mean &&
                  s->read.ld * (int64_t)sizeof(elem) % 4096 != 0;
    s->filters = (half *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s->filters + s->packed;
    s->gathered = DT(gather_parts_on)(memory, s->chunks, s->groups * s->cw, a, turned);
    memory += s->parts;
#pragma omp parallel num_threads(s->threads)
    {
        pack_filters(s);
        char *mine = memory + (size_t)dtconv_thread_id() * of_thread(s);
        DT(gather_sums) sums = DT(gather_sums_on)(mine + s->copied + s->steps, s->block * s->ukr->nr);
        const scratch own = {.copy = (half *)mine,
                             .steps = (dtconv_ukr_step *)(mine + s->copied),
                             .sums = s->gathered.wanted ? &sums : NULL,
                             .tile = (real *)(mine + s->copied + s->steps + s->sums)};
        if (s->ukr->begin) s->ukr->begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s->groups * s->chunks * s->blocks; unit++) run_unit(s, unit, &own);
        if (s->ukr->end) s->ukr->end();
        DT(gather_merge)(&s->gathered);
    }
    return DTCONV_OK;
}

#ifdef DTCONV_BFLOAT16
#define PASS(direction, turned)                                                                               \
    size_t DT(conv_direct_##direction##_workspace)(const dtconv_conv *p) {                                    \
        const pass s = prepare(p, turned, 1);                                                                 \
        return DT(in_reals)(p) ? DT(pointwise_in_reals_workspace)(p, turned) : bytes_of(&s);                  \
    }                                                                                                         \
    dtconv_status DT(conv_direct_##direction)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, \
                                              size_t bytes) {                                                 \
        if (DT(in_reals)(p)) return DT(pointwise_in_reals)(p, turned, a, workspace, bytes);                   \
        pass s = prepare(p, turned, 1);                                                                       \
        return run(&s, a, workspace, bytes);                                                                  \
    }

PASS(forward, 0)
PASS(backward_data, 1)
#else
#define PASS(algorithm, direction, turned, products)                                                                 \
    size_t DT(conv_##algorithm##_##direction##_workspace)(const dtconv_conv *p) {                                    \
        const pass s = prepare(p, turned, products);                                                                 \
        return bytes_of(&s);                                                                                         \
    }                                                                                                                \
    dtconv_status DT(conv_##algorithm##_##direction)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, \
                                                     size_t bytes) {                                                 \
        pass s = prepare(p, turned, products);                                                                       \
        return run(&s, a, workspace, bytes);                                                                         \
    }

PASS(direct_bf16, forward, 0, 1)
PASS(direct_bf16, backward_data, 1, 1)
PASS(direct_bf16x3, forward, 0, 3)
PASS(direct_bf16x3, backward_data, 1, 3)
#endif
