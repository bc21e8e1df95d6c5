/* Classes of pixels along an axis: those that read the same taps, which are the pixels of one phase of the stride whose
 * taps all exist, and the few next to each border. */
#include "direct.h"

dtconv_axis DT(direct_axis)(int64_t ih, int64_t oh, int64_t kh, int64_t sh, int64_t dil_h, int64_t pad_t, int turned) {
    return (dtconv_axis){turned ? ih : oh, turned ? oh : ih, kh, sh, dil_h, pad_t, turned};
}

dtconv_conv DT(direct_view)(const dtconv_conv *p) {
    dtconv_conv v = *p;
    if (dtconv_is_pointwise(p)) { /* one column of pixels */
        v.ih = v.oh = dtconv_rows(p);
        v.n = v.id = v.od = v.iw = v.ow = 1;
        return v;
    }
    if (!dtconv_is_deep(p)) {
        v.id = v.od = p->n;
        v.n = v.kd = v.sd = v.dil_d = 1;
    }
    if (p->ih == 1 && p->oh == 1 && p->kh == 1 && p->pad_t == 0) {
        v.ih = p->iw, v.oh = p->ow, v.kh = p->kw, v.sh = p->sw, v.dil_h = p->dil_w, v.pad_t = p->pad_l;
        v.iw = v.ow = v.kw = v.sw = v.dil_w = 1;
        v.pad_l = 0;
    }
    return v;
}

static int64_t divisor(int64_t a, int64_t b) { return b ? divisor(b, a % b) : a; }

/* Tap 0's source and the steps, as if every pixel that is read existed; taps: those of the pixel's phase. */
static dtconv_axis_class unbounded(const dtconv_axis *axis, int64_t i) {
    if (!axis->turned)
        return (dtconv_axis_class){.tap_step = 1,
                                   .taps = axis->taps,
                                   .source = i * axis->stride - axis->pad,
                                   .source_step = axis->stride,
                                   .tap_distance = axis->dilation};
    const int64_t period = axis->stride / divisor(axis->stride, axis->dilation), q = i + axis->pad;
    int64_t k = 0; /* the first filter element that meets a pixel of this phase */
    while (k < MIN(period, axis->taps) && (q - k * axis->dilation) % axis->stride) k++;
    if (k == MIN(period, axis->taps)) return (dtconv_axis_class){.tap_step = 1, .source_step = 1, .tap_distance = 1};
    const int64_t more = (axis->taps - 1 - k) / period, last = k + more * period;
    return (dtconv_axis_class){.tap = axis->taps - 1 - last,
                               .tap_step = period,
                               .taps = more + 1,
                               .source = (q - last * axis->dilation) / axis->stride,
                               .source_step = 1,
                               .tap_distance = period * axis->dilation / axis->stride};
}

/* Pixel i with the taps that exist, [lo, hi) of its phase, and the pixels up to the next one where these change. */
static dtconv_axis_class bounded(const dtconv_axis *axis, int64_t i, int64_t end) {
    dtconv_axis_class c = unbounded(axis, i);
    const int64_t d = c.tap_distance, step = axis->turned ? axis->stride : 1;
    const int64_t lo = MIN(c.taps, MAX(0, dtconv_ceil_div(-c.source, d)));
    const int64_t hi = MIN(c.taps, MAX(0, dtconv_ceil_div(axis->read - c.source, d)));
    int64_t count = dtconv_ceil_div(end - i, step);
    if (lo > 0) count = MIN(count, dtconv_ceil_div(-(lo - 1) * d - c.source, c.source_step));
    if (hi > 0) count = MIN(count, dtconv_ceil_div(axis->read - (hi - 1) * d - c.source, c.source_step));
    c.first = i, c.step = step, c.count = count;
    c.taps = MAX(0, hi - lo);
    c.tap = c.taps ? c.tap + lo * c.tap_step : 0;
    c.source = c.taps ? c.source + lo * d : 0;
    return c;
}

int DT(direct_next_class)(const dtconv_axis *axis, int64_t from, int64_t end, dtconv_axis_class *c) {
    int64_t i = from;
    if (c->count) i = c->first + c->count * c->step;
    if (c->count && i >= end) {
        const int64_t phase = (c->first - from) % c->step + 1; /* the next one */
        if (phase == c->step) return 0;
        i = from + phase;
    }
    if (i >= end) return 0;
    *c = bounded(axis, i, end);
    return 1;
}
