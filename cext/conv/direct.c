/* Direct convolution, forward and backward_data: a matrix product that reads the images in place and skips taps that
 * fall on padding.
 *
 *   forward         y[pixel, co] = sum over taps, c   x[pixel * stride - pad + tap * dilation, c] * w[tap, c, co]
 *   backward_data  dx[pixel, ci] = sum over taps, co dy[(pixel + pad - tap * dilation) / stride, co] * w[tap, ci, co]
 *
 * Both gather: each pixel that is written sums over the taps that meet an existing pixel (of backward_data those of the
 * stride's phase), in registers, and is written once, with bias and activation; nothing is scattered.  Pixels that read
 * the same taps form a class (dtconv_axis_class), and any of them make a tile of the micro-kernel, so borders cost
 * only the taps that they have.  Where channels and taps of a row lie side by side, they are one run.
 *
 * Filters are packed once per call into panels of NR channels; a block of panels stays in L2 while the pixels of a
 * chunk pass by, tile after tile, and each tile meets all panels of the block while its pixels are in L1.  A unit of
 * work is a chunk (images, or rows of an image) and a block.  Results do not depend on how the work is cut; what is
 * gathered on request (gather.h) is merged from the parts of the chunks.
 */
#include "direct.h"
#include "gather.h"

enum {
    BLOCK_BYTES = 576 << 10, /* packed panels that are used at a time */
    CHUNK_BYTES = 384 << 10, /* images that are read in a chunk */
    UNITS = 6,               /* wanted for each thread */
    SETS_BYTES = 4096,       /* rows at multiples of this fall into the same sets of L1 */
};

typedef struct {
    dtconv_axis h, w;
    int64_t n, groups, cr, cw;       /* images; groups; channels of a group that are read and written */
    int64_t ldr, ldw;                /* distance of pixels */
    int64_t depth, panels;           /* rows of a panel; panels of a group */
    int64_t rows, images;            /* of a chunk: rows of one image, or whole images (rows: all of one) */
    int64_t chunks, block, blocks;   /* panels of a block, blocks of a group */
    size_t packed, segments, copied; /* bytes */
    size_t sums, parts;              /* bytes of what a thread gathers, and of the parts of all chunks */
    DT(gather_parts) gathered;       /* used where something is to be gathered */
    const DT(conv_args) * args;
    const real *read, *added; /* added: to what is written; NULL for none */
    int64_t lda;              /* distance of its pixels */
    real *written, *filters;
    int turned;
} pass_state;

/* A thread's own memory. */
typedef struct {
    dtconv_segment *segments;
    real *rows;
    DT(gather_sums) * sums; /* NULL: not wanted */
} scratch;

/* Chunks of as much as fits into the cache, and at least some units for each thread: where images are too few for that,
 * by fewer panels in a block, as borders within an image cost; then by smaller chunks. */
static void cut(pass_state *s) {
    const int64_t panel = s->depth * DIRECT_NR * (int64_t)sizeof(real), units = UNITS * dtconv_get_num_threads();
    const int64_t image = s->h.written * s->w.written, pixels = s->n * image;
    const int64_t read = s->n * s->h.read * s->w.read * s->cr * (int64_t)sizeof(real);
    const int64_t chunks = dtconv_ceil_div(read, CHUNK_BYTES);
    s->blocks = dtconv_ceil_div(s->panels, MAX(1, BLOCK_BYTES / panel));
    if (s->w.written > 1 && s->n * s->blocks * s->groups < units)
        s->blocks = MAX(s->blocks, MIN(s->panels, units / (s->groups * chunks)));
    s->block = dtconv_ceil_div(s->panels, s->blocks);
    s->blocks = dtconv_ceil_div(s->panels, s->block);
    int64_t chunk = MIN(dtconv_ceil_div(pixels, chunks), dtconv_ceil_div(pixels * s->blocks * s->groups, units));
    chunk = dtconv_round_to(MAX(chunk, 4 * DIRECT_MR), DIRECT_MR);
    if (chunk < image) {
        s->images = 1;
        s->rows = dtconv_ceil_div(chunk, s->w.written);
        if (s->w.written > 1) s->rows = dtconv_ceil_div(s->h.written, MAX(1, s->h.written / s->rows));
    } else {
        s->images = MIN(s->n, chunk / image);
        s->images = dtconv_ceil_div(s->n, dtconv_ceil_div(s->n, s->images));
        s->rows = s->h.written;
    }
    s->chunks = dtconv_ceil_div(s->n, s->images) * dtconv_ceil_div(s->h.written, s->rows);
}

