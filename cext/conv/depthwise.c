/* DEPTHWISE: groups == ci, each input channel c makes `mult` output channels c * mult + i; direct, no GEMM.
 *
 *   forward            y[n, oh, ow, c * mult + i] = sum over taps of x[n, ih, iw, c] * w[kh, kw, c * mult + i]
 *   backward_data      dx[n, ih, iw, c] = sum over taps and i of dy[n, oh, ow, c * mult + i] * w[kh, kw, c * mult + i]
 *   backward_weights   dw[kh, kw, c * mult + i] = sum over (n, oh, ow) of x[n, ih, iw, c] * dy[n, oh, ow, c * mult + i]
 *
 * Vectors run over neighbouring channels c.  Rows of y (forward) or dx (backward_data) are shared out among threads;
 * backward_weights sums fixed slices of the rows of y, which are then added in order.
 */
#include "conv_internal.h"
#include "dtconv_vector.h"

enum { TILE = 4, SLICES = 16 };

/* `count` channels that lie `step` apart; the rest of the vector is 0. */
INLINE vec gather(const real *src, int64_t step, int64_t count) {
    vec v = {0};
    if (step == 1 && count == V)
        memcpy(&v, src, sizeof v);
    else
        for (int64_t i = 0; i < count; i++) v[i] = src[i * step];
    return v;
}

INLINE void scatter(real *dst, int64_t step, int64_t count, vec v) {
    if (step == 1 && count == V)
        memcpy(dst, &v, sizeof v);
    else
        for (int64_t i = 0; i < count; i++) dst[i * step] = v[i];
}

/* Taps [from, to) of a filter's row or column that fall into the image, the first being at position `at`. */
typedef struct {
    int64_t from, to;
} range;

static range taps_inside(int64_t at, int64_t extent, int64_t taps, int64_t dilation) {
    range r = {MAX(0, dtconv_ceil_div(-at, dilation)), MIN(taps, dtconv_ceil_div(extent - at, dilation))};
    return r;
}

/* What becomes of a tile's sums: they go to y, after the residual's pixels, ldr apart, were added; added: NULL for
 * none. It may be y. */
typedef struct {
    real *y;
    const real *added;
    int64_t ldr;
} written;

/* `count` channels from c on, each one's i-th output, of `tile` neighbouring output pixels. */
INLINE void forward_lanes(const dtconv_conv *p, const real *x, const real *w, written to, range down, range across,
                          int tile, int64_t c, int64_t count, int64_t mult, int64_t i) {
    vec sum[TILE] = {{0}};
    const int64_t step = p->sw * p->ldx;
    for (int64_t kh = down.from; kh < down.to; kh++) {
        for (int64_t kw = across.from; kw < across.to; kw++) {
            const real *pixel = x + (kh * p->dil_h * p->iw + kw * p->dil_w) * p->ldx + c;
            const vec f = gather(w + (kh * p->kw + kw) * p->co + c * mult + i, mult, count);
            for (int t = 0; t < tile; t++) sum[t] += f * gather(pixel + t * step, 1, count);
        }
    }
    for (int t = 0; t < tile; t++) {
        if (to.added) sum[t] += gather(to.added + t * to.ldr + c * mult + i, mult, count);
        scatter(to.y + t * p->ldy + c * mult + i, mult, count, sum[t]);
    }
}

/* `tile` neighbouring output pixels, of which the taps `down` and `across` are inside; x: tap (0, 0) of the first. */
INLINE void forward_tile(const dtconv_conv *p, const real *x, const real *w, written to, range down, range across,
                         int tile) {
    const int64_t mult = p->co / p->ci;
    int64_t c = 0;
    for (; c + V <= p->ci; c += V) {
        if (mult == 1)
            forward_lanes(p, x, w, to, down, across, tile, c, V, 1, 0);
        else
            for (int64_t i = 0; i < mult; i++) forward_lanes(p, x, w, to, down, across, tile, c, V, mult, i);
    }
    for (int64_t i = 0; c < p->ci && i < mult; i++)
        forward_lanes(p, x, w, to, down, across, tile, c, p->ci - c, mult, i);
}

