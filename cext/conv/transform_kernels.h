/* The two kernels of the engine, `expand` and `contract`, for matrices that are constants where they are inlined.
 *
 * Points come as 0, then pairs (p, -p), then the rest.  In a pair the rows of P differ in the signs of their odd (or
 * even) elements only, so both need one sum over even and one over odd elements:
 *
 *   expand     t[p] = E + O, t[-p] = E - O
 *   contract   s[j] = sum over pairs of P[p][j] * (t[p] + t[-p]) for even j, (t[p] - t[-p]) for odd j
 *
 * A tile has two sides, each with a matrix of its own: `down` along the first index of pixels and points, `across`
 * along the second.  All loops are unrolled and zeros and ones of the matrices drop out: the code is that of transforms
 * written by hand.
 */
#include <stddef.h>

#include "activate.h"
#include "transform.h"

/* A side: P (a x k), with so many pairs of points. */
typedef struct {
    const real *matrix;
    int a, k, pairs;
} side;

/* sum + c * x, where c is a constant. */
INLINE vec add(vec sum, int empty, real c, vec x) {
    if (empty) return c == 1 ? x : c == -1 ? -x : c * x;
    return c == 1 ? sum + x : c == -1 ? sum - x : sum + c * x;
}

/* Sum of row[j] * x[j * step] for j = from, from + by, ... < k. */
INLINE vec dot(const real *row, const vec *x, int from, int by, int k) {
    vec sum = {0};
    int empty = 1;
    UNROLL for (int j = from; j < k; j += by) if (row[j] != 0) {
        sum = add(sum, empty, row[j], x[j]);
        empty = 0;
    }
    return sum;
}

/* Pointers to planes are advanced, not computed ahead: as invariants of the loop over channels they would fill the
 * registers. */
INLINE real *next(real *planes, int64_t plane) {
    planes += plane;
    __asm__("" : "+r"(planes));
    return planes;
}

/* One line of k elements to a elements. */
INLINE real *expand_line(side s, const vec *x, real *to, int64_t plane) {
    store(to, dot(s.matrix, x, 0, 1, s.k));
    to = next(to, plane);
    UNROLL for (int p = 1; p < 1 + 2 * s.pairs; p += 2) {
        const vec even = dot(s.matrix + p * s.k, x, 0, 2, s.k), odd = dot(s.matrix + p * s.k, x, 1, 2, s.k);
        store(to, even + odd);
        store(to + plane, even - odd);
        to = next(to + plane, plane);
    }
    UNROLL for (int p = 1 + 2 * s.pairs; p < s.a; p++) {
        store(to, dot(s.matrix + p * s.k, x, 0, 1, s.k));
        to = next(to, plane);
    }
    return to;
}

/* Line p of side `down`, `width` elements, of one vector of channels; of a pair also the line of -p. */
INLINE void expand_columns(side down, int width, int p, int paired, const elem *const *x, int64_t first, vec *plus,
                           vec *minus) {
    const int k = down.k;
    const real *row = down.matrix + p * k;
    UNROLL for (int j = 0; j < width; j++) {
        vec column[TRANSFORM_MAX];
        UNROLL for (int i = 0; i < k; i++) if (row[i] != 0) column[i] = load_elem(x[i * width + j] + first);
        if (paired) {
            const vec even = dot(row, column, 0, 2, k), odd = dot(row, column, 1, 2, k);
            plus[j] = even + odd;
            minus[j] = even - odd;
        } else {
            plus[j] = dot(row, column, 0, 1, k);
        }
    }
}

/* One vector of channels: line by line (or pair of lines) of the first side, each at once along the second. */
INLINE void expand_vector(side down, side across, const elem *const *x, int64_t first, real *to, int64_t plane) {
    UNROLL for (int p = 0; p < down.a; p++) {
        const int paired = p > 0 && p <= 2 * down.pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[TRANSFORM_MAX], minus[TRANSFORM_MAX];
        expand_columns(down, across.k, p, paired, x, first, plus, minus);
        to = expand_line(across, plus, to, plane);
        if (paired) to = expand_line(across, minus, to, plane);
    }
}

