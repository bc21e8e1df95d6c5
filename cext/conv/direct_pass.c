/* See direct_pass.h. */
#include "direct_pass.h"

enum {
    BLOCK_BYTES = 576 << 10, /* packed panels that are used at a time */
    CHUNK_BYTES = 384 << 10, /* images that are read in a chunk */
    UNITS = 6,               /* wanted for each thread */
};

/* Chunks of as much as fits into the cache, and at least some units for each thread: where images are too few for that,
 * by fewer panels in a block, as borders within an image cost; then by smaller chunks. */
static void cut(DT(direct_pass) * s) {
    const int64_t panel = s->depth * DIRECT_NR * (int64_t)sizeof(real), units = UNITS * s->threads;
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

DT(direct_pass) DT(direct_prepare)(const dtconv_conv *p, int backward_data) {
    DT(direct_pass) s = {.n = p->n, .groups = p->groups, .turned = backward_data, .threads = dtconv_get_num_threads()};
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

size_t DT(direct_bytes)(const DT(direct_pass) * s) {
    return 64 + s->packed + s->parts + (size_t)s->threads * (s->segments + s->copied + s->sums);
}

/* Panels of NR channels; row (tap, channel that is read), taps as the axes count them. */
void DT(direct_pack_filters)(const DT(direct_pass) * s) {
    const int64_t taps = s->h.taps * s->w.taps, columns = s->groups * (s->turned ? s->cr : s->cw);
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < s->groups * s->panels * taps; unit++) {
        const int64_t tap = unit % taps, panel = unit / taps % s->panels, group = unit / taps / s->panels;
        const int64_t from = s->turned ? taps - 1 - tap : tap, j = panel * DIRECT_NR;
        const real *w = s->args->w + from * (s->turned ? s->cw : s->cr) * columns;
        const DT(matrix) plain = {w + group * s->cw, columns, 1}, trans = {w + group * s->cr, 1, columns};
        DT(pack_b_matrix)(s->turned ? &trans : &plain, 0, s->cr, j, MIN(DIRECT_NR, s->cw - j), DIRECT_NR,
                          (real *)dtconv_direct_panel(s, group, panel) + tap * s->cr * DIRECT_NR);
    }
}

int64_t DT(direct_segments)(const DT(direct_pass) * s, const dtconv_axis_class *h, const dtconv_axis_class *w,
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

DT(direct_walk)
DT(direct_begin)(const DT(direct_pass) * s, int64_t group, int64_t image, const dtconv_axis_class *h,
                 const dtconv_axis_class *w) {
    const int64_t row = s->w.read * s->ldr, line = s->w.written;
    const DT(conv_reductions) *of = &s->args->reductions;
    DT(direct_walk) k = {.outer = h->count, .inner = w->count, .ldc = s->ldw, .lda = s->lda, .ldx = of->ldx};
    k.a_image = s->h.read * row, k.a_outer = h->source_step * row, k.a_inner = w->source_step * s->ldr;
    k.c_image = s->h.written * line, k.c_outer = h->step * line, k.c_inner = w->step;
    k.a = s->read + group * s->cr + image * k.a_image + h->source * row + w->source * s->ldr;
    k.c = s->written + group * s->cw;
    k.added = s->added ? s->added + group * s->cw : k.c;
    k.x = s->gathered.reductions ? of->x + group * s->cw : NULL;
    k.pixel = image * k.c_image + h->first * line + w->first;
    if (w->count == 1) {
        k.outer = 1, k.inner = h->count;
        k.a_inner = k.a_outer, k.c_inner = k.c_outer;
    }
    if (!h->taps || !w->taps) k.a = s->read, k.a_image = k.a_outer = k.a_inner = 0;
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
        k->a += k->a_image - k->outer * k->a_outer, k->pixel += k->c_image - k->outer * k->c_outer;
    }
}
