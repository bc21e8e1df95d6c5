/* Direct convolution, backward_weights: the micro-kernel's tile is a piece of dw, and its sum runs over pixels.
 *
 *   dw[tap, ci, co] = sum over pixels of x[pixel * stride - pad + tap * dilation, ci] * dy[pixel, co]
 *
 * x is read in place, for each tap over the pixels where it meets an existing one; the innermost loop runs along the
 * longest axis (a row, a column, or the planes, which without a depth are the images of the batch: direct_view). Pixels
 * are taken in chunks, of which a panel of NR channels of dy is copied to L1 and meets all rows of dw before the next
 * one.  Where a few input channels would leave the tile half empty, the chunk's x is copied, too, with its padding:
 * rows of a tile can then be of different taps.
 *
 * For many threads and small dw the chunks are cut into slices with sums of their own, which are added in order.
 * Chunks and slices depend on the problem alone, and so do results.
 */
#include "direct.h"
#include "few_filters_weights.h"
#include "pointwise_weights.h"

#include "../gemm/thin.h"

enum {
    CHUNK_PIXELS = 224,
    CHUNK_BYTES = 512 << 10, /* of x */
    SUMS_BYTES = 4 << 20,    /* of all slices */
    SLICES = 16,
    TILES = 512,  /* wanted in all slices together */
    UNITS = 4,    /* wanted for each thread where there are slices */
    FEW_ROWS = 4, /* of dw's transpose */
    LINES = 256   /* that a tile loads on the way, at most */
};

/* Images of x as they are, or the copy of a chunk. */
typedef struct {
    const real *x;
    int64_t id, ih, iw, ld, pad_f, pad_t, pad_l;
} source;

typedef struct {
    dtconv_conv p; /* as it is walked */
    const DT(conv_args) * args;
    int64_t threads;               /* of the team, and that the workspace has room for */
    int64_t n, od, oh, ow;         /* of dy */
    int64_t ci, co, taps, depth;   /* of a group; depth: rows of dw */
    int64_t rows, planes;          /* of a chunk */
    int64_t cuts, depths;          /* chunks of a plane; and of an image, in depth */
    int64_t chunks, slices, parts; /* parts: units of work in a slice, which divide its tiles */
    int copies;                    /* whether x is copied */
    int in_place;                  /* whether dy is a panel itself */
    int64_t across, step;          /* numbers of a pixel of a copied panel; and from pixel to pixel of any */
    int64_t groups_of_rows;        /* taps, or 1 where a tile's rows may be of several taps */
    int64_t height, pieces;        /* rows of dw of such a group, and tiles */
    int64_t panels, tiles;         /* tiles of dw across, and in all */
    source whole, copy;            /* copy.x: NULL */
    size_t sums, copied, panel, segments;
    real *result; /* of slice 0 */
} pass_state;

typedef struct {
    int64_t image, plane, planes, row, rows;
} chunk;

/* A thread's own memory. */
typedef struct {
    real *copy, *panel;
    dtconv_segment *segments;
} scratch;

static void cut_pixels(pass_state *s) {
    const int64_t plane = s->oh * s->ow, planes = s->n * s->od;
    const int64_t x_pixels = MIN(s->p.sd, s->p.kd) * MIN(s->p.sh, s->p.kh) * MIN(s->p.sw, s->p.kw);
    const int64_t bytes = (s->ci * x_pixels + s->co) * (int64_t)sizeof(real);
    const int64_t pixels = MAX(64, MIN(CHUNK_PIXELS * DIRECT_NR / s->across, CHUNK_BYTES / bytes));
    s->cuts = plane > pixels ? dtconv_ceil_div(s->oh, MAX(1, pixels / s->ow)) : 1;
    s->rows = dtconv_ceil_div(s->oh, s->cuts);
    s->cuts = dtconv_ceil_div(s->oh, s->rows);
    s->planes = s->cuts > 1 ? 1 : MIN(s->od, dtconv_ceil_div(planes, dtconv_ceil_div(planes * plane, pixels)));
    s->depths = dtconv_ceil_div(s->od, s->planes);
    s->chunks = s->n * s->depths * s->cuts;
}

