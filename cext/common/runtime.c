/* State of the process: the number of threads, the build level. */
#include "dtconv.h"

static int num_threads = 1;
static _Thread_local int alone;

int dtconv_get_num_threads(void) { return alone ? 1 : num_threads; }

void dtconv_compute_alone(void) { alone = 1; }

void dtconv_set_num_threads(int threads) { num_threads = threads > 0 ? threads : 1; }

const char *dtconv_level(void) {
#if defined(__AVX512F__)
    return "x86-64-v4";
#elif defined(__AVX2__)
    return "x86-64-v3";
#else
    return "generic";
#endif
}
