/* The code of winograd_maps.h, once for any CPU and once with instructions that round.
 *
 * The including file defines before it
 *   OF(name)      names of one version,  TARGET  function attributes that switch instructions on
 *   ROUND(x)      a vector as half_vec
 *   PAIR(x, y)    two vectors as pairs, element i of x before element i of y
 */

/* Elements 0 to a of a line, of k elements. */
TARGET INLINE void OF(line)(const real *matrix, int a, int k, int pairs, const vec *x, vec *t) {
    UNROLL for (int p = 0; p < a; p++) {
        if (p > 0 && p <= 2 * pairs) {
            if (p % 2 == 0) continue;
            const vec even = dot(matrix + p * k, x, 0, 2, k), odd = dot(matrix + p * k, x, 1, 2, k);
            t[p] = even + odd;
            t[p + 1] = even - odd;
        } else {
            t[p] = dot(matrix + p * k, x, 0, 1, k);
        }
    }
}

TARGET INLINE half *OF(store_row)(const real *matrix, int a, int k, int pairs, const vec *x, half *to, int64_t plane) {
    vec t[TRANSFORM_MAX];
    OF(line)(matrix, a, k, pairs, x, t);
    UNROLL for (int p = 0; p < a; p++) {
        *(loose_half_vec *)to = ROUND(t[p]);
        to = next_half(to, plane);
    }
    return to;
}

TARGET INLINE half *OF(store_pairs)(const real *matrix, int a, int k, int pairs, const vec *x, const vec *y, half *to,
                                    int64_t plane) {
    vec t[TRANSFORM_MAX], u[TRANSFORM_MAX];
    OF(line)(matrix, a, k, pairs, x, t);
    OF(line)(matrix, a, k, pairs, y, u);
    UNROLL for (int p = 0; p < a; p++) {
        *(loose_bits_vec *)to = PAIR(t[p], u[p]);
        to = next_half(to, plane);
    }
    return to;
}

/* One vector of channels of one tile, ... */
TARGET INLINE void OF(expand_row)(const real *matrix, int a, int k, int pairs, const half *const *x, int64_t first,
                                  half *to, int64_t plane) {
    UNROLL for (int p = 0; p < a; p++) {
        const int paired = p > 0 && p <= 2 * pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[TRANSFORM_MAX], minus[TRANSFORM_MAX];
        expand_columns(matrix, k, p, paired, x, first, plus, minus);
        to = OF(store_row)(matrix, a, k, pairs, plus, to, plane);
        if (paired) to = OF(store_row)(matrix, a, k, pairs, minus, to, plane);
    }
}

/* ... or of two. */
TARGET INLINE void OF(expand_pair)(const real *matrix, int a, int k, int pairs, const half *const *x,
                                   const half *const *y, int64_t first, half *to, int64_t plane) {
    UNROLL for (int p = 0; p < a; p++) {
        const int paired = p > 0 && p <= 2 * pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[2][TRANSFORM_MAX], minus[2][TRANSFORM_MAX];
        expand_columns(matrix, k, p, paired, x, first, plus[0], minus[0]);
        expand_columns(matrix, k, p, paired, y, first, plus[1], minus[1]);
        to = OF(store_pairs)(matrix, a, k, pairs, plus[0], plus[1], to, plane);
        if (paired) to = OF(store_pairs)(matrix, a, k, pairs, minus[0], minus[1], to, plane);
    }
}

TARGET INLINE void OF(rows)(const real *matrix, int a, int k, int pairs, const half *const *x, int64_t first,
                            int64_t channels, half *planes, int64_t plane) {
    half rest[TRANSFORM_PIXELS][V];
    const half *copies[TRANSFORM_PIXELS];
    int64_t c = 0;
    for (; c + V <= channels; c += V) OF(expand_row)(matrix, a, k, pairs, x, first + c, planes + c, plane);
    if (c == channels) return;
    copy_rest(x, k * k, first + c, channels - c, rest, copies);
    OF(expand_row)(matrix, a, k, pairs, copies, 0, planes + c, plane);
}

TARGET INLINE void OF(both)(const real *matrix, int a, int k, int pairs, const half *const *x, const half *const *y,
                            int64_t first, int64_t channels, half *planes, int64_t plane) {
    half rest[2][TRANSFORM_PIXELS][V];
    const half *copies[2][TRANSFORM_PIXELS];
    int64_t c = 0;
    for (; c + V <= channels; c += V) OF(expand_pair)(matrix, a, k, pairs, x, y, first + c, planes + 2 * c, plane);
    if (c == channels) return;
    copy_rest(x, k * k, first + c, channels - c, rest[0], copies[0]);
    copy_rest(y, k * k, first + c, channels - c, rest[1], copies[1]);
    OF(expand_pair)(matrix, a, k, pairs, copies[0], copies[1], 0, planes + 2 * c, plane);
}

TARGET static void OF(round_pairs)(int64_t n, const float *x, const float *y, half *to) {
    int64_t i = 0;
    for (; i + V <= n; i += V) *(loose_bits_vec *)(to + 2 * i) = PAIR(load(x + i), load(y + i));
    for (; i < n; i++) to[2 * i] = narrow(x[i]), to[2 * i + 1] = narrow(y[i]);
}

#define MAPS_OF(size, m, a, of_input, of_output)                                                             \
    TARGET static void OF(input_##size)(const half *const *x, int64_t first, int64_t channels, half *planes, \
                                        int64_t plane) {                                                     \
        OF(rows)(input_##size, a, a, of_input, x, first, channels, planes, plane);                           \
    }                                                                                                        \
    TARGET static void OF(input_pairs_##size)(const half *const *x, const half *const *y, int64_t first,     \
                                              int64_t channels, half *planes, int64_t plane) {               \
        OF(both)(input_##size, a, a, of_input, x, y, first, channels, planes, plane);                        \
    }                                                                                                        \
    TARGET static void OF(grad_pairs_##size)(const half *const *x, const half *const *y, int64_t first,      \
                                             int64_t channels, half *planes, int64_t plane) {                \
        OF(both)(output_##size, a, m, of_output, x, y, first, channels, planes, plane);                      \
    }

MAPS_OF(2, 2, 4, 1, 1)
MAPS_OF(rounded, 4, 6, 2, 2)
#undef MAPS_OF

#define ROW(size) {OF(input_##size), OF(input_pairs_##size), OF(grad_pairs_##size), contract_##size, OF(round_pairs)}
static const HT(rounded_maps) OF(maps)[] = {ROW(2), ROW(rounded)};
#undef ROW
