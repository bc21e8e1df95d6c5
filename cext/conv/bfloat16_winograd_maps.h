/* Winograd's maps of images in bfloat16 whose transformed numbers are rounded to bfloat16, for products of pairs.
 *
 * All arithmetic of the maps is float32's.  Sums go to rows of a plane, as products of pairs read them
 * (dtconv_ukr.h): channels side by side where they are summed over channels, tiles in pairs where over tiles.
 */
#ifndef DTCONV_BFLOAT16_WINOGRAD_MAPS_H
#define DTCONV_BFLOAT16_WINOGRAD_MAPS_H

#include "transform.h"
#include "../ukr/bfloat16_kernel.h"

/* Channels [first, first + channels) of the pixels of a tile to `planes`: whole vectors, filled up with zeros. */
typedef void (*HT(expand_row_fn))(const half *const *x, int64_t first, int64_t channels, half *planes, int64_t plane);

/* The same of two tiles, x and y: planes[2 * c] is of channel c of the first, planes[2 * c + 1] of the second. */
typedef void (*HT(expand_pairs_fn))(const half *const *x, const half *const *y, int64_t first, int64_t channels,
                                    half *planes, int64_t plane);

/* Both of pixels that are normalized as they are read, in float32, from channel 0 on; those that are `outside` stay
 * zeros. */
typedef void (*HT(expand_normalized_row_fn))(const half *const *x, const half *outside,
                                             const DT(conv_normalization) * how, int64_t channels, half *planes,
                                             int64_t plane);
typedef void (*HT(expand_normalized_pairs_fn))(const half *const *x, const half *const *y, const half *outside,
                                               const DT(conv_normalization) * how, int64_t channels, half *planes,
                                               int64_t plane);

/* to[2 * i], to[2 * i + 1] = bfloat16(x[i]), bfloat16(y[i]), n numbers. */
typedef void (*HT(round_pairs_fn))(int64_t n, const float *x, const float *y, half *to);

typedef struct {
    HT(expand_row_fn) input;
    HT(expand_normalized_row_fn) normalized; /* input */
    HT(expand_pairs_fn) input_pairs, grad_pairs;
    HT(expand_normalized_pairs_fn) normalized_pairs; /* input_pairs */
    DT(contract_fn) output;
    HT(round_pairs_fn) round_pairs;
} HT(rounded_maps);

/* Of tiles of 2 x 2, 4 x 4 or 2 x 4; the last have no maps of pairs. */
const HT(rounded_maps) * HT(winograd_rounded_maps)(dtconv_tile tile);

#endif
