/* What global pooling and squeeze-and-excitation do with an image that a batch normalization leaves, which is computed
 * as it is read and so never in memory (Hu et al., "Squeeze-and-Excitation Networks", 2018, section 3):
 *
 *   z = act((x - mean) * scale + beta)                        x, z (n, pixels, c);  mean, scale, beta (c)
 *   sums      y[b] (+)= factor * sum over i of z[b, i] * dy[b, i]
 *   product   y[b, i] = z[b, i] * factors[b]
 *   gradient  dz[b, i] (+)= factor * dy[b], and what backward of the normalization begins with: the sums over all
 * pixels of g = dz * act' and of g * (x - mean)
 *
 * In bfloat16 z is rounded, as it would be in memory.  Sums have the bits of those of an image that lies there.
 */
#include "dtconv_activations.h"
#include "dtconv_nn_norm.h"
#include "dtconv_vector.h"
#include "norm_common.h"

enum {
    ROWS = 4,         /* for which the values of some channels are loaded */
    SUMMED = 64,      /* pixels that are summed before their sum is added to the total */
    UNIT_PIXELS = 32, /* of a unit of work of a product */
};

/* The image, and what normalizes it; mean NULL: it is z already. */
typedef struct {
    const elem *x;
    int64_t ldx;
    const real *mean, *scale, *beta;
} normalized_image;

/* Of some channels. */
typedef struct {
    vec mean, scale, beta;
} coefficients;

INLINE coefficients coefficients_of(const normalized_image *of, int64_t at, int64_t count) {
    if (!of->mean) return (coefficients){0};
    return (coefficients){load_part(of->mean + at, count), load_part(of->scale + at, count),
                          of->beta ? load_part(of->beta + at, count) : (vec){0}};
}

/* As it is in memory: no product in it becomes part of what it is added to. */
INLINE vec as_element(vec z) {
#ifdef DTCONV_BFLOAT16
    return widen_vector(narrow_vector(z));
#elif defined(__AVX512F__)
    KEEP_VECTOR(z);
    return z;
#elif defined(__x86_64__)
    __asm__("" : "+x"(z));
    return z;
#elif defined(__aarch64__)
    __asm__("" : "+w"(z));
    return z;
#else
    return z;
#endif
}

/* plain, act: constants where it is inlined; plain: x is z. */
INLINE vec pixel_of(int plain, dtconv_activation act, const elem *x, int64_t count, coefficients by) {
    const vec value = load_first(x, count);
    return plain ? value : as_element(activated(act, multiply_add(value - by.mean, by.scale, by.beta)));
}

/* Runs BLOCK(j, count) over `width` channels, a vector at a time. */
#define FOR_EACH_VECTOR(width, BLOCK)                                   \
    do {                                                                \
        int64_t channel = 0;                                            \
        for (; channel + V <= (width); channel += V) BLOCK(channel, V); \
        if (channel < (width)) BLOCK(channel, (width) - channel);       \
    } while (0)

/* Adds `rows` pixels from `pixel` on, channels [j0 + j, j0 + j + count), to sum[j]. */
INLINE void sum_vector(int plain, dtconv_activation act, const normalized_image *of, int64_t pixel, int64_t rows,
                       const elem *dy, int64_t lddy, int64_t j0, int64_t j, int64_t count, real *sum) {
    const int64_t at = j0 + j;
    const coefficients by = coefficients_of(of, at, count);
    vec total = load(sum + j);
    for (int64_t i = pixel; i < pixel + rows; i++) {
        const vec z = pixel_of(plain, act, of->x + i * of->ldx + at, count, by);
        total += dy ? z * load_first(dy + i * lddy + at, count) : z;
    }
    store(sum + j, total);
}

