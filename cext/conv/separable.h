/* What the passes of separable convolutions share: see dtconv_separable.h. */
#ifndef DTCONV_CONV_SEPARABLE_H
#define DTCONV_CONV_SEPARABLE_H

#include "depthwise.h"
#include "dtconv_separable.h"

/* The pointwise convolution, whose image is t. */
dtconv_conv DT(separable_pointwise)(const dtconv_conv *p, int64_t co);

/* Channels [first, last) of ci of rows [row, end) of what the depthwise pass s writes: chunk by chunk. */
static inline void DT(separable_rows)(const DT(depthwise_pass) * s, DT(depthwise_ring) * ring, int64_t first,
                                      int64_t last, int64_t row, int64_t end, elem *to, int64_t ld) {
    for (int64_t c = first; c < last; c += s->chunk)
        DT(depthwise_rows_to)(s, ring, c, MIN(s->chunk, last - c), row, end, to + (c - first) * s->mult, ld, NULL);
}

#endif
