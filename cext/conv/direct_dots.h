/* The tile of the direct convolution where few channels are written (direct_dots.c). */
#ifndef DTCONV_DIRECT_DOTS_H
#define DTCONV_DIRECT_DOTS_H

#include "direct.h"

enum { DIRECT_DOTS = 8 }; /* channels that are written, at most */

/* As direct_run_tile with all columns, n <= DIRECT_DOTS: column j of B at b + j * ld, of a segment from segment.b on;
 * a_step is 1. */
void DT(direct_run_dots)(const DT(direct_tile) * t, int64_t m, int64_t n, const real *b, int64_t ld, const real *bias);

#endif