static pass_state prepare(const dtconv_conv *p, int backward_data) {
    pass_state s = {.n = p->n, .groups = p->groups, .turned = backward_data};
    const int64_t ci = p->ci / p->groups, co = p->co / p->groups;
    s.h = DT(direct_axis)(p->ih, p->oh, p->kh, p->sh, p->dil_h, p->pad_t, backward_data);
    s.w = DT(direct_axis)(p->iw, p->ow, p->kw, p->sw, p->dil_w, p->pad_l, backward_data);
    if (dtconv_is_pointwise(p)) { /* one column of pixels */
        s.n = s.w.written = s.w.read = 1;
        s.h.written = s.h.read = dtconv_rows(p);
    }
    s.cr = backward_data ? co : ci, s.cw = backward_data ? ci : co;
    s.ldr = backward_data ? p->ldy : p->ldx, s.ldw = backward_data ? p->ldx : p->ldy;
    s.depth = p->kh * p->kw * s.cr;
    s.panels = dtconv_ceil_div(s.cw, DIRECT_NR);
    cut(&s);
    s.packed = dtconv_round((size_t)(s.groups * s.panels * s.depth * DIRECT_NR) * sizeof(real));
    s.segments = dtconv_round((size_t)(p->kh * p->kw) * sizeof(dtconv_segment));
    s.copied = (size_t)(DIRECT_MR * (dtconv_line(s.cr) * (int64_t)sizeof(real) + 64));
    s.sums = DT(gather_sums_bytes)(s.block * DIRECT_NR);
    s.parts = DT(gather_parts_bytes)(s.chunks, s.groups * s.cw);
    return s;
}

static size_t bytes_of(const pass_state *s) {
    return 64 + s->packed + s->parts + (size_t)dtconv_get_num_threads() * (s->segments + s->copied + s->sums);
}

static const real *panel_of(const pass_state *s, int64_t group, int64_t panel) {
    return s->filters + (group * s->panels + panel) * s->depth * DIRECT_NR;
}

/* Panels of NR channels; row (tap, channel that is read), taps as the axes count them. */
static void pack_filters(const pass_state *s) {
    const int64_t taps = s->h.taps * s->w.taps, columns = s->groups * (s->turned ? s->cr : s->cw);
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->panels * taps; unit++) {
        const int64_t tap = unit % taps, panel = unit / taps % s->panels, group = unit / taps / s->panels;
        const int64_t from = s->turned ? taps - 1 - tap : tap, j = panel * DIRECT_NR;
        const real *w = s->args->w + from * (s->turned ? s->cw : s->cr) * columns;
        const DT(matrix) plain = {w + group * s->cw, columns, 1}, trans = {w + group * s->cr, 1, columns};
        DT(pack_b_matrix)(s->turned ? &trans : &plain, 0, s->cr, j, MIN(DIRECT_NR, s->cw - j), DIRECT_NR,
                          (real *)panel_of(s, group, panel) + tap * s->cr * DIRECT_NR);
    }
}

/* The steps of a class: a run per row of taps where its channels lie side by side, else one per tap. */
static int64_t make_segments(const pass_state *s, const dtconv_axis_class *h, const dtconv_axis_class *w,
                             dtconv_segment *segments) {
    const int whole = s->groups == 1 && s->ldr == s->cr && w->tap_step == 1 && w->tap_distance == 1;
    const int64_t runs = whole ? MIN(w->taps, 1) : w->taps, count = whole ? w->taps * s->cr : s->cr;
    int64_t made = 0;
    for (int64_t i = 0; i < h->taps; i++)
        for (int64_t j = 0; j < runs; j++) {
            const int64_t tap = (h->tap + i * h->tap_step) * s->w.taps + w->tap + j * w->tap_step;
            const int64_t pixel = i * h->tap_distance * s->w.read + j * w->tap_distance;
            segments[made++] = (dtconv_segment){pixel * s->ldr, tap * s->cr * DIRECT_NR, count};
        }
    return made;
}

