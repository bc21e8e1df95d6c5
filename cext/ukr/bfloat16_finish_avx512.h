/* Tiles of sums in registers that are rounded and stored there (ukr_call.finish), for AVX-512 with BF16. */
#include <math.h>

/* Of numbers that are rounded to denormal ones the instructions make 0: these tiles go another way. */
TARGET static void finish_slowly(int rows, const vec (*sum)[NV], elem *const *to) {
    const real *x = (const real *)sum;
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < NR; j++) to[r][j] = narrow(x[r * NR + j]);
}

/* Rows [i, i + rows) of a tile: rows, plain (sums are results) and adds are constants. */
TARGET INLINE void finish_rows(int rows, int plain, int adds, vec (*sum)[NV], const DT(ukr_finish) * f, int64_t i) {
    enum { DENORMAL = 0x20 };
    const __m512 least = _mm512_set1_ps(f->relu ? 0 : -INFINITY); /* NaN stays: it is the second operand of max */
    vec shift[NV];
    __mmask16 denormal = 0;
    UNROLL for (int v = 0; v < NV; v++) shift[v] = f->bias ? (vec) * (const loose_vec *)(f->bias + v * V) : (vec){0};
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) {
        vec y = plain ? sum[r][v] : sum[r][v] + shift[v];
        if (adds) {
            const __m256i bits = _mm256_loadu_si256((const __m256i *)(f->added[i + r] + v * V));
            y += (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16);
        }
        if (!plain) sum[r][v] = (vec)_mm512_max_ps(least, (__m512)y);
        denormal |= _mm512_fpclass_ps_mask((__m512)sum[r][v], DENORMAL);
    }
    if (__builtin_expect(denormal, 0)) {
        vec copy[MR][NV];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < NV; v++) copy[r][v] = sum[r][v];
        finish_slowly(rows, copy, f->to + i);
        return;
    }
    UNROLL for (int r = 0; r < rows; r++)
        _mm512_storeu_si512(f->to[i + r], (__m512i)_mm512_cvtne2ps_pbh((__m512)sum[r][1], (__m512)sum[r][0]));
}

/* The same of sums in memory, of any number of rows. */
TARGET NOINLINE void finish_few(int64_t rows, vec (*sum)[NV], const DT(ukr_finish) * f, int64_t i) {
    for (int64_t r = 0; r < rows; r++) {
        if (f->added)
            finish_rows(1, 0, 1, sum + r, f, i + r);
        else
            finish_rows(1, 0, 0, sum + r, f, i + r);
    }
}

TARGET INLINE void finish(int rows, vec (*sum)[NV], const DT(ukr_finish) * f, int64_t i) {
    if (f->added)
        finish_rows(rows, 0, 1, sum, f, i);
    else if (f->bias || f->relu)
        finish_rows(rows, 0, 0, sum, f, i);
    else
        finish_rows(rows, 1, 0, sum, f, i);
}
