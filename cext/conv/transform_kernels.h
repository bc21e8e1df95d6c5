/* The two kernels of the engine, `expand` and `contract`, for matrices that are constants where they are inlined.
 *
 * Points come as one alone (0 or infinity), then pairs (p, -p), then the rest.  In a pair the rows of P differ in the
 * signs of their odd (or even) elements only, so both need one sum over even and one over odd elements:
 *
 *   expand     t[p] = E + O, t[-p] = E - O
 *   contract   s[j] = sum over pairs of P[p][j] * (t[p] + t[-p]) for even j, (t[p] - t[-p]) for odd j
 *
 * A tile has two sides, each with a matrix of its own: `down` along the first index of pixels and points, `across`
 * along the second.  Loops over elements of a line are unrolled and zeros and ones of the matrices drop out: the code
 * is that of transforms written by hand.
 */
#include <stddef.h>

#include "activate.h"
#include "normalize.h"
#include "transform.h"

/* A side: P (a x k), with so many pairs of points. */
typedef struct {
    const real *matrix;
    int a, k, pairs;
} side;

/* sum + c * x, where c is a constant.  What is multiplied and added is rounded once wherever it is inlined, so that a
 * pixel has the same bits whether it was normalized before or is as it is read. */
INLINE vec add(vec sum, int empty, real c, vec x) {
    if (empty) return c == 1 ? x : c == -1 ? -x : c * x;
    return c == 1 ? sum + x : c == -1 ? sum - x : multiply_add((vec){0} + c, x, sum);
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
INLINE void expand_line(side s, const vec *x, vec *t) {
    UNROLL for (int p = 0; p < s.a; p++) {
        const real *row = s.matrix + p * s.k;
        if (p > 0 && p <= 2 * s.pairs) {
            if (p % 2 == 0) continue;
            const vec even = dot(row, x, 0, 2, s.k), odd = dot(row, x, 1, 2, s.k);
            t[p] = even + odd;
            t[p + 1] = even - odd;
        } else {
            t[p] = dot(row, x, 0, 1, s.k);
        }
    }
}

/* One vector of channels of all pixels, and how it is read: as it is, or normalized, with pixels that are `outside` as
 * zeros.  The switches are constants where they are used. */
typedef struct {
    int64_t at, count;            /* channels [at, at + count), filled up with zeros; count: V, a constant, or less */
    int ahead;                    /* the next line is loaded: a whole tile and its planes are too much for L1 */
    int normalizes, relu, inside; /* inside: no pixel is `outside` */
    const elem *outside;
    normalizer by;
} reading;

INLINE reading as_it_is(int64_t at, int64_t count, int ahead) {
    return (reading){.at = at, .count = count, .ahead = ahead};
}

enum { LINE = 64 / sizeof(elem) };

/* Whether channel c of some is the first of a line, and another line comes. */
INLINE int looks_ahead(int64_t c, int64_t channels) { return c % LINE == 0 && c + LINE < channels; }

INLINE vec read_pixel(const reading *how, const elem *x) {
    const vec pixel = load_first(x + how->at, how->count);
    if (how->ahead) __builtin_prefetch(x + how->at + LINE);
    if (!how->normalizes) return pixel;
    return how->inside || x != how->outside ? normalized(how->by, how->relu ? DTCONV_RELU : DTCONV_LINEAR, pixel)
                                            : (vec){0};
}

/* Whether none of n pixels is `outside`. */
INLINE int all_inside(const elem *const *x, int n, const elem *outside) {
    int inside = 1;
    for (int i = 0; i < n; i++) inside &= x[i] != outside;
    return inside;
}

typedef vec square[TRANSFORM_MAX][TRANSFORM_MAX];

/* Along the first side: k x k pixels to a lines of k elements.  They go through memory, and the loops over them are
 * loops: all at once they do not fit into registers, and compilers that see them together store and load them more than
 * once. */
INLINE void expand_columns(side down, int width, const reading *how, const elem *const *x, square to) {
    for (int j = 0; j < width; j++) {
        vec column[TRANSFORM_MAX], t[TRANSFORM_MAX];
        UNROLL for (int i = 0; i < down.k; i++) column[i] = read_pixel(how, x[i * width + j]);
        expand_line(down, column, t);
        UNROLL for (int p = 0; p < down.a; p++) to[p][j] = t[p];
    }
    __asm__ volatile("" : : "r"(to) : "memory");
}

/* The same along both sides, to planes. */
INLINE void expand_vector(side down, side across, reading how, const elem *const *x, real *to, int64_t plane) {
    square half_way;
    expand_columns(down, across.k, &how, x, half_way);
    for (int p = 0; p < down.a; p++) {
        vec t[TRANSFORM_MAX];
        expand_line(across, half_way[p], t);
        UNROLL for (int q = 0; q < across.a; q++) {
            store(to, t[q]);
            to = next(to, plane);
        }
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

/* Where a vector of pixels goes: times scale, plus shift, to y with what is added, or NULL, and perhaps ReLU; or to
 * `unrounded`. */
typedef struct {
    elem *const *y;
    const elem *const *added;
    int64_t first;
    vec scale, shift, *unrounded;
    int relu;
} writing;

/* One line of planes to pixels from `at` on. */
INLINE void contract_row(side across, const vec *line, int at, const writing *to) {
    vec s[TRANSFORM_MAX];
    contract_line(across, line, s);
    UNROLL for (int j = 0; j < across.k; j++) {
        s[j] = multiply_add(s[j], to->scale, to->shift);
        if (to->added) s[j] += load_elem(to->added[at + j] + to->first);
        if (to->unrounded) to->unrounded[at + j] = s[j];
        if (to->relu) s[j] = positive(s[j]);
    }
    if (to->unrounded) return;
    elem *const *y = to->y + at;
    UNROLL for (int j = 0; j + 1 < across.k; j += 2) store_both(y[j] + to->first, s[j], y[j + 1] + to->first, s[j + 1]);
    if (across.k % 2) store_elem(y[across.k - 1] + to->first, s[across.k - 1]);
}

/* One column of planes, `line` elements apart, to column j of lines. */
INLINE void contract_column(side down, const real *from, int64_t line, int j, square lines) {
    vec column[TRANSFORM_MAX], s[TRANSFORM_MAX];
    UNROLL for (int i = 0; i < down.a; i++) column[i] = load(from + i * line);
    contract_line(down, column, s);
    UNROLL for (int i = 0; i < down.k; i++) lines[i][j] = s[i];
}

enum { UNROLLED = 8 }; /* points of a side; longer ones are loops, as in expand_columns */

/* One vector of channels; the second side first, as planes of one line lie side by side. */
INLINE void contract_vector(side down, side across, const real *planes, int64_t plane, writing to) {
    const int64_t line = across.a * plane;
    square lines;
    real *from = (real *)planes;
    if (across.a > UNROLLED) {
        for (int j = 0; j < across.a; j++, from += plane) contract_column(down, from, line, j, lines);
        __asm__ volatile("" : : "r"(lines) : "memory");
        for (int i = 0; i < down.k; i++) contract_row(across, lines[i], i * across.k, &to);
        return;
    }
    UNROLL for (int j = 0; j < across.a; j++) {
        contract_column(down, from, line, j, lines);
        from = next(from, plane);
    }
    UNROLL for (int i = 0; i < down.k; i++) contract_row(across, lines[i], i * across.k, &to);
}

/* Loops over the vectors of a range of channels. */
INLINE void expand(side down, side across, const elem *const *x, int64_t first, int64_t channels, real *planes,
                   int64_t plane) {
    int64_t c = 0;
    for (; c + V <= channels; c += V)
        if (looks_ahead(c, channels))
            expand_vector(down, across, as_it_is(first + c, V, 1), x, planes + c, plane);
        else
            expand_vector(down, across, as_it_is(first + c, V, 0), x, planes + c, plane);
    if (c < channels) expand_vector(down, across, as_it_is(first + c, channels - c, 0), x, planes + c, plane);
}

INLINE reading normalizing(const DT(conv_normalization) * how, int64_t at, int64_t count, int ahead, int relu,
                           int inside, const elem *outside) {
    return (reading){at, count, ahead, 1, relu, inside, outside, normalizer_of(how, at, count)};
}

/* As `expand`, from channel 0 on. */
INLINE void expand_normalized(side down, side across, int relu, int inside, const elem *const *x, const elem *outside,
                              const DT(conv_normalization) * how, int64_t channels, real *planes, int64_t plane) {
#define VECTOR(count, ahead) \
    expand_vector(down, across, normalizing(how, c, count, ahead, relu, inside, outside), x, planes + c, plane)
    int64_t c = 0;
    for (; c + V <= channels; c += V)
        if (looks_ahead(c, channels))
            VECTOR(V, 1);
        else
            VECTOR(V, 0);
    if (c < channels) VECTOR(channels - c, 0);
#undef VECTOR
}

/* The same back to pixels; the last vector, where it is not whole, goes through a copy.  others: the activation, where
 * it is one of those that are done by themselves, or NULL. */
INLINE void contract(side down, side across, const real *planes, int64_t plane, int64_t first, int64_t channels,
                     elem *const *y, const DT(contract_finish) * finish, const elem *const *added, int relu,
                     const DT(contract_finish) * others) {
    const int pixels = down.k * across.k;
    elem rest[TRANSFORM_PIXELS][V], *copies[TRANSFORM_PIXELS], *const *to = y;
    vec unrounded[TRANSFORM_PIXELS];
    const elem *const *from = added;
    for (int64_t c = 0; c < channels; c += V) {
        const int64_t count = channels - c;
        int64_t at = first + c;
        vec shift = finish && finish->bias ? load_part(finish->bias + at, MIN(V, count)) : (vec){0};
        vec scale = (vec){0} + 1;
        if (finish && finish->scale) {
            scale = load_part(finish->scale + at, MIN(V, count));
            shift = multiply_add(shift, scale, load_part(finish->beta + at, MIN(V, count)));
        }
        if (count < V) {
            for (int i = 0; i < pixels; i++) {
                for (int j = 0; j < V; j++) rest[i][j] = added && j < count ? added[i][at + j] : 0;
                copies[i] = rest[i];
            }
            to = copies;
            from = added ? (const elem *const *)copies : NULL;
            at = 0;
        }
        contract_vector(down, across, planes + c, plane,
                        (writing){to, from, at, scale, shift, others ? unrounded : NULL, relu});
        if (others) {
            RT(activate_numbers)(pixels * V, others->activation, others->alpha, (real *)unrounded);
            for (int i = 0; i < pixels; i++) store_elem(to[i] + at, unrounded[i]);
        }
        if (count < V)
            for (int i = 0; i < pixels; i++)
                for (int j = 0; j < count; j++) y[i][first + c + j] = rest[i][j];
    }
}
