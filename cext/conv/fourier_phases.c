/* The convolution in the Fourier domain with strides: by phases (polyphase).
 *
 * Output o meets tap r at pixel o s - pad + r.  Pixels s i + f of phase f are an image of their own; the taps that meet
 * them are r = s j + f - shift, with before = ceil(pad / s) and shift = before s - pad, and meet its pixel
 * o - before + j: a convolution with strides of 1.  Phases of both axes are channels that lie side by side:
 *
 *   x'[i, (f, c)] = x[s i + f, c]      w'[j, (f, c)] = w[s j + f - shift, c]      (0 outside of x and of the filter)
 *
 * so that one product over all of them is their sum.  x' and w' are in the workspace.  Planes of a third axis stay.
 */
#include "fourier.h"

/* One axis: extents of x and x', taps of w and w'. */
typedef struct {
    int64_t stride, before, shift, in, phase_in, taps, phase_taps;
} phases;

static phases phases_of(int64_t in, int64_t taps, int64_t stride, int64_t pad) {
    phases a = {.stride = stride, .in = in, .taps = taps, .before = dtconv_ceil_div(pad, stride)};
    a.shift = a.before * stride - pad;
    a.phase_in = dtconv_ceil_div(in, stride);
    a.phase_taps = (taps - 1 + a.shift) / stride + 1;
    return a;
}

static phases vertical(const dtconv_conv *p) { return phases_of(p->ih, p->kh, p->sh, p->pad_t); }
static phases horizontal(const dtconv_conv *p) { return phases_of(p->iw, p->kw, p->sw, p->pad_l); }

int DT(fourier_phases)(const dtconv_conv *p, dtconv_conv *q) {
    const phases h = vertical(p), w = horizontal(p);
    *q = *p;
    if (p->sh == 1 && p->sw == 1) return 1;
    if ((p->sh > 1 && p->dil_h > 1) || (p->sw > 1 && p->dil_w > 1)) return 0;
    q->ih = h.phase_in, q->kh = h.phase_taps, q->pad_t = h.before;
    q->iw = w.phase_in, q->kw = w.phase_taps, q->pad_l = w.before;
    q->sh = q->sw = 1;
    q->ci = q->ldx = p->ci * p->sh * p->sw;
    return 1;
}

static int64_t x_size(const dtconv_conv *q) { return dtconv_line(q->n * q->id * q->ih * q->iw * q->ci); }
static int64_t w_size(const dtconv_conv *q) { return dtconv_line(q->kd * q->kh * q->kw * (q->ci / q->groups) * q->co); }

/* Channels of a group, or of a row of phases, where these lie side by side in x: `count` of them at a pixel. */
typedef struct {
    int64_t channels, count;
} runs;

static runs runs_of(const dtconv_conv *p) {
    if (p->groups == 1 && p->ldx == p->ci) return (runs){p->ci * p->sw, 1};
    return (runs){p->ci / p->groups, p->sw};
}

static void move(int64_t n, elem *x, elem *phase, int to_x, int add) {
    if (!to_x)
        memcpy(phase, x, (size_t)n * sizeof(elem));
    else if (add)
        for (int64_t i = 0; i < n; i++) x[i] = narrow(widen(x[i]) + widen(phase[i]));
    else
        memcpy(x, phase, (size_t)n * sizeof(elem));
}

/* x to x', or x' to dx, in parallel over the rows of x'. */
static void move_images(const dtconv_conv *p, const dtconv_conv *q, elem *x, elem *phase, int to_x, int add) {
    const runs run = runs_of(p);
    const int64_t group = p->ci / p->groups, step = group * p->sh * p->sw;
#pragma omp parallel for num_threads(dtconv_threads_to_move(q->n * q->id * q->ih * q->iw * q->ci)) schedule(static)
    for (int64_t row = 0; row < q->n * q->id * q->ih; row++) {
        elem *to = phase + row * q->iw * q->ci;
        for (int64_t down = 0; down < p->sh; down++) {
            const int64_t line = row % q->ih * p->sh + down;
            elem *from = x + ((row / q->ih * p->ih + line) * p->iw) * p->ldx;
            for (int64_t i = 0; i < q->iw; i++)
                for (int64_t k = 0; k < run.count; k++) {
                    const int64_t column = i * p->sw + k, left = line < p->ih ? p->iw - column : 0;
                    const int64_t n = MAX(0, run.count == 1 ? MIN(run.channels, left * p->ci) : left > 0 ? group : 0);
                    for (int64_t g = 0; g < p->groups; g++) {
                        elem *at = to + i * q->ci + g * step + (down * p->sw + k) * group;
                        if (n) move(n, from + column * p->ldx + g * group, at, to_x, add);
                        if (!to_x) memset(at + n, 0, (size_t)(run.channels - n) * sizeof(elem));
                    }
                }
        }
    }
}

/* w to w', or dw' to dw. */
static void move_filters(const dtconv_conv *p, const dtconv_conv *q, real *w, real *phase, int to_w) {
    const phases h = vertical(p), v = horizontal(p);
    const int64_t size = p->ci / p->groups * p->co, of = p->sh * p->sw, count = q->kd * q->kh * q->kw * of;
#pragma omp parallel for num_threads(dtconv_threads_to_move(count *size)) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        const int64_t tap = i / of % (q->kh * q->kw), plane = i / of / (q->kh * q->kw);
        const int64_t row = tap / q->kw * h.stride + i % of / p->sw - h.shift;
        const int64_t column = tap % q->kw * v.stride + i % p->sw - v.shift;
        const int is_there = row >= 0 && row < p->kh && column >= 0 && column < p->kw;
        real *of_phase = phase + i * size;
        real *of_w = is_there ? w + ((plane * p->kh + row) * p->kw + column) * size : NULL;
        if (of_w)
            memcpy(to_w ? of_w : of_phase, to_w ? of_phase : of_w, (size_t)size * sizeof(real));
        else if (!to_w)
            memset(of_phase, 0, (size_t)size * sizeof(real));
    }
}

size_t DT(fourier_phases_bytes)(const dtconv_conv *q) {
    return 64 + (size_t)x_size(q) * sizeof(elem) + (size_t)w_size(q) * sizeof(real);
}

dtconv_status DT(fourier_by_phases)(const dtconv_conv *p, int pass, const DT(conv_args) * a, void *workspace,
                                    size_t bytes, DT(fourier_run) run) {
    dtconv_conv q;
    if (!DT(fourier_phases)(p, &q) || a->reductions.sum) return DTCONV_UNSUPPORTED;
    if (bytes < DT(fourier_phases_bytes)(&q)) return DTCONV_WORKSPACE;
    DT(conv_args) own = *a;
    own.x = (elem *)dtconv_aligned(workspace), own.w = (real *)(own.x + x_size(&q)), own.accumulate = 0;
    real *rest = own.w + w_size(&q);
    if (pass % 3 != 1 && !(pass % 3 == 2 && a->spectra)) move_images(p, &q, a->x, own.x, 0, 0);
    if (pass % 3 != 2) move_filters(p, &q, a->w, own.w, 0);
    const dtconv_status status = run(&q, pass, &own, rest, bytes - (size_t)((char *)rest - (char *)workspace));
    if (status) return status;
    if (pass % 3 == 1) move_images(p, &q, a->x, own.x, 1, a->accumulate);
    if (pass % 3 == 2) move_filters(p, &q, a->w, own.w, 1);
    return DTCONV_OK;
}
