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
 * work is a chunk (images, or rows of an image) and a block.  Results do not depend on how the work is cut.
 */
#include "direct.h"

enum {
    BLOCK_BYTES = 384 << 10, /* packed panels that are used at a time */
    CHUNK_BYTES = 384 << 10, /* images that are read in a chunk */
    UNITS = 6,               /* wanted for each thread */
};

typedef struct {
    dtconv_axis h, w;
    int64_t n, groups, cr, cw;     /* images; groups; channels of a group that are read and written */
    int64_t ldr, ldw;              /* distance of pixels */
    int64_t depth, panels;         /* rows of a panel; panels of a group */
    int64_t rows, images;          /* of a chunk: rows of one image, or whole images (rows: all of one) */
    int64_t chunks, block, blocks; /* panels of a block, blocks of a group */
    size_t packed, segments;       /* bytes */
    const DT(conv_args) * args;
    const real *read;
    real *written, *filters;
    int turned;
} pass_state;

static int64_t divided(int64_t total, int64_t parts) { return dtconv_ceil_div(total, MAX(1, parts)); }

static void cut(pass_state *s) {
    const int64_t panel = s->depth * DIRECT_NR * (int64_t)sizeof(real), threads = dtconv_get_num_threads();
    const int64_t image = s->h.written * s->w.written, pixels = s->n * image;
    s->block = MAX(1, MIN(s->panels, BLOCK_BYTES / panel));
    s->blocks = dtconv_ceil_div(s->panels, s->block);
    s->block = dtconv_ceil_div(s->panels, s->blocks);
    const int64_t read = s->n * s->h.read * s->w.read * s->cr * (int64_t)sizeof(real);
    int64_t chunk = divided(pixels, dtconv_ceil_div(read, CHUNK_BYTES));
    chunk = MIN(chunk, divided(pixels * s->blocks * s->groups, UNITS * threads));
    chunk = MAX(chunk, 4 * DIRECT_MR);
    if (chunk < image) {
        const int64_t step = s->turned ? s->h.stride : 1;
        s->images = 1;
        s->rows = dtconv_round_to(dtconv_ceil_div(chunk, s->w.written), step);
        s->rows = dtconv_round_to(divided(s->h.written, s->h.written / s->rows), step);
        s->chunks = s->n * dtconv_ceil_div(s->h.written, s->rows);
    } else {
        s->images = divided(s->n, s->n / MAX(1, chunk / image));
        s->rows = s->h.written;
        s->chunks = dtconv_ceil_div(s->n, s->images);
    }
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
    return s;
}

static size_t bytes_of(const pass_state *s) { return 64 + s->packed + (size_t)dtconv_get_num_threads() * s->segments; }

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

/* A place among the pixels of a class. */
typedef struct {
    int64_t image, i, j;
} place;

static void next_rows(const pass_state *s, int64_t group, const dtconv_axis_class *h, const dtconv_axis_class *w,
                      int64_t count, place *at, DT(direct_tile) * t) {
    const real *read = s->read + group * s->cr;
    real *written = s->written + group * s->cw;
    for (int64_t r = 0; r < count; r++) {
        const int64_t from = (at->image * s->h.read + h->source + at->i * h->source_step) * s->w.read + w->source +
                             at->j * w->source_step;
        const int64_t to =
            (at->image * s->h.written + h->first + at->i * h->step) * s->w.written + w->first + at->j * w->step;
        t->a[r] = t->segment_count ? read + from * s->ldr : read;
        t->c[r] = written + to * s->ldw;
        if (++at->j < w->count) continue;
        at->j = 0;
        if (++at->i < h->count) continue;
        at->i = 0;
        at->image++;
    }
}

/* Activations that the micro-kernel does not have. */
static void activate(const pass_state *s, const DT(direct_tile) * t, int64_t rows, int64_t column, int64_t n) {
    const DT(bias_activation) finish = {NULL, s->args->activation, s->args->alpha};
    for (int64_t r = 0; r < rows; r++) DT(bias_activation_epilogue)(&finish, 0, 1, column, n, t->c[r] + column, n);
}

/* The pixels of a class in `images` images from `image` on, for panels [first, last). */
static void run_class(const pass_state *s, int64_t group, int64_t first, int64_t last, int64_t image, int64_t images,
                      const dtconv_axis_class *h, const dtconv_axis_class *w, dtconv_segment *segments) {
    const dtconv_activation activation = s->turned ? DTCONV_LINEAR : s->args->activation;
    const real *bias = s->turned || !s->args->bias ? NULL : s->args->bias + group * s->cw;
    DT(direct_tile)
    t = {.segments = segments,
         .segment_count = make_segments(s, h, w, segments),
         .a_step = 1,
         .b_step = DIRECT_NR,
         .add = s->turned && s->args->accumulate,
         .relu = activation == DTCONV_RELU};
    if (t.add && !t.segment_count) return;
    const int64_t pixels = images * h->count * w->count, tiles = dtconv_ceil_div(pixels, DIRECT_MR);
    place at = {image, 0, 0};
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int64_t rows = pixels * (tile + 1) / tiles - pixels * tile / tiles;
        next_rows(s, group, h, w, rows, &at, &t);
        for (int64_t panel = first; panel < last; panel++) {
            const int64_t j = panel * DIRECT_NR, n = MIN(DIRECT_NR, s->cw - j);
            DT(direct_run_tile)(&t, rows, n, panel_of(s, group, panel), bias ? bias + j : NULL, j);
            if (activation != DTCONV_LINEAR && activation != DTCONV_RELU) activate(s, &t, rows, j, n);
        }
    }
}

static void run_unit(const pass_state *s, int64_t unit, dtconv_segment *segments) {
    const int64_t block = unit % s->blocks, chunk = unit / s->blocks % s->chunks, group = unit / s->blocks / s->chunks;
    const int64_t first = block * s->block, last = MIN(s->panels, first + s->block);
    const int64_t cuts = dtconv_ceil_div(s->h.written, s->rows);
    const int64_t image = chunk / cuts * s->images, images = MIN(s->images, s->n - image);
    const int64_t row = chunk % cuts * s->rows, end = MIN(s->h.written, row + s->rows);
    for (dtconv_axis_class h = {0}; DT(direct_next_class)(&s->h, row, end, &h);)
        for (dtconv_axis_class w = {0}; DT(direct_next_class)(&s->w, 0, s->w.written, &w);)
            run_class(s, group, first, last, image, images, &h, &w, segments);
}

static dtconv_status run(pass_state *s, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (bytes < bytes_of(s)) return DTCONV_WORKSPACE;
    s->args = a;
    s->read = s->turned ? a->y : a->x;
    s->written = s->turned ? a->x : a->y;
    s->filters = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *segments = (char *)s->filters + s->packed;
#pragma omp parallel num_threads(dtconv_get_num_threads())
    {
        pack_filters(s);
        dtconv_segment *own = (dtconv_segment *)(segments + (size_t)dtconv_thread_id() * s->segments);
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s->groups * s->chunks * s->blocks; unit++) run_unit(s, unit, own);
    }
    return DTCONV_OK;
}

size_t DT(conv_direct_forward_workspace)(const dtconv_conv *p) {
    const pass_state s = prepare(p, 0);
    return bytes_of(&s);
}

dtconv_status DT(conv_direct_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    pass_state s = prepare(p, 0);
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
