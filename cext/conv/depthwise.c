/* DEPTHWISE: groups == ci, each input channel c makes `mult` output channels c * mult + i; direct, no GEMM.
 *
 *   forward            y[n, oh, ow, c * mult + i] = sum over taps of x[n, ih, iw, c] * w[kh, kw, c * mult + i]
 *   backward_data      dx[n, ih, iw, c] = sum over taps and i of dy[n, oh, ow, c * mult + i] * w[kh, kw, c * mult + i]
 *   backward_weights   dw[kh, kw, c * mult + i] = sum over (n, oh, ow) of x[n, ih, iw, c] * dy[n, oh, ow, c * mult + i]
 *
 * With a depth the taps are kd x kh x kw, and so are the sums.  Vectors run over neighbouring channels c.  Rows of y
 * (forward) or dx (backward_data) are shared out among threads; backward_weights sums fixed slices of the rows of y,
 * which are then added in order.
 */
#include "conv_internal.h"
#include "dtconv_vector.h"

enum { TILE = 4, SLICES = 16, STRIP = 256 /* channels that are summed at a time */ };

/* `count` channels that lie `step` apart; the rest of the vector is 0. */
INLINE vec gather(const real *src, int64_t step, int64_t count) {
    vec v = {0};
    if (step == 1 && count == V)
        memcpy(&v, src, sizeof v);
    else
        for (int64_t i = 0; i < count; i++) v[i] = src[i * step];
    return v;
}

/* The same of an image's channels. */
INLINE vec gather_elem(const elem *src, int64_t step, int64_t count) {
    if (step == 1 && count == V) return load_elem(src);
    vec v = {0};
    for (int64_t i = 0; i < count; i++) v[i] = widen(src[i * step]);
    return v;
}

INLINE void scatter_elem(elem *dst, int64_t step, int64_t count, vec v) {
    if (step == 1 && count == V)
        store_elem(dst, v);
    else
        for (int64_t i = 0; i < count; i++) dst[i * step] = narrow(v[i]);
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
    elem *y;
    const elem *added;
    int64_t ldr;
} written;

/* The taps that are inside, by axis. */
typedef struct {
    range deep, down, across;
} taps_of;

/* `count` channels from c on, each one's i-th output, of `tile` neighbouring output pixels. */
INLINE void forward_lanes(const dtconv_conv *p, const elem *x, const real *w, written to, taps_of in, int tile,
                          int64_t c, int64_t count, int64_t mult, int64_t i) {
    vec sum[TILE] = {{0}};
    const int64_t step = p->sw * p->ldx;
    for (int64_t kd = in.deep.from; kd < in.deep.to; kd++)
        for (int64_t kh = in.down.from; kh < in.down.to; kh++)
            for (int64_t kw = in.across.from; kw < in.across.to; kw++) {
                const int64_t line = kd * p->dil_d * p->ih + kh * p->dil_h;
                const elem *pixel = x + (line * p->iw + kw * p->dil_w) * p->ldx + c;
                const vec f = gather(w + ((kd * p->kh + kh) * p->kw + kw) * p->co + c * mult + i, mult, count);
                for (int t = 0; t < tile; t++) sum[t] += f * gather_elem(pixel + t * step, 1, count);
            }
    for (int t = 0; t < tile; t++) {
        if (to.added) sum[t] += gather_elem(to.added + t * to.ldr + c * mult + i, mult, count);
        scatter_elem(to.y + t * p->ldy + c * mult + i, mult, count, sum[t]);
    }
}

/* `tile` neighbouring output pixels, of which the taps `in` are inside; x: the first tap of the first. */
INLINE void forward_tile(const dtconv_conv *p, const elem *x, const real *w, written to, taps_of in, int tile) {
    const int64_t mult = p->co / p->ci;
    int64_t c = 0;
    for (; c + V <= p->ci; c += V) {
        if (mult == 1)
            forward_lanes(p, x, w, to, in, tile, c, V, 1, 0);
        else
            for (int64_t i = 0; i < mult; i++) forward_lanes(p, x, w, to, in, tile, c, V, mult, i);
    }
    for (int64_t i = 0; c < p->ci && i < mult; i++) forward_lanes(p, x, w, to, in, tile, c, p->ci - c, mult, i);
}

