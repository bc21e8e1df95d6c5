/* Direct convolution by products of bfloat16, forward and backward_data: a product of matrices whose left operand is
 * read from a copy of the image in the cache, tap by tap.
 *
 *   forward         y[pixel, co] = sum over taps, c   x[pixel * stride - pad + tap * dilation, c] * w[tap, c, co]
 *   backward_data  dx[pixel, ci] = sum over taps, co dy[(pixel + pad - tap * dilation) / stride, co] * w[tap, ci, co]
 *
 * Both gather: a pixel that is written sums over the taps that meet an existing pixel, in float32, and is written once.
 * A piece of the image (images and rows) is copied such that the pixels that a tile reads with a tap lie at one
 * distance (bfloat16_direct_copy.c); then tiles of MR pixels meet panels of NR filters.  Where an image has few
 * columns, a tile is one pixel of many images, and taps on padding are left out.  Where channels are few, the copy is
 * the matrix of im2col. Pointwise convolutions read x in place.  Each tile is finished while it is in the first cache
 * (bfloat16_finish.c), and what is gathered is gathered there (../conv/gather.h).
 *
 * Images in float32 (direct_bf16, direct_bf16x3) are rounded, or split in two halves, as they are copied, and so are
 * filters as they are packed; three products of halves are three steps of a sum.
 *
 * Without products of bfloat16 numbers are widened in the copy, and those of float32 multiply them: this file is
 * compiled once more where WIDENED is defined (bfloat16_direct_widened.c; pointwise convolutions:
 * bfloat16_pointwise.c).
 *
 * Filters are packed once per call (bfloat16_direct_pass.c).  A unit of work is a piece and a block of panels that fits
 * into the second cache; results do not depend on the threads that do it.
 */
#include "bfloat16_direct_pass.h"
#ifdef DTCONV_BFLOAT16
#include "bfloat16_pointwise.h"
#endif