/* A walk through the pixels of a class: along rows, or along a column where a row has one pixel only. */
typedef struct {
    int64_t outer, inner;              /* pixels of an image */
    int64_t a_image, a_outer, a_inner; /* elements to the next in what is read */
    int64_t c_image, c_outer, c_inner; /* and pixels in what is written */
    int64_t i, j;                      /* the place */
    const real *a, *added;
    real *c;
    int64_t pixel, ldc, lda; /* from c and added on */
} walk;

static walk begin_walk(const pass_state *s, int64_t group, int64_t image, const dtconv_axis_class *h,
                       const dtconv_axis_class *w) {
    const int64_t row = s->w.read * s->ldr, line = s->w.written;
    walk k = {.outer = h->count, .inner = w->count, .ldc = s->ldw, .lda = s->lda};
    k.a_image = s->h.read * row, k.a_outer = h->source_step * row, k.a_inner = w->source_step * s->ldr;
    k.c_image = s->h.written * line, k.c_outer = h->step * line, k.c_inner = w->step;
    k.a = s->read + group * s->cr + image * k.a_image + h->source * row + w->source * s->ldr;
    k.c = s->written + group * s->cw;
    k.added = s->added ? s->added + group * s->cw : k.c;
    k.pixel = image * k.c_image + h->first * line + w->first;
    if (w->count == 1) {
        k.outer = 1, k.inner = h->count;
        k.a_inner = k.a_outer, k.c_inner = k.c_outer;
    }
    if (!h->taps || !w->taps) k.a = s->read, k.a_image = k.a_outer = k.a_inner = 0;
    return k;
}

/* The next `count` pixels as rows of a tile. */
static void next_rows(walk *k, int64_t count, DT(direct_tile) * t) {
    for (int64_t r = 0; r < count;) {
        const int64_t end = MIN(count, r + k->inner - k->j);
        const real *a = k->a;
        int64_t pixel = k->pixel;
        k->j += end - r;
        for (; r < end; r++, a += k->a_inner, pixel += k->c_inner)
            t->a[r] = a, t->c[r] = k->c + pixel * k->ldc, t->added[r] = k->added + pixel * k->lda;
        k->a = a, k->pixel = pixel;
        if (k->j < k->inner) return;
        k->j = 0;
        k->a -= k->inner * k->a_inner, k->pixel -= k->inner * k->c_inner;
        k->a += k->a_outer, k->pixel += k->c_outer;
        if (++k->i < k->outer) continue;
        k->i = 0;
        k->a += k->a_image - k->outer * k->a_outer, k->pixel += k->c_image - k->outer * k->c_outer;
    }
}

/* Activations that the micro-kernel does not have. */
static void activate(const pass_state *s, const DT(direct_tile) * t, int64_t rows, int64_t column, int64_t n) {
    const DT(bias_activation) finish = {.activation = s->args->activation, .alpha = s->args->alpha};
    for (int64_t r = 0; r < rows; r++) DT(bias_activation_epilogue)(&finish, 0, 1, column, n, t->c[r] + column, n);
}

/* Copies the rows of a pointwise tile, of `channels` elements, to rows that do not fall into the same sets of L1;
 * reading: normalized, or NULL. */
static void copy_rows(int64_t rows, int64_t channels, const DT(conv_normalization) * reading, DT(direct_tile) * t,
                      real *copy) {
    const int64_t ld = dtconv_line(channels) + 64 / (int64_t)sizeof(real);
    for (int64_t r = 0; r < rows; r++, copy += ld) {
        if (reading)
            DT(direct_normalize)(reading, channels, t->a[r], copy);
        else
            memcpy(copy, t->a[r], (size_t)channels * sizeof(real));
        t->a[r] = copy;
    }
}

/* The pixels of what was normalized that belong to those of a tile; `step`: mostly the pixels from one to the next. */
static void find_normalized(const pass_state *s, int64_t group, int64_t step, int64_t rows, real *const *pixels,
                            const real **x) {
    const DT(conv_slopes) *of = &s->args->slopes;
    const int64_t c_step = step * s->ldw, x_step = step * of->ldx;
    for (int64_t r = 0; r < rows; r++) {
        if (r && pixels[r] - pixels[r - 1] == c_step)
            x[r] = x[r - 1] + x_step;
        else
            x[r] = of->x + group * s->cw + (pixels[r] - s->written) / s->ldw * of->ldx;
    }
}

