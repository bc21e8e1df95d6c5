/* Separable convolutions, forward and the gradient of the pointwise filters: see dtconv_separable.h.
 *
 * A unit of forward is some rows of t, which a thread makes as depthwise.c does, in a strip that stays in its second
 * cache, and multiplies as direct.c does: block after block of panels of w, of each tile after tile of the strip's
 * pixels.  So t is made once, whatever co is.  Where it is normalized, that happens in the strip.  backward_weights
 * makes t again while it packs it: see pointwise_weights.c.  Strips depend on the problem alone, and so do the moments
 * that are gathered.
 */
#include "separable.h"

#include "direct_pass.h"
#include "pointwise_weights.h"

enum {
    STRIP_BYTES = 384 << 10, /* of t */
    PIECES = 32,             /* strips that are wanted */
    AT_ONCE = 16             /* pixels for which the coefficients of some channels are loaded */
};

dtconv_conv DT(separable_pointwise)(const dtconv_conv *p, int64_t co) {
    dtconv_conv q = *p;
    q.id = p->od, q.ih = p->oh, q.iw = p->ow, q.ci = p->co, q.co = co;
    q.kd = q.kh = q.kw = q.sd = q.sh = q.sw = q.dil_d = q.dil_h = q.dil_w = q.groups = 1;
    q.pad_f = q.pad_t = q.pad_l = 0;
    q.ldx = dtconv_strip_ld(p->co);
    return q;
}

int DT(separable_fits)(const dtconv_conv *p, int64_t co) {
    const dtconv_conv q = DT(separable_pointwise)(p, co);
    dtconv_conv deep = *p;
    deep.ldy = deep.co;
    if (p->groups != p->ci || !dtconv_fits(&deep) || !dtconv_fits(&q)) return 0;
    const DT(depthwise_pass) s = DT(depthwise_prepare)(p, 0);
    return s.columns == s.w.written;
}

typedef struct {
    DT(depthwise_pass) deep;
    DT(direct_pass) point;
    int64_t rows, strip, strips; /* of t: all, of a strip */
    size_t of_strip;
    const DT(conv_normalization) * between;
} pass;

static pass prepare(const dtconv_conv *p, int64_t co) {
    const dtconv_conv q = DT(separable_pointwise)(p, co);
    pass s = {.deep = DT(depthwise_prepare)(p, 0), .point = DT(direct_prepare)(&q, 0)};
    s.rows = p->n * p->od * p->oh;
    const int64_t row = p->ow * q.ldx * (int64_t)sizeof(real);
    s.strip = MAX(1, MIN(STRIP_BYTES / row, dtconv_ceil_div(s.rows, PIECES)));
    s.strips = dtconv_ceil_div(s.rows, s.strip);
    s.strip = dtconv_ceil_div(s.rows, s.strips);
    s.strips = dtconv_ceil_div(s.rows, s.strip);
    s.of_strip = dtconv_round((size_t)(s.strip * row));
    s.point.parts = DT(gather_parts_bytes)(s.strips, co);
    return s;
}

static size_t own_bytes(const pass *s) {
    return DT(depthwise_ring_bytes)(&s->deep) + s->of_strip + s->point.segments + s->point.copied + s->point.sums;
}

size_t DT(separable_forward_workspace)(const dtconv_conv *p, int64_t co) {
    if (!DT(separable_fits)(p, co)) return 0;
    const pass s = prepare(p, co);
    return 64 + DT(depthwise_filters_bytes)(&s.deep) + s.point.packed + s.point.parts +
           (size_t)s.point.threads * own_bytes(&s);
}

/* Some pixels of t, `channels` each, in their place; act: a constant where it is inlined. */
INLINE void normalize_as(dtconv_activation act, const DT(conv_normalization) * f, int64_t pixels, int64_t channels,
                         real *t, int64_t ld) {
    for (int64_t i = 0; i < pixels; i += AT_ONCE)
        for (int64_t j = 0; j < channels; j += V) {
            const int64_t count = MIN(V, channels - j), end = MIN(pixels, i + AT_ONCE);
            const normalizer of = normalizer_of(f, j, count);
            for (real *at = t + i * ld + j; at < t + end * ld; at += ld)
                store_first(at, count, normalized(of, act, load_first(at, count)));
        }
}

static void normalize(const DT(conv_normalization) * f, int64_t pixels, int64_t channels, real *t, int64_t ld) {
#define NORMALIZE(act) normalize_as(act, f, pixels, channels, t, ld)
    FOR_ACTIVATIONS(f->activation, NORMALIZE)
#undef NORMALIZE
}

static void run_strip(const pass *s, int64_t number, DT(depthwise_ring) * ring, real *strip,
                      const DT(direct_scratch) * own) {
    const int64_t row = number * s->strip, end = MIN(s->rows, row + s->strip), line = s->deep.w.written;
    const dtconv_axis_class one = {.step = 1, .count = 1, .tap_step = 1, .taps = 1, .source_step = 1};
    dtconv_axis_class pixels = one;
    pixels.first = row * line, pixels.count = (end - row) * line;
    DT(direct_pass) point = s->point;
    point.read = strip;
    DT(separable_rows)(&s->deep, ring, 0, s->deep.ci, row, end, strip, point.ldr);
    if (s->between) normalize(s->between, pixels.count, point.cr, strip, point.ldr);
    for (int64_t first = 0; first < point.panels; first += point.block) {
        const int64_t last = MIN(point.panels, first + point.block), j = first * DIRECT_NR;
        if (own->sums) DT(gather_begin)(own->sums);
        DT(direct_run_class)(&point, 0, first, last, 0, &one, &pixels, &one, own);
        if (own->sums) DT(gather_end)(own->sums, &point.gathered, number, j, MIN(last * DIRECT_NR, point.cw) - j);
    }
}