static void cut_filters(pass_state *s) {
    const dtconv_conv *p = &s->p;
    const int64_t filled = dtconv_ceil_div(s->ci, DIRECT_MR) * DIRECT_MR;
    s->copy.id = (s->planes - 1) * p->sd + (p->kd - 1) * p->dil_d + 1;
    s->copy.ih = (s->rows - 1) * p->sh + (p->kh - 1) * p->dil_h + 1;
    s->copy.iw = (s->ow - 1) * p->sw + (p->kw - 1) * p->dil_w + 1;
    s->copy.ld = s->ci;
    const int64_t copied = s->copy.id * s->copy.ih * s->copy.iw, pixels = s->planes * s->rows * s->ow;
    /* a number that is copied takes a fraction of what a step of a tile with few rows takes, and steps are `taps` times
     * the pixels of dy */
    const int64_t most = MAX((p->kd > 1 ? 10 : 4) * p->sd * p->sh * p->sw, s->taps * DIRECT_MR / (2 * s->ci));
    s->copies = s->taps > 1 && s->ci * 5 <= filled * 3 && copied <= most * pixels;
    s->groups_of_rows = s->copies ? 1 : s->taps;
    s->height = s->copies ? s->depth : s->ci;
    s->pieces = dtconv_ceil_div(s->height, DIRECT_MR);
    s->tiles = p->groups * s->panels * s->groups_of_rows * s->pieces;
    s->step = s->in_place ? p->ldy : s->across;
}

static pass_state prepare(const dtconv_conv *problem) {
    pass_state s = {.p = DT(direct_view)(problem), .threads = dtconv_threads_of(problem)};
    const dtconv_conv *p = &s.p;
    s.n = p->n, s.od = p->od, s.oh = p->oh, s.ow = p->ow, s.taps = dtconv_taps(p);
    s.whole = (source){NULL, p->id, p->ih, p->iw, p->ldx, p->pad_f, p->pad_t, p->pad_l};
    s.ci = p->ci / p->groups, s.co = p->co / p->groups;
    s.depth = s.taps * s.ci, s.panels = dtconv_ceil_div(s.co, DIRECT_NR);
    /* where pixels of dy lie apart changes no chunk, and so neither results nor the workspace */
    s.across = s.panels == 1 && p->groups == 1 ? dtconv_ceil_div(s.co, V) * V : DIRECT_NR;
    s.in_place = s.across == s.co && p->groups == 1 && p->ldy <= DIRECT_NR;
    cut_pixels(&s);
    cut_filters(&s);
    const int64_t dw = s.depth * p->co * (int64_t)sizeof(real), threads = s.threads;
    const int64_t most = MIN(MIN(SLICES, SUMS_BYTES / dw), MIN(s.chunks, dtconv_ceil_div(TILES, s.tiles)));
    for (s.slices = 1; s.slices * 2 <= most;) s.slices *= 2;
    const int even = s.slices % threads == 0;
    s.parts = MIN(s.tiles, s.slices == 1 ? threads : even ? 1 : dtconv_ceil_div(UNITS * threads, s.slices));
    s.sums = s.slices == 1 ? 0 : dtconv_round((size_t)(s.slices * dw));
    s.copied = s.copies ? dtconv_round((size_t)(s.copy.id * s.copy.ih * s.copy.iw * s.ci) * sizeof(real)) : 0;
    s.panel = dtconv_round((size_t)(s.planes * s.rows * s.ow * s.across) * sizeof(real));
    s.segments = dtconv_round((size_t)(s.planes * s.rows) * sizeof(dtconv_segment));
    return s;
}

static size_t bytes_of(const pass_state *s) {
    return 64 + s->sums + (size_t)s->threads * (s->copied + s->panel + s->segments);
}

/* Rows of the chunk's x with zeros where there is none. */
static void copy_x(const pass_state *s, const chunk *at, int64_t group, real *copy) {
    const source *x = &s->whole, *c = &s->copy;
    const int64_t front = at->plane * s->p.sd - x->pad_f, depth = c->id - (s->planes - at->planes) * s->p.sd;
    const int64_t first = at->row * s->p.sh - x->pad_t, size = s->ci * (int64_t)sizeof(real);
    const int64_t left = MIN(x->pad_l, c->iw), right = MAX(left, MIN(c->iw, x->iw + x->pad_l));
    for (int64_t plane = front; plane < front + depth; plane++)
        for (int64_t row = first; row < first + c->ih; row++, copy += c->iw * s->ci) {
            if (row < 0 || row >= x->ih || plane < 0 || plane >= x->id) {
                memset(copy, 0, (size_t)(c->iw * size));
                continue;
            }
            memset(copy, 0, (size_t)(left * size));
            const real *from = x->x + ((at->image * x->id + plane) * x->ih + row) * x->iw * x->ld + group * s->ci;
            if (x->ld == s->ci)
                memcpy(copy + left * s->ci, from, (size_t)((right - left) * size));
            else
                for (int64_t col = left; col < right; col++)
                    for (int64_t i = 0; i < s->ci; i++) copy[col * s->ci + i] = from[(col - left) * x->ld + i];
            memset(copy + right * s->ci, 0, (size_t)((c->iw - right) * size));
        }
}

