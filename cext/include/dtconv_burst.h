/* Rows of an array read in the order of memory, before a kernel reads pieces of many of them.
 *
 * A processor's prefetching follows long runs.  Kernels that keep sums or a panel of some channels in registers read
 * short pieces at the distance of a pixel, which it does not follow: from memory that is two to three times as slow.
 * Loads, not prefetch instructions, which processors drop.
 */
#ifndef DTCONV_BURST_H
#define DTCONV_BURST_H

#include <stdint.h>

enum { DTCONV_BURST = 64 << 10 }; /* bytes: some long runs, and a small part of L2 */

/* One byte of each line of `rows` rows of `bytes`, `pitch` bytes apart. */
static inline void dtconv_read_burst(const void *first, int64_t pitch, int64_t rows, int64_t bytes) {
    const volatile char *row = first;
    for (int64_t i = 0; i < rows; i++, row += pitch)
        for (int64_t at = 0; at < bytes; at += 64) (void)row[at];
}

#endif
