/* Arrays of any rank, sampled between their elements.
 *
 *     y[p, :] = sum over corners e of the cell of places[:, p]: weight(e) x[e, :]
 *
 * The weight of a corner is the product of its shares along each axis; with order 0 the nearest element is the only
 * one. Corners outside of x are those that the mode puts in their place, or a value.  Sums are doubles.
 */
#include <math.h>

#include "dtconv_image.h"
#include "dtconv_image_changes.h"
#include "dtconv_limits.h"

enum { MOST_AXES = 16, PART = 32 };

typedef struct {
    int64_t index[2]; /* -1: outside */
    double share[2];
} corners;

/* Where the element i is in x; -1 where it is a value. */
static inline int64_t inside(int64_t i, int64_t extent, int mode) {
    if (i >= 0 && i < extent) return i;
    const int64_t last = extent - 1, odd = 2 * extent;
    switch (mode) {
        case DTCONV_FILL_CONSTANT:
            return -1;
        case DTCONV_FILL_WRAP:
            i %= extent;
            return i < 0 ? i + extent : i;
        case DTCONV_FILL_MIRROR:
            if (!last) return 0;
            i = i < 0 ? -i % (2 * last) : i % (2 * last);
            return i > last ? 2 * last - i : i;
        case DTCONV_FILL_REFLECT:
            i %= odd;
            i = i < 0 ? i + odd : i;
            return i > last ? odd - 1 - i : i;
        default:
            return i < 0 ? 0 : last;
    }
}

/* The corners along an axis of a place, which may be no number. */
static inline corners corners_of(double t, int order, int64_t extent, int mode) {
    const double farthest = 1e15, low = order ? floor(t) : rint(t);
    const int64_t i = low > -farthest ? (int64_t)(low < farthest ? low : farthest) : (int64_t)-farthest;
    corners c = {{inside(i, extent, mode), order ? inside(i + 1, extent, mode) : 0}, {1, 0}};
    if (order) c.share[1] = t - low, c.share[0] = 1 - c.share[1];
    return c;
}

static void sample(int rank, const int64_t *extents, int64_t inner, const corners *at, int order, double value,
                   const real *x, real *y) {
    double sums[PART];
    for (int64_t first = 0; first < inner; first += PART) {
        const int64_t n = inner - first < PART ? inner - first : PART;
        for (int64_t k = 0; k < n; k++) sums[k] = 0;
        for (int corner = 0; corner < (order ? 1 << rank : 1); corner++) {
            int64_t offset = 0;
            double weight = 1;
            int outside = 0;
            for (int d = 0; d < rank; d++) {
                const int side = corner >> (rank - 1 - d) & 1;
                outside |= at[d].index[side] < 0;
                offset = offset * extents[d] + at[d].index[side];
                weight *= at[d].share[side];
            }
            const real *from = x + offset * inner + first;
            for (int64_t k = 0; k < n; k++) sums[k] += weight * (outside ? value : (double)from[k]);
        }
        for (int64_t k = 0; k < n; k++) y[first + k] = (real)sums[k];
    }
}

dtconv_status DT(sample_places)(int rank, const int64_t *extents, int64_t inner, int order, int mode, double value,
                                int64_t count, const double *places, const real *x, real *y) {
    if (rank < 1 || rank > MOST_AXES) return DTCONV_UNSUPPORTED;
    if (!dtconv_are_sizes(1, rank, extents) || order < 0 || order > 1) return DTCONV_ARGUMENT;
    const int64_t work = inner * count << (order ? rank : 0);
#pragma omp parallel for num_threads(dtconv_threads_to_move(work)) schedule(dynamic, dtconv_piece(count))
    for (int64_t p = 0; p < count; p++) {
        corners at[MOST_AXES];
        for (int d = 0; d < rank; d++) at[d] = corners_of(places[d * count + p], order, extents[d], mode);
        sample(rank, extents, inner, at, order, value, x, y + p * inner);
    }
    return DTCONV_OK;
}