/* Channels [j, j + n) of the chunk's dy, filled up to whole vectors: where they lie, or a copy. */
static const real *panel_of(const pass_state *s, const chunk *at, int64_t j, int64_t n, real *copy) {
    const int64_t ld = s->p.ldy, pixels = at->planes * at->rows * s->ow;
    const real *dy = s->args->y + ((at->image * s->od + at->plane) * s->oh + at->row) * s->ow * ld + j;
    real *panel = copy;
    if (s->in_place) return dy;
    for (int64_t i = 0; i < pixels; i++, dy += ld, panel += s->step)
        for (int64_t v = 0; v < n; v += V) store(panel + v, n - v < V ? load_part(dy + v, n - v) : load(dy + v));
    return copy;
}

/* First and number of the outputs in [from, end) for which output * stride + offset is in [0, extent). */
static int64_t existing(int64_t from, int64_t end, int64_t stride, int64_t offset, int64_t extent, int64_t *first) {
    *first = MAX(from, dtconv_ceil_div(-offset, stride));
    return MAX(0, MIN(end, dtconv_ceil_div(extent - offset, stride)) - *first);
}

/* The pixels of a chunk where a tap meets x, as segments along the longest axis; x of the tile's first one goes to
 * *x. */
static void make_segments(const pass_state *s, const chunk *at, const source *from, int64_t tap, DT(direct_tile) * t,
                          dtconv_segment *segments, const real **x) {
    const dtconv_conv *p = &s->p;
    const int64_t down = tap / p->kw % p->kh * p->dil_h - from->pad_t, right = tap % p->kw * p->dil_w - from->pad_l;
    const int64_t deep = tap / p->kw / p->kh * p->dil_d - from->pad_f;
    int64_t plane, row, col, count[3];
    count[0] = existing(at->plane, at->plane + at->planes, p->sd, deep, from->id, &plane);
    count[1] = existing(at->row, at->row + at->rows, p->sh, down, from->ih, &row);
    count[2] = existing(0, s->ow, p->sw, right, from->iw, &col);
    t->segment_count = 0;
    if (!count[0] || !count[1] || !count[2]) return;
    const int64_t a[3] = {p->sd * from->ih * from->iw * from->ld, p->sh * from->iw * from->ld, p->sw * from->ld};
    const int64_t b[3] = {at->rows * s->ow * s->step, s->ow * s->step, s->step};
    const int inner = count[2] >= MAX(count[0], count[1]) ? 2 : count[1] >= count[0] ? 1 : 0;
    const int i = inner == 0, j = inner == 2 ? 1 : 2;
    const int64_t line = (at->image * from->id + plane * p->sd + deep) * from->ih + row * p->sh + down;
    *x = from->x + (line * from->iw + col * p->sw + right) * from->ld;
    const int64_t start = (plane - at->plane) * b[0] + (row - at->row) * b[1] + col * b[2];
    for (int64_t k = 0; k < count[i]; k++)
        for (int64_t l = 0; l < count[j]; l++)
            segments[t->segment_count++] =
                (dtconv_segment){k * a[i] + l * a[j], start + k * b[i] + l * b[j], count[inner]};
    t->a_step = a[inner], t->b_step = b[inner];
}

/* Rows of A for a tile whose first row of dw is `first`: channels of one tap, or of the taps of the copy. */
static void set_rows(const pass_state *s, const real *x, int64_t first, int64_t rows, DT(direct_tile) * t) {
    const dtconv_conv *p = &s->p;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = first + r, tap = s->copies ? row / s->ci : 0;
        const int64_t line = tap / p->kw / p->kh * p->dil_d * s->copy.ih + tap / p->kw % p->kh * p->dil_h;
        const int64_t pixel = line * s->copy.iw + tap % p->kw * p->dil_w;
        t->a[r] = x + pixel * s->ci + (s->copies ? row % s->ci : row);
    }
}

