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
 * Where few channels are written, vectors lie along what is summed instead (direct_dots.c).
 *
 * Filters are packed once per call into panels of NR channels, unless pixels are few; a block of panels stays in L2
 * while the pixels of a chunk pass by, tile after tile, and each tile meets all panels of the block while its pixels
 * are in L1.  A unit of work is a chunk (planes, or rows of a plane; see direct_view) and a block.  Results do not
 * depend on how the work is cut; what is gathered on request (gather.h) is merged from the parts of the chunks.
 */
#include "direct_dots.h"
#include "direct_pass.h"
#include "normalize.h"

enum {
    SETS_BYTES = 4096, /* rows at multiples of this fall into the same sets of L1 */
    LARGE = 1 << 20,   /* bytes of packed filters, which would leave the second cache */
    LINES = 256        /* that are loaded on the way, at most */
};

/* Activations that the micro-kernel does not have. */
static void activate(const DT(direct_pass) * s, const DT(direct_tile) * t, int64_t rows, int64_t column, int64_t n) {
    const DT(bias_activation) finish = {.activation = s->args->activation, .alpha = s->args->alpha};
    for (int64_t r = 0; r < rows; r++) DT(bias_activation_epilogue)(&finish, 0, 1, column, n, t->c[r] + column, n);
}

/* Copies the rows of a pointwise tile, of `channels` elements, to rows that do not fall into the same sets of L1;
 * prologue: how they are normalized, or NULL. */
static void copy_rows(int64_t rows, int64_t channels, const DT(conv_normalization) * prologue, DT(direct_tile) * t,
                      real *copy) {
    const int64_t ld = dtconv_line(channels) + 64 / (int64_t)sizeof(real);
    read_rows(prologue, DIRECT_MR, rows, channels, t->a, copy, ld);
    for (int64_t r = 0; r < rows; r++) t->a[r] = copy + r * ld;
}

/* Channels [first, last) of the pixels of a class that no tap meets. */
static void pass_over(const DT(direct_pass) * s, const DT(direct_scratch) * own, int64_t group, DT(direct_walk) * place,
                      int64_t pixels, int64_t first, int64_t last) {
    DT(direct_rows) t;
    for (int64_t done = 0; done < pixels; done += DIRECT_MR) {
        DT(direct_next)(place, MIN(DIRECT_MR, pixels - done), &t);
        if (!s->args->accumulate)
            for (int64_t r = 0; r < t.count; r++) memset(t.tile.c[r] + first, 0, (size_t)(last - first) * sizeof(real));
        if (!own->sums) continue;
        if (!own->beside) /* else they may have been added to */
            DT(gather_add)(own->sums, &s->gathered, t.count, t.tile.c, t.x, first, last - first, group * s->cw, 0);
        DT(gather_count)(own->sums, t.count);
    }
}

/* What is gathered of `n` columns from j on of a tile that has been computed; `column`: the first one in the sums. */
static void gather(const DT(direct_pass) * s, const DT(direct_rows) * t, int64_t group, int64_t j, int64_t n,
                   int64_t column, const DT(direct_scratch) * own) {
    if (own->beside)
        DT(reductions_bypass)(own->sums, s->gathered.reductions, t->count, own->beside, DIRECT_NR, t->tile.c, t->x, j,
                              n, group * s->cw + j, column, s->args->accumulate);
    else
        DT(gather_add)(own->sums, &s->gathered, t->count, t->tile.c, t->x, j, n, group * s->cw, column);
}

/* What the next tile reads: of its rows the first line, of pointwise ones all, and then those of what was normalized.
 * Each of the panels [first, last) loads a share of it, `of_call` lines. */
typedef struct {
    dtconv_lines read, x;
    int64_t of_call;
} ahead;

static ahead ahead_of(const DT(direct_pass) * s, const DT(direct_rows) * next, int pointwise, int64_t first,
                      int64_t last) {
    const int64_t line = 64 / (int64_t)sizeof(real), panels = last - first;
    const int64_t of_row = pointwise ? dtconv_ceil_div(s->cr, line) : 1;
    const int64_t of_x = pointwise && s->gathered.reductions ? dtconv_ceil_div(panels * DIRECT_NR, line) : 0;
    ahead a = {
        .read = {.rows = (const void *const *)next->tile.a, .lines = of_row, .left = next->count * of_row},
        .x = {.rows = (const void *const *)next->x, .first = first * DIRECT_NR / line, .lines = of_x},
    };
    a.x.left = next->count * of_x;
    a.of_call = MIN(LINES, dtconv_ceil_div(a.read.left + a.x.left, panels));
    return a;
}