static void forward_row(const dtconv_conv *p, const DT(conv_args) * a, int64_t n, int64_t oh) {
    const int64_t ih = oh * p->sh - p->pad_t, reach = (p->kw - 1) * p->dil_w;
    const range down = taps_inside(ih, p->ih, p->kh, p->dil_h);
    const int64_t pixel = (n * p->oh + oh) * p->ow;
    real *y = a->y + pixel * p->ldy;
    written to = {y, a->residual ? a->residual + pixel * a->ldr : NULL, a->ldr};
    for (int64_t ow = 0; ow < p->ow;) {
        const int64_t iw = ow * p->sw - p->pad_l;
        const int tile = ow + TILE <= p->ow && iw >= 0 && iw + (TILE - 1) * p->sw + reach < p->iw ? TILE : 1;
        const range across = taps_inside(iw, p->iw, p->kw, p->dil_w);
        const real *x = a->x + ((n * p->ih + ih) * p->iw + iw) * p->ldx;
        if (tile == TILE)
            forward_tile(p, x, a->w, to, down, across, TILE);
        else
            forward_tile(p, x, a->w, to, down, across, 1);
        ow += tile, to.y += tile * p->ldy;
        if (to.added) to.added += tile * to.ldr;
    }
    if (a->bias || a->activation != DTCONV_LINEAR) {
        const DT(bias_activation) finish = {.bias = a->bias, .activation = a->activation, .alpha = a->alpha};
        DT(bias_activation_epilogue)(&finish, 0, p->ow, 0, p->co, y, p->ldy);
    }
}

size_t DT(conv_depthwise_forward_workspace)(const dtconv_conv *p) {
    (void)p;
    return 0;
}

dtconv_status DT(conv_depthwise_forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    (void)workspace, (void)bytes;
    if (p->groups != p->ci) return DTCONV_UNSUPPORTED;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static)
    for (int64_t row = 0; row < p->n * p->oh; row++) forward_row(p, a, row / p->oh, row % p->oh);
    return DTCONV_OK;
}

/* The output position that tap k reads input position `at` for, or -1. */
static inline int64_t reader(int64_t at, int64_t pad, int64_t k, int64_t dilation, int64_t stride, int64_t extent) {
    const int64_t o = at + pad - k * dilation;
    return o < 0 || o % stride || o / stride >= extent ? -1 : o / stride;
}

static void backward_data_pixel(const dtconv_conv *p, const DT(conv_args) * a, int64_t n, int64_t ih, int64_t iw) {
    const int64_t mult = p->co / p->ci;
    real *dx = a->x + ((n * p->ih + ih) * p->iw + iw) * p->ldx;
    for (int64_t c = 0; !a->accumulate && c < p->ci; c++) dx[c] = 0;
    for (int64_t kh = 0; kh < p->kh; kh++) {
        const int64_t oh = reader(ih, p->pad_t, kh, p->dil_h, p->sh, p->oh);
        for (int64_t kw = 0; oh >= 0 && kw < p->kw; kw++) {
            const int64_t ow = reader(iw, p->pad_l, kw, p->dil_w, p->sw, p->ow);
            if (ow < 0) continue;
            const real *dy = a->y + ((n * p->oh + oh) * p->ow + ow) * p->ldy, *w = a->w + (kh * p->kw + kw) * p->co;
            if (mult == 1)
                for (int64_t c = 0; c < p->ci; c++) dx[c] += dy[c] * w[c];
            else
                for (int64_t c = 0; c < p->ci; c++)
                    for (int64_t i = 0; i < mult; i++) dx[c] += dy[c * mult + i] * w[c * mult + i];
        }
    }
}

size_t DT(conv_depthwise_backward_data_workspace)(const dtconv_conv *p) {
    (void)p;
    return 0;
}

dtconv_status DT(conv_depthwise_backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                               size_t bytes) {
    (void)workspace, (void)bytes;
    if (p->groups != p->ci) return DTCONV_UNSUPPORTED;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static)
    for (int64_t row = 0; row < p->n * p->ih; row++)
        for (int64_t iw = 0; iw < p->iw; iw++) backward_data_pixel(p, a, row / p->ih, row % p->ih, iw);
    return DTCONV_OK;
}

