/* Permutation of dimensions: y[...] (+)= x[...], both read as one loop nest with strides of their own.
 *
 * Two dimensions matter: the one along which y is contiguous and the one along which x is.  Tiles over these two are
 * small enough that the lines of memory they touch stay in the first-level cache; everything outside of them is dealt
 * out to the threads.
 */
#include "dtconv_nn_elem.h"
#include "dtconv_strided.h"

enum { TILE = 16 };

typedef struct {
    int64_t rows, columns;  /* extents along x's contiguous dimension, and y's */
    int64_t xr, xc, yr, yc; /* strides along them */
} plane;

static void copy_tile(const plane *t, int accumulate, int64_t i0, int64_t j0, const elem *x, elem *y) {
    const int64_t i1 = i0 + TILE < t->rows ? i0 + TILE : t->rows, j1 = j0 + TILE < t->columns ? j0 + TILE : t->columns;
    for (int64_t i = i0; i < i1; i++) {
        const elem *xi = x + i * t->xr;
        elem *yi = y + i * t->yr;
        if (accumulate)
            for (int64_t j = j0; j < j1; j++) yi[j * t->yc] = narrow(widen(yi[j * t->yc]) + widen(xi[j * t->xc]));
        else
            for (int64_t j = j0; j < j1; j++) yi[j * t->yc] = xi[j * t->xc];
    }
}

dtconv_status DT(permute)(int accumulate, const int64_t *layout, const elem *x, elem *y) {
    const int ndim = (int)layout[0];
    const int64_t *shape = layout + 2, *xs = shape + ndim, *ys = xs + ndim;
    if (ndim < 2 || ndim > DTCONV_MAX_DIMS || layout[1] != 2) return DTCONV_ARGUMENT;
    int r = 0; /* the dimension of x's smallest stride */
    for (int d = 0; d < ndim - 1; d++)
        if (xs[d] < xs[r]) r = d;
    const plane t = {shape[r], shape[ndim - 1], xs[r], xs[ndim - 1], ys[r], ys[ndim - 1]};
    int64_t outer = 1;
    for (int d = 0; d < ndim - 1; d++) outer *= d == r ? 1 : shape[d];
    const int64_t bands = (t.rows + TILE - 1) / TILE;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) \
    schedule(dynamic, dtconv_piece(outer *bands)) if (outer * t.rows * t.columns >= DTCONV_PARALLEL_ELEMENTS)
    for (int64_t item = 0; item < outer * bands; item++) {
        int64_t rest = item / bands, x_offset = 0, y_offset = 0;
        for (int d = ndim - 2; d >= 0; d--) {
            if (d == r) continue;
            x_offset += rest % shape[d] * xs[d];
            y_offset += rest % shape[d] * ys[d];
            rest /= shape[d];
        }
        for (int64_t j = 0; j < t.columns; j += TILE)
            copy_tile(&t, accumulate, item % bands * TILE, j, x + x_offset, y + y_offset);
    }
    return DTCONV_OK;
}
