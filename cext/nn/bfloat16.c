/* Conversion to and from bfloat16, and sums of it; see cext/include/dtconv_wire.h.  Bound by memory. */
#include "dtconv_wire.h"

#include <string.h>

static inline uint16_t narrowed(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40; /* rounding could carry a NaN over into infinity */
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

static inline float widened(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

dtconv_status DT(to_bfloat16)(int64_t n, const real *x, uint16_t *y) {
#pragma omp parallel for simd num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t i = 0; i < n; i++) y[i] = narrowed((float)x[i]);
    return DTCONV_OK;
}

dtconv_status DT(from_bfloat16)(int64_t n, const uint16_t *x, real *y) {
#pragma omp parallel for simd num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t i = 0; i < n; i++) y[i] = widened(x[i]);
    return DTCONV_OK;
}

dtconv_status DT(sum_bfloat16)(int64_t count, int64_t n, const uint16_t *x, uint16_t *y) {
    enum { BLOCK = 2048 };
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t size = n - start < BLOCK ? n - start : BLOCK;
        float total[BLOCK];
        for (int64_t i = 0; i < size; i++) total[i] = widened(x[start + i]);
        for (int64_t p = 1; p < count; p++)
            for (int64_t i = 0; i < size; i++) total[i] += widened(x[p * n + start + i]);
        for (int64_t i = 0; i < size; i++) y[start + i] = narrowed(total[i]);
    }
    return DTCONV_OK;
}