/* What a tile loads of the next chunk, its share as number `number` of `tiles`: one line after the other of all pixels
 * of dy, then of x. */
static int64_t look_ahead(const pass_state *s, const chunk *next, int64_t number, int64_t tiles, const void **lines) {
    const dtconv_conv *p = &s->p;
    const int64_t line = 64 / (int64_t)sizeof(real), pixels = next->planes * next->rows * s->ow;
    const int64_t of_dy = dtconv_ceil_div(p->co, line), of_x = dtconv_ceil_div(p->ci, line);
    const int64_t step = p->kw < p->sw ? p->sw : 1; /* pixels between are never read */
    const int64_t x_planes = MIN(next->planes * p->sd, s->whole.id);
    const int64_t x_pixels = x_planes * MIN(next->rows * p->sh, s->whole.ih) * s->whole.iw / step;
    const int64_t row = MIN(next->row * p->sh, s->whole.ih - 1);
    const int64_t plane = next->image * s->whole.id + MIN(next->plane * p->sd, s->whole.id - 1);
    const real *dy = s->args->y + ((next->image * s->od + next->plane) * s->oh + next->row) * s->ow * p->ldy;
    const real *x = s->whole.x + (plane * s->whole.ih + row) * s->whole.iw * p->ldx;
    const int64_t all = of_dy * pixels + of_x * x_pixels, to = all * (number + 1) / tiles;
    int64_t count = 0;
    for (int64_t i = all * number / tiles; i < to && count < LINES;) {
        const int64_t at = i - of_dy * pixels, set = at < 0 ? i / pixels : at / x_pixels;
        int64_t pixel = at < 0 ? i % pixels : at % x_pixels;
        const int64_t end = MIN(at < 0 ? pixels : x_pixels, pixel + MIN(to - i, LINES - count));
        const int64_t ld = at < 0 ? p->ldy : p->ldx * step;
        const real *from = (at < 0 ? dy : x) + set * line;
        i += end - pixel;
        for (; pixel < end; pixel++) lines[count++] = from + pixel * ld;
    }
    return count;
}

/* Adds the chunk to tiles [first, last) of a slice's result. */
static void run_chunk(const pass_state *s, chunk at, const chunk *next, int64_t first, int64_t last, real *result,
                      int add, const scratch *own) {
    const void *lines[LINES];
    DT(direct_tile) t = {.segments = own->segments, .add = add, .ahead = lines};
    source from = s->copies ? s->copy : s->whole;
    const real *x = NULL, *b = NULL;
    int64_t group = -1, panel = -1, tap = -1;
    chunk in = at;
    for (int64_t tile = first; tile < last; tile++) {
        const int64_t piece = tile % s->pieces, across = tile / s->pieces / s->groups_of_rows;
        const int64_t j = across % s->panels * DIRECT_NR, n = MIN(DIRECT_NR, s->co - j);
        if (across / s->panels != group) {
            group = across / s->panels;
            if (s->copies) copy_x(s, &at, group, own->copy);
            if (s->copies) in.image = in.plane = in.row = 0;
            from.x = s->copies ? own->copy : s->whole.x + group * s->ci;
        }
        if (across != panel) {
            panel = across, tap = -1;
            b = panel_of(s, &at, group * s->co + j, n, own->panel);
        }
        if (tile / s->pieces % s->groups_of_rows != tap) {
            tap = tile / s->pieces % s->groups_of_rows;
            make_segments(s, &in, &from, tap, &t, own->segments, &x);
        }
        if (add && !t.segment_count) continue;
        const int64_t row = s->height * piece / s->pieces, rows = s->height * (piece + 1) / s->pieces - row;
        if (t.segment_count) set_rows(s, x, row, rows, &t);
        t.ahead_count = look_ahead(s, next, tile - first, last - first, lines);
        for (int64_t r = 0; r < rows; r++)
            t.added[r] = t.c[r] = result + (tap * s->height + row + r) * s->p.co + group * s->co;
        DT(direct_run_tile)(&t, rows, n, b, NULL, j);
    }
}

