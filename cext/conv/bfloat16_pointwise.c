/* Pointwise convolution, forward and backward_data, of images in bfloat16 on processors without products of them.
 *
 *   forward         y (pixels x co) = act(x (pixels x ci) * w + bias + residual)
 *   backward_data  dx (pixels x ci) = dy (pixels x co) * w^T, perhaps added to what is there
 *
 * A few pixels are widened, and normalized where that is wanted, to rows in the first cache, and meet all panels of
 * filters of a block there, by the micro-kernel of float32's direct convolution (conv/direct_tile.h): each number is
 * widened once, not for each panel.  It finishes its sums itself, but for activations that it does not have
 * (bfloat16_finish.h).
 *
 * A unit of work is a chunk of pixels and a block of panels; results do not depend on how the work is cut, but for what
 * is gathered (gather.h), which depends on the chunks.
 */
#include "bfloat16_pointwise.h"

#include "direct_tile.h"
#include "gather.h"
#include "normalize.h"
#include "dtconv_of_reals.h"
#include "bfloat16_finish.h"
#include "../ukr/bfloat16_kernel.h"

enum {
    BLOCK_BYTES = 576 << 10, /* packed panels that are used at a time */
    CHUNK_BYTES = 192 << 10, /* of pixels that are read in a chunk */
    CHUNKS = 16,             /* wanted, so that threads have equal shares */
    LINES = 256,             /* that a panel loads on the way, at most */
    ROW_SPACE = 16           /* numbers between rows of widened pixels: they do not fall into the same sets of L1 */
};

typedef struct {
    const DT(conv_args) * args;
    const DT(conv_normalization) * prologue; /* NULL: x is read as it is */
    int turned, bypass;
    int64_t pixels, groups, cr, cw, ldr, ldw, lda; /* channels of a group that are read and written */
    int64_t panels, block, blocks, chunk, chunks, pitch;
    size_t packed, parts, sums, rows;
    int threads;
    const elem *read, *added;
    const real *bias;
    dtconv_activation activation;
    elem *written;
    real *filters;
    DT(gather_parts) gathered;
} pass;

/* A thread's own memory. */
typedef struct {
    real *rows, *tile;
    DT(gather_sums) * sums; /* NULL: nothing is gathered */
} scratch;

/* Pixels that make a tile. */
typedef struct {
    int64_t count;
    elem *to[DIRECT_MR];
    const elem *added[DIRECT_MR], *x[DIRECT_MR];
} tile_rows;

int DT(in_reals)(const dtconv_conv *p) {
    const HT(ukr_row) *ukr = HT(ukr_current)();
    return ukr && ukr->widens && dtconv_is_pointwise(p);
}

static pass prepare(const dtconv_conv *p, int turned) {
    const int64_t ci = p->ci / p->groups, co = p->co / p->groups;
    pass s = {.turned = turned,
              .pixels = dtconv_rows(p),
              .groups = p->groups,
              .cr = turned ? co : ci,
              .cw = turned ? ci : co,
              .ldr = turned ? p->ldy : p->ldx,
              .ldw = turned ? p->ldx : p->ldy,
              .threads = dtconv_threads_of(p)};
    const int64_t panel = s.cr * DIRECT_NR * (int64_t)sizeof(real), unit = 4 * DIRECT_MR;
    s.panels = dtconv_ceil_div(s.cw, DIRECT_NR);
    s.blocks = dtconv_ceil_div(s.panels, MAX(1, BLOCK_BYTES / panel));
    s.block = dtconv_ceil_div(s.panels, s.blocks);
    s.blocks = dtconv_ceil_div(s.panels, s.block);
    const int64_t most = CHUNK_BYTES / (s.cr * (int64_t)sizeof(elem));
    s.chunk = dtconv_round_to(MAX(1, MIN(most, dtconv_ceil_div(s.pixels, CHUNKS))), unit);
    s.chunks = dtconv_ceil_div(s.pixels, s.chunk);
    s.pitch = dtconv_line(s.cr) + ROW_SPACE;
    s.packed = dtconv_round((size_t)(s.groups * s.panels * s.cr * DIRECT_NR) * sizeof(real));
    s.parts = DT(gather_parts_bytes)(s.chunks, s.groups * s.cw);
    s.sums = DT(gather_sums_bytes)(s.block * DIRECT_NR);
    s.rows = dtconv_round((size_t)(DIRECT_MR * s.pitch) * sizeof(real));
    return s;
}

