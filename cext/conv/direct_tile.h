/* The micro-kernel of the direct convolution (direct_tile.c).  A and B are `real`: images in bfloat16 are widened. */
#ifndef DTCONV_DIRECT_TILE_H
#define DTCONV_DIRECT_TILE_H

#include "dtconv_lines.h"
#include "dtconv_vector.h"

#if defined(__AVX512F__)
enum { DIRECT_MR = 14 };
#elif defined(__AVX2__)
enum { DIRECT_MR = 6 };
#elif defined(__aarch64__)
enum { DIRECT_MR = 8 };
#else
enum { DIRECT_MR = 4 };
#endif
enum { DIRECT_NV = 2, DIRECT_NR = DIRECT_NV * V, DIRECT_TURN = STEPS_OF_TURN(DIRECT_MR) };

/* Steps of a sum that lie at even distances: the first one in A, counted from each row's pointer, and in B. */
typedef struct {
    int64_t a, b, count;
} dtconv_segment;

#include "direct_tile_call.h"
#ifdef DTCONV_BFLOAT16 /* whose sums are float32's in places, too */
#pragma push_macro("elem")
#pragma push_macro("DT")
#undef elem
#undef DT
#define elem real
#define DT RT
#include "direct_tile_call.h"
#undef elem
#undef DT
#pragma pop_macro("elem")
#pragma pop_macro("DT")
#endif

#endif
