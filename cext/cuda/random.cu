/* Dropout and noise by Philox4x32-10, with the bits of cext/nn/random.c.
 *
 * Element e of the global batch takes word e / LANES % 4 of counter (e / 64) * LANES + e % LANES.
 * key: seed, stream, step, index of the first element; it lies in memory, for it differs from step to step.
 */
#include "dtconv_cuda.h"
#include "functions.h"

enum { LANES = 16, ELEMENTS = 4 * LANES };

struct counter {
    uint32_t word[4];
};

__device__ inline counter random_of(Array<const int64_t> key, uint64_t number) {
    counter c = {{(uint32_t)number, (uint32_t)(number >> 32), (uint32_t)key[2], (uint32_t)key[1]}};
    uint32_t k0 = (uint32_t)key[0], k1 = (uint32_t)((uint64_t)key[0] >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.word[0], p1 = (uint64_t)0xCD9E8D57u * c.word[2];
        const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c.word[1] ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c.word[3] ^ k1;
        c.word[1] = (uint32_t)p1;
        c.word[3] = (uint32_t)p0;
        c.word[0] = n0;
        c.word[2] = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* A word by its number, without an array that is indexed. */
__device__ inline uint32_t word_of(const counter &c, int i) {
    return i < 2 ? (i ? c.word[1] : c.word[0]) : (i == 2 ? c.word[2] : c.word[3]);
}

/* y (+)= x or 1, divided by 1 - rate, or 0; rows of c elements; x: none for a mask */
GLOBAL dropout(int64_t rows, int64_t c, Array<const int64_t> key, int64_t threshold, double scale, int64_t accumulate,
               Array<const real> x, int64_t ldx, Array<real> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const int64_t index = key[3] + i, row = i / c, j = i % c;
        const counter r = random_of(key, (uint64_t)(index / ELEMENTS * LANES + index % LANES));
        const bool kept = word_of(r, (int)(index / LANES % 4)) >= (uint32_t)threshold;
        const real value = kept ? (x ? x[row * ldx + j] : 1) * (real)scale : 0;
        y[row * ldy + j] = accumulate ? y[row * ldy + j] + value : value;
    }
}
KERNEL(dropout)

/* y = x + stddev * normal (Box and Muller): two elements that are LANES apart share two words */
GLOBAL gaussian_noise(int64_t rows, int64_t c, Array<const int64_t> key, double stddev, Array<const real> x,
                      int64_t ldx, Array<real> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const int64_t index = key[3] + i, row = i / c, j = i % c;
        const counter r = random_of(key, (uint64_t)(index / ELEMENTS * LANES + index % LANES));
        const int word = (int)(index / LANES % 4);
        const double u = ((double)(word < 2 ? r.word[0] : r.word[2]) + 1) / 4294967296.0;
        const double halves = 2 * ((double)(word < 2 ? r.word[1] : r.word[3]) / 4294967296.0);
        const double radius = sqrt(-2 * log(u));
        const real noise = (real)(radius * (word % 2 ? sinpi(halves) : cospi(halves)));
        y[row * ldy + j] = x[row * ldx + j] + (real)stddev * noise;
    }
}
KERNEL(gaussian_noise)
