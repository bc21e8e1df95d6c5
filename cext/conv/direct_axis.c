/* Classes of pixels along an axis: those that read the same taps, which are the pixels of one phase of the stride whose
 * taps all exist, and the few next to each border. */
#include "direct.h"

dtconv_axis DT(direct_axis)(int64_t ih, int64_t oh, int64_t kh, int64_t sh, int64_t dil_h, int64_t pad_t, int turned) {
    return (dtconv_axis){turned ? ih : oh, turned ? oh : ih, kh, sh, dil_h, pad_t, turned};
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

/* Pixel i with the taps that exist. */
static dtconv_axis_class bounded(const dtconv_axis *axis, int64_t i) {
    dtconv_axis_class c = unbounded(axis, i);
    const int64_t from = MAX(0, dtconv_ceil_div(-c.source, c.tap_distance));
    const int64_t end = MIN(c.taps, dtconv_ceil_div(axis->read - c.source, c.tap_distance));
    c.taps = MAX(0, end - from);
    c.tap = c.taps ? c.tap + from * c.tap_step : 0;
    c.source = c.taps ? c.source + from * c.tap_distance : 0;
    return c;
}

int DT(direct_next_class)(const dtconv_axis *axis, int64_t from, int64_t end, dtconv_axis_class *c) {
    const int64_t step = axis->turned ? axis->stride : 1;
    int64_t i = from;
    if (c->count) i = c->first + c->count * step;
    if (c->count && i >= end) {
        const int64_t phase = (c->first - from) % step + 1; /* the next one */
        if (phase == step) return 0;
        i = from + phase;
    }
    if (i >= end) return 0;
    *c = bounded(axis, i);
    c->first = i, c->step = step, c->count = 1;
    for (i += step; i < end; i += step, c->count++) {
        const dtconv_axis_class next = bounded(axis, i);
        if (next.tap != c->tap || next.taps != c->taps) break;
    }
    return 1;
}
