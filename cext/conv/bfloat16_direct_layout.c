/* Where the pixels of a copied piece lie; see bfloat16_direct.h. */
#include "bfloat16_direct.h"

int64_t DT(images_of_chunk)(int64_t n, int64_t width, int64_t unit, int64_t wanted) {
    int64_t best = 1, best_waste = INT64_MAX / 16;
    for (int64_t images = 1; images <= MIN(n, 64); images *= 2) {
        const int64_t pixels = width * images, waste = (dtconv_round_to(pixels, unit) - pixels) * 1000 / pixels;
        if (waste < best_waste * 9 / 10 || (pixels / images * best < wanted && waste <= best_waste))
            best = images, best_waste = waste;
        if (pixels >= wanted && waste <= 70) break;
    }
    return best;
}

layout DT(layout_of)(const image *x, const piece *at, int64_t pitch, int inside) {
    const int64_t step = step_of(&x->h), across = step_of(&x->w);
    layout l = {.phases = across, .images = at->images, .pitch = pitch};
    l.row = MAX(0, at->row * step + first_offset(&x->h));
    const int64_t last = MIN(x->h.read - 1, (at->row + at->rows - 1) * step + last_offset(&x->h));
    l.rows = MAX(0, last - l.row + 1);
    l.column = first_offset(&x->w);
    int64_t end = (count_of(&x->w, 0) - 1) * across + last_offset(&x->w) + 1;
    if (inside) l.column = MAX(0, l.column), end = MIN(end, x->w.read);
    l.columns = MAX(1, dtconv_ceil_div(end - l.column, across));
    return l;
}

int64_t DT(layout_pixels)(const image *x, int64_t images, int64_t rows, int inside) {
    const piece at = {.images = images, .rows = rows};
    const layout l = DT(layout_of)(x, &at, 1, inside);
    const int64_t high = (rows - 1) * step_of(&x->h) + last_offset(&x->h) - first_offset(&x->h) + 1;
    return x->d.taps * MIN(x->h.read, high) * l.phases * l.columns * images;
}
