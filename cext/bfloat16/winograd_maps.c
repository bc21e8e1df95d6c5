/* See winograd_maps.h; F(2 x 2, 3 x 3), F(4 x 4, 3 x 3) and F(2 x 4, 3 x 3). */
#include "winograd_maps.h"

#include "../conv/transform_kernels.h"
#include "../conv/transform_tables.h"
#include "rounding.h"

typedef uint32_t loose_bits_vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(half)), may_alias));

/* As `next`. */
INLINE half *next_half(half *planes, int64_t plane) {
    planes += plane;
    __asm__("" : "+r"(planes));
    return planes;
}

#define INPUT_2 ((side){input_2, 4, 4, 1})
#define INPUT_4 ((side){input_rounded, 6, 6, 2})
#define OUTPUT_2 ((side){output_2, 4, 2, 1})
#define OUTPUT_4 ((side){output_rounded, 6, 4, 2})

/* The upper half of each element, rounded; NaN stays NaN. */
INLINE bits_vec rounded_bits(vec x) {
    const bits_vec bits = (bits_vec)x, up = bits + 0x7fff + ((bits >> 16) & 1), quiet = bits | 0x400000;
    const mask nan = x != x;
    return (up & ~(bits_vec)nan) | (quiet & (bits_vec)nan);
}
INLINE bits_vec pair_vectors(vec x, vec y) { return (rounded_bits(x) >> 16) | (rounded_bits(y) & 0xffff0000); }

#define OF(name) any_##name
#define TARGET
#define ROUND narrow_vector
#define PAIR pair_vectors
#define STORE store_elem
#include "winograd_maps_of.h"
#undef OF
#undef TARGET
#undef ROUND
#undef PAIR
#undef STORE

#ifdef DTCONV_ROUNDS
#define OF(name) avx512_##name
#define TARGET ROUNDS
#define ROUND(x) ((half_vec)round_by_instruction(x))
#define PAIR(x, y) pair_by_instruction(x, y)
#define STORE store_by_instruction
/* Elements of both, one after the other, then of each in turns. */
TARGET INLINE bits_vec pair_by_instruction(vec x, vec y) {
    return (bits_vec)in_turns((__m512i)_mm512_cvtne2ps_pbh((__m512)y, (__m512)x));
}
#include "winograd_maps_of.h"
#endif

const HT(rounded_maps) * HT(winograd_rounded_maps)(dtconv_tile tile) {
    const int row = tile.w == 2 ? 0 : tile.h == 4 ? 1 : 2;
#ifdef DTCONV_ROUNDS
    if (dtconv_rounds()) return &avx512_maps[row];
#endif
    return &any_maps[row];
}