static size_t of_thread(const pass *s) { return s->sums + s->rows + sizeof(real) * DIRECT_MR * DIRECT_NR; }

static size_t bytes_of(const pass *s) { return 64 + s->packed + s->parts + (size_t)s->threads * of_thread(s); }

static real *panel_at(const pass *s, int64_t group, int64_t panel) {
    return s->filters + (group * s->panels + panel) * s->cr * DIRECT_NR;
}

/* Called by all threads of a team. */
static void pack_filters(const pass *s) {
    const int64_t columns = s->groups * (s->turned ? s->cr : s->cw);
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->panels; unit++) {
        const int64_t panel = unit % s->panels, group = unit / s->panels, j = panel * DIRECT_NR;
        const RT(matrix) plain = {s->args->w + group * s->cw, columns, 1};
        const RT(matrix) trans = {s->args->w + group * s->cr, 1, columns};
        RT(pack_b_matrix)(s->turned ? &trans : &plain, 0, s->cr, j, MIN(DIRECT_NR, s->cw - j), DIRECT_NR,
                          panel_at(s, group, panel));
    }
}

/* Columns [j, j + n) of a tile, from its sums, which the micro-kernel could not finish. */
static void finish(const pass *s, const scratch *own, int64_t group, int64_t first, int64_t j, int64_t n,
                   const tile_rows *rows) {
    const int64_t offset = group * s->cw + j;
    if (s->bypass) {
        DT(reductions_bypass)(own->sums, s->gathered.reductions, rows->count, own->tile, DIRECT_NR, rows->to, rows->x,
                              j, n, offset, j - first * DIRECT_NR, s->args->accumulate);
        return;
    }
    elem *to[DIRECT_MR];
    const elem *added[DIRECT_MR];
    for (int64_t r = 0; r < rows->count; r++) to[r] = rows->to[r] + j;
    for (int64_t r = 0; s->added && r < rows->count; r++) added[r] = rows->added[r] + j;
    const finishing f = {s->bias ? s->bias + offset : NULL, s->activation, s->args->alpha};
    DT(finish_tile)(&f, rows->count, n, own->tile, DIRECT_NR, s->added ? added : NULL, to);
}

/* Rows of a tile from pixel `pixel` on. */
static void set_rows(const pass *s, int64_t group, int64_t pixel, int64_t count, tile_rows *rows, DT(direct_tile) * t) {
    const DT(conv_reductions) *of = s->gathered.reductions;
    rows->count = count;
    for (int64_t r = 0; r < count; r++) {
        rows->to[r] = t->c[r] = s->written + (pixel + r) * s->ldw + group * s->cw;
        if (s->added) rows->added[r] = t->added[r] = s->added + (pixel + r) * s->lda + group * s->cw;
        if (of) rows->x[r] = of->x + (pixel + r) * of->ldx + group * s->cw;
    }
}

