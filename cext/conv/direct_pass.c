/* See direct_pass.h. */
#include "direct_dots.h"
#include "direct_pass.h"
#include "few_filters_weights.h"

enum {
    BLOCK_BYTES = 576 << 10, /* packed panels that are used at a time */
    CHUNK_BYTES = 384 << 10, /* images that are read in a chunk */
    UNITS = 6,               /* wanted for each thread */
    MOST_IN_PLACE = 256,     /* channels of filters that are not packed: rows of more are far apart */
    FEW_TILES = 4            /* of pixels for which filters are not packed */
};

/* Units of work, the more the better threads share them.  Where most pixels lie at borders, others of the same taps are
 * those of other images alone: tiles of fewer images would have few rows. */
static int64_t units_wanted(const DT(direct_pass) * s) {
    const int64_t high = s->h.written - 2 * (s->h.taps - 1), wide = s->w.written - 2 * (s->w.taps - 1);
    const int inner = high > 0 && wide > 0 && 2 * high * wide >= s->h.written * s->w.written;
    return s->threads == 1 ? 1 : inner ? UNITS * s->threads : s->threads;
}

/* Chunks of as much as fits into the cache, and at least some units for each thread: where images are too few for that,
 * by fewer panels in a block, as borders within an image cost; then by smaller chunks. */
static void cut(DT(direct_pass) * s) {
    const int64_t panel = s->depth * DIRECT_NR * (int64_t)sizeof(real), units = units_wanted(s);
    const int64_t plane = s->h.written * s->w.written, planes = s->n * s->d.written, pixels = planes * plane;
    const int64_t read = s->n * s->d.read * s->h.read * s->w.read * s->cr * (int64_t)sizeof(real);
    const int64_t chunks = dtconv_ceil_div(read, CHUNK_BYTES);
    s->blocks = dtconv_ceil_div(s->panels, MAX(1, BLOCK_BYTES / panel));
    if (s->w.written > 1 && planes * s->blocks * s->groups < units)
        s->blocks = MAX(s->blocks, MIN(s->panels, units / (s->groups * chunks)));
    s->block = dtconv_ceil_div(s->panels, s->blocks);
    s->blocks = dtconv_ceil_div(s->panels, s->block);
    int64_t chunk = MIN(dtconv_ceil_div(pixels, chunks), dtconv_ceil_div(pixels * s->blocks * s->groups, units));
    chunk = dtconv_round_to(MAX(chunk, 4 * DIRECT_MR), DIRECT_MR);
    if (chunk < plane) {
        s->planes = 1;
        s->rows = dtconv_ceil_div(chunk, s->w.written);
        if (s->w.written > 1) s->rows = dtconv_ceil_div(s->h.written, MAX(1, s->h.written / s->rows));
    } else {
        s->planes = MIN(s->d.written, chunk / plane);
        s->planes = dtconv_ceil_div(s->d.written, dtconv_ceil_div(s->d.written, s->planes));
        s->rows = s->h.written;
    }
    s->chunks = s->n * dtconv_ceil_div(s->d.written, s->planes) * dtconv_ceil_div(s->h.written, s->rows);
}

/* Whether few channels are written, so that it takes fewer multiplications of vectors to sum along what is read, and
 * the sums of the vectors' numbers.  It follows from the filters alone: so does the order of the sums. */
static int has_dots(const DT(direct_pass) * s, const dtconv_conv *p) {
    enum { LAST_SUMS = 6 };
    if (s->groups > 1 || s->cw > DIRECT_DOTS) return 0;
    const int in_row = p->dil_w == 1 && (!s->turned || p->sw == 1);
    const int64_t lines = p->kd * p->kh * (in_row ? 1 : p->kw), run = (in_row ? p->kw : 1) * s->cr;
    const int64_t along = (lines * dtconv_ceil_div(run, V) + LAST_SUMS) * s->cw;
    return 5 * along < 4 * s->depth * dtconv_ceil_div(s->cw, V);
}

/* Whether pixels are so few that packing would take longer than to read rows of filters that are whole vectors. */
static int reads_in_place(const DT(direct_pass) * s) {
    const int64_t pixels = s->n * s->d.written * s->h.written * s->w.written;
    return !s->turned && !s->dots && s->groups == 1 && s->cw % V == 0 && s->cw <= MOST_IN_PLACE &&
           pixels <= FEW_TILES * DIRECT_MR;
}

