/* See winograd_maps.h; F(2 x 2, 3 x 3), F(4 x 4, 3 x 3) and F(2 x 4, 3 x 3). */
#include "winograd_maps.h"

#include "../conv/transform_kernels.h"
#include "../conv/transform_tables.h"
#include "pack.h"

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

/* Elements of both in turns, each rounded as by round_operand(). */
#if defined(__AVX512BF16__)
INLINE bits_vec pair_vectors(vec x, vec y) {
    return (bits_vec)in_turns((__m512i)_mm512_cvtne2ps_pbh((__m512)y, (__m512)x));
}
#else
INLINE bits_vec rounded_bits(vec x) {
    const bits_vec bits = (bits_vec)x, up = bits + 0x7fff + ((bits >> 16) & 1), quiet = bits | 0x400000;
    const mask nan = x != x;
    return (up & ~(bits_vec)nan) | (quiet & (bits_vec)nan);
}
INLINE bits_vec pair_vectors(vec x, vec y) { return (rounded_bits(x) >> 16) | (rounded_bits(y) & 0xffff0000); }
#endif

/* Elements 0 to a of a line, of k elements. */
INLINE void line(side s, const vec *x, vec *t) {
    UNROLL for (int p = 0; p < s.a; p++) {
        const real *row = s.matrix + p * s.k;
        if (p > 0 && p <= 2 * s.pairs) {
            if (p % 2 == 0) continue;
            const vec even = dot(row, x, 0, 2, s.k), odd = dot(row, x, 1, 2, s.k);
            t[p] = even + odd;
            t[p + 1] = even - odd;
        } else {
            t[p] = dot(row, x, 0, 1, s.k);
        }
    }
}

INLINE half *store_row(side s, const vec *x, half *to, int64_t plane) {
    vec t[TRANSFORM_MAX];
    line(s, x, t);
    UNROLL for (int p = 0; p < s.a; p++) {
        *(loose_half_vec *)to = round_operand(t[p]);
        to = next_half(to, plane);
    }
    return to;
}

INLINE half *store_pairs(side s, const vec *x, const vec *y, half *to, int64_t plane) {
    vec t[TRANSFORM_MAX], u[TRANSFORM_MAX];
    line(s, x, t);
    line(s, y, u);
    UNROLL for (int p = 0; p < s.a; p++) {
        *(loose_bits_vec *)to = pair_vectors(t[p], u[p]);
        to = next_half(to, plane);
    }
    return to;
}

/* One vector of channels of one tile, ... */
INLINE void expand_row(side down, side across, const half *const *x, int64_t first, half *to, int64_t plane) {
    UNROLL for (int p = 0; p < down.a; p++) {
        const int paired = p > 0 && p <= 2 * down.pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[TRANSFORM_MAX], minus[TRANSFORM_MAX];
        expand_columns(down, across.k, p, paired, x, first, plus, minus);
        to = store_row(across, plus, to, plane);
        if (paired) to = store_row(across, minus, to, plane);
    }
}

/* ... or of two. */
INLINE void expand_pair(side s, const half *const *x, const half *const *y, int64_t first, half *to, int64_t plane) {
    UNROLL for (int p = 0; p < s.a; p++) {
        const int paired = p > 0 && p <= 2 * s.pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[2][TRANSFORM_MAX], minus[2][TRANSFORM_MAX];
        expand_columns(s, s.k, p, paired, x, first, plus[0], minus[0]);
        expand_columns(s, s.k, p, paired, y, first, plus[1], minus[1]);
        to = store_pairs(s, plus[0], plus[1], to, plane);
        if (paired) to = store_pairs(s, minus[0], minus[1], to, plane);
    }
}

INLINE void expand_rows(side down, side across, const half *const *x, int64_t first, int64_t channels, half *planes,
                        int64_t plane) {
    half rest[TRANSFORM_PIXELS][V];
    const half *copies[TRANSFORM_PIXELS];
    int64_t c = 0;
    for (; c + V <= channels; c += V) {
        load_next(x, down.k * across.k, first, c, channels);
        expand_row(down, across, x, first + c, planes + c, plane);
    }
    if (c == channels) return;
    copy_rest(x, down.k * across.k, first + c, channels - c, rest, copies);
    expand_row(down, across, copies, 0, planes + c, plane);
}

