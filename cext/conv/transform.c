/* F(m x m, 3 x 3) for m = 2, 4, 5 and 6: the engine's kernels with the matrices of each. */
#include "transform_kernels.h"
#include "transform_tables.h"

#define EXPAND(name, matrix, a, k, pairs)                                                                  \
    static void name(const real *const *x, int64_t first, int64_t channels, real *planes, int64_t plane) { \
        expand(matrix, a, k, pairs, x, first, channels, planes, plane);                                    \
    }

#define CONTRACT(name, matrix, a, k, pairs)                                                                  \
    static void name(const real *planes, int64_t plane, int64_t first, int64_t channels, real *const *y,     \
                     const DT(contract_finish) * to) {                                                       \
        if (to->added)                                                                                       \
            contract(matrix, a, k, pairs, planes, plane, first, channels, y, to->bias, to->added, to->relu); \
        else if (to->relu)                                                                                   \
            contract(matrix, a, k, pairs, planes, plane, first, channels, y, to->bias, NULL, 1);             \
        else                                                                                                 \
            contract(matrix, a, k, pairs, planes, plane, first, channels, y, to->bias, NULL, 0);             \
    }

#define CONTRACT_PLAIN(name, matrix, a, k, pairs)                                                        \
    static void name(const real *planes, int64_t plane, int64_t first, int64_t channels, real *const *y, \
                     const DT(contract_finish) * finish) {                                               \
        (void)finish;                                                                                    \
        contract(matrix, a, k, pairs, planes, plane, first, channels, y, NULL, NULL, 0);                 \
    }

/* m, a = m + 2; pairs of points (p, -p): in A, and in B^T and G, which have pairs only where no point is alone. */
#define TRANSFORM(m, a, pairs_a, pairs_bg)                   \
    EXPAND(expand_input_##m, input_##m, a, a, pairs_bg)      \
    EXPAND(expand_filter_##m, filter_##m, a, 3, pairs_bg)    \
    EXPAND(expand_grad_##m, output_##m, a, m, pairs_a)       \
    CONTRACT(contract_output_##m, output_##m, a, m, pairs_a) \
    CONTRACT_PLAIN(contract_dfilter_##m, filter_##m, a, 3, pairs_bg)

#define ROW(m, a) \
    {m, a, expand_input_##m, expand_filter_##m, expand_grad_##m, contract_output_##m, contract_dfilter_##m}

TRANSFORM(2, 4, 1, 1)
TRANSFORM(4, 6, 2, 2)
TRANSFORM(5, 7, 2, 0)
TRANSFORM(6, 8, 3, 3)

const DT(transform) * DT(winograd_transform)(int m) {
    static const DT(transform) rows[] = {ROW(2, 4), ROW(4, 6), ROW(5, 7), ROW(6, 8)};
    return m >= 2 && m <= 6 && m != 3 ? &rows[m > 3 ? m - 3 : 0] : NULL;
}
