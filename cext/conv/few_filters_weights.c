/* Direct convolution, backward_weights where there are few filters: vectors lie along the taps of x.
 *
 *   dw[i, (j, ci), co] = sum over pixels of x[(row + i, column * stride + j), ci] * dy[(row, column), co]
 *
 * Vectors along few filters are mostly empty: of one filter they have one number.  The kw * ci numbers of x that a row
 * of taps meets lie side by side.  So here the micro-kernel's B is x, whose rows begin at each pixel and overlap, and A
 * is dy.  Several rows of taps share a tile, or one filter would make a sum too short for the processor's latency: row
 * r of x meets row r - i of dy with taps i.  At the upper and lower ends of a chunk only some of these rows exist, and
 * the tile is as much smaller (a class): nothing is multiplied by zeros, which would make NaN of an infinity.
 *
 * x is read in place where rows of taps are whole vectors and lie within it; else a chunk of it is copied, with its
 * padding.  Sums lie as (i, co, (j, ci)) in slices, which are added in order and turned into dw.  Chunks and slices
 * depend on the problem alone, and so do results.
 */
#include "few_filters_weights.h"

#include "direct.h"

enum {
    CHUNK_BYTES = 192 << 10, /* of x and dy */
    MOST_PIXELS = 4096,      /* of a chunk */
    MOST_PADDED = 3,         /* times the pixels of an image, with its padding */
    WIDEST = 1024,           /* pixels of a row: longer ones are not cut */
    SUMS_BYTES = 4 << 20,    /* of all slices */
    SLICES = 16,
    TILES = 512, /* wanted in all slices together */
    UNITS = 4,   /* wanted for each thread */
    LATENCY = 8  /* sums of a tile in turns, below which the processor waits */
};

typedef struct {
    const dtconv_conv *p;
    const DT(conv_args) * args;
    int64_t threads;               /* of the team, and that the workspace has room for */
    int64_t run, ld;               /* numbers of a row of taps; of a row of sums */
    int64_t together, groups;      /* rows of taps that share a tile; such groups */
    int64_t blocks, tiles;         /* of NR numbers of a row of taps; in all groups */
    int64_t rows, planes;          /* of dy in a chunk: rows of one image, or whole images */
    int64_t cuts, chunks;          /* chunks of an image; in all */
    int64_t slices, parts;         /* parts: units of work in a slice, which divide its tiles */
    int64_t size;                  /* numbers of a slice */
    int64_t width, height;         /* of the images of a copied chunk; width 0: x is read in place */
    size_t sums, copied, segments; /* bytes */
    real *slice;                   /* the first one */
} pass_state;

typedef struct {
    int64_t image, images, row, rows;
} chunk;

/* A thread's own memory. */
typedef struct {
    real *copy;
    dtconv_segment *segments;
} scratch;

/* Sixteenths of the numbers of a tile that n numbers across fill, on the average. */
static int64_t fill(int64_t n) { return 16 * n / dtconv_ceil_div(n, DIRECT_NR); }

int DT(has_few_filters)(const dtconv_conv *p) {
    const int64_t run = p->kw * p->ci;
    if (p->groups > 1 || dtconv_is_deep(p) || dtconv_taps(p) == 1 || p->ow > WIDEST) return 0;
    const int64_t padded = (p->oh + p->kh - 1) * ((p->ow - 1) * p->sw + p->kw); /* pixels, which are all multiplied */
    if (padded > MOST_PADDED * p->ih * p->iw) return 0;
    if (p->sh > 1 || (p->dil_h > 1 && p->kh > 1) || (p->dil_w > 1 && p->kw > 1)) return 0;
    return 4 * fill(run) > 5 * fill(p->co);
}

/* Rows of taps that share a tile: as many as cost the least, in steps of the micro-kernel. */
static int64_t rows_together(const dtconv_conv *p, int64_t vectors) {
    int64_t best = 1, least = INT64_MAX;
    for (int64_t g = 1; g <= p->kh && g * p->co <= DIRECT_MR; g++) {
        const int64_t groups = dtconv_ceil_div(p->kh, g), whole = MAX(0, p->oh - g + 1);
        int64_t cost = whole * MAX(g * p->co * vectors, LATENCY);
        for (int64_t i = 1; i < g; i++) cost += 2 * MAX(MIN(i, p->oh) * p->co * vectors, LATENCY);
        if (groups * cost < least) best = g, least = groups * cost;
    }
    return dtconv_ceil_div(p->kh, dtconv_ceil_div(p->kh, best));
}

static void cut_pixels(pass_state *s) {
    const dtconv_conv *p = s->p;
    const int64_t line = (p->iw * p->ci + p->ow * p->co) * (int64_t)sizeof(real);
    const int64_t fit = MAX(1, MIN(CHUNK_BYTES / line, MOST_PIXELS / p->ow)), rows = MAX(fit, 2 * s->together);
    s->cuts = p->oh > rows ? dtconv_ceil_div(p->oh, rows) : 1;
    s->rows = dtconv_ceil_div(p->oh, s->cuts);
    s->cuts = dtconv_ceil_div(p->oh, s->rows);
    s->planes = s->cuts > 1 ? 1 : MIN(p->n, MAX(1, fit / p->ih));
    s->planes = dtconv_ceil_div(p->n, dtconv_ceil_div(p->n, s->planes));
    s->chunks = dtconv_ceil_div(p->n, s->planes) * s->cuts;
}

