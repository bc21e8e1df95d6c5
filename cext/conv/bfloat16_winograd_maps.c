/* See bfloat16_winograd_maps.h; F(2 x 2, 3 x 3), F(4 x 4, 3 x 3) and F(2 x 4, 3 x 3). */
#include "bfloat16_winograd_maps.h"

#include "transform_kernels.h"
#include "transform_tables.h"
#include "../gemm/bfloat16_pack.h"

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
INLINE bits_vec pair_vectors(vec x, vec y) { return rounded_or_nan(x) | rounded_or_nan(y) << 16; }
#endif

/* One vector of channels of one tile, ... */
INLINE void expand_row(side down, side across, reading how, const half *const *x, half *to, int64_t plane) {
    square half_way;
    expand_columns(down, across.k, &how, x, half_way);
    for (int p = 0; p < down.a; p++) {
        vec t[TRANSFORM_MAX];
        expand_line(across, half_way[p], t);
        UNROLL for (int q = 0; q < across.a; q++) {
            *(loose_half_vec *)to = round_operand(t[q]);
            to = next_half(to, plane);
        }
    }
}

/* ... or of two. */
INLINE void expand_pair(side s, reading how, const half *const *x, const half *const *y, half *to, int64_t plane) {
    square of_x, of_y;
    expand_columns(s, s.k, &how, x, of_x);
    expand_columns(s, s.k, &how, y, of_y);
    for (int p = 0; p < s.a; p++) {
        vec t[TRANSFORM_MAX], u[TRANSFORM_MAX];
        expand_line(s, of_x[p], t);
        expand_line(s, of_y[p], u);
        UNROLL for (int q = 0; q < s.a; q++) {
            *(loose_bits_vec *)to = pair_vectors(t[q], u[q]);
            to = next_half(to, plane);
        }
    }
}

/* Loops over the vectors of a range of channels: of one tile, ... */
INLINE void expand_rows(side down, side across, const half *const *x, int64_t first, int64_t channels, half *planes,
                        int64_t plane) {
    int64_t c = 0;
    for (; c + V <= channels; c += V)
        if (looks_ahead(c, channels))
            expand_row(down, across, as_it_is(first + c, V, 1), x, planes + c, plane);
        else
            expand_row(down, across, as_it_is(first + c, V, 0), x, planes + c, plane);
    if (c < channels) expand_row(down, across, as_it_is(first + c, channels - c, 0), x, planes + c, plane);
}

/* ... of two, ... */
INLINE void expand_both(side s, const half *const *x, const half *const *y, int64_t first, int64_t channels,
                        half *planes, int64_t plane) {
    int64_t c = 0;
    for (; c + V <= channels; c += V)
        if (looks_ahead(c, channels))
            expand_pair(s, as_it_is(first + c, V, 1), x, y, planes + 2 * c, plane);
        else
            expand_pair(s, as_it_is(first + c, V, 0), x, y, planes + 2 * c, plane);
    if (c < channels) expand_pair(s, as_it_is(first + c, channels - c, 0), x, y, planes + 2 * c, plane);
}

/* ... and of both where they are normalized. */
INLINE void normalize_rows(side down, side across, int relu, int inside, const half *const *x, const half *outside,
                           const DT(conv_normalization) * how, int64_t channels, half *planes, int64_t plane) {
    for (int64_t c = 0; c < channels; c += V)
        if (c + V <= channels)
            expand_row(down, across, normalizing(how, c, V, 0, relu, inside, outside), x, planes + c, plane);
        else
            expand_row(down, across, normalizing(how, c, channels - c, 0, relu, inside, outside), x, planes + c, plane);
}

INLINE void normalize_both(side s, int relu, int inside, const half *const *x, const half *const *y,
                           const half *outside, const DT(conv_normalization) * how, int64_t channels, half *planes,
                           int64_t plane) {
    for (int64_t c = 0; c < channels; c += V)
        if (c + V <= channels)
            expand_pair(s, normalizing(how, c, V, 0, relu, inside, outside), x, y, planes + 2 * c, plane);
        else
            expand_pair(s, normalizing(how, c, channels - c, 0, relu, inside, outside), x, y, planes + 2 * c, plane);
}

/* Whole vectors of pixels without an activation but ReLU, as `contract`. */
INLINE void pixels(side down, side across, const real *planes, int64_t plane, int64_t first, int64_t channels,
                   half *const *y, const real *bias, const half *const *added, int relu) {
    for (int64_t c = 0; c < channels; c += V) {
        vec values[TRANSFORM_PIXELS];
        const vec shift = bias ? load(bias + first + c) : (vec){0};
        contract_vector(down, across, planes + c, plane,
                        (writing){.y = y,
                                  .added = added,
                                  .first = first + c,
                                  .scale = (vec){0} + 1,
                                  .shift = shift,
                                  .unrounded = values});
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
        contract(down, across, planes, plane, first, channels, y, to, to->added, 0, to);
    else if (to->added)
        pixels(down, across, planes, plane, first, whole, y, to->bias, to->added, relu);
    else
        pixels(down, across, planes, plane, first, whole, y, to->bias, NULL, relu);
    if (rest && !other)
        contract(down, across, planes + whole, plane, first + whole, rest, y, to, to->added, relu, NULL);
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
    static void expand_normalized_##name(const half *const *x, const half *outside,                                 \
                                         const DT(conv_normalization) * how, int64_t channels, half *planes,        \
                                         int64_t plane) {                                                           \
        const side high = input##_##down, wide = input##_##across;                                                  \
        if (how->activation != DTCONV_RELU)                                                                         \
            normalize_rows(high, wide, 0, 0, x, outside, how, channels, planes, plane);                             \
        else if (all_inside(x, high.k * wide.k, outside))                                                           \
            normalize_rows(high, wide, 1, 1, x, outside, how, channels, planes, plane);                             \
        else                                                                                                        \
            normalize_rows(high, wide, 1, 0, x, outside, how, channels, planes, plane);                             \
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
    static void normalized_pairs_##m(const half *const *x, const half *const *y, const half *outside,         \
                                     const DT(conv_normalization) * how, int64_t channels, half *planes,      \
                                     int64_t plane) {                                                         \
        const int n = INPUT_##m.k * INPUT_##m.k;                                                              \
        if (how->activation != DTCONV_RELU)                                                                   \
            normalize_both(INPUT_##m, 0, 0, x, y, outside, how, channels, planes, plane);                     \
        else if (all_inside(x, n, outside) && all_inside(y, n, outside))                                      \
            normalize_both(INPUT_##m, 1, 1, x, y, outside, how, channels, planes, plane);                     \
        else                                                                                                  \
            normalize_both(INPUT_##m, 1, 0, x, y, outside, how, channels, planes, plane);                     \
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
    {expand_2, expand_normalized_2, expand_pairs_2, grad_pairs_2, normalized_pairs_2, contract_2, round_pairs},
    {expand_4, expand_normalized_4, expand_pairs_4, grad_pairs_4, normalized_pairs_4, contract_4, round_pairs},
    {expand_wide, expand_normalized_wide, NULL, NULL, NULL, contract_wide, round_pairs},
};

const HT(rounded_maps) * HT(winograd_rounded_maps)(dtconv_tile tile) {
    const int row = tile.w == 2 ? 0 : tile.h == 4 ? 1 : 2;
    return &maps[row];
}
