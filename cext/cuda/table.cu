/* Functions of pydtconv.ops that run NumPy on CPUs: elements that are moved or taken, comparisons, choices, and
 * functions of one argument.  layout: as in elementwise.cu.
 */
#include "dtconv_cuda.h"
#include "functions.h"
#include "layout.h"
#include "numbers.h"

/* y[i] = x[places[i]], or 0 where that is -1 */
GLOBAL gather(int64_t n, Array<const int32_t> places, Array<const real> x, Array<real> y) {
    FOR_EACH(i, n) {
        const int32_t place = places[i];
        y[i] = place < 0 ? 0 : x[place];
    }
}
KERNEL(gather)

/* dx[j] (+)= the sum of dy[places[k]], from[j] <= k < from[j + 1], in this order */
GLOBAL gather_backward(int64_t n, Array<const int32_t> from, Array<const int32_t> places, Array<const real> dy,
                       int64_t accumulate, Array<real> dx) {
    FOR_EACH(j, n) {
        real sum = 0;
        for (int32_t k = from[j]; k < from[j + 1]; k++) sum += dy[places[k]];
        dx[j] = accumulate ? dx[j] + sum : sum;
    }
}
KERNEL(gather_backward)

/* The place along an axis that a number stands for, negative ones from its end; -1: outside. */
__device__ inline int64_t along(Array<const uint8_t> index, int type, int64_t k, int64_t extent) {
    const int64_t value = whole_at(index, type, k), place = value < 0 ? value + extent : value;
    return place >= 0 && place < extent ? place : -1;
}

/* y[o, k, j] = x[o, index[k], j]; NaN for what is outside */
GLOBAL take(int64_t outer, int64_t extent, int64_t count, int64_t inner, int64_t type, Array<const uint8_t> index,
            Array<const real> x, Array<real> y) {
    FOR_EACH(i, outer * count * inner) {
        const cell at = cell_of(i, inner), row = cell_of(at.row, count);
        const int64_t place = along(index, (int)type, row.column, extent);
        y[i] = place < 0 ? (real)nan("") : (real)x[(row.row * extent + place) * inner + at.column];
    }
}
KERNEL(take)

/* dx[o, e, j] (+)= the sum of dy[o, k, j] over all k whose number is e, in their order */
GLOBAL take_backward(int64_t outer, int64_t extent, int64_t count, int64_t inner, int64_t type,
                     Array<const uint8_t> index, Array<const real> dy, int64_t accumulate, Array<real> dx) {
    FOR_EACH(i, outer * extent * inner) {
        const cell at = cell_of(i, inner), row = cell_of(at.row, extent);
        real sum = 0;
        for (int64_t k = 0; k < count; k++)
            if (along(index, (int)type, k, extent) == row.column) sum += dy[(row.row * count + k) * inner + at.column];
        dx[i] = accumulate ? dx[i] + sum : sum;
    }
}
KERNEL(take_backward)

/* y[o, k, j] = 1 where index[o, j] is k, else 0 */
GLOBAL one_hot(int64_t outer, int64_t classes, int64_t inner, int64_t type, Array<const uint8_t> index, Array<real> y) {
    FOR_EACH(i, outer * classes * inner) {
        const cell at = cell_of(i, inner), row = cell_of(at.row, classes);
        y[i] = number_at(index, (int)type, row.row * inner + at.column) == (double)row.column ? 1 : 0;
    }
}
KERNEL(one_hot)

enum comparison { EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL };

/* y = whether a compares so to b */
GLOBAL compare(int64_t kind, int64_t n, Array<const int64_t> layout, Array<const real> a, Array<const real> b,
               Array<uint8_t> y) {
    FOR_EACH(i, n) {
        const places<3> at = places_of<3>(layout, i);
        const real p = a[at.of[0]], q = b[at.of[1]];
        bool found = false;
        switch (kind) {
            case EQUAL:
                found = p == q;
                break;
            case NOT_EQUAL:
                found = p != q;
                break;
            case GREATER:
                found = p > q;
                break;
            case GREATER_EQUAL:
                found = p >= q;
                break;
            case LESS:
                found = p < q;
                break;
            case LESS_EQUAL:
                found = p <= q;
        }
        y[at.of[2]] = found;
    }
}
KERNEL(compare)

enum logic { AND, OR, XOR };

/* Of what is 0 or not. */
GLOBAL logical(int64_t kind, int64_t n, Array<const int64_t> layout, Array<const uint8_t> a, Array<const uint8_t> b,
               Array<uint8_t> y) {
    FOR_EACH(i, n) {
        const places<3> at = places_of<3>(layout, i);
        const bool p = a[at.of[0]] != 0, q = b[at.of[1]] != 0;
        y[at.of[2]] = kind == AND ? p && q : (kind == OR ? p || q : p != q);
    }
}
KERNEL(logical)