/* plane: (n, od). */
static void forward_row(const dtconv_conv *p, const DT(conv_args) * a, int64_t plane, int64_t oh) {
    const int64_t ih = oh * p->sh - p->pad_t, reach = (p->kw - 1) * p->dil_w;
    const int64_t n = plane / p->od, id = plane % p->od * p->sd - p->pad_f;
    taps_of in = {.deep = taps_inside(id, p->id, p->kd, p->dil_d), .down = taps_inside(ih, p->ih, p->kh, p->dil_h)};
    const int64_t pixel = (plane * p->oh + oh) * p->ow;
    elem *y = a->y + pixel * p->ldy;
    written to = {y, a->residual ? a->residual + pixel * a->ldr : NULL, a->ldr};
    for (int64_t ow = 0; ow < p->ow;) {
        const int64_t iw = ow * p->sw - p->pad_l;
        const int tile = ow + TILE <= p->ow && iw >= 0 && iw + (TILE - 1) * p->sw + reach < p->iw ? TILE : 1;
        in.across = taps_inside(iw, p->iw, p->kw, p->dil_w);
        const elem *x = a->x + (((n * p->id + id) * p->ih + ih) * p->iw + iw) * p->ldx;
        if (tile == TILE)
            forward_tile(p, x, a->w, to, in, TILE);
        else
            forward_tile(p, x, a->w, to, in, 1);
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
#pragma omp parallel for num_threads(dtconv_threads_of(p)) schedule(dynamic, dtconv_piece(p->n * p->od * p->oh))
    for (int64_t row = 0; row < p->n * p->od * p->oh; row++) forward_row(p, a, row / p->oh, row % p->oh);
    return DTCONV_OK;
}

/* The output position that tap k reads input position `at` for, or -1. */
static inline int64_t reader(int64_t at, int64_t pad, int64_t k, int64_t dilation, int64_t stride, int64_t extent) {
    const int64_t o = at + pad - k * dilation;
    return o < 0 || o % stride || o / stride >= extent ? -1 : o / stride;
}

/* Adds what plane `plane` (n, od) of dy and the plane of filters w make of channels [first, first + count) of a pixel.
 */
static void backward_data_plane(const dtconv_conv *p, const DT(conv_args) * a, int64_t plane, const real *filters,
                                int64_t ih, int64_t iw, int64_t first, int64_t count, real *sum) {
    const int64_t mult = p->co / p->ci;
    for (int64_t kh = 0; kh < p->kh; kh++) {
        const int64_t oh = reader(ih, p->pad_t, kh, p->dil_h, p->sh, p->oh);
        for (int64_t kw = 0; oh >= 0 && kw < p->kw; kw++) {
            const int64_t ow = reader(iw, p->pad_l, kw, p->dil_w, p->sw, p->ow);
            if (ow < 0) continue;
            const elem *dy = a->y + ((plane * p->oh + oh) * p->ow + ow) * p->ldy + first * mult;
            const real *w = filters + (kh * p->kw + kw) * p->co + first * mult;
            int64_t c = 0;
            for (; mult == 1 && c + V <= count; c += V) store(sum + c, load(sum + c) + load_elem(dy + c) * load(w + c));
            for (; c < count; c++)
                for (int64_t i = 0; i < mult; i++) sum[c] += widen(dy[c * mult + i]) * w[c * mult + i];
        }
    }
}

static void backward_data_pixel(const dtconv_conv *p, const DT(conv_args) * a, int64_t plane, int64_t ih, int64_t iw) {
    real sum[STRIP];
    for (int64_t first = 0; first < p->ci; first += STRIP) {
        const int64_t count = MIN(STRIP, p->ci - first);
        elem *dx = a->x + ((plane * p->ih + ih) * p->iw + iw) * p->ldx + first;
        for (int64_t c = 0; c < count; c++) sum[c] = a->accumulate ? widen(dx[c]) : 0;
        for (int64_t kd = 0; kd < p->kd; kd++) {
            const int64_t od = reader(plane % p->id, p->pad_f, kd, p->dil_d, p->sd, p->od);
            if (od < 0) continue;
            const real *filters = a->w + kd * p->kh * p->kw * p->co;
            backward_data_plane(p, a, plane / p->id * p->od + od, filters, ih, iw, first, count, sum);
        }
        for (int64_t c = 0; c < count; c++) dx[c] = narrow(sum[c]);
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
#pragma omp parallel for num_threads(dtconv_threads_of(p)) schedule(dynamic, dtconv_piece(p->n * p->id * p->ih))
    for (int64_t row = 0; row < p->n * p->id * p->ih; row++)
        for (int64_t iw = 0; iw < p->iw; iw++) backward_data_pixel(p, a, row / p->ih, row % p->ih, iw);
    return DTCONV_OK;
}

/* dw += x * dy over `count` output pixels, for some channels; x and dy: the first pixel's. */
INLINE void backward_weights_lanes(const dtconv_conv *p, const elem *x, const elem *dy, real *dw, int64_t pixels,
                                   int64_t count, int64_t mult) {
    vec sum[TILE] = {{0}}; /* so that additions need not wait for one another */
    const int64_t step = p->sw * p->ldx;
    int64_t ow = 0;
    for (; ow + TILE <= pixels; ow += TILE)
        for (int t = 0; t < TILE; t++)
            sum[t] += gather_elem(x + (ow + t) * step, 1, count) * gather_elem(dy + (ow + t) * p->ldy, mult, count);
    for (; ow < pixels; ow++)
        sum[0] += gather_elem(x + ow * step, 1, count) * gather_elem(dy + ow * p->ldy, mult, count);
    scatter(dw, mult, count, gather(dw, mult, count) + ((sum[0] + sum[1]) + (sum[2] + sum[3])));
}

/* dw[kd, kh, kw, :] += x * dy over one row of y. */
static void backward_weights_tap(const dtconv_conv *p, const elem *x, const elem *dy, int64_t kw, real *dw) {
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

static void backward_weights_row(const dtconv_conv *p, const DT(conv_args) * a, int64_t plane, int64_t oh, real *dw) {
    const elem *dy = a->y + (plane * p->oh + oh) * p->ow * p->ldy;
    for (int64_t row = 0; row < p->kd * p->kh; row++) {
        const int64_t ih = oh * p->sh - p->pad_t + row % p->kh * p->dil_h;
        const int64_t id = plane % p->od * p->sd - p->pad_f + row / p->kh * p->dil_d;
        if (ih < 0 || ih >= p->ih || id < 0 || id >= p->id) continue;
        const elem *x = a->x + ((plane / p->od * p->id + id) * p->ih + ih) * p->iw * p->ldx;
        for (int64_t kw = 0; kw < p->kw; kw++) backward_weights_tap(p, x, dy, kw, dw + (row * p->kw + kw) * p->co);
    }
}

size_t DT(conv_depthwise_backward_weights_workspace)(const dtconv_conv *p) {
    return SLICES * dtconv_round((size_t)(dtconv_taps(p) * p->co) * sizeof(real));
}

dtconv_status DT(conv_depthwise_backward_weights)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace,
                                                  size_t bytes) {
    if (p->groups != p->ci) return DTCONV_UNSUPPORTED;
    if (bytes < DT(conv_depthwise_backward_weights_workspace)(p)) return DTCONV_WORKSPACE;
    const int64_t size = dtconv_taps(p) * p->co, rows = p->n * p->od * p->oh;
    const size_t step = dtconv_round((size_t)size * sizeof(real));
#pragma omp parallel for num_threads(dtconv_threads_of(p)) schedule(dynamic, 1)
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