static void look_ahead(ahead *a, DT(direct_tile) * t, const void **lines) {
    t->ahead = lines;
    t->ahead_count = dtconv_take_lines(&a->read, a->of_call, lines);
    t->ahead_count += dtconv_take_lines(&a->x, a->of_call - t->ahead_count, lines + t->ahead_count);
}

void DT(direct_run_class)(const DT(direct_pass) * s, int64_t group, int64_t first, int64_t last, int64_t image,
                          const dtconv_axis_class *d, const dtconv_axis_class *h, const dtconv_axis_class *w,
                          const DT(direct_scratch) * own) {
    const dtconv_activation activation = s->turned ? DTCONV_LINEAR : s->args->activation;
    const real *bias = s->turned || !s->args->bias ? NULL : s->args->bias + group * s->cw;
    const int pointwise = d->taps * h->taps * w->taps == 1;
    DT(direct_rows) pair[2], *t = pair;
    pair[0].tile = (DT(direct_tile)){.segments = own->segments,
                                     .segment_count = DT(direct_segments)(s, d, h, w, own->segments),
                                     .a_step = 1,
                                     .b_step = s->in_place ? s->cw : DIRECT_NR,
                                     .add = s->added != NULL && !own->beside,
                                     .beside = own->beside,
                                     .relu = activation == DTCONV_RELU};
    if (!s->turned && s->args->scale) {
        pair[0].tile.scale = s->args->scale + group * s->cw;
        pair[0].tile.beta = s->args->beta + group * s->cw;
    }
    pair[1] = pair[0];
    const int64_t pixels = d->count * h->count * w->count, tiles = dtconv_ceil_div(pixels, DIRECT_MR);
    DT(direct_walk) place = DT(direct_begin)(s, group, image, d, h, w);
    if (s->turned && !t->tile.segment_count) {
        pass_over(s, own, group, &place, pixels, first * DIRECT_NR, MIN(last * DIRECT_NR, s->cw));
        return;
    }
    const DT(conv_normalization) *prologue = !s->turned && s->args->prologue.mean ? &s->args->prologue : NULL;
    const int copies = pointwise && (prologue || place.a_inner * (int64_t)sizeof(real) % SETS_BYTES == 0);
    const void *lines[LINES];
    DT(direct_next)(&place, pixels / tiles, t);
    for (int64_t tile = 1, done = t->count; tile <= tiles; tile++, done += t->count) {
        DT(direct_rows) *next = t == pair ? pair + 1 : pair;
        DT(direct_next)(&place, tile < tiles ? pixels * (tile + 1) / tiles - done : 0, next);
        if (copies) copy_rows(t->count, s->cr, prologue, &t->tile, own->rows);
        ahead a = ahead_of(s, next, pointwise, first, last);
        for (int64_t panel = first; panel < last; panel++) {
            const int64_t j = panel * DIRECT_NR, n = MIN(DIRECT_NR, s->cw - j);
            look_ahead(&a, &t->tile, lines);
            if (s->dots)
                DT(direct_run_dots)(&t->tile, t->count, n, s->filters, s->depth, bias);
            else
                DT(direct_run_tile)(&t->tile, t->count, n, dtconv_direct_panel(s, group, panel), bias ? bias + j : NULL,
                                    j);
            if (activation != DTCONV_LINEAR && activation != DTCONV_RELU) activate(s, &t->tile, t->count, j, n);
            if (own->sums) gather(s, t, group, j, n, j - first * DIRECT_NR, own);
        }
        if (own->sums) DT(gather_count)(own->sums, t->count);
        t = next;
    }
}

