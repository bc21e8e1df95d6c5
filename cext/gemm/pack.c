/* Packing of plain strided matrices into panels.
 *
 *   A: panel r holds rows [r * MR, r * MR + MR):     dst[p * MR + i] = A(i, p)
 *   B: panel c holds columns [c * NR, c * NR + NR):  dst[p * NR + j] = B(p, j)
 *
 * Both are the same walk over (width x depth) with other names for the strides.  Where elements of one step are
 * neighbours in memory it copies rows; where the steps are, it transposes.
 */
#include <string.h>

#include "dtconv_real.h"
#include "dtconv_gemm.h"

/* One full panel whose `width` elements per step are contiguous. */
static inline __attribute__((always_inline)) void copy_panel(const real *src, int64_t ld, int64_t width, int64_t k,
                                                             real *dst) {
    for (int64_t p = 0; p < k; p++, src += ld, dst += width)
        for (int64_t j = 0; j < width; j++) dst[j] = src[j];
}

/* One panel of `used` <= `width` elements per step: element (p, j) at src[j * across + p * along]. */
static void any_panel(const real *src, int64_t across, int64_t along, int64_t used, int64_t width, int64_t k,
                      real *dst) {
    enum { STEPS = 16 }; /* a line of each source row is read out before the next STEPS of the panel are written */
    for (int64_t p0 = 0; p0 < k; p0 += STEPS) {
        const int64_t steps = k - p0 < STEPS ? k - p0 : STEPS;
        real *to = dst + p0 * width;
        for (int64_t j = 0; j < used; j++) {
            const real *from = src + j * across + p0 * along;
            if (along == 1 && steps == STEPS)
                for (int p = 0; p < STEPS; p++) to[p * width + j] = from[p];
            else
                for (int64_t p = 0; p < steps; p++) to[p * width + j] = from[p * along];
        }
        for (int64_t p = 0; p < steps && used < width; p++)
            memset(to + p * width + used, 0, (size_t)(width - used) * sizeof(real));
    }
}

static void pack(const real *src, int64_t across, int64_t along, int64_t n, int64_t k, int64_t width, real *dst) {
    for (int64_t j = 0; j < n; j += width, src += width * across, dst += width * k) {
        const int64_t used = n - j < width ? n - j : width;
        if (across != 1 || used < width)
            any_panel(src, across, along, used, width, k, dst);
        else if (width == 32)
            copy_panel(src, along, 32, k, dst);
        else if (width == 16)
            copy_panel(src, along, 16, k, dst);
        else if (width == 8)
            copy_panel(src, along, 8, k, dst);
        else
            copy_panel(src, along, width, k, dst);
    }
}

void DT(pack_a_matrix)(const void *context, int64_t i, int64_t m, int64_t p, int64_t k, int64_t mr, real *dst) {
    const DT(matrix) *a = context;
    pack(a->data + i * a->rs + p * a->cs, a->rs, a->cs, m, k, mr, dst);
}

void DT(pack_b_matrix)(const void *context, int64_t p, int64_t k, int64_t j, int64_t n, int64_t nr, real *dst) {
    const DT(matrix) *b = context;
    pack(b->data + p * b->rs + j * b->cs, b->cs, b->rs, n, k, nr, dst);
}