static chunk chunk_of(const pass_state *s, int64_t index) {
    chunk at = {.image = index / s->cuts / s->depths,
                .plane = index / s->cuts % s->depths * s->planes,
                .row = index % s->cuts * s->rows};
    at.planes = MIN(s->planes, s->od - at.plane);
    at.rows = MIN(s->rows, s->oh - at.row);
    return at;
}

static void run_unit(const pass_state *s, int64_t unit, const scratch *own) {
    const int64_t slice = unit / s->parts, part = unit % s->parts;
    const int64_t first = s->tiles * part / s->parts, last = s->tiles * (part + 1) / s->parts;
    const int64_t begin = s->chunks * slice / s->slices, end = s->chunks * (slice + 1) / s->slices;
    real *result = s->result + slice * s->depth * s->p.co;
    chunk at = chunk_of(s, begin);
    for (int64_t c = begin; c < end; c++) {
        const chunk next = chunk_of(s, MIN(c + 1, end - 1));
        run_chunk(s, at, &next, first, last, result, c > begin, own);
        at = next;
    }
}

static int is_one_product(const dtconv_conv *p) { return dtconv_is_pointwise(p) && p->groups == 1; }

/* Whether dw is a few rows, as its transpose, of a product with images of one pixel, which are then read once as they
 * lie (gemm/thin.c). */
static int is_few_rows(const dtconv_conv *p) {
    return is_one_product(p) && p->id * p->ih * p->iw == 1 && p->co <= FEW_ROWS &&
           DT(gemm_has_few_rows)(p->co, p->ci, p->n);
}

static size_t few_rows_bytes(const dtconv_conv *p) {
    return dtconv_round((size_t)(p->ci * p->co) * sizeof(real)) + DT(gemm_workspace)(p->co, p->ci, p->n);
}

/* dw^T (co x ci) = dy^T (co x n) x (n x ci) */
static dtconv_status few_rows(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    const size_t used = dtconv_round((size_t)(p->ci * p->co) * sizeof(real));
    const DT(matrix) dy = {a->y, 1, p->ldy}, x = {a->x, p->ldx, 1};
    real *dw = p->co == 1 ? a->w : workspace;
    if (bytes < few_rows_bytes(p)) return DTCONV_WORKSPACE;
    const DT(gemm_args) gemm = DT(gemm_of_matrices)(p->co, p->ci, p->n, &dy, &x, dw, p->ci, 0);
    const dtconv_status status = DT(gemm)(&gemm, (char *)workspace + used, bytes - used);
    for (int64_t c = 0; !status && p->co > 1 && c < p->ci; c++)
        for (int64_t j = 0; j < p->co; j++) a->w[c * p->co + j] = dw[j * p->ci + c];
    return status;
}

size_t DT(conv_direct_backward_weights_workspace)(const dtconv_conv *p) {
    if (is_few_rows(p)) return MAX(few_rows_bytes(p), DT(pointwise_weights_workspace)(p));
    if (is_one_product(p)) return DT(pointwise_weights_workspace)(p);
    if (DT(has_few_filters)(p)) return DT(few_filters_weights_workspace)(p);
    const pass_state s = prepare(p);
    return bytes_of(&s);
}

dtconv_status DT(conv_direct_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                               size_t bytes) {
    if (is_few_rows(p) && !a->prologue.mean) return few_rows(p, a, workspace, bytes);
    if (is_one_product(p)) return DT(pointwise_weights)(p, a, workspace, bytes);
    if (DT(has_few_filters)(p)) return DT(few_filters_weights)(p, a, workspace, bytes);
    if (a->prologue.mean) return DTCONV_UNSUPPORTED;
    pass_state s = prepare(p);
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    s.args = a;
    s.whole.x = a->x;
    s.result = s.slices == 1 ? a->w : (real *)memory;
    memory += s.sums;
#pragma omp parallel num_threads((int)s.threads)
    {
        char *mine = memory + (size_t)dtconv_thread_id() * (s.copied + s.panel + s.segments);
        const scratch own = {(real *)mine, (real *)(mine + s.copied), (dtconv_segment *)(mine + s.copied + s.panel)};
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s.slices * s.parts; unit++) run_unit(&s, unit, &own);
        if (s.slices > 1) dtconv_add_slices(s.result, s.slices, s.depth * s.p.co, a->w);
    }
    return DTCONV_OK;
}
