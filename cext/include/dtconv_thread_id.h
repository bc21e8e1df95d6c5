/* The number of the calling thread in its team, from 0. */
#ifndef DTCONV_THREAD_ID_H
#define DTCONV_THREAD_ID_H

#ifdef _OPENMP
#include <omp.h>
#endif

static inline int dtconv_thread_id(void) {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

#endif
