/* Counters in memory that processes share. */
#include "dtconv.h"

void dtconv_publish(int64_t *counter, int64_t value) { __atomic_store_n(counter, value, __ATOMIC_SEQ_CST); }

int64_t dtconv_least(int64_t count, int64_t stride, const int64_t *counters) {
    int64_t least = INT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = __atomic_load_n(counters + i * stride, __ATOMIC_ACQUIRE);
        least = value < least ? value : least;
    }
    return least;
}