static pass_state prepare(const dtconv_conv *p) {
    pass_state s = {.p = p, .threads = dtconv_threads_of(p), .run = p->kw * p->ci};
    s.blocks = dtconv_ceil_div(s.run, DIRECT_NR);
    s.together = rows_together(p, MIN(DIRECT_NV, dtconv_ceil_div(s.run, V)));
    s.groups = dtconv_ceil_div(p->kh, s.together);
    s.tiles = s.groups * s.blocks;
    cut_pixels(&s);
    const int inside = !p->pad_t && !p->pad_l && (p->oh - 1) + p->kh <= p->ih && (p->ow - 1) * p->sw + p->kw <= p->iw;
    if (!inside || s.run % V || p->ldx != p->ci) s.width = (p->ow - 1) * p->sw + p->kw, s.height = s.rows + p->kh - 1;
    s.ld = dtconv_line(s.run);
    s.size = p->kh * p->co * s.ld;
    const int64_t most =
        MIN(MIN(SLICES, SUMS_BYTES / (s.size * (int64_t)sizeof(real))), MIN(s.chunks, dtconv_ceil_div(TILES, s.tiles)));
    for (s.slices = 1; s.slices * 2 <= most;) s.slices *= 2;
    const int even = s.slices % s.threads == 0;
    s.parts = MIN(s.tiles, even ? 1 : dtconv_ceil_div(UNITS * s.threads, s.slices));
    s.sums = dtconv_round((size_t)(s.slices * s.size) * sizeof(real));
    s.copied = s.width ? dtconv_round((size_t)(s.planes * s.height * s.width * p->ci + DIRECT_NR) * sizeof(real)) : 0;
    s.segments = dtconv_round((size_t)(s.planes * (s.rows + s.together)) * sizeof(dtconv_segment));
    return s;
}

static size_t bytes_of(const pass_state *s) { return 64 + s->sums + (size_t)s->threads * (s->copied + s->segments); }

/* Pixels of x may lie apart, as those of a slice of channels do, which are copied. */
size_t DT(few_filters_weights_workspace)(const dtconv_conv *p) {
    dtconv_conv apart = *p;
    apart.ldx = p->ci + 1;
    const pass_state s = prepare(&apart);
    return bytes_of(&s);
}

/* Pixels [from, to) of a row, `channels` of each; x: the first. */
static real *copy_pixels(const real *x, int64_t ld, int64_t pixels, int64_t channels, real *to) {
    if (ld == channels) {
        memcpy(to, x, (size_t)(pixels * channels) * sizeof(real));
        return to + pixels * channels;
    }
    for (int64_t i = 0; i < pixels; i++, x += ld, to += channels)
        for (int64_t c = 0; c < channels; c++) to[c] = x[c];
    return to;
}

/* Rows of the chunk's x with zeros where there is none. */
static void copy_chunk(const pass_state *s, const chunk *at, real *to) {
    const dtconv_conv *p = s->p;
    const int64_t left = MIN(p->pad_l, s->width), right = MAX(left, MIN(s->width, p->iw + p->pad_l));
    for (int64_t image = at->image; image < at->image + at->images; image++)
        for (int64_t i = 0; i < s->height; i++) {
            const int64_t row = at->row - p->pad_t + i, exists = row >= 0 && row < p->ih;
            const int64_t first = exists ? left : s->width, last = exists ? right : s->width;
            memset(to, 0, (size_t)(first * p->ci) * sizeof(real));
            to += first * p->ci;
            if (last > first) {
                const real *x = s->args->x + ((image * p->ih + row) * p->iw + left - p->pad_l) * p->ldx;
                to = copy_pixels(x, p->ldx, last - first, p->ci, to);
            }
            memset(to, 0, (size_t)((s->width - last) * p->ci) * sizeof(real));
            to += (s->width - last) * p->ci;
        }
}

/* Rows of x from `row` of the chunk on that meet the same rows of taps of [tap, end): first and last + 1 of them.
 * Returns the row after the last. */
static int64_t next_class(const chunk *at, int64_t tap, int64_t end, int64_t row, int64_t *first, int64_t *last) {
    *first = MAX(tap, row - at->rows + 1), *last = MIN(end, row + 1);
    int64_t after = row + 1;
    while (after < at->rows + end - 1 && MAX(tap, after - at->rows + 1) == *first && MIN(end, after + 1) == *last)
        after++;
    return after;
}