GLOBAL logical_not(int64_t n, Array<const uint8_t> x, Array<uint8_t> y) { FOR_EACH(i, n) y[i] = x[i] == 0; }
KERNEL(logical_not)

/* y = condition ? a : b */
GLOBAL where(int64_t n, Array<const int64_t> layout, Array<const uint8_t> condition, Array<const real> a,
             Array<const real> b, Array<real> y) {
    FOR_EACH(i, n) {
        const places<4> at = places_of<4>(layout, i);
        y[at.of[3]] = condition[at.of[0]] ? a[at.of[1]] : b[at.of[2]];
    }
}
KERNEL(where)

/* out (+)= dy where the condition is what is wanted, else 0 */
GLOBAL where_backward(int64_t wanted, int64_t accumulate, int64_t n, Array<const int64_t> layout,
                      Array<const uint8_t> condition, Array<const real> dy, Array<real> out) {
    FOR_EACH(i, n) {
        const places<3> at = places_of<3>(layout, i);
        const real value = (condition[at.of[0]] != 0) == (wanted != 0) ? (real)dy[at.of[1]] : 0;
        out[at.of[2]] = accumulate ? out[at.of[2]] + value : value;
    }
}
KERNEL(where_backward)

/* The codes are the places in pydtconv/kernels/gpu/table.py. */
enum unary { SIN, COS, TAN, ATAN, SINH, COSH, EXP2, EXPM1, LOG10, LOG1P, LOG2, ERF, ERFC, FABS, FLOOR, CEIL, TRUNC };

/* In double: some have no form in float, and none is where time goes. */
__device__ inline double function(int64_t kind, double x) {
    switch (kind) {
        case SIN:
            return sin(x);
        case COS:
            return cos(x);
        case TAN:
            return tan(x);
        case ATAN:
            return atan(x);
        case SINH:
            return sinh(x);
        case COSH:
            return cosh(x);
        case EXP2:
            return exp2(x);
        case EXPM1:
            return expm1(x);
        case LOG10:
            return log10(x);
        case LOG1P:
            return log1p(x);
        case LOG2:
            return log2(x);
        case ERF:
            return erf(x);
        case ERFC:
            return erfc(x);
        case FABS:
            return fabs(x);
        case FLOOR:
            return floor(x);
        case CEIL:
            return ceil(x);
    }
    return trunc(x);
}

/* At v: x, or y for TAN, EXP2 and EXPM1. */
__device__ inline double slope(int64_t kind, double v) {
    const double to_two = 0.69314718055994530942, to_ten = 2.30258509299404568402, root = 1.12837916709551257390;
    switch (kind) {
        case SIN:
            return cos(v);
        case COS:
            return -sin(v);
        case TAN:
            return 1 + v * v;
        case ATAN:
            return 1 / (1 + v * v);
        case SINH:
            return cosh(v);
        case COSH:
            return sinh(v);
        case EXP2:
            return v * to_two;
        case EXPM1:
            return v + 1;
        case LOG10:
            return 1 / (v * to_ten);
        case LOG1P:
            return 1 / (1 + v);
        case LOG2:
            return 1 / (v * to_two);
        case ERF:
            return root * exp(-v * v);
        case ERFC:
            return -root * exp(-v * v);
        case FABS:
            return (v > 0) - (v < 0);
    }
    return 0;
}

GLOBAL unary_forward(int64_t kind, int64_t n, Array<const real> x, Array<real> y) {
    FOR_EACH(i, n) y[i] = (real)function(kind, (double)x[i]);
}
KERNEL(unary_forward)

/* dx (+)= dy times the slope at v */
GLOBAL unary_backward(int64_t kind, int64_t n, Array<const real> v, Array<const real> dy, int64_t accumulate,
                      Array<real> dx) {
    FOR_EACH(i, n) {
        const real value = (real)((double)dy[i] * slope(kind, (double)v[i]));
        dx[i] = accumulate ? dx[i] + value : value;
    }
}
KERNEL(unary_backward)

GLOBAL is_nan(int64_t n, Array<const real> x, Array<uint8_t> y) { FOR_EACH(i, n) y[i] = x[i] != x[i]; }
KERNEL(is_nan)

GLOBAL is_finite(int64_t n, Array<const real> x, Array<uint8_t> y) { FOR_EACH(i, n) y[i] = x[i] - x[i] == 0; }
KERNEL(is_finite)
