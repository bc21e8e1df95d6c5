/* Packing of the im2col matrix in panels of columns, straight from the image: IM2COL's rows and CONVGEMM_TRANS.
 *
 *   dst[pixel * width + j] = im2col[pixel, column + j]        for each panel of `width` columns
 *
 * This is the layout of a right operand B, and of the transposed matrix as a left operand A.  A panel's columns fall
 * into spans that lie side by side in the image (channels of one tap, or a row of taps where the channels are few). For
 * each span the output pixels are walked row by row; those whose tap is in the image are one interval of the row, so
 * the inner loop copies without asking.
 */
#include "conv_internal.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* `count` copies of `width` elements. */
static inline __attribute__((always_inline)) void copy_fixed(const real *src, int64_t src_step, real *dst,
                                                             int64_t dst_step, int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; i++) memcpy(dst + i * dst_step, src + i * src_step, (size_t)width * sizeof(real));
}

/* The same for any width, one masked vector at a time where the CPU has them. */
static void copy_any(const real *src, int64_t src_step, real *dst, int64_t dst_step, int64_t count, int64_t width) {
#if defined(__AVX512F__)
    const int64_t lanes = 64 / sizeof(real);
    for (int64_t j = 0; j < width; j += lanes) {
        const unsigned mask = (1u << MIN(lanes, width - j)) - 1;
        for (int64_t i = 0; i < count; i++)
#ifdef DTCONV_DOUBLE
            _mm512_mask_storeu_pd(dst + i * dst_step + j, (__mmask8)mask,
                                  _mm512_maskz_loadu_pd((__mmask8)mask, src + i * src_step + j));
#else
            _mm512_mask_storeu_ps(dst + i * dst_step + j, (__mmask16)mask,
                                  _mm512_maskz_loadu_ps((__mmask16)mask, src + i * src_step + j));
#endif
    }
#else
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < width; j++) dst[i * dst_step + j] = src[i * src_step + j];
#endif
}

static void copy_pixels(const real *src, int64_t src_step, real *dst, int64_t dst_step, int64_t count, int64_t width) {
    switch (width) {
        case 32:
            copy_fixed(src, src_step, dst, dst_step, count, 32);
            break;
        case 16:
            copy_fixed(src, src_step, dst, dst_step, count, 16);
            break;
        case 8:
            copy_fixed(src, src_step, dst, dst_step, count, 8);
            break;
        case 4:
            copy_fixed(src, src_step, dst, dst_step, count, 4);
            break;
        default:
            copy_any(src, src_step, dst, dst_step, count, width);
    }
}

static void zero_pixels(real *dst, int64_t dst_step, int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < width; j++) dst[i * dst_step + j] = 0;
}

/* Columns [c, c + width) of the run at tap (kh, kw), for output pixels [ow0, ow1) of one row whose tap row is at `row`
 * (the image's pixel iw = 0 of it). */
static void pack_row(const DT(image_matrix) * a, const real *row, int64_t kw, int64_t c, int64_t ow0, int64_t ow1,
                     int64_t width, real *dst, int64_t dst_step) {
    const dtconv_conv *p = a->p;
    const int64_t first = c / a->ci, last = (c + width - 1) / a->ci; /* taps of the run that the columns touch */
    const int64_t left = p->pad_l - kw * p->dil_w;                   /* iw of the run's first tap is ow * sw - left */
    const int64_t lo = MIN(MAX(dtconv_ceil_div(left - first, p->sw), ow0), ow1);
    const int64_t hi = MIN(MAX(dtconv_ceil_div(p->iw - last + left, p->sw), lo), ow1);
    for (int64_t ow = ow0; ow < ow1; ow++) { /* the pixels of which a part or all is outside */
        if (ow == lo) ow = hi;
        if (ow >= ow1) break;
        const int64_t iw = ow * p->sw - left, from = MAX(-iw * a->ci, c), to = MIN((p->iw - iw) * a->ci, c + width);
        real *pixel = dst + (ow - ow0) * dst_step;
        for (int64_t j = c; j < c + width; j++) pixel[j - c] = j >= from && j < to ? row[iw * p->ldx + j] : 0;
    }
    if (lo < hi)
        copy_pixels(row + (lo * p->sw - left) * p->ldx + c, p->sw * p->ldx, dst + (lo - ow0) * dst_step, dst_step,
                    hi - lo, width);
}

/* Columns [c, c + width) of the run at tap (row, kw), row = (kd, kh), for `pixels` output pixels from `pixel` on. */
static void pack_span(const DT(image_matrix) * a, int64_t row, int64_t kw, int64_t c, int64_t width, int64_t pixel,
                      int64_t pixels, real *dst, int64_t dst_step) {
    const dtconv_conv *p = a->p;
    const int64_t kd = row / p->kh, kh = row % p->kh;
    int64_t ow = pixel % p->ow, oh = pixel / p->ow % p->oh, plane = pixel / p->ow / p->oh; /* (n, od) */
    while (pixels > 0) {
        const int64_t count = MIN(p->ow - ow, pixels), ih = oh * p->sh - p->pad_t + kh * p->dil_h;
        const int64_t n = plane / p->od, id = plane % p->od * p->sd - p->pad_f + kd * p->dil_d;
        if (ih >= 0 && ih < p->ih && id >= 0 && id < p->id)
            pack_row(a, a->x + ((n * p->id + id) * p->ih + ih) * p->iw * p->ldx, kw, c, ow, ow + count, width, dst,
                     dst_step);
        else
            zero_pixels(dst, dst_step, count, width);
        dst += count * dst_step;
        pixels -= count;
        ow = 0;
        if (++oh == p->oh) oh = 0, plane++;
    }
}

/* Columns [j, j + n) for the given pixels, `dst_step` elements from pixel to pixel. */
static void pack_columns(const DT(image_matrix) * a, int64_t pixel, int64_t pixels, int64_t j, int64_t n, real *dst,
                         int64_t dst_step) {
    const int64_t taps = a->run / a->ci;
    for (int64_t end = j + n; j < end;) {
        const int64_t run = j / a->run, c = j % a->run, width = MIN(a->run - c, end - j);
        pack_span(a, run * taps / a->p->kw, run * taps % a->p->kw, c, width, pixel, pixels, dst, dst_step);
        dst += width;
        j += width;
    }
}

void DT(pack_image_columns)(const void *context, int64_t pixel, int64_t pixels, int64_t j, int64_t n, int64_t width,
                            real *dst) {
    const DT(image_matrix) *a = context;
    for (int64_t c = 0; c < n; c += width, dst += width * pixels) {
        const int64_t used = MIN(width, n - c);
        pack_columns(a, a->first + pixel, pixels, j + c, used, dst, width);
        if (used < width) zero_pixels(dst + used, width, pixels, width - used);
    }
}

void DT(pack_image_trans)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst) {
    DT(pack_image_columns)(context, p, k, i, m, mr, dst);
}

void DT(im2col)(const DT(image_matrix) * a, int64_t first, int64_t last, real *dst) {
    const dtconv_conv *p = a->p;
    const int64_t columns = dtconv_columns(p), block = MAX(1, 16384 / columns);
#pragma omp parallel for num_threads(dtconv_threads_to_move((last - first) * columns)) schedule(dynamic, 1)
    for (int64_t row = first; row < last; row += block)
        pack_columns(a, row, MIN(block, last - row), 0, columns, dst + (row - first) * columns, columns);
}
