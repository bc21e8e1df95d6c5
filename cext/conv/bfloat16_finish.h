/* A finished tile of float32 sums: bias, residual, activation, rounding to bfloat16, and what is gathered. */
#ifndef DTCONV_BFLOAT16_FINISH_H
#define DTCONV_BFLOAT16_FINISH_H

#include "../gemm/bfloat16_pack.h"

enum { TILE_ROWS = 32, TILE_COLUMNS = 64 };

typedef struct {
    const real *bias; /* of the tile's first column, or NULL */
    dtconv_activation activation;
    real alpha;
} finishing;

/* to[r][j] = act(sums[r * ld + j] + bias[j] + added[r][j]), m rows of n columns; added: NULL for nothing. */
void DT(finish_tile)(const finishing *f, int64_t m, int64_t n, real *sums, int64_t ld, const elem *const *added,
                     elem *const *to);

#endif
