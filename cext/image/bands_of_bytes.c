/* One image of bytes under filters along rows and columns, as bands.c has them, on the thread that calls: several
 * threads may each do an image.  Sums are of `real`; the nearest byte is taken once, at the end.
 */
#include <string.h>

#include "dtconv_image.h"
#include "dtconv_vector.h"
#include "few_channels.h"

/* vectors of numbers, and rows of pixels, that are summed together: no sum waits for the one before it */
enum { AT_ONCE = 4, BEYOND = 8, ROWS = 4 };
typedef uint8_t loose_bytes __attribute__((vector_size(V), aligned(1), may_alias));
typedef uint16_t halves __attribute__((vector_size(2 * V)));
typedef int32_t integers __attribute__((vector_size(4 * V)));

/* in three steps, each of which is an instruction */
INLINE vec load_bytes(const uint8_t *x) {
    const halves wide = __builtin_convertvector(*(const loose_bytes *)x, halves);
    return __builtin_convertvector(__builtin_convertvector(wide, integers), vec);
}

/* y[e] = sum over k of w[k] x[k apart + e], n numbers */
static void add_up_rows(int64_t n, int64_t taps, const real *w, const uint8_t *x, int64_t apart, real *y) {
    int64_t e = 0;
    for (; e + AT_ONCE * V <= n; e += AT_ONCE * V) {
        vec sums[AT_ONCE] = {{0}};
        for (int64_t k = 0; k < taps; k++)
            UNROLL for (int v = 0; v < AT_ONCE; v++) sums[v] =
                multiply_add(w[k] - (vec){0}, load_bytes(x + k * apart + e + v * V), sums[v]);
        UNROLL for (int v = 0; v < AT_ONCE; v++) store(y + e + v * V, sums[v]);
    }
    for (; e < n; e++) {
        real sum = 0;
        for (int64_t k = 0; k < taps; k++) sum += w[k] * (real)x[k * apart + e];
        y[e] = sum;
    }
}

static void to_bytes(int64_t n, const real *x, uint8_t *y) {
    for (int64_t e = 0; e < n; e++) {
        const real up = x[e] + (real)0.5;
        y[e] = (uint8_t)(int32_t)(up < 0 ? 0 : up > 255 ? 255 : up);
    }
}

size_t DT(bands_of_bytes_workspace)(const dtconv_band *columns, int64_t c) {
    return (size_t)(ROWS * ((columns->extent + columns->rows) * c + 2 * BEYOND)) * sizeof(real);
}

dtconv_status DT(bands_of_bytes)(const dtconv_band *rows, const dtconv_band *columns, int64_t c, const uint8_t *x,
                                 uint8_t *y, real *workspace) {
    if (c < 1 || c > 4) return DTCONV_ARGUMENT;
    const int64_t of_x = columns->extent * c, of_y = columns->rows * c, to_x = of_x + BEYOND, to_y = of_y + BEYOND;
    real *numbers = workspace, *sums = workspace + ROWS * to_x;
    memset(numbers, 0, ROWS * (size_t)to_x * sizeof(real)); /* those beyond the last are read, and left out */
    for (int64_t i = 0; i < rows->rows; i += ROWS) {
        const int64_t count = rows->rows - i < ROWS ? rows->rows - i : ROWS;
        for (int64_t r = 0; r < count; r++)
            add_up_rows(of_x, rows->counts[i + r], (const real *)rows->weights + (i + r) * rows->width,
                        x + rows->starts[i + r] * of_x, of_x, numbers + r * to_x);
        few_channels(columns, 0, columns->rows, c, ROWS, to_x, numbers, to_y, sums);
        for (int64_t r = 0; r < count; r++) to_bytes(of_y, sums + r * to_y, y + (i + r) * of_y);
    }
    return DTCONV_OK;
}
