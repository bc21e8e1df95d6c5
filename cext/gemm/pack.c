/* Packing of plain strided matrices into panels.
 *
 *   A: panel r holds rows [r * MR, r * MR + MR):     dst[p * MR + i] = A(i, p)
 *   B: panel c holds columns [c * NR, c * NR + NR):  dst[p * NR + j] = B(p, j)
 *
 * Both are the same walk over (width x depth) with other names for the strides.  Where elements of one step are
 * neighbours in memory it copies rows; where the steps are, it transposes.
 */
#include <string.h>

#include "dtconv_real.h"
#include "dtconv_gemm.h"
#include "dtconv_ukr.h"

/* One panel of `used` <= `width` elements per step: element (p, j) at src[j * across + p * along]. */
static void any_panel(const real *src, int64_t across, int64_t along, int64_t used, int64_t width, int64_t k,
                      real *dst) {
    for (int64_t p = 0; p < k; p++, src += along, dst += width) {
        for (int64_t j = 0; j < used; j++) dst[j] = src[j * across];
        for (int64_t j = used; j < width; j++) dst[j] = 0;
    }
}

#if defined(__AVX2__)
#include <immintrin.h>

#ifdef DTCONV_DOUBLE
enum { SIDE = 4 };

/* Transposes 4 rows, `ld` apart, of 4 elements into rows that are `width` apart. */
static inline void transpose(const real *const *row, int64_t p, real *dst, int64_t width) {
    const __m256d r0 = _mm256_loadu_pd(row[0] + p), r1 = _mm256_loadu_pd(row[1] + p);
    const __m256d r2 = _mm256_loadu_pd(row[2] + p), r3 = _mm256_loadu_pd(row[3] + p);
    const __m256d a = _mm256_unpacklo_pd(r0, r1), b = _mm256_unpackhi_pd(r0, r1);
    const __m256d c = _mm256_unpacklo_pd(r2, r3), d = _mm256_unpackhi_pd(r2, r3);
    _mm256_storeu_pd(dst, _mm256_permute2f128_pd(a, c, 0x20));
    _mm256_storeu_pd(dst + width, _mm256_permute2f128_pd(b, d, 0x20));
    _mm256_storeu_pd(dst + 2 * width, _mm256_permute2f128_pd(a, c, 0x31));
    _mm256_storeu_pd(dst + 3 * width, _mm256_permute2f128_pd(b, d, 0x31));
}
#else
enum { SIDE = 8 };

/* Two half rows in one register. */
static inline __m256 halves(const real *low, const real *high) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

/* Four elements of eight rows become four rows of eight. */
static inline void transpose_half(const real *const *row, int64_t p, real *dst, int64_t width) {
    const __m256 r0 = halves(row[0] + p, row[4] + p), r1 = halves(row[1] + p, row[5] + p);
    const __m256 r2 = halves(row[2] + p, row[6] + p), r3 = halves(row[3] + p, row[7] + p);
    const __m256 a = _mm256_unpacklo_ps(r0, r1), b = _mm256_unpackhi_ps(r0, r1);
    const __m256 c = _mm256_unpacklo_ps(r2, r3), d = _mm256_unpackhi_ps(r2, r3);
    _mm256_storeu_ps(dst, _mm256_shuffle_ps(a, c, 0x44));
    _mm256_storeu_ps(dst + width, _mm256_shuffle_ps(a, c, 0xee));
    _mm256_storeu_ps(dst + 2 * width, _mm256_shuffle_ps(b, d, 0x44));
    _mm256_storeu_ps(dst + 3 * width, _mm256_shuffle_ps(b, d, 0xee));
}

static inline void transpose(const real *const *row, int64_t p, real *dst, int64_t width) {
    transpose_half(row, p, dst, width);
    transpose_half(row, p + 4, dst + 4 * width, width);
}
#endif

