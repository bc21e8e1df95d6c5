/* Filters along rows and columns of images (n, h, w, c): resizing, blurring, and their gradients.
 *
 *     y[i, j] = sum over k, l of rows[i, k] columns[j, l] x[k, l]
 *
 * Of both matrices, most numbers are 0: dtconv_band has the others.  One row of y at a time: the rows of x that it is
 * made of are added up in vectors, to a row of numbers that stays in the first cache; its pixels are then added up,
 * each in a vector of its channels, or, where neighbours have the same weights (a blur), in vectors of pixels.
 */
#include <string.h>

#include "dtconv_image.h"
#include "dtconv_limits.h"
#include "dtconv_thread_id.h"
#include "dtconv_vector.h"
#include "few_channels.h"

/* Of a vector of few channels the last numbers are those of the next pixels: they are read, and left out. */
enum { BEYOND = 64 };
/* where results go: to numbers, to an image, or they are added to one */
typedef enum { TO_NUMBERS, TO_IMAGE, ADDED } target;

typedef struct {
    const dtconv_band *rows, *columns;
    int64_t ih, iw, oh, ow, c, ldx, ldy;
    int accumulate;
    const elem *x;
    elem *y;
} problem;

INLINE vec all(real x) { return x - (vec){0}; }

INLINE void put(target to, void *y, int64_t at, int64_t count, vec sum) {
    if (to == TO_NUMBERS) {
        if (count == V)
            store((real *)y + at, sum);
        else
            store_part((real *)y + at, count, sum);
        return;
    }
    elem *into = (elem *)y + at;
    store_first(into, count, to == ADDED ? sum + load_first(into, count) : sum);
}

/* y[e] = sum over k of w[k] x[k * apart + e], n numbers; of_numbers: x holds `real`, and may be read beyond them. */
INLINE void add_up(target to, int of_numbers, int64_t n, int64_t taps, const real *w, const void *x, int64_t apart,
                   void *y) {
    enum { AT_ONCE = 4 };
    int64_t e = 0;
    for (; e + AT_ONCE * V <= n; e += AT_ONCE * V) {
        vec sums[AT_ONCE] = {{0}};
        for (int64_t k = 0; k < taps; k++) {
            const int64_t at = k * apart + e;
            UNROLL for (int v = 0; v < AT_ONCE; v++) {
                const vec part =
                    of_numbers ? load((const real *)x + at + v * V) : load_elem((const elem *)x + at + v * V);
                sums[v] = multiply_add(all(w[k]), part, sums[v]);
            }
        }
        UNROLL for (int v = 0; v < AT_ONCE; v++) put(to, y, e + v * V, V, sums[v]);
    }
    for (; e < n; e += V) {
        const int64_t count = n - e < V ? n - e : V;
        vec sum = {0};
        for (int64_t k = 0; k < taps; k++) {
            const int64_t at = k * apart + e;
            const vec part = of_numbers ? load((const real *)x + at) : load_first((const elem *)x + at, count);
            sum = multiply_add(all(w[k]), part, sum);
        }
        put(to, y, e, count, sum);
    }
}

NOINLINE void rows_to_numbers(int64_t n, int64_t taps, const real *w, const elem *x, int64_t apart, real *y) {
    add_up(TO_NUMBERS, 0, n, taps, w, x, apart, y);
}

NOINLINE void rows_to_image(int accumulate, int64_t n, int64_t taps, const real *w, const elem *x, int64_t apart,
                            elem *y) {
    if (accumulate)
        add_up(ADDED, 0, n, taps, w, x, apart, y);
    else
        add_up(TO_IMAGE, 0, n, taps, w, x, apart, y);
}

NOINLINE void pixels_to_numbers(int64_t n, int64_t taps, const real *w, const real *x, int64_t apart, real *y) {
    add_up(TO_NUMBERS, 1, n, taps, w, x, apart, y);
}

NOINLINE void pixel_to_image(int accumulate, int64_t n, int64_t taps, const real *w, const real *x, int64_t apart,
                             elem *y) {
    if (accumulate)
        add_up(ADDED, 1, n, taps, w, x, apart, y);
    else
        add_up(TO_IMAGE, 1, n, taps, w, x, apart, y);
}

/* Row i of one image under `rows`, to numbers, or to y where y is given. */
static void filter_rows(const problem *t, const elem *x, int64_t i, real *numbers, elem *y) {
    static const real one = 1;
    const dtconv_band *b = t->rows;
    const real *w = b ? (const real *)b->weights + i * b->width : &one;
    const int64_t taps = b ? b->counts[i] : 1, apart = t->iw * t->ldx;
    x += (b ? b->starts[i] : i) * apart;
    const int is_dense = t->ldx == t->c && (!y || t->ldy == t->c);
    const int64_t pieces = is_dense ? 1 : t->iw, n = is_dense ? t->iw * t->c : t->c;
    for (int64_t j = 0; j < pieces; j++) {
        if (y)
            rows_to_image(t->accumulate, n, taps, w, x + j * t->ldx, apart, y + j * t->ldy);
        else
            rows_to_numbers(n, taps, w, x + j * t->ldx, apart, numbers + j * n);
    }
}