DT(direct_pass) DT(direct_prepare)(const dtconv_conv *problem, int backward_data) {
    const dtconv_conv view = DT(direct_view)(problem), *p = &view;
    DT(direct_pass) s = {.n = p->n, .groups = p->groups, .turned = backward_data, .threads = dtconv_threads_of(p)};
    const int64_t ci = p->ci / p->groups, co = p->co / p->groups;
    s.d = DT(direct_axis)(p->id, p->od, p->kd, p->sd, p->dil_d, p->pad_f, backward_data);
    s.h = DT(direct_axis)(p->ih, p->oh, p->kh, p->sh, p->dil_h, p->pad_t, backward_data);
    s.w = DT(direct_axis)(p->iw, p->ow, p->kw, p->sw, p->dil_w, p->pad_l, backward_data);
    s.cr = backward_data ? co : ci, s.cw = backward_data ? ci : co;
    s.ldr = backward_data ? p->ldy : p->ldx, s.ldw = backward_data ? p->ldx : p->ldy;
    s.depth = dtconv_taps(p) * s.cr;
    s.panels = dtconv_ceil_div(s.cw, DIRECT_NR);
    s.moved = problem->kh == 1 && problem->kw > 1 && p->kw == 1;
    s.dots = has_dots(&s, problem);
    s.in_place = reads_in_place(&s);
    cut(&s);
    s.packed = s.in_place ? 0 : dtconv_round((size_t)(s.groups * s.panels * s.depth * DIRECT_NR) * sizeof(real));
    s.segments = dtconv_round((size_t)dtconv_taps(p) * sizeof(dtconv_segment));
    s.copied = (size_t)(DIRECT_MR * (dtconv_line(s.cr) * (int64_t)sizeof(real) + 64));
    s.beside = backward_data ? DIRECT_MR * DIRECT_NR * sizeof(real) : 0;
    s.sums = DT(gather_sums_bytes)(s.block * DIRECT_NR);
    s.parts = DT(gather_parts_bytes)(s.chunks, s.groups * s.cw);
    return s;
}

int DT(direct_is_along_taps)(const dtconv_conv *p, int pass) {
    return pass == 2 ? DT(has_few_filters)(p) : DT(direct_prepare)(p, pass).dots;
}

int DT(direct_reads_in_place)(const dtconv_conv *p) { return DT(direct_prepare)(p, 0).in_place; }

size_t DT(direct_bytes)(const DT(direct_pass) * s) {
    return 64 + s->packed + s->parts + (size_t)s->threads * (s->late + s->segments + s->copied + s->beside + s->sums);
}

/* Row j of filters: w of channel j that is written, (tap, channel that is read). */
static void pack_dots(const DT(direct_pass) * s) {
    const int64_t taps = s->d.taps * s->h.taps * s->w.taps;
#pragma omp for schedule(static)
    for (int64_t tap = 0; tap < taps; tap++) {
        const real *w = s->args->w + (s->turned ? taps - 1 - tap : tap) * s->cr * s->cw;
        for (int64_t j = 0; j < s->cw; j++) {
            real *to = s->filters + j * s->depth + tap * s->cr;
            if (s->turned || s->cw == 1)
                memcpy(to, w + j * s->cr, (size_t)s->cr * sizeof(real));
            else
                for (int64_t c = 0; c < s->cr; c++) to[c] = w[c * s->cw + j];
        }
    }
}

/* A tap of a panel of NR channels; rows are (tap, channel that is read), taps as the axes count them. */
static void pack_tap(const DT(direct_pass) * s, int64_t group, int64_t panel, int64_t tap, real *to) {
    const int64_t taps = s->d.taps * s->h.taps * s->w.taps, columns = s->groups * (s->turned ? s->cr : s->cw);
    const int64_t from = s->turned ? taps - 1 - tap : tap, j = panel * DIRECT_NR;
    const real *w = s->args->w + from * (s->turned ? s->cw : s->cr) * columns;
    const DT(matrix) plain = {w + group * s->cw, columns, 1}, trans = {w + group * s->cr, 1, columns};
    DT(pack_b_matrix)(s->turned ? &trans : &plain, 0, s->cr, j, MIN(DIRECT_NR, s->cw - j), DIRECT_NR,
                      to + tap * s->cr * DIRECT_NR);
}

void DT(direct_pack_filters)(const DT(direct_pass) * s) {
    if (s->in_place) return;
    if (s->dots) {
        pack_dots(s);
        return;
    }
    const int64_t taps = s->d.taps * s->h.taps * s->w.taps;
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->panels * taps; unit++) {
        const int64_t tap = unit % taps, panel = unit / taps % s->panels, group = unit / taps / s->panels;
        pack_tap(s, group, panel, tap, (real *)dtconv_direct_panel(s, group, panel));
    }
}

