/* A batch out of an array of samples: y[i] = x[order[i]], in the dtype of images whatever the samples are made of. */
#include <string.h>

#include "dtconv_image.h"
#include "dtconv_limits.h"

enum { PIECE = 1 << 14 };

static void convert(dtconv_sample_type type, int64_t n, const void *x, int64_t at, elem *y) {
    switch (type) {
#define TYPE(NAME, type)                                                                                    \
    case DTCONV_OF_##NAME:                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = narrow((real)((const type *)x)[at + i]); \
        break;
#include "dtconv_sample_types.h"
    }
}

dtconv_status DT(take_samples)(dtconv_sample_type type, int64_t n, int64_t numbers, const int64_t *order, const void *x,
                               elem *y) {
    if (!order) numbers *= n, n = 1;
    const int64_t pieces = (numbers + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(dtconv_threads_to_move(n *numbers)) schedule(dynamic, dtconv_piece(n *pieces))
    for (int64_t piece = 0; piece < n * pieces; piece++) {
        const int64_t sample = piece / pieces, first = piece % pieces * PIECE;
        const int64_t count = numbers - first < PIECE ? numbers - first : PIECE;
        convert(type, count, x, (order ? order[sample] : 0) * numbers + first, y + sample * numbers + first);
    }
    return DTCONV_OK;
}
