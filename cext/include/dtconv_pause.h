/* How long a waiting thread's pause is.  Header only: asked before the library, and OpenMP with it, is loaded. */
#ifndef DTCONV_PAUSE_H
#define DTCONV_PAUSE_H

#include <time.h>

/* Seconds of a round of OpenMP's spinning, 10 to 70 ns: the least of some tries. */
static inline double dtconv_pause_seconds(void) {
    enum { ROUNDS = 100, TRIES = 5 };
    double least = 1;
    for (int i = 0; i < TRIES; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int j = 0; j < ROUNDS; j++) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#else
            __asm__ volatile("" : : : "memory");
#endif
        }
        clock_gettime(CLOCK_MONOTONIC, &to);
        const double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
        if (seconds < least) least = seconds;
    }
    return least / ROUNDS;
}

#endif