/* Adds rows [row, after) of the chunk's x, which meet rows [first, last) of taps, to a tile's columns from j on. */
static void run_tile(const pass_state *s, const chunk *at, int64_t first, int64_t last, int64_t row, int64_t j,
                     const real *x, DT(direct_tile) * t, real *result) {
    const dtconv_conv *p = s->p;
    const int64_t n = MIN(DIRECT_NR, s->run - j), all = (last - first) * p->co;
    const int64_t pieces = dtconv_ceil_div(all, DIRECT_MR);
    const real *dy = s->args->y + (at->image * p->oh + at->row) * p->ow * p->ldy;
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t begin = all * piece / pieces, rows = all * (piece + 1) / pieces - begin;
        for (int64_t r = 0; r < rows; r++) {
            const int64_t tap = first + (begin + r) / p->co, co = (begin + r) % p->co;
            t->a[r] = dy + (row - tap) * p->ow * p->ldy + co;
            t->added[r] = t->c[r] = result + (tap * p->co + co) * s->ld;
        }
        DT(direct_run_tile)(t, rows, n, x + j, NULL, j);
    }
}

/* Adds the chunk to tiles [first, last) of a slice. */
static void run_chunk(const pass_state *s, const chunk *at, int64_t first, int64_t last, real *result,
                      const scratch *own) {
    const dtconv_conv *p = s->p;
    const int64_t ld = s->width ? p->ci : p->ldx, row_of_x = (s->width ? s->width : p->iw) * ld;
    const int64_t image_of_x = (s->width ? s->height : p->ih) * row_of_x;
    const real *x = s->width ? own->copy : s->args->x + at->image * image_of_x + at->row * row_of_x;
    DT(direct_tile) t = {.segments = own->segments, .add = 1, .a_step = p->ldy, .b_step = p->sw * ld};
    if (s->width) copy_chunk(s, at, own->copy);
    for (int64_t tile = first; tile < last;) {
        const int64_t group = tile / s->blocks, end_of_group = MIN(last, (group + 1) * s->blocks);
        const int64_t tap = p->kh * group / s->groups, end = p->kh * (group + 1) / s->groups;
        int64_t from, to;
        for (int64_t row = tap, after; row < at->rows + end - 1; row = after) {
            after = next_class(at, tap, end, row, &from, &to);
            t.segment_count = 0;
            for (int64_t i = 0; i < at->images; i++)
                for (int64_t k = row; k < after; k++)
                    own->segments[t.segment_count++] =
                        (dtconv_segment){(i * p->oh + k - row) * p->ow * p->ldy, i * image_of_x + k * row_of_x, p->ow};
            for (int64_t each = tile; each < end_of_group; each++)
                run_tile(s, at, from, to, row, each % s->blocks * DIRECT_NR, x, &t, result);
        }
        tile = end_of_group;
    }
}

static void run_unit(const pass_state *s, int64_t unit, const scratch *own) {
    const dtconv_conv *p = s->p;
    const int64_t slice = unit / s->parts, part = unit % s->parts;
    const int64_t first = s->tiles * part / s->parts, last = s->tiles * (part + 1) / s->parts;
    const int64_t begin = s->chunks * slice / s->slices, end = s->chunks * (slice + 1) / s->slices;
    real *result = s->slice + slice * s->size;
    for (int64_t tile = first; tile < last; tile++) {
        const int64_t group = tile / s->blocks, j = tile % s->blocks * DIRECT_NR, n = MIN(DIRECT_NR, s->ld - j);
        for (int64_t row = p->kh * group / s->groups * p->co; row < p->kh * (group + 1) / s->groups * p->co; row++)
            memset(result + row * s->ld + j, 0, (size_t)n * sizeof(real));
    }
    for (int64_t c = begin; c < end; c++) {
        chunk at = {.image = c / s->cuts * s->planes, .row = c % s->cuts * s->rows};
        at.images = MIN(s->planes, p->n - at.image);
        at.rows = MIN(s->rows, p->oh - at.row);
        run_chunk(s, &at, first, last, result, own);
    }
}

/* dw[i, e, co] = the sum of all slices' [i, co, e].  Run by all threads of a team. */
static void add_slices(const pass_state *s) {
    const int64_t co = s->p->co;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < s->p->kh * co; i++) {
        const real *from = s->slice + i * s->ld;
        real *dw = s->args->w + i / co * s->run * co + i % co;
        for (int64_t e = 0; e < s->run; e++) {
            real sum = from[e];
            for (int64_t slice = 1; slice < s->slices; slice++) sum += from[slice * s->size + e];
            dw[e * co] = sum;
        }
    }
}

dtconv_status DT(few_filters_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    if (a->prologue.mean) return DTCONV_UNSUPPORTED;
    pass_state s = prepare(p);
    if (bytes < bytes_of(&s)) return DTCONV_WORKSPACE;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    s.args = a;
    s.slice = (real *)memory;
    memory += s.sums;
#pragma omp parallel num_threads((int)s.threads)
    {
        char *mine = memory + (size_t)dtconv_thread_id() * (s.copied + s.segments);
        const scratch own = {(real *)mine, (dtconv_segment *)(mine + s.copied)};
#pragma omp for schedule(dynamic, 1)
        for (int64_t unit = 0; unit < s.slices * s.parts; unit++) run_unit(&s, unit, &own);
        add_slices(&s);
    }
    return DTCONV_OK;
}