static void run_unit(const pass *s, int64_t unit, const scratch *own) {
    const int64_t chunk = unit % s->chunks, block = unit / s->chunks % s->blocks, group = unit / s->chunks / s->blocks;
    const int64_t begin = chunk * s->chunk, end = MIN(s->pixels, begin + s->chunk);
    const int64_t first = block * s->block, last = MIN(s->panels, first + s->block);
    const elem *x = s->read + group * s->cr;
    DT(conv_normalization) how = {0};
    if (s->prologue) {
        how = *s->prologue;
        how.mean += group * s->cr, how.scale += group * s->cr;
        if (how.beta) how.beta += group * s->cr;
    }
    const dtconv_segment whole = {0, 0, s->cr};
    const int64_t of_row = dtconv_ceil_div(s->cr * (int64_t)sizeof(elem), 64), panels = last - first;
    const elem *rows_read[DIRECT_MR];
    const void *lines[LINES];
    const int finished = !s->bypass && (s->activation == DTCONV_LINEAR || s->activation == DTCONV_RELU);
    const real *bias = s->bias && finished ? s->bias + group * s->cw : NULL;
    tile_rows rows;
    DT(direct_tile)
    t = {.segments = &whole,
         .segment_count = 1,
         .a_step = 1,
         .b_step = DIRECT_NR,
         .add = s->added != NULL,
         .relu = s->activation == DTCONV_RELU,
         .beside = finished ? NULL : own->tile,
         .ahead = lines};
    for (int64_t r = 0; r < DIRECT_MR; r++) t.a[r] = own->rows + r * s->pitch;
    if (own->sums) DT(gather_begin)(own->sums);
    for (int64_t pixel = begin; pixel < end; pixel += DIRECT_MR) {
        set_rows(s, group, pixel, MIN(DIRECT_MR, end - pixel), &rows, &t);
        for (int64_t r = 0; r < rows.count; r++) rows_read[r] = x + (pixel + r) * s->ldr;
        read_rows(s->prologue ? &how : NULL, DIRECT_MR, rows.count, s->cr, rows_read, own->rows, s->pitch);
        const int64_t next = pixel + DIRECT_MR, left = MAX(0, MIN(DIRECT_MR, s->pixels - next));
        dtconv_lines ahead = {.start = (const char *)(x + next * s->ldr),
                              .pitch = s->ldr * (int64_t)sizeof(elem),
                              .lines = of_row,
                              .left = left * of_row};
        const int64_t of_call = MIN(LINES, dtconv_ceil_div(ahead.left, panels));
        for (int64_t panel = first; panel < last; panel++) {
            const int64_t j = panel * DIRECT_NR, n = MIN(DIRECT_NR, s->cw - j);
            t.ahead_count = dtconv_take_lines(&ahead, of_call, lines);
            DT(direct_run_tile)(&t, rows.count, n, panel_at(s, group, panel), bias ? bias + j : NULL, j);
            if (!finished) finish(s, own, group, first, j, n, &rows);
            if (own->sums && !s->bypass)
                DT(gather_add)(own->sums, &s->gathered, rows.count, rows.to, rows.x, j, n, group * s->cw,
                               j - first * DIRECT_NR);
        }
        if (own->sums) DT(gather_count)(own->sums, rows.count);
    }
    const int64_t j = first * DIRECT_NR, n = MIN(last * DIRECT_NR, s->cw) - j;
    if (own->sums) DT(gather_end)(own->sums, &s->gathered, chunk, group * s->cw + j, n);
}

size_t DT(pointwise_in_reals_workspace)(const dtconv_conv *p, int turned) {
    const pass s = prepare(p, turned);
    return bytes_of(&s);
}

dtconv_status DT(pointwise_in_reals)(const dtconv_conv *p, int turned, const DT(conv_args) * a, void *workspace,
                                     size_t bytes) {
    pass s = prepare(p, turned);
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    s.args = a;
    s.prologue = !turned && a->prologue.mean ? &a->prologue : NULL;
    s.bias = turned ? NULL : a->bias;
    s.activation = turned ? DTCONV_LINEAR : a->activation;
    s.read = turned ? a->y : a->x;
    s.written = turned ? a->x : a->y;
    s.bypass = turned && a->reductions.sum && a->reductions.bypass;
    s.added = s.bypass ? NULL : !turned ? a->residual : a->accumulate ? a->x : NULL;
    s.lda = turned ? s.ldw : a->ldr;
    s.filters = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    char *memory = (char *)s.filters + s.packed;
    s.gathered = DT(gather_parts_on)(memory, s.chunks, s.groups * s.cw, a, turned);
    memory += s.parts;
#pragma omp parallel num_threads(s.threads)
    {
        pack_filters(&s);
        char *mine = memory + (size_t)dtconv_thread_id() * of_thread(&s);
        DT(gather_sums) sums = DT(gather_sums_on)(mine, s.block * DIRECT_NR);
        const scratch own = {(real *)(mine + s.sums), (real *)(mine + s.sums + s.rows),
                             s.gathered.wanted ? &sums : NULL};
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s.groups * s.chunks * s.blocks; unit++) run_unit(&s, unit, &own);
        DT(gather_merge)(&s.gathered);
    }
    return DTCONV_OK;
}