/* One line of a elements to k elements. */
INLINE void contract_line(side of, const vec *t, vec *s) {
    vec even[TRANSFORM_MAX], odd[TRANSFORM_MAX];
    UNROLL for (int p = 1; p < 1 + 2 * of.pairs; p += 2) {
        even[p] = t[p] + t[p + 1];
        odd[p] = t[p] - t[p + 1];
    }
    UNROLL for (int j = 0; j < of.k; j++) {
        vec sum = {0};
        int empty = 1;
        UNROLL for (int p = 0; p < of.a; p++) {
            const real c = of.matrix[p * of.k + j];
            const int paired = p > 0 && p <= 2 * of.pairs;
            if (c == 0 || (paired && p % 2 == 0)) continue;
            sum = add(sum, empty, c, !paired ? t[p] : j % 2 ? odd[p] : even[p]);
            empty = 0;
        }
        s[j] = sum;
    }
}

/* One vector of channels; the second side first, as planes of one line lie side by side.  unrounded: where pixels go in
 * place of y, or NULL. */
INLINE void contract_vector(side down, side across, const real *planes, int64_t plane, int64_t first, elem *const *y,
                            vec bias, const elem *const *added, int relu, vec *unrounded) {
    const int64_t line = across.a * plane;
    vec lines[TRANSFORM_MAX][TRANSFORM_MAX];
    real *from = (real *)planes;
    UNROLL for (int j = 0; j < across.a; j++) {
        vec column[TRANSFORM_MAX], s[TRANSFORM_MAX];
        UNROLL for (int i = 0; i < down.a; i++) column[i] = load(from + i * line);
        from = next(from, plane);
        contract_line(down, column, s);
        UNROLL for (int i = 0; i < down.k; i++) lines[i][j] = s[i];
    }
    UNROLL for (int i = 0; i < down.k; i++) {
        vec s[TRANSFORM_MAX];
        contract_line(across, lines[i], s);
        UNROLL for (int j = 0; j < across.k; j++) {
            const int at = i * across.k + j;
            vec value = s[j] + bias;
            if (added) value += load_elem(added[at] + first);
            if (unrounded)
                unrounded[at] = value;
            else
                store_elem(y[at] + first, relu ? positive(value) : value);
        }
    }
}

/* While channel c is transformed, the next line of each pixel comes into the first cache: a whole tile and its planes
 * do not fit there. */
INLINE void load_next(const elem *const *x, int pixels, int64_t first, int64_t c, int64_t channels) {
    enum { LINE = 64 / sizeof(elem) };
    if (c % LINE || c + LINE >= channels) return;
    UNROLL for (int i = 0; i < pixels; i++) __builtin_prefetch(x[i] + first + c + LINE);
}

/* Channels [at, at + some) of pixels, fewer than a vector, filled up with zeros. */
INLINE void copy_rest(const elem *const *x, int pixels, int64_t at, int64_t some, elem (*rest)[V],
                      const elem **copies) {
    for (int i = 0; i < pixels; i++) {
        for (int j = 0; j < V; j++) rest[i][j] = j < some ? x[i][at + j] : 0;
        copies[i] = rest[i];
    }
}

/* Loops over the vectors of a range of channels.  The last one, where it is not whole, goes through a copy.  others:
 * the activation, where it is one of those that are done by themselves, or NULL. */
INLINE void expand(side down, side across, const elem *const *x, int64_t first, int64_t channels, real *planes,
                   int64_t plane) {
    elem rest[TRANSFORM_PIXELS][V];
    const elem *copies[TRANSFORM_PIXELS], *const *from = x;
    for (int64_t c = 0; c < channels; c += V) {
        int64_t at = first + c;
        if (c + V > channels) {
            copy_rest(x, down.k * across.k, at, channels - c, rest, copies);
            from = copies;
            at = 0;
        }
        load_next(x, down.k * across.k, first, c, channels);
        expand_vector(down, across, from, at, planes + c, plane);
    }
}