/* A full panel whose steps are neighbours in memory (along == 1): squares of SIDE x SIDE are transposed in registers.
 * The last square of a width that is no multiple of SIDE writes past its step, into the next one, which is written
 * after it; the last square's steps are copied, where they are fewer one by one. */
static void transposed_panel(const real *src, int64_t across, int64_t width, int64_t k, real *dst) {
    const real *row[DTCONV_UKR_MAX_NR + SIDE];
    for (int64_t i = 0; i < width + SIDE; i++) row[i] = src + (i < width ? i : width - 1) * across;
    int64_t p = 0;
    for (; p + SIDE < k; p += SIDE) {
        if (p % (64 / (int64_t)sizeof(real)) == 0)
            for (int64_t i = 0; i < width; i++) __builtin_prefetch(row[i] + p + width * across);
        for (int64_t j = (width - 1) / SIDE * SIDE; j >= 0; j -= SIDE)
            transpose(row + j, p, dst + p * width + j, width);
    }
    if (p + SIDE == k) {
        real last[SIDE * DTCONV_UKR_MAX_NR + SIDE];
        for (int64_t j = (width - 1) / SIDE * SIDE; j >= 0; j -= SIDE) transpose(row + j, p, last + j, width);
        memcpy(dst + p * width, last, (size_t)(SIDE * width) * sizeof(real));
        return;
    }
    any_panel(src + p, across, 1, width, width, k - p, dst + p * width);
}
#else
static void transposed_panel(const real *src, int64_t across, int64_t width, int64_t k, real *dst) {
    enum { STEPS = 16 }; /* a line of each source row is read out before the next steps of the panel are written */
    int64_t p = 0;
    for (; p + STEPS <= k; p += STEPS)
        for (int64_t j = 0; j < width; j++)
            for (int64_t i = 0; i < STEPS; i++) dst[(p + i) * width + j] = src[j * across + p + i];
    any_panel(src + p, across, 1, width, width, k - p, dst + p * width);
}
#endif

/* Full panels whose elements of one step are neighbours: whole rows are read at a time, over all panels, because a
 * panel's share of a row is short and the next row may be pages away. */
enum { AHEAD = 8 /* rows that are fetched ahead */ };
static inline __attribute__((always_inline)) void copy_panels(const real *src, int64_t along, int64_t panels,
                                                              int64_t width, int64_t k, real *dst) {
    for (int64_t p = 0; p < k; p++, src += along, dst += width)
        for (int64_t c = 0; c < panels; c++) {
            for (int64_t j = 0; j < width; j += 64 / (int64_t)sizeof(real))
                __builtin_prefetch(src + AHEAD * along + c * width + j);
            memcpy(dst + c * width * k, src + c * width, (size_t)width * sizeof(real));
        }
}

static void pack(const real *src, int64_t across, int64_t along, int64_t n, int64_t k, int64_t width, real *dst) {
    const int64_t full = n / width;
    if (across == 1 && width == 32)
        copy_panels(src, along, full, 32, k, dst);
    else if (across == 1 && width == 16)
        copy_panels(src, along, full, 16, k, dst);
    else if (across == 1 && width == 6)
        copy_panels(src, along, full, 6, k, dst);
    else if (across == 1)
        copy_panels(src, along, full, width, k, dst);
    else
        for (int64_t c = 0; c < full; c++) {
            if (along == 1)
                transposed_panel(src + c * width * across, across, width, k, dst + c * width * k);
            else
                any_panel(src + c * width * across, across, along, width, width, k, dst + c * width * k);
        }
    if (n > full * width)
        any_panel(src + full * width * across, across, along, n - full * width, width, k, dst + full * width * k);
}

void DT(pack_a_matrix)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst) {
    const DT(matrix) *a = context;
    pack(a->data + i * a->rs + p * a->cs, a->rs, a->cs, m, k, mr, dst);
}

void DT(pack_b_matrix)(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst) {
    const DT(matrix) *b = context;
    pack(b->data + p * b->rs + j * b->cs, b->cs, b->rs, n, k, nr, dst);
}