/* dw += x * dy over `count` output pixels, for some channels; x and dy: the first pixel's. */
INLINE void backward_weights_lanes(const dtconv_conv *p, const real *x, const real *dy, real *dw, int64_t pixels,
                                   int64_t count, int64_t mult) {
    vec sum[TILE] = {{0}}; /* so that additions need not wait for one another */
    const int64_t step = p->sw * p->ldx;
    int64_t ow = 0;
    for (; ow + TILE <= pixels; ow += TILE)
        for (int t = 0; t < TILE; t++)
            sum[t] += gather(x + (ow + t) * step, 1, count) * gather(dy + (ow + t) * p->ldy, mult, count);
    for (; ow < pixels; ow++) sum[0] += gather(x + ow * step, 1, count) * gather(dy + ow * p->ldy, mult, count);
    scatter(dw, mult, count, gather(dw, mult, count) + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

/* dw[kh, kw, :] += x * dy over one row of y. */
static void backward_weights_tap(const dtconv_conv *p, const real *x, const real *dy, int64_t kw, real *dw) {
    const int64_t mult = p->co / p->ci, left = p->pad_l - kw * p->dil_w;
    const int64_t ow0 = MAX(0, dtconv_ceil_div(left, p->sw)), ow1 = MIN(p->ow, dtconv_ceil_div(p->iw + left, p->sw));
    if (ow0 >= ow1) return;
    x += (ow0 * p->sw - left) * p->ldx;
    dy += ow0 * p->ldy;
    int64_t c = 0;
    for (; mult == 1 && c + V <= p->ci; c += V) backward_weights_lanes(p, x + c, dy + c, dw + c, ow1 - ow0, V, 1);
    for (; c < p->ci; c += V)
        for (int64_t i = 0; i < mult; i++)
            backward_weights_lanes(p, x + c, dy + c * mult + i, dw + c * mult + i, ow1 - ow0, MIN(V, p->ci - c), mult);
}

static void backward_weights_row(const dtconv_conv *p, const DT(conv_args) * a, int64_t n, int64_t oh, real *dw) {
    const real *dy = a->y + (n * p->oh + oh) * p->ow * p->ldy;
    for (int64_t kh = 0; kh < p->kh; kh++) {
        const int64_t ih = oh * p->sh - p->pad_t + kh * p->dil_h;
        if (ih < 0 || ih >= p->ih) continue;
        for (int64_t kw = 0; kw < p->kw; kw++)
            backward_weights_tap(p, a->x + (n * p->ih + ih) * p->iw * p->ldx, dy, kw, dw + (kh * p->kw + kw) * p->co);
    }
}

size_t DT(conv_depthwise_backward_weights_workspace)(const dtconv_conv *p) {
    return SLICES * dtconv_round((size_t)(p->kh * p->kw * p->co) * sizeof(real));
}

dtconv_status DT(conv_depthwise_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                  size_t bytes) {
    if (p->groups != p->ci) return DTCONV_UNSUPPORTED;
    if (bytes < DT(conv_depthwise_backward_weights_workspace)(p)) return DTCONV_WORKSPACE;
    const int64_t size = p->kh * p->kw * p->co, rows = p->n * p->oh;
    const size_t step = dtconv_round((size_t)size * sizeof(real));
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static)
    for (int64_t slice = 0; slice < SLICES; slice++) {
        real *dw = (real *)((char *)workspace + (size_t)slice * step);
        memset(dw, 0, step);
        for (int64_t row = rows * slice / SLICES; row < rows * (slice + 1) / SLICES; row++)
            backward_weights_row(p, a, row / p->oh, row % p->oh, dw);
    }
    for (int64_t i = 0; i < size; i++) a->w[i] = 0;
    for (int64_t slice = 0; slice < SLICES; slice++) {
        const real *dw = (const real *)((const char *)workspace + (size_t)slice * step);
        for (int64_t i = 0; i < size; i++) a->w[i] += dw[i];
    }
    return DTCONV_OK;
}
