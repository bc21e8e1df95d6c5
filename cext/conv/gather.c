#include "gather.h"

enum { BLOCK = 256 }; /* pixels that are summed before sums go on in double precision */

size_t DT(gather_parts_bytes)(int64_t parts, int64_t channels) {
    return dtconv_round((size_t)parts * sizeof(int64_t)) +
           dtconv_round((size_t)(parts * 2 * channels) * sizeof(double));
}

size_t DT(gather_sums_bytes)(int64_t width) {
    return 3 * dtconv_round((size_t)width * sizeof(real)) + 2 * dtconv_round((size_t)width * sizeof(double));
}

DT(gather_parts)
DT(gather_parts_on)(void *memory, int64_t parts, int64_t channels, const DT(conv_args) * args, int backward_data) {
    char *place = memory;
    return (DT(gather_parts)){.wanted = backward_data ? args->reductions.sum != NULL : args->mean != NULL,
                              .channels = channels,
                              .parts = parts,
                              .pixels = (int64_t *)place,
                              .sums = (double *)(place + dtconv_round((size_t)parts * sizeof(int64_t))),
                              .args = args,
                              .reductions = backward_data && args->reductions.sum ? &args->reductions : NULL};
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

static void flush(DT(gather_sums) * s) {
    for (int64_t j = 0; j < s->width; j++) {
        s->firsts[j] += (double)s->first[j];
        s->seconds[j] += (double)s->second[j];
        s->first[j] = s->second[j] = 0;
    }
    s->pending = 0;
}

void DT(gather_add)(DT(gather_sums) * s, const DT(gather_parts) * parts, int64_t count, elem *const *pixels,
                    const elem *const *x, int64_t channel, int64_t n, int64_t offset, int64_t column) {
    if (parts->reductions)
        DT(reductions_add)(s, parts->reductions, count, pixels, x, channel, n, offset + channel, column);
    else
        DT(moments_add)(s, count, pixels, channel, n, column);
}

void DT(gather_count)(DT(gather_sums) * s, int64_t count) {
    s->pixels += count;
    s->pending += count;
    if (s->pending >= BLOCK) flush(s);
}

void DT(gather_end)(DT(gather_sums) * s, const DT(gather_parts) * parts, int64_t part, int64_t channel, int64_t n) {
    double *first = parts->sums + part * 2 * parts->channels + channel, *second = first + parts->channels;
    flush(s);
    if (channel == 0) parts->pixels[part] = s->pixels;
    if (parts->reductions) {
        memcpy(first, s->firsts, (size_t)n * sizeof(double));
        memcpy(second, s->seconds, (size_t)n * sizeof(double));
    } else {
        DT(moments_end)(s, n, first, second);
    }
}

void DT(gather_merge)(const DT(gather_parts) * parts) {
    if (parts->reductions)
        DT(reductions_merge)(parts);
    else if (parts->wanted)
        DT(moments_merge)(parts);
}
