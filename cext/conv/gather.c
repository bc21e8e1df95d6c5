#include "gather.h"

enum { BLOCK = 256 }; /* pixels that are summed before sums go on in double precision */

size_t DT(gather_parts_bytes)(int64_t parts, int64_t channels) {
    return dtconv_round((size_t)parts * sizeof(int64_t)) +
           dtconv_round((size_t)(parts * 2 * channels) * sizeof(double));
}

size_t DT(gather_sums_bytes)(int64_t width) {
    return 3 * dtconv_round((size_t)width * sizeof(real)) + 2 * dtconv_round((size_t)width * sizeof(double));
}

DT(gather_parts) DT(gather_parts_on)(void *memory, int64_t parts, int64_t channels) {
    char *place = memory;
    return (DT(gather_parts)){channels, parts, (int64_t *)place,
                              (double *)(place + dtconv_round((size_t)parts * sizeof(int64_t)))};
}

DT(gather_sums) DT(gather_sums_on)(void *memory, int64_t width) {
    const size_t step = dtconv_round((size_t)width * sizeof(real)), wide = dtconv_round((size_t)width * sizeof(double));
    char *place = memory;
    return (DT(gather_sums)){.width = width,
                             .center = (real *)place,
                             .first = (real *)(place + step),
                             .second = (real *)(place + 2 * step),
                             .firsts = (double *)(place + 3 * step),
                             .seconds = (double *)(place + 3 * step + wide)};
}

void DT(gather_begin)(DT(gather_sums) * s) {
    s->pixels = s->pending = 0;
    memset(s->first, 0, (size_t)s->width * sizeof(real));
    memset(s->second, 0, (size_t)s->width * sizeof(real));
    memset(s->firsts, 0, (size_t)s->width * sizeof(double));
    memset(s->seconds, 0, (size_t)s->width * sizeof(double));
}

void DT(gather_flush)(DT(gather_sums) * s) {
    for (int64_t j = 0; j < s->width; j++) {
        s->firsts[j] += (double)s->first[j];
        s->seconds[j] += (double)s->second[j];
        s->first[j] = s->second[j] = 0;
    }
    s->pending = 0;
}

void DT(gather_count)(DT(gather_sums) * s, int64_t count) {
    s->pixels += count;
    s->pending += count;
    if (s->pending >= BLOCK) DT(gather_flush)(s);
}