void DT(direct_pack_block)(DT(direct_pass) * s, int64_t group, int64_t first, int64_t last) {
    s->base = group * s->panels + first;
    for (int64_t panel = first; panel < last; panel++)
        for (int64_t tap = 0; tap < s->d.taps * s->h.taps * s->w.taps; tap++)
            pack_tap(s, group, panel, tap, (real *)dtconv_direct_panel(s, group, panel));
}

int64_t DT(direct_segments)(const DT(direct_pass) * s, const dtconv_axis_class *d, const dtconv_axis_class *h,
                            const dtconv_axis_class *w, dtconv_segment *segments) {
    const int64_t step = s->dots       ? 1
                         : s->in_place ? s->cw
                                       : DIRECT_NR; /* numbers of the filters for one of what is read */
    int64_t made = 0;
    for (int64_t row = 0; row < d->taps * h->taps; row++) {
        const int64_t k = row / h->taps, i = row % h->taps;
        const int64_t line = (d->tap + k * d->tap_step) * s->h.taps + h->tap + i * h->tap_step;
        const int64_t start = k * d->tap_distance * s->h.read + i * h->tap_distance;
        for (int64_t j = 0; j < w->taps; j++) {
            const int64_t tap = line * s->w.taps + w->tap + j * w->tap_step;
            const int64_t pixel = start * s->w.read + j * w->tap_distance;
            const dtconv_segment next = {pixel * s->ldr, tap * s->cr * step, s->cr};
            dtconv_segment *last = segments + made - 1;
            /* a row of taps is one segment of dots, whatever the image, and so are the vectors and their sums */
            const int begins = !made || (s->dots && j == 0 && (i == 0 || !s->moved));
            if (!begins && last->a + last->count == next.a && last->b + last->count * step == next.b)
                last->count += next.count;
            else
                segments[made++] = next;
        }
    }
    return made;
}

DT(direct_walk)
DT(direct_begin)(const DT(direct_pass) * s, int64_t group, int64_t image, const dtconv_axis_class *d,
                 const dtconv_axis_class *h, const dtconv_axis_class *w) {
    const int64_t row = s->w.read * s->ldr, line = s->w.written;
    const int64_t read = s->h.read * row, written = s->h.written * line; /* of a plane */
    const DT(conv_reductions) *of = &s->args->reductions;
    DT(direct_walk) k = {.outer = h->count, .inner = w->count, .ldc = s->ldw, .lda = s->lda, .ldx = of->ldx};
    k.a_plane = d->source_step * read, k.a_outer = h->source_step * row, k.a_inner = w->source_step * s->ldr;
    k.c_plane = d->step * written, k.c_outer = h->step * line, k.c_inner = w->step;
    k.a = s->read + group * s->cr + (image * s->d.read + d->source) * read + h->source * row + w->source * s->ldr;
    k.c = s->written + group * s->cw;
    k.added = s->added ? s->added + group * s->cw : k.c;
    k.x = s->gathered.reductions ? of->x + group * s->cw : NULL;
    k.pixel = (image * s->d.written + d->first) * written + h->first * line + w->first;
    if (w->count == 1) {
        k.outer = 1, k.inner = h->count;
        k.a_inner = k.a_outer, k.c_inner = k.c_outer;
    }
    if (!d->taps || !h->taps || !w->taps) k.a = s->read, k.a_plane = k.a_outer = k.a_inner = 0;
    return k;
}

void DT(direct_next)(DT(direct_walk) * k, int64_t count, DT(direct_rows) * rows) {
    DT(direct_tile) *t = &rows->tile;
    rows->count = count;
    for (int64_t r = 0; r < count;) {
        const int64_t end = MIN(count, r + k->inner - k->j);
        const real *a = k->a;
        int64_t pixel = k->pixel;
        k->j += end - r;
        for (; r < end; r++, a += k->a_inner, pixel += k->c_inner) {
            t->a[r] = a, t->c[r] = k->c + pixel * k->ldc, t->added[r] = k->added + pixel * k->lda;
            if (k->x) rows->x[r] = k->x + pixel * k->ldx;
        }
        k->a = a, k->pixel = pixel;
        if (k->j < k->inner) return;
        k->j = 0;
        k->a -= k->inner * k->a_inner, k->pixel -= k->inner * k->c_inner;
        k->a += k->a_outer, k->pixel += k->c_outer;
        if (++k->i < k->outer) continue;
        k->i = 0;
        k->a += k->a_plane - k->outer * k->a_outer, k->pixel += k->c_plane - k->outer * k->c_outer;
    }
}