INLINE void expand_both(side s, const half *const *x, const half *const *y, int64_t first, int64_t channels,
                        half *planes, int64_t plane) {
    half rest[2][TRANSFORM_PIXELS][V];
    const half *copies[2][TRANSFORM_PIXELS];
    int64_t c = 0;
    for (; c + V <= channels; c += V) {
        load_next(x, s.k * s.k, first, c, channels);
        load_next(y, s.k * s.k, first, c, channels);
        expand_pair(s, x, y, first + c, planes + 2 * c, plane);
    }
    if (c == channels) return;
    copy_rest(x, s.k * s.k, first + c, channels - c, rest[0], copies[0]);
    copy_rest(y, s.k * s.k, first + c, channels - c, rest[1], copies[1]);
    expand_pair(s, copies[0], copies[1], 0, planes + 2 * c, plane);
}

/* Whole vectors of pixels without an activation but ReLU, as `contract`. */
INLINE void pixels(side down, side across, const real *planes, int64_t plane, int64_t first, int64_t channels,
                   half *const *y, const real *bias, const half *const *added, int relu) {
    for (int64_t c = 0; c < channels; c += V) {
        vec values[TRANSFORM_PIXELS];
        const vec shift = bias ? load(bias + first + c) : (vec){0};
        contract_vector(down, across, planes + c, plane, first + c, y, shift, added, 0, values);
        UNROLL for (int i = 0; i < down.k * across.k; i++)
            store_elem(y[i] + first + c, relu ? positive(values[i]) : values[i]);
    }
}

/* The map to pixels: whole vectors of most kinds here, the rest as everywhere. */
INLINE void to_pixels(side down, side across, const real *planes, int64_t plane, int64_t first, int64_t channels,
                      half *const *y, const DT(contract_finish) * to) {
    const int64_t whole = channels / V * V, rest = channels - whole;
    const int relu = to->activation == DTCONV_RELU, other = !relu && to->activation != DTCONV_LINEAR;
    if (other)
        contract(down, across, planes, plane, first, channels, y, to->bias, to->added, 0, to);
    else if (to->added)
        pixels(down, across, planes, plane, first, whole, y, to->bias, to->added, relu);
    else
        pixels(down, across, planes, plane, first, whole, y, to->bias, NULL, relu);
    if (rest && !other)
        contract(down, across, planes + whole, plane, first + whole, rest, y, to->bias, to->added, relu, NULL);
}

static void round_pairs(int64_t n, const float *x, const float *y, half *to) {
    int64_t i = 0;
    for (; i + V <= n; i += V) *(loose_bits_vec *)(to + 2 * i) = pair_vectors(load(x + i), load(y + i));
    for (; i < n; i++) to[2 * i] = narrow(x[i]), to[2 * i + 1] = narrow(y[i]);
}

#define IMAGES_OF(name, input, output, down, across)                                                                \
    static void expand_##name(const half *const *x, int64_t first, int64_t channels, half *planes, int64_t plane) { \
        expand_rows(input##_##down, input##_##across, x, first, channels, planes, plane);                           \
    }                                                                                                               \
    static void contract_##name(const real *planes, int64_t plane, int64_t first, int64_t channels, half *const *y, \
                                const DT(contract_finish) * to) {                                                   \
        to_pixels(output##_##down, output##_##across, planes, plane, first, channels, y, to);                       \
    }
#define PAIRS_OF(m)                                                                                           \
    static void expand_pairs_##m(const half *const *x, const half *const *y, int64_t first, int64_t channels, \
                                 half *planes, int64_t plane) {                                               \
        expand_both(INPUT_##m, x, y, first, channels, planes, plane);                                         \
    }                                                                                                         \
    static void grad_pairs_##m(const half *const *x, const half *const *y, int64_t first, int64_t channels,   \
                               half *planes, int64_t plane) {                                                 \
        expand_both(OUTPUT_##m, x, y, first, channels, planes, plane);                                        \
    }

IMAGES_OF(2, INPUT, OUTPUT, 2, 2)
IMAGES_OF(4, INPUT, OUTPUT, 4, 4)
IMAGES_OF(wide, INPUT, OUTPUT, 2, 4)
PAIRS_OF(2)
PAIRS_OF(4)
#undef IMAGES_OF
#undef PAIRS_OF

static const HT(rounded_maps) maps[] = {
    {expand_2, expand_pairs_2, grad_pairs_2, contract_2, round_pairs},
    {expand_4, expand_pairs_4, grad_pairs_4, contract_4, round_pairs},
    {expand_wide, NULL, NULL, contract_wide, round_pairs},
};

const HT(rounded_maps) * HT(winograd_rounded_maps)(dtconv_tile tile) {
    const int row = tile.w == 2 ? 0 : tile.h == 4 ? 1 : 2;
    return &maps[row];
}
