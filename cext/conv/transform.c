/* F(m x m, 3 x 3) for m = 2 and 4 to 8: the engine's kernels with the matrices of each. */
#include "transform_kernels.h"
#include "transform_tables.h"

#define EXPAND(name, of)                                                                                   \
    static void name(const elem *const *x, int64_t first, int64_t channels, real *planes, int64_t plane) { \
        expand(of, of, x, first, channels, planes, plane);                                                 \
    }

#define EXPAND_NORMALIZED(name, of)                                                                                   \
    static void name(const elem *const *x, const elem *outside, const DT(conv_normalization) * how, int64_t channels, \
                     real *planes, int64_t plane) {                                                                   \
        const int inside = all_inside(x, of.k * of.k, outside);                                                       \
        if (how->activation == DTCONV_RELU && inside)                                                                 \
            expand_normalized(of, of, 1, 1, x, outside, how, channels, planes, plane);                                \
        else if (how->activation == DTCONV_RELU)                                                                      \
            expand_normalized(of, of, 1, 0, x, outside, how, channels, planes, plane);                                \
        else                                                                                                          \
            expand_normalized(of, of, 0, 0, x, outside, how, channels, planes, plane);                                \
    }

/* A map to pixels by name; sides are constants. */
#define CONTRACT(name, down, across)                                                                     \
    static void name(const real *planes, int64_t plane, int64_t first, int64_t channels, elem *const *y, \
                     const DT(contract_finish) * to) {                                                   \
        const int relu = to->activation == DTCONV_RELU;                                                  \
        if (to->activation != DTCONV_LINEAR && !relu)                                                    \
            CONTRACT_ALL(down, across, to->added, 0, to);                                                \
        else if (to->added)                                                                              \
            CONTRACT_ALL(down, across, to->added, relu, NULL);                                           \
        else if (relu)                                                                                   \
            CONTRACT_ALL(down, across, NULL, 1, NULL);                                                   \
        else                                                                                             \
            CONTRACT_ALL(down, across, NULL, 0, NULL);                                                   \
    }
#define CONTRACT_ALL(down, across, added, relu, others) \
    contract(down, across, planes, plane, first, channels, y, to, added, relu, others)

#define CONTRACT_PLAIN(name, of)                                                                              \
    static void name(const real *planes, int64_t plane, int64_t first, int64_t channels, real *const *taps) { \
        contract(of, of, planes, plane, first, channels, taps, NULL, NULL, 0, NULL);                          \
    }

#define SIDE(matrix, a, k, pairs) ((side){matrix, a, k, pairs})

/* m, a = m + 2; pairs of points (p, -p) in A. */
#define IMAGES(m, a, pairs)                                                    \
    EXPAND(expand_input_##m, SIDE(input_##m, a, a, PAIRS_##m))                 \
    EXPAND_NORMALIZED(expand_normalized_##m, SIDE(input_##m, a, a, PAIRS_##m)) \
    EXPAND(expand_grad_##m, SIDE(output_##m, a, m, pairs))                     \
    CONTRACT(contract_output_##m, SIDE(output_##m, a, m, pairs), SIDE(output_##m, a, m, pairs))

/* The same in B^T and G, which have pairs only where no point is alone. */
enum { PAIRS_2 = 1, PAIRS_4 = 2, PAIRS_5 = 0, PAIRS_6 = 3, PAIRS_7 = 4, PAIRS_8 = 4 };

IMAGES(2, 4, 1)
IMAGES(4, 6, 2)
IMAGES(5, 7, 2)
IMAGES(6, 8, 3)
IMAGES(7, 9, 4)
IMAGES(8, 10, 4)

static int row_of(int m) { return m > 3 ? m - 3 : 0; }

const DT(image_maps) * DT(winograd_image_maps)(dtconv_tile tile) {
#define ROW(m)                                                                        \
    {                                                                                 \
        expand_input_##m, expand_grad_##m, expand_normalized_##m, contract_output_##m \
    }
    static const DT(image_maps) rows[] = {ROW(2), ROW(4), ROW(5), ROW(6), ROW(7), ROW(8)};
#undef ROW
    return &rows[row_of(tile.w)];
}

#ifndef DTCONV_BFLOAT16 /* filters are float32 there, too */
#define FILTERS(m, a)                                            \
    EXPAND(expand_filter_##m, SIDE(filter_##m, a, 3, PAIRS_##m)) \
    CONTRACT_PLAIN(contract_dfilter_##m, SIDE(filter_##m, a, 3, PAIRS_##m))

FILTERS(2, 4)
FILTERS(4, 6)
enum { PAIRS_rounded = PAIRS_4 };
FILTERS(rounded, 6)
FILTERS(5, 7)
FILTERS(6, 8)
FILTERS(7, 9)
FILTERS(8, 10)

/* Filters of tiles of 2 x 4, which are rounded. */
static void expand_filter_wide(const elem *const *x, int64_t first, int64_t channels, real *planes, int64_t plane) {
    expand(SIDE(filter_2, 4, 3, PAIRS_2), SIDE(filter_rounded, 6, 3, PAIRS_rounded), x, first, channels, planes, plane);
}

const DT(transform) * DT(winograd_transform)(dtconv_tile tile) {
#define ROW(m, a)                                           \
    {                                                       \
        m, m, a, a, expand_filter_##m, contract_dfilter_##m \
    }
    static const DT(transform) rows[] = {ROW(2, 4), ROW(4, 6), ROW(5, 7), ROW(6, 8), ROW(7, 9), ROW(8, 10)};
#undef ROW
    return &rows[row_of(tile.w)];
}

const DT(transform) * DT(winograd_transform_rounded)(dtconv_tile tile) {
    static const DT(transform) four = {4, 4, 6, 6, expand_filter_rounded, contract_dfilter_rounded};
    static const DT(transform) wide = {2, 4, 4, 6, expand_filter_wide, NULL};
    return tile.w == 2 ? DT(winograd_transform)(tile) : tile.h == 2 ? &wide : &four;
}
#endif
