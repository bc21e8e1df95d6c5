/* How large sizes may be.  Within these limits, sums and products of sizes fit into 64 bits and coordinates into 32.
 * pydtconv/extents.py has the same. */
#ifndef DTCONV_LIMITS_H
#define DTCONV_LIMITS_H

#include <stdint.h>

/* The largest extent, step or padding; the most elements of an array; the most products of a pass. */
#define DTCONV_LARGEST ((int64_t)INT32_MAX)
#define DTCONV_MOST_ELEMENTS ((int64_t)1 << 50)
#define DTCONV_MOST_PRODUCTS ((int64_t)1 << 62)

/* Whether all of `count` sizes are from `least` to DTCONV_LARGEST. */
static inline int dtconv_are_sizes(int64_t least, int count, const int64_t *sizes) {
    for (int i = 0; i < count; i++)
        if (sizes[i] < least || sizes[i] > DTCONV_LARGEST) return 0;
    return 1;
}

/* Whether the product of `count` numbers of 0 or more is at most `most`. */
static inline int dtconv_fit_within(int64_t most, int count, const int64_t *sizes) {
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(product, sizes[i], &product) || product > most) return 0;
    return 1;
}

/* The same, of numbers that are given one by one. */
#define DTCONV_ARE_SIZES(least, ...) \
    dtconv_are_sizes(least, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})
#define DTCONV_FIT_WITHIN(most, ...) \
    dtconv_fit_within(most, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

#endif