/* A thread's own memory. */
typedef struct {
    number *copy;
    term *terms;
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

/* What kernels load while they multiply panel `panel` of a block [first, last): what this tile writes, adds and reduces
 * at its end, and a share of what is read for the next one.  Returns the number of lines. */
static int64_t lines_of_call(const pass *s, const tile_rows *rows, int64_t first, int64_t last, int64_t panel,
                             const void **lines) {
    const int64_t from = rows->line_count * (panel - first) / (last - first), j = panel * s->ukr->nr;
    const int64_t count = rows->line_count * (panel + 1 - first) / (last - first) - from, m = rows->count;
    int64_t made = 0;
    if (!s->ukr->fetches) return 0;
    for (int64_t r = 0; !WIDENS && r < m; r++) lines[made++] = rows->to[r] + j;
    if (s->added && s->added != s->written)
        for (int64_t r = 0; r < m; r++) lines[made++] = rows->added[r] + j;
    if (s->gathered.reductions)
        for (int64_t r = 0; r < m; r++) lines[made++] = rows->x[r] + j;
    if (count) memcpy(lines + made, rows->lines + from, (size_t)count * sizeof *lines);
    return made + count;
}

/* A tile that meets a panel; `to`: where its rows will be written. */
typedef struct {
    const number *a, *b;
    int64_t rs_a, m, n, term_count;
    elem *const *to;
    const void *const *lines; /* to be loaded meanwhile */
    int64_t line_count;
} product;

#ifdef WIDENED
/* Rows of the next call, of `left`: the tiles of all have about the same heights. */
static int64_t height_of(int64_t left, int64_t most) {
    const int64_t tiles = dtconv_ceil_div(left, DIRECT_MR), here = MIN(tiles, most / DIRECT_MR);
    return here == tiles ? left : dtconv_ceil_div(left * here, tiles);
}

/* The product's sums, in the thread's tile; or, where the kernel can, finished and written.  Returns whether they are.
 */
static int multiply(const pass *s, const scratch *own, const product *c, const elem *const *added, const finishing *f) {
    const int finished = !s->bypass && (f->activation == DTCONV_RELU || f->activation == DTCONV_LINEAR);
    DT(direct_tile) t; /* it would take as long to set all of it as some steps of the sum */
    t.segments = own->terms, t.segment_count = c->term_count;
    t.a_step = 1, t.b_step = DIRECT_NR;
    t.scale = NULL;
    t.add = added != NULL, t.relu = f->activation == DTCONV_RELU;
    t.beside = finished ? NULL : own->tile;
    t.ahead = c->lines, t.ahead_count = c->line_count;
    const int64_t tiles = dtconv_ceil_div(c->m, DIRECT_MR), height = c->m / tiles, higher = c->m - tiles * height;
    for (int64_t tile = 0, r = 0, m; tile < tiles; tile++, r += m, t.ahead_count = 0) {
        m = height + (tile < higher);
        for (int64_t i = 0; i < m; i++) t.a[i] = c->a + (r + i) * c->rs_a, t.c[i] = c->to[r + i];
        for (int64_t i = 0; added && i < m; i++) t.added[i] = added[r + i];
        if (t.beside) t.beside = own->tile + r * DIRECT_NR;
        DT(direct_run_tile)(&t, m, c->n, c->b, finished ? f->bias : NULL, 0);
    }
    return finished;
}

/* Adds a term to a sum of `count`; one that goes on where the last one ends becomes a part of it.  Returns their
 * number. */
static int64_t put_term(const pass *s, int64_t a, int64_t b, term *terms, int64_t count) {
    term *last = terms + count - 1;
    if (count && last->a + last->count == a && last->b + last->count * DIRECT_NR == b) {
        last->count += s->depth;
        return count;
    }
    terms[count] = (term){a, b, s->depth};
    return count + 1;
}
#else
static int64_t height_of(int64_t left, int64_t most) { return MIN(left, most); }

/* The product's sums, in the thread's tile; or, where the kernel can, finished and written.  Returns whether they are.
 */
static int multiply(const pass *s, const scratch *own, const product *c, const elem *const *added, const finishing *f) {
    HT(ukr_call)
    call = {.m = c->m,
            .n = s->ukr->nr,
            .k = s->depth,
            .alpha = 1,
            .a = c->a,
            .rs_a = c->rs_a,
            .cs_a = 1,
            .b = c->b,
            .c = own->tile,
            .ldc = s->ukr->nr,
            .fetch = c->lines,
            .fetch_count = c->line_count,
            .steps = own->terms,
            .step_count = c->term_count};
#ifdef DTCONV_BFLOAT16
    const HT(ukr_finish) finish = {c->to, added, f->bias, f->activation == DTCONV_RELU};
    const int fits =
        c->n == s->ukr->nr && !s->bypass && (f->activation == DTCONV_RELU || f->activation == DTCONV_LINEAR);
    call.finish = s->ukr->finishes && fits ? &finish : NULL;
#else
    (void)added, (void)f;
#endif
    s->ukr->run(s->ukr, &call);
    return call.finish != NULL;
}

/* Adds a term to a sum of `count`.  Returns their number. */
static int64_t put_term(const pass *s, int64_t a, int64_t b, term *terms, int64_t count) {
    return count + put_step(s->products, a, b, s->low_a, s->low_b, terms + count);
}
#endif

/* Gradients of pixels that no tap meets, channels of panels [first, last). */
static void pass_over(const pass *s, const scratch *own, int64_t group, int64_t first, int64_t last,
                      const tile_rows *rows) {
    const int64_t j = first * s->ukr->nr, n = MIN(last * s->ukr->nr, s->cw) - j;
    for (int64_t r = 0; !s->added && r < rows->count; r++) memset(rows->to[r] + j, 0, (size_t)n * sizeof(elem));
    if (!own->sums) return;
    DT(gather_add)(own->sums, &s->gathered, rows->count, rows->to, rows->x, j, n, group * s->cw, 0);
    DT(gather_count)(own->sums, rows->count);
}

/* A tile meets the panels of a block: pixels a, rs_a apart, with the terms at hand. */
static void run_tile(const pass *s, const scratch *own, int64_t group, int64_t block, const number *a, int64_t rs_a,
                     int64_t term_count, const tile_rows *rows) {
    const int64_t nr = s->ukr->nr, first = block * s->block, last = MIN(s->panels, first + s->block);
    const int turned = s->read.w.turned;
    const dtconv_activation activation = turned ? DTCONV_LINEAR : s->args->activation;
    const void *lines[MOST_LINES + 3 * MOST_ROWS];
    elem *to[MOST_ROWS];
    const elem *added[MOST_ROWS];
    if (WIDENS && turned && !term_count && !s->bypass) {
        pass_over(s, own, group, first, last, rows);
        return;
    }
    product call = {.m = rows->count, .a = a, .rs_a = rs_a, .term_count = term_count, .lines = lines, .to = to};
    for (int64_t panel = first; panel < last; panel++) {
        const int64_t j = panel * nr, n = MIN(nr, s->cw - j);
        const real *bias = turned || !s->args->bias ? NULL : s->args->bias + group * s->cw + j;
        call.b = s->filters + (group * s->panels + panel) * s->panel;
        call.line_count = lines_of_call(s, rows, first, last, panel, lines);
        for (int64_t r = 0; r < rows->count; r++) to[r] = rows->to[r] + j;
        for (int64_t r = 0; s->added && r < rows->count; r++) added[r] = rows->added[r] + j;
        const finishing f = {bias, activation, s->args->alpha};
        call.n = n;
        const int finished = multiply(s, own, &call, s->added ? added : NULL, &f);
        if (s->bypass) {
            DT(reductions_bypass)(own->sums, s->gathered.reductions, rows->count, own->tile, nr, rows->to, rows->x, j,
                                  n, group * s->cw + j, j - first * nr, s->args->accumulate);
            continue;
        }
        if (!finished) DT(finish_tile)(&f, rows->count, n, own->tile, nr, s->added ? added : NULL, to);
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

#ifndef WIDENED /* bfloat16_pointwise.c */
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
        WAY(copy_pixel)(&of, x + i * s->read.ld, s->depth, copy + i * s->pitch, s->low_a);
}

static void run_pointwise(const pass *s, const scratch *own, int64_t group, int64_t block, int64_t chunk) {
    const int64_t tile = s->tile, first = chunk * s->rows, last = MIN(s->read.w.written, first + s->rows);
    const elem *x = s->read.data + group * s->channels;
    tile_rows rows;
    const int64_t count = put_term(s, 0, 0, own->terms, 0);
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

#endif

/* The taps that the pixels of a row meet, or where column is not -1, the pixel of that column. */
static int64_t make_terms(const pass *s, const piece *at, const layout *l, const int64_t *phase, int64_t row,
                          int64_t column, term *terms) {
    const image *x = &s->read;
    int64_t count = 0, down, across;
    for (int64_t kd = 0; kd < x->d.taps; kd++) {
        if (plane_of(x, at->plane, kd) < 0) continue;
        for (int64_t kh = 0; kh < x->h.taps; kh++) {
            if (!offset_of(&x->h, phase[0], kh, &down)) continue;
            const int64_t source = row * step_of(&x->h) + down;
            if (source < 0 || source >= x->h.read) continue;
            for (int64_t i = 0; i < x->w.taps; i++) {
                const int64_t kw = WIDENS && x->w.turned ? x->w.taps - 1 - i : i; /* columns ascend */
                if (!offset_of(&x->w, phase[1], kw, &across)) continue;
                if (column >= 0) across += column * step_of(&x->w);
                if (column >= 0 && (across < 0 || across >= x->w.read)) continue;
                const int64_t tap = (kd * x->h.taps + kh) * x->w.taps + i; /* as filters are packed */
                count = put_term(s, layout_pixel(l, kd, source, across) * l->pitch, tap * s->depth * s->ukr->nr, terms,
                                 count);
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
        count = put_term(s, (row - at->row) * width * images * s->pitch, 0, own->terms, 0);
    else if (!s->by_column)
        count = make_terms(s, at, l, phase, row, -1, own->terms);
    tile_rows rows;
    rows.line_count = 0;
    for (int64_t begin = 0; begin < width * images; begin += unit) {
        if (s->by_column) count = make_terms(s, at, l, phase, row, begin / images, own->terms);
        for (int64_t q = 0; q < unit; q += rows.count) {
            rows.count = height_of(unit - q, tile);
            int64_t column = (begin + q) / images, i = (begin + q) % images;
            for (int64_t r = 0; r < rows.count; r++) {
                set_row(s, group, (at->first + i) * image_size + line + column * across, r, &rows);
                if (++i == images) i = 0, column++;
            }
            run_tile(s, own, group, block, own->copy + q * s->apart, s->apart, count, &rows);
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
    layout l = DT(layout_of)(&x, &at, s->pitch, s->by_column);
    if (s->in_order) l.columns *= l.phases, l.phases = 1;
#ifndef WIDENED
    if (s->joined)
        WAY(join_piece)(&x, &at, s->depth, s->pitch, own->copy, s->low_a);
    else
#endif
        WAY(copy_piece)(&x, &at, &l, s->depth, own->copy, s->low_a);
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
#ifndef WIDENED
    if (s->pointwise)
        run_pointwise(s, own, group, block, chunk);
    else
#endif
        run_piece(s, own, group, block, chunk);
    const int64_t j = block * s->block * s->ukr->nr, n = MIN(s->block * s->ukr->nr, s->cw - j);
    if (own->sums) DT(gather_end)(own->sums, &s->gathered, chunk, group * s->cw + j, n);
}

static dtconv_status run(pass *s, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (!s->ukr) return DTCONV_KERNEL;
    if (bytes < WAY(bytes)(s)) return DTCONV_WORKSPACE;
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
    s->filters = (number *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s->filters + s->packed;
    s->gathered = DT(gather_parts_on)(memory, s->chunks, s->groups * s->cw, a, turned);
    memory += s->parts;
#pragma omp parallel num_threads(s->threads)
    {
        WAY(pack_filters)(s);
        char *mine = memory + (size_t)dtconv_thread_id() * WAY(bytes_of_thread)(s);
        DT(gather_sums) sums = DT(gather_sums_on)(mine + s->copied + s->terms, s->block * s->ukr->nr);
        const scratch own = {.copy = (number *)mine,
                             .terms = (term *)(mine + s->copied),
                             .sums = s->gathered.wanted ? &sums : NULL,
                             .tile = (real *)(mine + s->copied + s->terms + s->sums)};
        if (s->ukr->begin) s->ukr->begin();
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s->groups * s->chunks * s->blocks; unit++) run_unit(s, unit, &own);
        if (s->ukr->end) s->ukr->end();
        DT(gather_merge)(&s->gathered);
    }
    return DTCONV_OK;
}

#ifdef DTCONV_BFLOAT16
size_t WAY(workspace)(const dtconv_conv *p, int turned) {
    const pass s = WAY(prepare)(p, turned, 1);
    return WAY(bytes)(&s);
}

dtconv_status WAY(run)(const dtconv_conv *p, int turned, const DT(conv_args) * a, void *workspace, size_t bytes) {
    pass s = WAY(prepare)(p, turned, 1);
    return run(&s, a, workspace, bytes);
}

#ifndef WIDENED
size_t DT(direct_widened_workspace)(const dtconv_conv *p, int turned);
dtconv_status DT(direct_widened_run)(const dtconv_conv *p, int turned, const DT(conv_args) * a, void *workspace,
                                     size_t bytes);

/* How a pass is done: pairs are multiplied, or, by kernels that would widen them for each use, what is widened once. */
typedef struct {
    size_t (*workspace)(const dtconv_conv *p, int turned);
    dtconv_status (*run)(const dtconv_conv *p, int turned, const DT(conv_args) * a, void *workspace, size_t bytes);
} way;

static way way_of(const dtconv_conv *p) {
    const HT(ukr_row) *ukr = HT(ukr_current)();
    if (DT(in_reals)(p)) return (way){DT(pointwise_in_reals_workspace), DT(pointwise_in_reals)};
    if (ukr && ukr->widens && !ukr->models_amx) return (way){DT(direct_widened_workspace), DT(direct_widened_run)};
    return (way){WAY(workspace), WAY(run)};
}

#define PASS(direction, turned)                                                                                     \
    size_t DT(conv_direct_##direction##_workspace)(const dtconv_conv *p) { return way_of(p).workspace(p, turned); } \
    dtconv_status DT(conv_direct_##direction)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,       \
                                              size_t bytes) {                                                       \
        return way_of(p).run(p, turned, a, workspace, bytes);                                                       \
    }

PASS(forward, 0)
PASS(backward_data, 1)
#endif
#else
#define PASS(algorithm, direction, turned, products)                                                                 \
    size_t DT(conv_##algorithm##_##direction##_workspace)(const dtconv_conv *p) {                                    \
        const pass s = WAY(prepare)(p, turned, products);                                                            \
        return WAY(bytes)(&s);                                                                                       \
    }                                                                                                                \
    dtconv_status DT(conv_##algorithm##_##direction)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, \
                                                     size_t bytes) {                                                 \
        pass s = WAY(prepare)(p, turned, products);                                                                  \
        return run(&s, a, workspace, bytes);                                                                         \
    }

PASS(direct_bf16, forward, 0, 1)
PASS(direct_bf16, backward_data, 1, 1)
PASS(direct_bf16x3, forward, 0, 3)
PASS(direct_bf16x3, backward_data, 1, 3)
#endif