/* Adds channels [j, j + n) of a tile to what is gathered; first: the first channel of the unit. */
static void gather(const pass_state *s, const scratch *own, int64_t group, int64_t rows, real *const *pixels,
                   const real *const *x, int64_t first, int64_t j, int64_t n) {
    DT(conv_slopes) of = s->args->slopes;
    if (!s->turned) {
        DT(moments_add)(own->sums, rows, pixels, j, j - first, n);
        return;
    }
    of.mean += group * s->cw, of.scale += group * s->cw;
    if (of.beta) of.beta += group * s->cw;
    DT(slopes_add)(own->sums, &of, rows, pixels, x, j, j - first, n);
}

/* Channels [first, last) of the pixels of a class that no tap meets. */
static void pass_over(const pass_state *s, const scratch *own, int64_t group, walk *place, int64_t pixels,
                      int64_t first, int64_t last) {
    DT(direct_tile) t;
    const real *x[DIRECT_MR];
    for (int64_t done = 0; done < pixels; done += DIRECT_MR) {
        const int64_t rows = MIN(DIRECT_MR, pixels - done);
        next_rows(place, rows, &t);
        if (!s->args->accumulate)
            for (int64_t r = 0; r < rows; r++) memset(t.c[r] + first, 0, (size_t)(last - first) * sizeof(real));
        if (!own->sums) continue;
        find_normalized(s, group, place->c_inner, rows, t.c, x);
        gather(s, own, group, rows, t.c, x, first, first, last - first);
        DT(gather_count)(own->sums, rows);
    }
}

/* The pixels of a class in `images` images from `image` on, for panels [first, last). */
static void run_class(const pass_state *s, int64_t group, int64_t first, int64_t last, int64_t image, int64_t images,
                      const dtconv_axis_class *h, const dtconv_axis_class *w, const scratch *own) {
    const dtconv_activation activation = s->turned ? DTCONV_LINEAR : s->args->activation;
    const real *bias = s->turned || !s->args->bias ? NULL : s->args->bias + group * s->cw;
    const int pointwise = h->taps * w->taps == 1;
    DT(direct_tile) pair[2], *t = pair;
    pair[0] = (DT(direct_tile)){.segments = own->segments,
                                .segment_count = make_segments(s, h, w, own->segments),
                                .a_step = 1,
                                .b_step = DIRECT_NR,
                                .add = s->added != NULL,
                                .relu = activation == DTCONV_RELU,
                                .ahead_step = pointwise ? DIRECT_AHEAD : 0}; /* a line of each row in turn */
    for (int64_t r = 0; r < DIRECT_AHEAD; r++) t->a[r] = s->read;
    pair[1] = pair[0];
    const int64_t pixels = images * h->count * w->count, tiles = dtconv_ceil_div(pixels, DIRECT_MR);
    walk place = begin_walk(s, group, image, h, w);
    if (s->turned && !t->segment_count) {
        pass_over(s, own, group, &place, pixels, first * DIRECT_NR, MIN(last * DIRECT_NR, s->cw));
        return;
    }
    int64_t done = pixels / tiles, rows = done;
    const DT(conv_normalization) *reading = !s->turned && s->args->reading.mean ? &s->args->reading : NULL;
    const int copies = pointwise && (reading || place.a_inner * (int64_t)sizeof(real) % SETS_BYTES == 0);
    const int slopes = s->turned && own->sums;
    const real *x[2][DIRECT_AHEAD]; /* of this tile and the next, loaded while panels but the first are computed */
    const real *beside[DIRECT_AHEAD];
    for (int64_t r = 0; r < DIRECT_AHEAD; r++) x[0][r] = x[1][r] = s->read;
    next_rows(&place, rows, t);
    if (slopes) find_normalized(s, group, place.c_inner, rows, t->c, x[0]);
    for (int64_t tile = 1; tile <= tiles; tile++) {
        DT(direct_tile) *next = t == pair ? pair + 1 : pair;
        const int64_t next_count = tile < tiles ? pixels * (tile + 1) / tiles - done : 0;
        next_rows(&place, next_count, next);
        if (slopes) find_normalized(s, group, place.c_inner, next_count, next->c, x[tile % 2]);
        if (copies) copy_rows(rows, s->cr, reading, t, own->rows);
        for (int64_t panel = first; panel < last; panel++) {
            const int64_t j = panel * DIRECT_NR, n = MIN(DIRECT_NR, s->cw - j);
            t->ahead = next->a;
            if (slopes && pointwise && panel > first) {
                const int64_t lines = s->depth / DIRECT_AHEAD * (panel - first - 1);
                for (int64_t r = 0; r < DIRECT_AHEAD; r++)
                    beside[r] = x[tile % 2][r] + first * DIRECT_NR + lines * t->ahead_step;
                t->ahead = beside;
            }
            DT(direct_run_tile)(t, rows, n, panel_of(s, group, panel), bias ? bias + j : NULL, j);
            if (activation != DTCONV_LINEAR && activation != DTCONV_RELU) activate(s, t, rows, j, n);
            if (own->sums) gather(s, own, group, rows, t->c, x[(tile - 1) % 2], first * DIRECT_NR, j, n);
        }
        if (own->sums) DT(gather_count)(own->sums, rows);
        t = next, rows = next_count, done += next_count;
    }
}