dtconv_status DT(separable_forward)(const dtconv_conv *p, int64_t co, const DT(conv_args) * a, const real *deep,
                                    const DT(conv_normalization) * between, void *workspace, size_t bytes) {
    if (!DT(separable_fits)(p, co)) return DTCONV_UNSUPPORTED;
    if (bytes < DT(separable_forward_workspace)(p, co)) return DTCONV_WORKSPACE;
    pass s = prepare(p, co);
    s.between = between;
    DT(conv_args) of_deep = {.w = (real *)deep}, of_point = *a;
    of_point.prologue = (DT(conv_normalization)){0};
    s.deep.args = &of_deep, s.deep.read = a->x;
    s.deep.prologue = a->prologue.mean ? &a->prologue : NULL;
    s.point.args = &of_point, s.point.written = a->y, s.point.added = a->residual, s.point.lda = a->ldr;
    char *memory = (char *)(((uintptr_t)workspace + 63) / 64 * 64);
    real *filters = (real *)memory;
    s.deep.filters = filters, memory += DT(depthwise_filters_bytes)(&s.deep);
    s.point.filters = (real *)memory, memory += s.point.packed;
    s.point.gathered = DT(gather_parts_on)(memory, s.strips, co, &of_point, 0);
    memory += s.point.parts;
#pragma omp parallel num_threads((int)s.point.threads)
    {
        char *mine = memory + (size_t)dtconv_thread_id() * own_bytes(&s);
        DT(depthwise_ring) ring = DT(depthwise_ring_on)(&s.deep, mine);
        mine += DT(depthwise_ring_bytes)(&s.deep);
        real *strip = (real *)mine;
        mine += s.of_strip;
        DT(gather_sums) sums = DT(gather_sums_on)(mine + s.point.segments + s.point.copied, s.point.block * DIRECT_NR);
        const DT(direct_scratch) own = {(dtconv_segment *)mine, (real *)(mine + s.point.segments), NULL,
                                        s.point.gathered.wanted ? &sums : NULL};
        DT(depthwise_pack)(&s.deep, filters);
        DT(direct_pack_filters)(&s.point);
#pragma omp for schedule(dynamic, 1)
        for (int64_t number = 0; number < s.strips; number++) run_strip(&s, number, &ring, strip, &own);
        DT(gather_merge)(&s.point.gathered);
    }
    return DTCONV_OK;
}

/* A thread's ring, and behind it what it lies in. */
static void begin_rows(const void *context, void *own) {
    DT(depthwise_ring) *ring = own;
    *ring = DT(depthwise_ring_on)(context, (char *)own + dtconv_round(sizeof *ring));
}

static void make_rows(const void *context, void *own, int64_t row, int64_t end, int64_t first, int64_t last, real *to,
                      int64_t ld) {
    const DT(depthwise_pass) *s = context;
    DT(separable_rows)(s, own, first / s->mult, last / s->mult, row, end, to, ld);
}

static DT(made_rows) made_of(const DT(depthwise_pass) * s) {
    return (DT(made_rows)){.begin = begin_rows,
                           .make = make_rows,
                           .context = s,
                           .rows = s->n * s->d.written * s->h.written,
                           .pixels = s->w.written,
                           .unit = 64 / (int64_t)sizeof(real) * s->mult,
                           .bytes = dtconv_round(sizeof(DT(depthwise_ring))) + DT(depthwise_ring_bytes)(s)};
}

size_t DT(separable_backward_weights_workspace)(const dtconv_conv *p, int64_t co) {
    if (!DT(separable_fits)(p, co)) return 0;
    const DT(depthwise_pass) s = DT(depthwise_prepare)(p, 0);
    const DT(made_rows) made = made_of(&s);
    const dtconv_conv q = DT(separable_pointwise)(p, co);
    return 64 + DT(depthwise_filters_bytes)(&s) + DT(pointwise_weights_of_rows_workspace)(&q, &made);
}

dtconv_status DT(separable_backward_weights)(const dtconv_conv *p, int64_t co, const DT(conv_args) * a,
                                             const real *deep, void *workspace, size_t bytes) {
    if (!DT(separable_fits)(p, co)) return DTCONV_UNSUPPORTED;
    if (bytes < DT(separable_backward_weights_workspace)(p, co)) return DTCONV_WORKSPACE;
    const dtconv_conv q = DT(separable_pointwise)(p, co);
    DT(depthwise_pass) s = DT(depthwise_prepare)(p, 0);
    DT(conv_args) of_deep = {.w = (real *)deep}, of_point = *a;
    of_point.prologue = (DT(conv_normalization)){0};
    s.args = &of_deep, s.read = a->x;
    s.prologue = a->prologue.mean ? &a->prologue : NULL;
    real *filters = (real *)(((uintptr_t)workspace + 63) / 64 * 64);
    s.filters = filters;
    DT(depthwise_pack)(&s, filters);
    const DT(made_rows) made = made_of(&s);
    char *memory = (char *)filters + DT(depthwise_filters_bytes)(&s);
    return DT(pointwise_weights_of_rows)(&q, &of_point, &made, memory, bytes - (size_t)(memory - (char *)workspace));
}