/* sums[j] = those of pixels [start, start + pixels). */
INLINE void sum_image(int plain, dtconv_activation act, const normalized_image *of, int64_t start, int64_t pixels,
                      const elem *dy, int64_t lddy, int64_t j0, int64_t width, real *sums) {
    real sum[STRIP];
    for (int64_t j = 0; j < STRIP; j++) sums[j] = 0;
    for (int64_t block = 0; block < pixels; block += SUMMED) {
        const int64_t end = min_i64(pixels, block + SUMMED);
        for (int64_t j = 0; j < STRIP; j++) sum[j] = 0;
        for (int64_t i = block; i < end; i += ROWS) {
#define SUM_VECTOR(j, count) sum_vector(plain, act, of, start + i, min_i64(ROWS, end - i), dy, lddy, j0, j, count, sum)
            FOR_EACH_VECTOR(width, SUM_VECTOR);
        }
        for (int64_t j = 0; j < width; j++) sums[j] += sum[j];
    }
}

dtconv_status DT(normalized_sums)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                  const real *scale, const real *beta, dtconv_activation activation, const elem *dy,
                                  int64_t lddy, real factor, int accumulate, elem *y, int64_t ldy) {
    const normalized_image of = {x, ldx, mean, scale, beta};
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t b = 0; b < n; b++)
        for (int64_t j0 = 0; j0 < c; j0 += STRIP) {
            real sums[STRIP];
            const int64_t width = min_i64(STRIP, c - j0);
            elem *to = y + b * ldy + j0;
#define SUM_IMAGE(act) sum_image(0, act, &of, b *pixels, pixels, dy, lddy, j0, width, sums)
            if (!mean)
                sum_image(1, DTCONV_LINEAR, &of, b * pixels, pixels, dy, lddy, j0, width, sums);
            else
                FOR_ACTIVATIONS(activation, SUM_IMAGE)
            for (int64_t j = 0; j < width; j++) {
                const real more = sums[j] * factor;
                to[j] = narrow(accumulate ? widen(to[j]) + more : more);
            }
        }
    return DTCONV_OK;
}

/* `rows` pixels from `pixel` on of an image whose factors these are. */
INLINE void multiply_vector(dtconv_activation act, const normalized_image *of, int64_t pixel, int64_t rows,
                            const elem *factors, int64_t j, int64_t count, elem *y, int64_t ldy) {
    const coefficients by = coefficients_of(of, j, count);
    const vec factor = load_first(factors + j, count);
    for (int64_t i = pixel; i < pixel + rows; i++) {
        const vec z = pixel_of(0, act, of->x + i * of->ldx + j, count, by);
        store_first(y + i * ldy + j, count, z * factor);
    }
}

INLINE void multiply_pixels(dtconv_activation act, const normalized_image *of, int64_t start, int64_t end, int64_t c,
                            const elem *factors, elem *y, int64_t ldy) {
    for (int64_t i = start; i < end; i += ROWS) {
#define MULTIPLY_VECTOR(j, count) multiply_vector(act, of, i, min_i64(ROWS, end - i), factors, j, count, y, ldy)
        FOR_EACH_VECTOR(c, MULTIPLY_VECTOR);
    }
}

dtconv_status DT(normalized_product)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx, const real *mean,
                                     const real *scale, const real *beta, dtconv_activation activation,
                                     const elem *factors, int64_t ldf, elem *y, int64_t ldy) {
    const normalized_image of = {x, ldx, mean, scale, beta};
    const int64_t units = (pixels + UNIT_PIXELS - 1) / UNIT_PIXELS;
#pragma omp parallel for schedule(dynamic, dtconv_piece(n *units)) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t unit = 0; unit < n * units; unit++) {
        const int64_t b = unit / units, first = unit % units * UNIT_PIXELS, start = b * pixels + first;
        const int64_t end = start + min_i64(UNIT_PIXELS, pixels - first);
#define MULTIPLY_PIXELS(act) multiply_pixels(act, &of, start, end, c, factors + b * ldf, y, ldy)
        FOR_ACTIVATIONS(activation, MULTIPLY_PIXELS)
    }
    return DTCONV_OK;
}

/* What an image's gradient gets, the same for each of its pixels, and where it lies. */
typedef struct {
    const elem *dy;
    real factor;
    int accumulate;
    elem *dz;
    int64_t lddz;
} mean_gradient;

