/* Conversion to and from bfloat16, and sums of it; see cext/include/dtconv_wire.h.  Bound by memory. */
#include "dtconv_wire.h"

dtconv_status DT(to_bfloat16)(int64_t n, const real *x, uint16_t *y) {
#pragma omp parallel for simd num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t i = 0; i < n; i++) y[i] = dtconv_to_bf16((float)x[i]);
    return DTCONV_OK;
}

dtconv_status DT(from_bfloat16)(int64_t n, const uint16_t *x, real *y) {
#pragma omp parallel for simd num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t i = 0; i < n; i++) y[i] = dtconv_from_bf16(x[i]);
    return DTCONV_OK;
}

/* Elements of a row that are converted at a time. */
enum { PART = 4096 };

dtconv_status DT(narrow_rows)(int64_t rows, int64_t c, const real *x, int64_t ldx, uint16_t *y, int64_t ldy) {
    const int64_t parts = (c + PART - 1) / PART;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(rows *parts)) if (rows * c >= 32768)
    for (int64_t item = 0; item < rows * parts; item++) {
        const int64_t i = item / parts, from = item % parts * PART, to = from + PART < c ? from + PART : c;
#pragma omp simd
        for (int64_t j = from; j < to; j++) y[i * ldy + j] = dtconv_to_bf16((float)x[i * ldx + j]);
    }
    return DTCONV_OK;
}

dtconv_status DT(widen_rows)(int64_t rows, int64_t c, const uint16_t *x, int64_t ldx, real *y, int64_t ldy) {
    const int64_t parts = (c + PART - 1) / PART;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(rows *parts)) if (rows * c >= 32768)
    for (int64_t item = 0; item < rows * parts; item++) {
        const int64_t i = item / parts, from = item % parts * PART, to = from + PART < c ? from + PART : c;
#pragma omp simd
        for (int64_t j = from; j < to; j++) y[i * ldy + j] = dtconv_from_bf16(x[i * ldx + j]);
    }
    return DTCONV_OK;
}

dtconv_status DT(sum_bfloat16)(int64_t count, int64_t n, const uint16_t *x, uint16_t *y) {
    enum { BLOCK = 2048 };
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t size = n - start < BLOCK ? n - start : BLOCK;
        float total[BLOCK];
        for (int64_t i = 0; i < size; i++) total[i] = dtconv_from_bf16(x[start + i]);
        for (int64_t p = 1; p < count; p++)
            for (int64_t i = 0; i < size; i++) total[i] += dtconv_from_bf16(x[p * n + start + i]);
        for (int64_t i = 0; i < size; i++) y[start + i] = dtconv_to_bf16(total[i]);
    }
    return DTCONV_OK;
}