static void few_pixels(const dtconv_band *b, int64_t first, int64_t last, int64_t c, const real *x, real *y) {
    if (c <= 4) {
        few_channels(b, first, last, c, 1, 0, x, 0, y);
        return;
    }
    for (int64_t j = first; j < last; j++)
        pixels_to_numbers(c, b->counts[j], (const real *)b->weights + j * b->width, x + b->starts[j] * c, c, y + j * c);
}

/* A row of numbers under `columns`, to a row of y. */
static void filter_columns(const problem *t, const real *x, real *numbers, elem *y) {
    const dtconv_band *b = t->columns;
    const int64_t c = t->c;
    if (c >= V) {
        for (int64_t j = 0, pixels; j < t->ow; j += pixels) {
            pixels = j == b->same_from && j < b->same_to && t->ldy == c ? b->same_to - j : 1;
            pixel_to_image(t->accumulate, pixels * c, b->counts[j], (const real *)b->weights + j * b->width,
                           x + b->starts[j] * c, c, y + j * t->ldy);
        }
        return;
    }
    few_pixels(b, 0, b->same_from, c, x, numbers);
    pixels_to_numbers((b->same_to - b->same_from) * c, b->counts[b->same_from],
                      (const real *)b->weights + b->same_from * b->width, x + b->starts[b->same_from] * c, c,
                      numbers + b->same_from * c);
    few_pixels(b, b->same_to, t->ow, c, x, numbers);
    const int is_dense = t->ldy == c;
    static const real one = 1;
    for (int64_t j = 0; j < (is_dense ? 1 : t->ow); j++)
        pixel_to_image(t->accumulate, is_dense ? t->ow * c : c, 1, &one, numbers + j * c, 0, y + j * t->ldy);
}

static int64_t numbers_in(int64_t pixels, int64_t c) { return (pixels * c + BEYOND - 1) / BEYOND * BEYOND + BEYOND; }

/* Numbers of a thread: a row of x, and a row of y. */
static int64_t row_of_x(const dtconv_band *columns, int64_t iw, int64_t c) { return columns ? numbers_in(iw, c) : 0; }
static int64_t row_of_y(const dtconv_band *columns, int64_t c) { return columns ? numbers_in(columns->rows, c) : 0; }

size_t DT(bands_workspace)(const dtconv_band *rows, const dtconv_band *columns, int64_t iw, int64_t c) {
    (void)rows;
    return (size_t)dtconv_get_num_threads() * (size_t)(row_of_x(columns, iw, c) + row_of_y(columns, c)) * sizeof(real);
}

dtconv_status DT(bands)(const dtconv_band *rows, const dtconv_band *columns, int accumulate, int64_t n, int64_t ih,
                        int64_t iw, int64_t c, const elem *x, int64_t ldx, elem *y, int64_t ldy, void *workspace,
                        size_t bytes) {
    const int64_t oh = rows ? rows->rows : ih, ow = columns ? columns->rows : iw;
    if ((rows && rows->extent != ih) || (columns && columns->extent != iw)) return DTCONV_ARGUMENT;
    if (bytes < DT(bands_workspace)(rows, columns, iw, c)) return DTCONV_WORKSPACE;
    const problem t = {rows, columns, ih, iw, oh, ow, c, ldx, ldy, accumulate, x, y};
    const int64_t of_x = row_of_x(columns, iw, c), of_y = row_of_y(columns, c);
    const int64_t work = n * oh * (ow > iw ? ow : iw) * c;
#pragma omp parallel for num_threads(dtconv_threads_to_move(work)) schedule(dynamic, dtconv_piece(n *oh))
    for (int64_t row = 0; row < n * oh; row++) {
        real *numbers = (real *)workspace + dtconv_thread_id() * (of_x + of_y);
        elem *out = t.y + row * t.ow * t.ldy;
        filter_rows(&t, t.x + row / oh * t.ih * t.iw * t.ldx, row % oh, numbers, columns ? NULL : out);
        if (!columns) continue;
        memset(numbers + t.iw * t.c, 0, BEYOND * sizeof(real)); /* numbers beyond the last are read, and left out */
        filter_columns(&t, numbers, numbers + of_x, out);
    }
    return DTCONV_OK;
}
