/* Dropout, noise, random windows and flips, from a counter-based generator: Philox4x32-10 (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * Element e of the global batch takes word e / LANES % 4 of counter (e / 64) * LANES + e % LANES; so blocks of 64
 * elements come from LANES counters that are computed side by side.
 */
#include "dtconv_math.h"
#include "dtconv_nn_elem.h"
#include "dtconv_strided.h"
#include "dtconv_vector.h"

enum { LANES = 16, BLOCK = 4 * LANES };

/* out[word * LANES + lane] for counters [block * LANES, (block + 1) * LANES) */
#if defined(__AVX512F__)
/* a times m, one factor for all lanes: the high half goes to *high, the low one is returned. */
INLINE __m512i multiply(__m512i a, uint32_t m, __m512i *high) {
    enum { ODD = 0xAAAA };
    const __m512i factor = _mm512_set1_epi32((int)m), even = _mm512_mul_epu32(a, factor),
                  odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
    *high = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), ODD, odd);
    return _mm512_mask_mov_epi32(even, ODD, _mm512_slli_epi64(odd, 32));
}

/* Instructions by name: gcc multiplies lane by lane. */
static void random_block(const dtconv_random_key *key, uint64_t block, uint32_t out[BLOCK]) {
    const uint64_t counter = block * LANES; /* its lower half does not overflow within a block */
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i c0 = _mm512_add_epi32(_mm512_set1_epi32((int)counter), lane), c1 = _mm512_set1_epi32((int)(counter >> 32));
    __m512i c2 = _mm512_set1_epi32((int)key->step), c3 = _mm512_set1_epi32((int)key->stream);
    uint32_t k0 = (uint32_t)key->seed, k1 = (uint32_t)(key->seed >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        __m512i high0, high2;
        const __m512i low0 = multiply(c0, 0xD2511F53u, &high0), low2 = multiply(c2, 0xCD9E8D57u, &high2);
        c0 = _mm512_xor_si512(_mm512_xor_si512(high2, c1), _mm512_set1_epi32((int)k0));
        c2 = _mm512_xor_si512(_mm512_xor_si512(high0, c3), _mm512_set1_epi32((int)k1));
        c1 = low2, c3 = low0;
    }
    const __m512i words[4] = {c0, c1, c2, c3};
    memcpy(out, words, sizeof words);
}
#else
static void random_block(const dtconv_random_key *key, uint64_t block, uint32_t out[BLOCK]) {
    uint32_t *c0 = out, *c1 = out + LANES, *c2 = out + 2 * LANES, *c3 = out + 3 * LANES;
    for (int l = 0; l < LANES; l++) {
        const uint64_t counter = block * LANES + (uint64_t)l;
        c0[l] = (uint32_t)counter;
        c1[l] = (uint32_t)(counter >> 32);
        c2[l] = key->step;
        c3[l] = key->stream;
    }
    uint32_t k0 = (uint32_t)key->seed, k1 = (uint32_t)(key->seed >> 32);
    for (int round = 0; round < 10; round++) {
        for (int l = 0; l < LANES; l++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * c0[l], p1 = (uint64_t)0xCD9E8D57u * c2[l];
            const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c1[l] = (uint32_t)p1;
            c3[l] = (uint32_t)p0;
            c0[l] = n0;
            c2[l] = n2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}
#endif

/* Two standard normal variables from two words (Box and Muller). */
static inline void normal_pair(uint32_t a, uint32_t b, real *first, real *second) {
    const double u = ((double)a + 1) / 4294967296.0, angle = 6.283185307179586 * ((double)b / 4294967296.0);
    const double radius = sqrt(-2 * log(u));
    *first = (real)(radius * cos(angle));
    *second = (real)(radius * sin(angle));
}

/* The random values of the block that a thread is in; neighbouring rows share them. */
typedef struct {
    int64_t block;
    uint32_t words[BLOCK];
    real normals[BLOCK];
} cache;

static void load_block(const dtconv_random_key *key, int normal, int64_t block, cache *t) {
    if (t->block == block) return;
    t->block = block;
    random_block(key, (uint64_t)block, t->words);
    if (!normal) return;
    for (int half = 0; half < 2; half++)
        for (int l = 0; l < LANES; l++) {
            const int i = 2 * half * LANES + l;
            normal_pair(t->words[i], t->words[i + LANES], t->normals + i, t->normals + i + LANES);
        }
}

typedef struct {
    const dtconv_random_key *key;
    int normal, accumulate;
    uint32_t threshold;
    real scale;
} job;

/* Where words are as large as the threshold, or larger. */
INLINE mask at_least(const uint32_t *words, int64_t count, uint32_t threshold) {
    typedef uint32_t words_of __attribute__((vector_size(4 * V)));
    words_of some = {0};
    memcpy(&some, words, (size_t)count * sizeof(uint32_t));
    return __builtin_convertvector(some >= threshold, mask);
}

static void apply(const job *t, const cache *random, int64_t skip, int64_t n, const elem *x, elem *y) {
    if (t->normal) {
        for (int64_t i = 0; i < n; i++) y[i] = narrow(widen(x[i]) + t->scale * random->normals[skip + i]);
        return;
    }
    for (int64_t i = 0; i < n; i += V) { /* without branches, which would be taken at random */
        const int64_t count = n - i < V ? n - i : V;
        const vec value = (x ? load_first(x + i, count) : (vec){0} + 1) * t->scale;
        vec kept = where(at_least(random->words + skip + i, count, t->threshold), value, (vec){0});
        if (t->accumulate) kept += load_first(y + i, count);
        store_first(y + i, count, kept);
    }
}

static dtconv_status run(const job *t, int64_t rows, int64_t c, const elem *x, int64_t ldx, elem *y, int64_t ldy) {
    const int64_t span = c > DTCONV_SPAN ? DTCONV_SPAN : c, spans = span ? (c + span - 1) / span : 0;
    const int64_t per_group = span < DTCONV_SPAN && span ? DTCONV_SPAN / span : 1, items = rows * spans;
    const int64_t groups = (items + per_group - 1) / per_group;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(groups)) if (rows * c >= DTCONV_PARALLEL_ELEMENTS)
    for (int64_t g = 0; g < groups; g++) {
        cache random = {.block = -1};
        for (int64_t item = g * per_group; item < items && item < (g + 1) * per_group; item++) {
            const int64_t row = item / spans, from = item % spans * span, to = from + span < c ? from + span : c;
            for (int64_t i = from; i < to;) {
                const uint64_t index = (uint64_t)t->key->first + (uint64_t)(row * c + i);
                const int64_t skip = (int64_t)(index % BLOCK);
                const int64_t n = to - i < BLOCK - skip ? to - i : BLOCK - skip;
                load_block(t->key, t->normal, (int64_t)(index / BLOCK), &random);
                apply(t, &random, skip, n, x ? x + row * ldx + i : NULL, y + row * ldy + i);
                i += n;
            }
        }
    }
    return DTCONV_OK;
}

dtconv_status DT(dropout)(const dtconv_random_key *key, double rate, int accumulate, int64_t rows, int64_t c,
                          const elem *x, int64_t ldx, elem *y, int64_t ldy) {
    if (!(rate >= 0 && rate <= 1)) return DTCONV_ARGUMENT;
    const double limit = rate * 4294967296.0;
    const job t = {key, 0, accumulate, limit >= 4294967295.0 ? 4294967295u : (uint32_t)limit,
                   rate < 1 ? (real)(1 / (1 - rate)) : 0};
    return run(&t, rows, c, x, ldx, y, ldy);
}

dtconv_status DT(gaussian_noise)(const dtconv_random_key *key, double stddev, int64_t rows, int64_t c, const elem *x,
                                 int64_t ldx, elem *y, int64_t ldy) {
    const job t = {key, 1, 0, 0, (real)stddev};
    return run(&t, rows, c, x, ldx, y, ldy);
}

typedef struct {
    int64_t top, left;
    int mirror_rows, mirror_columns;
} window;

static window window_of(const dtconv_random_key *key, int flip, int64_t sample, int64_t rows, int64_t columns) {
    uint32_t words[BLOCK];
    const uint64_t index = (uint64_t)key->first + (uint64_t)sample;
    random_block(key, index / LANES, words);
    const uint32_t *w = words + index % LANES;
    return (window){(int64_t)(((uint64_t)w[2 * LANES] * (uint64_t)rows) >> 32),
                    (int64_t)(((uint64_t)w[3 * LANES] * (uint64_t)columns) >> 32), (flip & 2) && (w[LANES] >> 31),
                    (flip & 1) && (w[0] >> 31)};
}

dtconv_status DT(random_window_forward)(const dtconv_random_key *key, int flip, int64_t n, int64_t ih, int64_t iw,
                                        int64_t oh, int64_t ow, int64_t c, const elem *x, int64_t ldx, elem *y,
                                        int64_t ldy) {
    if (oh > ih || ow > iw) return DTCONV_ARGUMENT;
#pragma omp parallel for num_threads(dtconv_threads_to_move(n * oh * ow * c)) schedule(dynamic, 1)
    for (int64_t s = 0; s < n; s++) {
        const window w = window_of(key, flip, s, ih - oh + 1, iw - ow + 1);
        for (int64_t i = 0; i < oh; i++) {
            const int64_t row = w.top + (w.mirror_rows ? oh - 1 - i : i);
            for (int64_t j = 0; j < ow; j++) {
                const elem *from = x + ((s * ih + row) * iw + w.left + (w.mirror_columns ? ow - 1 - j : j)) * ldx;
                elem *to = y + ((s * oh + i) * ow + j) * ldy;
                for (int64_t k = 0; k < c; k++) to[k] = from[k];
            }
        }
    }
    return DTCONV_OK;
}

dtconv_status DT(random_window_backward)(const dtconv_random_key *key, int flip, int accumulate, int64_t n, int64_t ih,
                                         int64_t iw, int64_t oh, int64_t ow, int64_t c, const elem *dy, int64_t lddy,
                                         elem *dx, int64_t lddx) {
    if (oh > ih || ow > iw) return DTCONV_ARGUMENT;
#pragma omp parallel for num_threads(dtconv_threads_to_move(n * ih * iw * c)) schedule(dynamic, 1)
    for (int64_t s = 0; s < n; s++) {
        const window w = window_of(key, flip, s, ih - oh + 1, iw - ow + 1);
        for (int64_t i = 0; i < ih * iw && !accumulate; i++)
            for (int64_t k = 0; k < c; k++) dx[(s * ih * iw + i) * lddx + k] = 0;
        for (int64_t i = 0; i < oh; i++) {
            const int64_t row = w.top + (w.mirror_rows ? oh - 1 - i : i);
            for (int64_t j = 0; j < ow; j++) {
                elem *to = dx + ((s * ih + row) * iw + w.left + (w.mirror_columns ? ow - 1 - j : j)) * lddx;
                const elem *from = dy + ((s * oh + i) * ow + j) * lddy;
                for (int64_t k = 0; k < c; k++) to[k] = narrow(widen(to[k]) + widen(from[k]));
            }
        }
    }
    return DTCONV_OK;
}
