/* Packing of sums of parts of a matrix: what Strassen's products multiply.
 *
 *   dst[p * width + j] = sum over t of sign[t] * X(across[t] + j, along[t] + p)
 *
 * Where elements across a panel are neighbours in memory, sums are written to the panel row by row.  Elsewhere some
 * steps of the panel are summed into a square in the first cache, which pack_a_matrix then transposes.
 */
#include <string.h>

#include "dtconv_real.h"
#include "dtconv_inline.h"
#include "dtconv_gemm.h"
#include "dtconv_ukr.h"
#include "parts.h"

enum { DEPTH = 64, AHEAD = 8 /* rows that are fetched ahead */, LINE = 64 / (int)sizeof(real) };

/* What of a term lies within the matrix: rows whose elements are neighbours, where cs is 1. */
typedef struct {
    const real *x;
    int64_t rows, columns;
    real sign;
} term;

/* out = first + second, where both are whole; n: columns, a constant or not.  `ahead` elements on is what comes next.
 */
INLINE void add_two(const term *first, const term *second, int64_t rows, int64_t n, int64_t rs, int64_t ahead,
                    real *restrict out, int64_t ldo) {
    const real s = first->sign, t = second->sign;
    for (int64_t i = 0; i < rows; i++) {
        const real *restrict x = first->x + i * rs, *restrict y = second->x + i * rs;
        for (int64_t j = 0; j < n; j += LINE)
            __builtin_prefetch(x + ahead + j, 0, 2), __builtin_prefetch(y + ahead + j, 0, 2);
        for (int64_t j = 0; j < n; j++) out[i * ldo + j] = s * x[j] + t * y[j];
    }
}

/* out = or += a term, as far as there is something of it. */
INLINE void add_one(const term *t, int add, int64_t rs, int64_t cs, real *restrict out, int64_t ldo) {
    const real s = t->sign;
    for (int64_t i = 0; i < t->rows; i++) {
        const real *restrict x = t->x + i * rs;
        if (add)
            for (int64_t j = 0; j < t->columns; j++) out[i * ldo + j] += s * x[j * cs];
        else
            for (int64_t j = 0; j < t->columns; j++) out[i * ldo + j] = s * x[j * cs];
    }
}

/* out (rows x columns) = the sum of the terms. */
static void add_terms(const term *terms, int count, int64_t rows, int64_t columns, int64_t rs, int64_t cs,
                      int64_t ahead, real *out, int64_t ldo) {
    int whole = cs == 1;
    for (int t = 0; t < count; t++) whole = whole && terms[t].rows == rows && terms[t].columns == columns;
    int from = 0;
    if (whole && count > 1) {
        from = 2;
        if (columns == DEPTH)
            add_two(terms, terms + 1, rows, DEPTH, rs, ahead, out, ldo);
        else if (columns == 32)
            add_two(terms, terms + 1, rows, 32, rs, ahead, out, ldo);
        else if (columns == 16)
            add_two(terms, terms + 1, rows, 16, rs, ahead, out, ldo);
        else if (columns == 14)
            add_two(terms, terms + 1, rows, 14, rs, ahead, out, ldo);
        else
            add_two(terms, terms + 1, rows, columns, rs, ahead, out, ldo);
    } else if (!whole) {
        for (int64_t i = 0; i < rows; i++) memset(out + i * ldo, 0, (size_t)columns * sizeof(real));
    }
    for (int t = from; t < count; t++) {
        const int add = t > 0 || !whole;
        if (cs == 1)
            add_one(terms + t, add, rs, 1, out, ldo);
        else
            add_one(terms + t, add, rs, cs, out, ldo);
    }
}

static int64_t within(int64_t first, int64_t count, int64_t extent) {
    const int64_t left = extent - first;
    return left < 0 ? 0 : left < count ? left : count;
}

void DT(pack_parts)(const DT(operand) * x, const DT(parts) * sum, int64_t j, int64_t n, int64_t p, int64_t k,
                    int64_t width, int64_t panel, real *dst) {
    const int copies = x->across == 1;
    real square[DTCONV_UKR_MAX_NR * DEPTH] __attribute__((aligned(64)));
    const DT(matrix) steps = {square, DEPTH, 1};
    for (int64_t c = 0; c < n; c += width, dst += panel) {
        const int64_t most = copies ? k : DEPTH;
        for (int64_t q = 0; q < k; q += most) {
            const int64_t depth = k - q < most ? k - q : most;
            term terms[MOST_TERMS];
            int count = 0;
            for (int t = 0; t < sum->count; t++) {
                const int64_t first = sum->across[t] + j + c, step = sum->along[t] + p + q;
                const int64_t wide = within(first, width, x->wide), deep = within(step, depth, x->deep);
                const term one = {NULL, copies ? deep : wide, copies ? wide : deep, sum->sign[t]};
                if (wide == 0 || deep == 0) continue;
                terms[count] = one;
                terms[count++].x = x->data + first * x->across + step * x->along;
            }
            if (copies) {
                if (count == 0) memset(dst, 0, (size_t)(k * width) * sizeof(real));
                if (count > 0) add_terms(terms, count, depth, width, x->along, 1, AHEAD * x->along, dst, width);
                continue;
            }
            if (count == 0) {
                memset(dst + q * width, 0, (size_t)(depth * width) * sizeof(real));
                continue;
            }
            if (count == 1 && x->along == 1 && terms->sign == 1 && terms->rows == width && terms->columns == depth) {
                const DT(matrix) plain = {terms->x, x->across, 1};
                DT(pack_a_matrix)(&plain, 0, width, 0, depth, width, dst + q * width);
                continue;
            }
            add_terms(terms, count, width, depth, x->across, x->along, DEPTH, square, DEPTH);
            DT(pack_a_matrix)(&steps, 0, width, 0, depth, width, dst + q * width);
        }
    }
}
