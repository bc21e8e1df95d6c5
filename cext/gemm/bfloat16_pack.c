#include "bfloat16_pack.h"

void DT(narrow_row)(int64_t n, const real *x, elem *y) { store_numbers(y, n, x); }

/* Columns [j, j + vectors * V) of rows; vectors, shifts and relu are constants where it is inlined. */
INLINE void normalize(int vectors, int64_t rows, int64_t j, const elem *x, int64_t ld, const real *mean,
                      const real *scale, const real *beta, int shifts, int relu, elem *y, int64_t ldy) {
    vec middle[2], by[2], shift[2];
    UNROLL for (int v = 0; v < vectors; v++) {
        middle[v] = load(mean + j + v * V), by[v] = load(scale + j + v * V);
        shift[v] = shifts ? load(beta + j + v * V) : (vec){0};
    }
    for (int64_t r = 0; r < rows; r++) {
        UNROLL for (int v = 0; v < vectors; v++) {
            vec z = (load_elem(x + r * ld + j + v * V) - middle[v]) * by[v];
            if (shifts) z += shift[v];
            *(loose_half_vec *)(y + r * ldy + j + v * V) = round_operand(relu ? positive(z) : z);
        }
    }
}

INLINE void normalize_columns(int64_t rows, int64_t n, const elem *x, int64_t ld, const real *mean, const real *scale,
                              const real *beta, int shifts, int relu, elem *y, int64_t ldy) {
    int64_t j = 0;
    for (; j + 2 * V <= n; j += 2 * V) normalize(2, rows, j, x, ld, mean, scale, beta, shifts, relu, y, ldy);
    if (j + V <= n) normalize(1, rows, j, x, ld, mean, scale, beta, shifts, relu, y, ldy);
}

static void normalize_kinds(int64_t rows, int64_t n, const elem *x, int64_t ld, const real *mean, const real *scale,
                            const real *beta, int relu, elem *y, int64_t ldy) {
    if (beta && relu)
        normalize_columns(rows, n, x, ld, mean, scale, beta, 1, 1, y, ldy);
    else if (beta)
        normalize_columns(rows, n, x, ld, mean, scale, beta, 1, 0, y, ldy);
    else
        normalize_columns(rows, n, x, ld, mean, scale, beta, 0, relu, y, ldy);
}

void DT(normalize_rows)(int64_t rows, int64_t n, const elem *x, int64_t ld, const real *mean, const real *scale,
                        const real *beta, int relu, elem *y, int64_t ldy) {
    normalize_kinds(rows, n, x, ld, mean, scale, beta, relu, y, ldy);
    const int64_t whole = n / V * V;
    for (int64_t r = 0; whole < n && r < rows; r++)
        for (int64_t i = whole; i < n; i++) {
            const real z = (widen(x[r * ld + i]) - mean[i]) * scale[i] + (beta ? beta[i] : 0);
            y[r * ldy + i] = narrow(relu && z < 0 ? 0 : z);
        }
}

INLINE void split(vec x, int64_t i, int64_t count, half *high, half *low) {
    const half_vec upper = round_operand(x);
    store_halves(high + i, count, upper);
    if (low) store_halves(low + i, count, round_operand(x - widen_vector(upper)));
}

void HT(split_row)(int64_t n, const real *x, half *high, half *low) {
    int64_t i = 0;
    for (; i + V <= n; i += V) split(load(x + i), i, V, high, low);
    if (i < n) split(load_part(x + i, n - i), i, n - i, high, low);
}

INLINE vec normalized(int64_t i, int64_t count, const real *x, const real *mean, const real *scale, const real *beta,
                      int relu) {
    vec z = (load_part(x + i, count) - load_part(mean + i, count)) * load_part(scale + i, count);
    if (beta) z += load_part(beta + i, count);
    return relu ? positive(z) : z;
}

void HT(normalize_split_row)(int64_t n, const real *x, const real *mean, const real *scale, const real *beta, int relu,
                             half *high, half *low) {
    for (int64_t i = 0; i < n; i += V) {
        const int64_t count = n - i < V ? n - i : V;
        split(normalized(i, count, x, mean, scale, beta, relu), i, count, high, low);
    }
}

void HT(put_sums)(int64_t m, int64_t n, const float *sums, int64_t ld, float *to, int64_t ldt, int add) {
    for (int64_t i = 0; i < m; i++, sums += ld, to += ldt) {
        int64_t j = 0;
        for (; j + V <= n; j += V) store(to + j, add ? load(to + j) + load(sums + j) : load(sums + j));
        for (; j < n; j++) to[j] = add ? to[j] + sums[j] : sums[j];
    }
}

#if defined(__AVX512BW__)
/* Rows and columns of 16 x 16 pairs exchanged, in four steps of powers of two. */
INLINE void transpose_16(__m512i *r) {
    __m512i t[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    UNROLL for (int i = 0; i < 16; i += 8) UNROLL for (int j = 0; j < 4; j++) {
        t[i + j] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0x88);
        t[i + j + 4] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0xdd);
    }
    UNROLL for (int j = 0; j < 8; j++) {
        r[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88);
        r[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
    }
}