/* `rows` pixels from `pixel` on, channels [j0 + j, j0 + j + count); adds to sum[j] and sum_x[j]. */
INLINE void reduce_vector(dtconv_activation act, const normalized_image *of, const mean_gradient *d, int64_t pixel,
                          int64_t rows, int64_t j0, int64_t j, int64_t count, real *sum, real *sum_x) {
    const int64_t at = j0 + j;
    const coefficients by = coefficients_of(of, at, count);
    const vec more = load_first(d->dy + at, count) * d->factor;
    vec total = load(sum + j), total_x = load(sum_x + j);
    for (int64_t i = pixel; i < pixel + rows; i++) {
        elem *to = d->dz + i * d->lddz + at;
        const vec dz = as_element(d->accumulate ? load_first(to, count) + more : more);
        store_first(to, count, dz);
        const vec apart = load_first(of->x + i * of->ldx + at, count) - by.mean;
        const vec g = through_slope(act, dz, multiply_add(apart, by.scale, by.beta));
        total += g;
        total_x += g * apart;
    }
    store(sum + j, total);
    store(sum_x + j, total_x);
}

/* Sums of pixels [start, start + pixels) to sums and sums_x. */
INLINE void reduce_image(dtconv_activation act, const normalized_image *of, const mean_gradient *d, int64_t start,
                         int64_t pixels, int64_t j0, int64_t width, double *sums, double *sums_x) {
    real sum[STRIP], sum_x[STRIP];
    for (int64_t j = 0; j < width; j++) sums[j] = sums_x[j] = 0;
    for (int64_t block = 0; block < pixels; block += SUMMED) {
        const int64_t end = min_i64(pixels, block + SUMMED);
        for (int64_t j = 0; j < STRIP; j++) sum[j] = sum_x[j] = 0;
        for (int64_t i = block; i < end; i += ROWS) {
#define REDUCE_VECTOR(j, count) reduce_vector(act, of, d, start + i, min_i64(ROWS, end - i), j0, j, count, sum, sum_x)
            FOR_EACH_VECTOR(width, REDUCE_VECTOR);
        }
        for (int64_t j = 0; j < width; j++) {
            sums[j] += (double)sum[j];
            sums_x[j] += (double)sum_x[j];
        }
    }
}

dtconv_status DT(normalized_gradient)(int64_t n, int64_t pixels, int64_t c, const elem *x, int64_t ldx,
                                      const real *mean, const real *scale, const real *beta,
                                      dtconv_activation activation, const elem *dy, int64_t lddy, real factor,
                                      int accumulate, elem *dz, int64_t lddz, real *sum, real *sum_x, void *workspace,
                                      size_t bytes) {
    if (bytes < (size_t)(n * 2 * c) * sizeof(double)) return DTCONV_WORKSPACE;
    const normalized_image of = {x, ldx, mean, scale, beta};
    double *sums = workspace; /* (n, 2, c) */
#pragma omp parallel for collapse(2) schedule(dynamic, 1) num_threads(dtconv_threads_to_move(n * pixels * c))
    for (int64_t b = 0; b < n; b++)
        for (int64_t j0 = 0; j0 < c; j0 += STRIP) {
            const mean_gradient d = {dy + b * lddy, factor, accumulate, dz, lddz};
            double *here = sums + b * 2 * c + j0;
#define REDUCE_IMAGE(act) reduce_image(act, &of, &d, b *pixels, pixels, j0, min_i64(STRIP, c - j0), here, here + c)
            FOR_ACTIVATIONS(activation, REDUCE_IMAGE)
        }
    for (int64_t b = 1; b < n; b++)
        for (int64_t j = 0; j < 2 * c; j++) sums[j] += sums[b * 2 * c + j];
    for (int64_t j = 0; j < c; j++) {
        sum[j] = (real)sums[j];
        sum_x[j] = (real)sums[c + j];
    }
    return DTCONV_OK;
}
