/* The code of winograd_maps.h, once for any CPU and once with instructions that round.
 *
 * The including file defines before it
 *   OF(name)      names of one version,  TARGET  function attributes that switch instructions on
 *   ROUND(x)      a vector as half_vec
 *   PAIR(x, y)    two vectors as pairs, element i of x before element i of y
 *   STORE(y, x)   rounds a vector of an image and stores it
 */

/* Elements 0 to a of a line, of k elements. */
TARGET INLINE void OF(line)(side s, const vec *x, vec *t) {
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

TARGET INLINE half *OF(store_row)(side s, const vec *x, half *to, int64_t plane) {
    vec t[TRANSFORM_MAX];
    OF(line)(s, x, t);
    UNROLL for (int p = 0; p < s.a; p++) {
        *(loose_half_vec *)to = ROUND(t[p]);
        to = next_half(to, plane);
    }
    return to;
}

TARGET INLINE half *OF(store_pairs)(side s, const vec *x, const vec *y, half *to, int64_t plane) {
    vec t[TRANSFORM_MAX], u[TRANSFORM_MAX];
    OF(line)(s, x, t);
    OF(line)(s, y, u);
    UNROLL for (int p = 0; p < s.a; p++) {
        *(loose_bits_vec *)to = PAIR(t[p], u[p]);
        to = next_half(to, plane);
    }
    return to;
}

/* One vector of channels of one tile, ... */
TARGET INLINE void OF(expand_row)(side down, side across, const half *const *x, int64_t first, half *to,
                                  int64_t plane) {
    UNROLL for (int p = 0; p < down.a; p++) {
        const int paired = p > 0 && p <= 2 * down.pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[TRANSFORM_MAX], minus[TRANSFORM_MAX];
        expand_columns(down, across.k, p, paired, x, first, plus, minus);
        to = OF(store_row)(across, plus, to, plane);
        if (paired) to = OF(store_row)(across, minus, to, plane);
    }
}

/* ... or of two. */
TARGET INLINE void OF(expand_pair)(side s, const half *const *x, const half *const *y, int64_t first, half *to,
                                   int64_t plane) {
    UNROLL for (int p = 0; p < s.a; p++) {
        const int paired = p > 0 && p <= 2 * s.pairs;
        if (paired && p % 2 == 0) continue;
        vec plus[2][TRANSFORM_MAX], minus[2][TRANSFORM_MAX];
        expand_columns(s, s.k, p, paired, x, first, plus[0], minus[0]);
        expand_columns(s, s.k, p, paired, y, first, plus[1], minus[1]);
        to = OF(store_pairs)(s, plus[0], plus[1], to, plane);
        if (paired) to = OF(store_pairs)(s, minus[0], minus[1], to, plane);
    }
}

TARGET INLINE void OF(rows)(side down, side across, const half *const *x, int64_t first, int64_t channels, half *planes,
                            int64_t plane) {
    half rest[TRANSFORM_PIXELS][V];
    const half *copies[TRANSFORM_PIXELS];
    int64_t c = 0;
    for (; c + V <= channels; c += V) OF(expand_row)(down, across, x, first + c, planes + c, plane);
    if (c == channels) return;
    copy_rest(x, down.k * across.k, first + c, channels - c, rest, copies);
    OF(expand_row)(down, across, copies, 0, planes + c, plane);
}

TARGET INLINE void OF(both)(side s, const half *const *x, const half *const *y, int64_t first, int64_t channels,
                            half *planes, int64_t plane) {
    half rest[2][TRANSFORM_PIXELS][V];
    const half *copies[2][TRANSFORM_PIXELS];
    int64_t c = 0;
    for (; c + V <= channels; c += V) OF(expand_pair)(s, x, y, first + c, planes + 2 * c, plane);
    if (c == channels) return;
    copy_rest(x, s.k * s.k, first + c, channels - c, rest[0], copies[0]);
    copy_rest(y, s.k * s.k, first + c, channels - c, rest[1], copies[1]);
    OF(expand_pair)(s, copies[0], copies[1], 0, planes + 2 * c, plane);
}

/* Whole vectors of pixels without an activation but ReLU, as `contract`. */
TARGET INLINE void OF(pixels)(side down, side across, const real *planes, int64_t plane, int64_t first,
                              int64_t channels, half *const *y, const real *bias, const half *const *added, int relu) {
    for (int64_t c = 0; c < channels; c += V) {
        vec values[TRANSFORM_PIXELS];
        const vec shift = bias ? load(bias + first + c) : (vec){0};
        contract_vector(down, across, planes + c, plane, first + c, y, shift, added, 0, values);
        UNROLL for (int i = 0; i < down.k * across.k; i++)
            STORE(y[i] + first + c, relu ? positive(values[i]) : values[i]);
    }
}

/* The map to pixels: whole vectors of most kinds here, the rest as everywhere. */
TARGET INLINE void OF(contract)(side down, side across, const real *planes, int64_t plane, int64_t first,
                                int64_t channels, half *const *y, const DT(contract_finish) * to) {
    const int64_t whole = channels / V * V, rest = channels - whole;
    const int relu = to->activation == DTCONV_RELU, other = !relu && to->activation != DTCONV_LINEAR;
    if (other)
        contract(down, across, planes, plane, first, channels, y, to->bias, to->added, 0, to);
    else if (to->added)
        OF(pixels)(down, across, planes, plane, first, whole, y, to->bias, to->added, relu);
    else
        OF(pixels)(down, across, planes, plane, first, whole, y, to->bias, NULL, relu);
    if (rest && !other)
        contract(down, across, planes + whole, plane, first + whole, rest, y, to->bias, to->added, relu, NULL);
}

TARGET static void OF(round_pairs)(int64_t n, const float *x, const float *y, half *to) {
    int64_t i = 0;
    for (; i + V <= n; i += V) *(loose_bits_vec *)(to + 2 * i) = PAIR(load(x + i), load(y + i));
    for (; i < n; i++) to[2 * i] = narrow(x[i]), to[2 * i + 1] = narrow(y[i]);
}

#define IMAGES_OF(name, input, output, down, across)                                                         \
    TARGET static void OF(input_##name)(const half *const *x, int64_t first, int64_t channels, half *planes, \
                                        int64_t plane) {                                                     \
        OF(rows)(input##_##down, input##_##across, x, first, channels, planes, plane);                       \
    }                                                                                                        \
    TARGET static void OF(output_##name)(const real *planes, int64_t plane, int64_t first, int64_t channels, \
                                         half *const *y, const DT(contract_finish) * to) {                   \
        OF(contract)(output##_##down, output##_##across, planes, plane, first, channels, y, to);             \
    }
#define PAIRS_OF(m)                                                                                                    \
    TARGET static void OF(input_pairs_##m)(const half *const *x, const half *const *y, int64_t first,                  \
                                           int64_t channels, half *planes, int64_t plane) {                            \
        OF(both)(INPUT_##m, x, y, first, channels, planes, plane);                                                     \
    }                                                                                                                  \
    TARGET static void OF(grad_pairs_##m)(const half *const *x, const half *const *y, int64_t first, int64_t channels, \
                                          half *planes, int64_t plane) {                                               \
        OF(both)(OUTPUT_##m, x, y, first, channels, planes, plane);                                                    \
    }

IMAGES_OF(2, INPUT, OUTPUT, 2, 2)
IMAGES_OF(4, INPUT, OUTPUT, 4, 4)
IMAGES_OF(wide, INPUT, OUTPUT, 2, 4)
PAIRS_OF(2)
PAIRS_OF(4)
#undef IMAGES_OF
#undef PAIRS_OF

static const HT(rounded_maps) OF(maps)[] = {
    {OF(input_2), OF(input_pairs_2), OF(grad_pairs_2), OF(output_2), OF(round_pairs)},
    {OF(input_4), OF(input_pairs_4), OF(grad_pairs_4), OF(output_4), OF(round_pairs)},
    {OF(input_wide), NULL, NULL, OF(output_wide), OF(round_pairs)},
};
