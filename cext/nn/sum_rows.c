/* Sums of rows of memory that processes share; see cext/include/dtconv_wire.h.  Bound by memory. */
#include "dtconv_wire.h"

dtconv_status DT(sum_rows)(int64_t count, int64_t n, const real *x, int64_t ld, real *y) {
    enum { BLOCK = 2048 };
    if (count < 1 || (count > 1 && ld < n)) return DTCONV_ARGUMENT;
#pragma omp parallel for num_threads(dtconv_get_num_threads()) schedule(static) if (n >= 32768)
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int64_t size = n - start < BLOCK ? n - start : BLOCK;
        const real *from = x + start;
        real total[BLOCK], *to = y + start;
        for (int64_t i = 0; i < size; i++) total[i] = from[i];
        for (int64_t p = 1; p < count; p++)
            for (int64_t i = 0; i < size; i++) total[i] += from[p * ld + i];
        for (int64_t i = 0; i < size; i++) to[i] = total[i];
    }
    return DTCONV_OK;
}