void DT(pack_pairs)(int64_t n, int64_t nr, const elem *first, const elem *second, elem *dst) {
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    for (int64_t j = 0; j < nr; j += 32, dst += 64) {
        const int64_t here = n - j < 0 ? 0 : n - j > 32 ? 32 : n - j;
        const __mmask32 some = here == 32 ? ~(__mmask32)0 : ((__mmask32)1 << here) - 1;
        const __m512i a = _mm512_maskz_loadu_epi16(some, first + j), b = _mm512_maskz_loadu_epi16(some, second + j);
        _mm512_storeu_si512(dst, _mm512_permutex2var_epi16(a, low, b));
        if (nr - j > 16) _mm512_storeu_si512(dst + 32, _mm512_permutex2var_epi16(a, high, b));
    }
}

void DT(transpose_square)(int64_t n, const elem *const *rows, elem *dst, int64_t ld) {
    __m512i even[16], odd[16];
    UNROLL for (int i = 0; i < 16; i++) {
        const __m512i a = _mm512_loadu_si512(rows[2 * i]), b = _mm512_loadu_si512(rows[2 * i + 1]);
        even[i] = _mm512_unpacklo_epi16(a, b); /* columns 0-3, 8-11, 16-19, 24-27 */
        odd[i] = _mm512_unpackhi_epi16(a, b);
    }
    transpose_16(even);
    transpose_16(odd);
    if (n == SQUARE) {
        UNROLL for (int j = 0; j < 16; j++) {
            const int64_t column = j / 4 * 8 + j % 4;
            _mm512_storeu_si512(dst + column * ld, even[j]);
            _mm512_storeu_si512(dst + (column + 4) * ld, odd[j]);
        }
        return;
    }
    UNROLL for (int j = 0; j < 16; j++) {
        const int64_t column = j / 4 * 8 + j % 4;
        if (column < n) _mm512_storeu_si512(dst + column * ld, even[j]);
        if (column + 4 < n) _mm512_storeu_si512(dst + (column + 4) * ld, odd[j]);
    }
}

void HT(put_turned)(int64_t m, int64_t n, const float *sums, int64_t ld, float *to, int64_t ldt, int add) {
    for (int64_t i = 0; i < m; i += 16)
        for (int64_t j = 0; j < n; j += 16) {
            const __mmask16 across = n - j < 16 ? (__mmask16)((1u << (n - j)) - 1) : (__mmask16)0xffff;
            const __mmask16 down = m - i < 16 ? (__mmask16)((1u << (m - i)) - 1) : (__mmask16)0xffff;
            __m512i r[16];
            UNROLL for (int k = 0; k < 16; k++) r[k] =
                i + k < m ? _mm512_maskz_loadu_epi32(across, sums + (i + k) * ld + j) : _mm512_setzero_si512();
            transpose_16(r);
            UNROLL for (int k = 0; k < 16; k++) {
                float *row = to + (j + k) * ldt + i;
                if (j + k >= n) continue;
                const __m512 before = add ? _mm512_maskz_loadu_ps(down, row) : _mm512_setzero_ps();
                _mm512_mask_storeu_ps(row, down, add ? _mm512_add_ps(before, (__m512)r[k]) : (__m512)r[k]);
            }
        }
}

void DT(pack_transposed)(const elem *const *rows, int64_t nr, elem *dst) {
    __m512i r[16];
    UNROLL for (int j = 0; j < 16; j++) r[j] = _mm512_loadu_si512(rows[j]);
    transpose_16(r);
    UNROLL for (int p = 0; p < 16; p++) _mm512_storeu_si512(dst + p * 2 * nr, r[p]);
}
#else
void HT(put_turned)(int64_t m, int64_t n, const float *sums, int64_t ld, float *to, int64_t ldt, int add) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) to[j * ldt + i] = add ? to[j * ldt + i] + sums[i * ld + j] : sums[i * ld + j];
}

void DT(pack_pairs)(int64_t n, int64_t nr, const elem *first, const elem *second, elem *dst) {
    for (int64_t j = 0; j < n; j++) dst[2 * j] = first[j], dst[2 * j + 1] = second[j];
    for (int64_t j = 2 * n; j < 2 * nr; j++) dst[j] = 0;
}

void DT(transpose_square)(int64_t n, const elem *const *rows, elem *dst, int64_t ld) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < SQUARE; i++) dst[j * ld + i] = rows[i][j];
}

void DT(pack_transposed)(const elem *const *rows, int64_t nr, elem *dst) {
    for (int64_t p = 0; p < 32; p++)
        for (int64_t j = 0; j < 16; j++) dst[p / 2 * 2 * nr + 2 * j + p % 2] = rows[j][p];
}
#endif