#ifndef DTCONV_BFLOAT16
/* One vector of channels of some pixels, normalized; relu, inside (none of them is outside): constants. */
INLINE void normalize_pixels(int pixels, int relu, int inside, const real *const *x, const real *outside, int64_t at,
                             int64_t count, const DT(conv_normalization) * how, real (*to)[V]) {
    const vec mean = load_part(how->mean + at, count), scale = load_part(how->scale + at, count);
    const vec beta = how->beta ? load_part(how->beta + at, count) : (vec){0};
    UNROLL for (int i = 0; i < pixels; i++) {
        const vec pixel = count == V ? load(x[i] + at) : load_part(x[i] + at, count);
        const vec z = (pixel - mean) * scale + beta, y = relu ? positive(z) : z;
        store(to[i], inside || x[i] != outside ? y : (vec){0});
    }
}

/* As `expand`, from channel 0 on: pixels go through a copy of a vector's channels, which stays in the first cache. */
INLINE void expand_normalized(side down, side across, int relu, int inside, const real *const *x, const real *outside,
                              const DT(conv_normalization) * how, int64_t channels, real *planes, int64_t plane) {
    real pixels[TRANSFORM_PIXELS][V] __attribute__((aligned(VECTOR_BYTES)));
    const real *copies[TRANSFORM_PIXELS];
    const int count = down.k * across.k;
    UNROLL for (int i = 0; i < count; i++) copies[i] = pixels[i];
    for (int64_t c = 0; c < channels; c += V) {
        load_next(x, count, 0, c, channels);
        if (c + V <= channels)
            normalize_pixels(count, relu, inside, x, outside, c, V, how, pixels);
        else
            normalize_pixels(count, relu, inside, x, outside, c, channels - c, how, pixels);
        expand_vector(down, across, copies, 0, planes + c, plane);
    }
}
#endif

/* Activations but ReLU, of the pixels of a tile. */
NOINLINE void activate_pixels(int pixels, dtconv_activation activation, real alpha, vec *values) {
    real *x = (real *)values;
#define EACH(kind)                                                               \
    case kind:                                                                   \
        for (int i = 0; i < pixels * V; i++) x[i] = activate(x[i], kind, alpha); \
        break;
    switch (activation) {
        EACH(DTCONV_RELU6)
        EACH(DTCONV_LEAKY_RELU)
        EACH(DTCONV_SIGMOID)
        EACH(DTCONV_TANH)
        default:
            break;
    }
#undef EACH
}

INLINE void contract(side down, side across, const real *planes, int64_t plane, int64_t first, int64_t channels,
                     elem *const *y, const real *bias, const elem *const *added, int relu,
                     const DT(contract_finish) * others) {
    const int pixels = down.k * across.k;
    elem rest[TRANSFORM_PIXELS][V], *copies[TRANSFORM_PIXELS], *const *to = y;
    real last_bias[V];
    vec unrounded[TRANSFORM_PIXELS];
    const elem *const *from = added;
    for (int64_t c = 0; c < channels; c += V) {
        const int64_t count = channels - c;
        int64_t at = first + c;
        const real *b = bias ? bias + at : NULL;
        if (count < V) {
            for (int i = 0; i < pixels; i++) {
                for (int j = 0; j < V; j++) rest[i][j] = added && j < count ? added[i][at + j] : 0;
                copies[i] = rest[i];
            }
            for (int j = 0; j < V && b; j++) last_bias[j] = j < count ? b[j] : 0;
            to = copies;
            from = added ? (const elem *const *)copies : NULL;
            b = b ? last_bias : NULL;
            at = 0;
        }
        contract_vector(down, across, planes + c, plane, at, to, b ? load(b) : (vec){0}, from, relu,
                        others ? unrounded : NULL);
        if (others) {
            activate_pixels(pixels, others->activation, others->alpha, unrounded);
            for (int i = 0; i < pixels; i++) store_elem(to[i] + at, unrounded[i]);
        }
        if (count < V)
            for (int i = 0; i < pixels; i++)
                for (int j = 0; j < count; j++) y[i][first + c + j] = rest[i][j];
    }
}