static void run_unit(const pass_state *s, int64_t unit, const scratch *own) {
    const int64_t block = unit % s->blocks, chunk = unit / s->blocks % s->chunks, group = unit / s->blocks / s->chunks;
    const int64_t first = block * s->block, last = MIN(s->panels, first + s->block);
    const int64_t cuts = dtconv_ceil_div(s->h.written, s->rows);
    const int64_t image = chunk / cuts * s->images, images = MIN(s->images, s->n - image);
    const int64_t row = chunk % cuts * s->rows, end = MIN(s->h.written, row + s->rows);
    if (own->sums) DT(gather_begin)(own->sums);
    for (dtconv_axis_class h = {0}; DT(direct_next_class)(&s->h, row, end, &h);)
        for (dtconv_axis_class w = {0}; DT(direct_next_class)(&s->w, 0, s->w.written, &w);)
            run_class(s, group, first, last, image, images, &h, &w, own);
    const int64_t j = first * DIRECT_NR, n = MIN(last * DIRECT_NR, s->cw) - j;
    if (own->sums && s->turned)
        DT(slopes_end)(own->sums, &s->gathered, chunk, group * s->cw + j, n);
    else if (own->sums)
        DT(moments_end)(own->sums, &s->gathered, chunk, group * s->cw + j, n);
}

static dtconv_status run(pass_state *s, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (bytes < bytes_of(s)) return DTCONV_WORKSPACE;
    s->args = a;
    s->read = s->turned ? a->y : a->x;
    s->written = s->turned ? a->x : a->y;
    s->added = !s->turned ? a->residual : a->accumulate ? a->x : NULL;
    s->lda = s->turned ? s->ldw : a->ldr;
    s->filters = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s->filters + s->packed;
    const int gathers = s->turned ? a->slopes.sum != NULL : a->mean != NULL;
    if (gathers) s->gathered = DT(gather_parts_on)(memory, s->chunks, s->groups * s->cw);
    memory += s->parts;
#pragma omp parallel num_threads(dtconv_get_num_threads())
    {
        pack_filters(s);
        char *mine = memory + (size_t)dtconv_thread_id() * (s->segments + s->copied + s->sums);
        DT(gather_sums) sums = DT(gather_sums_on)(mine + s->segments + s->copied, s->block * DIRECT_NR);
        const scratch own = {(dtconv_segment *)mine, (real *)(mine + s->segments), gathers ? &sums : NULL};
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s->groups * s->chunks * s->blocks; unit++) run_unit(s, unit, &own);
        if (gathers && s->turned)
            DT(slopes_merge)(&s->gathered, a->slopes.sum, a->slopes.sum_x);
        else if (gathers)
            DT(moments_merge)(&s->gathered, a->mean, a->variance);
    }
    return DTCONV_OK;
}

size_t DT(conv_direct_forward_workspace)(const dtconv_conv *p) {
    const pass_state s = prepare(p, 0);
    return bytes_of(&s);
}

dtconv_status DT(conv_direct_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    pass_state s = prepare(p, 0);
    if (a->reading.mean && (!dtconv_is_pointwise(p) || p->groups > 1)) return DTCONV_UNSUPPORTED;
    return run(&s, a, workspace, bytes);
}

size_t DT(conv_direct_backward_data_workspace)(const dtconv_conv *p) {
    const pass_state s = prepare(p, 1);
    return bytes_of(&s);
}

dtconv_status DT(conv_direct_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                            size_t bytes) {
    pass_state s = prepare(p, 1);
    return run(&s, a, workspace, bytes);
}
