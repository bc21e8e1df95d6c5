/* Philox4x32-10, with the bits of cext/nn/random.c.
 *
 * Element e of the global batch takes word e / LANES % 4 of counter (e / 64) * LANES + e % LANES.
 * key: seed, stream, step, index of the first element; it lies in memory, for it differs from step to step.
 */
#ifndef DTCONV_CUDA_RANDOM_H
#define DTCONV_CUDA_RANDOM_H

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

/* The counter of an element. */
__device__ inline counter counter_at(Array<const int64_t> key, int64_t index) {
    return random_of(key, (uint64_t)(index / ELEMENTS * LANES + index % LANES));
}

/* Whether dropout keeps an element: with a probability of 1 - threshold / 2^32. */
__device__ inline bool is_kept(Array<const int64_t> key, int64_t index, int64_t threshold) {
    return word_of(counter_at(key, index), (int)(index / LANES % 4)) >= (uint32_t)threshold;
}

#endif