static void run_unit(const DT(direct_pass) * pass, real *panels, int64_t unit, const DT(direct_scratch) * own) {
    DT(direct_pass) mine = *pass, *s = &mine;
    const int64_t block = unit % s->blocks, chunk = unit / s->blocks % s->chunks, group = unit / s->blocks / s->chunks;
    const int64_t first = block * s->block, last = MIN(s->panels, first + s->block);
    const int64_t cuts = dtconv_ceil_div(s->h.written, s->rows), parts = dtconv_ceil_div(s->d.written, s->planes);
    const int64_t image = chunk / cuts / parts, plane = chunk / cuts % parts * s->planes;
    const int64_t last_plane = MIN(s->d.written, plane + s->planes);
    const int64_t row = chunk % cuts * s->rows, end = MIN(s->h.written, row + s->rows);
    if (own->sums) DT(gather_begin)(own->sums);
    if (s->late) {
        s->filters = panels;
        DT(direct_pack_block)(s, group, first, last);
    }
    for (dtconv_axis_class d = {0}; DT(direct_next_class)(&s->d, plane, last_plane, &d);)
        for (dtconv_axis_class h = {0}; DT(direct_next_class)(&s->h, row, end, &h);)
            for (dtconv_axis_class w = {0}; DT(direct_next_class)(&s->w, 0, s->w.written, &w);)
                DT(direct_run_class)(s, group, first, last, image, &d, &h, &w, own);
    const int64_t j = first * DIRECT_NR, n = MIN(last * DIRECT_NR, s->cw) - j;
    if (own->sums) DT(gather_end)(own->sums, &s->gathered, chunk, group * s->cw + j, n);
}

/* The pass; where one chunk holds all pixels, each panel is used once, and large filters are packed when they are. */
static DT(direct_pass) prepare(const dtconv_conv *p, int backward_data) {
    DT(direct_pass) s = DT(direct_prepare)(p, backward_data);
    if (s.chunks > 1 || s.dots || s.packed < LARGE) return s;
    s.packed = 0;
    s.late = dtconv_round((size_t)(s.block * s.depth * DIRECT_NR) * sizeof(real));
    return s;
}

static dtconv_status run(DT(direct_pass) * s, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (bytes < DT(direct_bytes)(s)) return DTCONV_WORKSPACE;
    s->args = a;
    s->read = s->turned ? a->y : a->x;
    s->written = s->turned ? a->x : a->y;
    s->added = !s->turned ? a->residual : a->accumulate ? a->x : NULL;
    s->lda = s->turned ? s->ldw : a->ldr;
    s->filters = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s->filters + s->packed;
    s->gathered = DT(gather_parts_on)(memory, s->chunks, s->groups * s->cw, a, s->turned);
    memory += s->parts;
#pragma omp parallel num_threads((int)s->threads)
    {
        if (!s->late) DT(direct_pack_filters)(s);
        char *panels = memory + (size_t)dtconv_thread_id() * (s->late + s->segments + s->copied + s->beside + s->sums);
        char *mine = panels + s->late, *rows = mine + s->segments, *beside = rows + s->copied;
        DT(gather_sums) sums = DT(gather_sums_on)(beside + s->beside, s->block * DIRECT_NR);
        const int bypass = s->gathered.wanted && s->turned && a->reductions.bypass;
        const DT(direct_scratch) own = {(dtconv_segment *)mine, (real *)rows, bypass ? (real *)beside : NULL,
                                        s->gathered.wanted ? &sums : NULL};
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s->groups * s->chunks * s->blocks; unit++)
            run_unit(s, (real *)panels, unit, &own);
        DT(gather_merge)(&s->gathered);
    }
    return DTCONV_OK;
}

size_t DT(conv_direct_forward_workspace)(const dtconv_conv *p) {
    const DT(direct_pass) s = prepare(p, 0);
    return DT(direct_bytes)(&s);
}

dtconv_status DT(conv_direct_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    DT(direct_pass) s = prepare(p, 0);
    if (a->prologue.mean && (!dtconv_is_pointwise(p) || p->groups > 1)) return DTCONV_UNSUPPORTED;
    return run(&s, a, workspace, bytes);
}

size_t DT(conv_direct_backward_data_workspace)(const dtconv_conv *p) {
    const DT(direct_pass) s = prepare(p, 1);
    return DT(direct_bytes)(&s);
}

dtconv_status DT(conv_direct_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                            size_t bytes) {
    DT(direct_pass) s = prepare(p, 1);
    return run(&s, a, workspace, bytes);
}
