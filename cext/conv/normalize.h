/* Images that are normalized as they are read: act((x - mean) * scale + beta).
 *
 * Wherever it is inlined it is rounded as batch normalization does: in float32 and float64 results do not depend on
 * whether an image is normalized before or here.  One in bfloat16 would be rounded in between.
 */
#ifndef DTCONV_NORMALIZE_H
#define DTCONV_NORMALIZE_H

#include "conv_internal.h"
#include "dtconv_activations.h"

/* Of one vector of channels. */
typedef struct {
    vec mean, scale, beta;
} normalizer;

/* Channels [at, at + count); count: V, which is a constant, or less. */
INLINE normalizer normalizer_of(const DT(conv_normalization) * f, int64_t at, int64_t count) {
    const vec beta = f->beta ? load_part(f->beta + at, count) : (vec){0};
    return (normalizer){load_part(f->mean + at, count), load_part(f->scale + at, count), beta};
}

/* act: the activation, a constant where it is inlined. */
INLINE vec normalized(normalizer f, dtconv_activation act, vec x) {
    return activated(act, multiply_add(x - f.mean, f.scale, f.beta));
}

/* `count` channels of a pixel, filled up with zeros; normalizes: a constant, 0 where it is read as it is. */
INLINE vec read_vector(const elem *x, int64_t count, int normalizes, normalizer f, dtconv_activation act) {
    const vec pixel = load_first(x, count);
    return normalizes ? normalized(f, act, pixel) : pixel;
}

/* Channels [at, at + count) of `rows` rows, or of `most`, a constant, where all are there. */
INLINE void read_vectors(const DT(conv_normalization) * f, dtconv_activation act, int64_t at, int64_t count, int all,
                         int64_t most, int64_t rows, const elem *const *x, real *y, int64_t ldy) {
    const normalizer of = f ? normalizer_of(f, at, count) : (normalizer){0};
    if (all) {
        UNROLL for (int64_t r = 0; r < most; r++)
            store(y + r * ldy + at, read_vector(x[r] + at, count, f != NULL, of, act));
    } else {
        for (int64_t r = 0; r < rows; r++) store(y + r * ldy + at, read_vector(x[r] + at, count, f != NULL, of, act));
    }
}

INLINE void read_kind(const DT(conv_normalization) * f, dtconv_activation act, int64_t most, int64_t rows,
                      int64_t channels, const elem *const *x, real *y, int64_t ldy) {
    int64_t j = 0;
    if (rows == most)
        for (; j + V <= channels; j += V) read_vectors(f, act, j, V, 1, most, rows, x, y, ldy);
    for (; j + V <= channels; j += V) read_vectors(f, act, j, V, 0, most, rows, x, y, ldy);
    if (j < channels) read_vectors(f, act, j, channels - j, 0, most, rows, x, y, ldy);
}

/* Rows at x[0 .. rows) to rows of y, which have room for whole vectors; as they are where f is NULL.  most: a constant,
 * the usual number of rows. */
INLINE void read_rows(const DT(conv_normalization) * f, int64_t most, int64_t rows, int64_t channels,
                      const elem *const *x, real *y, int64_t ldy) {
    if (!f)
        read_kind(NULL, DTCONV_LINEAR, most, rows, channels, x, y, ldy);
    else if (f->activation == DTCONV_RELU)
        read_kind(f, DTCONV_RELU, most, rows, channels, x, y, ldy);
    else if (f->activation == DTCONV_RELU6)
        read_kind(f, DTCONV_RELU6, most, rows, channels, x, y, ldy);
    else
        read_kind(f, DTCONV_LINEAR, most, rows, channels, x, y, ldy);
}

#endif
