/* Sizes of the caches that blocks are cut for. */
#include <stdatomic.h>
#include <unistd.h>

#include "dtconv.h"

enum { LEVELS = 3 };

static _Atomic int64_t known[LEVELS + 1]; /* 0: not asked for yet */

static int64_t of_system(int level) {
    static const int64_t usual[] = {0, 32 << 10, 512 << 10, 8 << 20};
    int64_t size = 0;
#ifdef _SC_LEVEL1_DCACHE_SIZE
    size = sysconf(level == 1 ? _SC_LEVEL1_DCACHE_SIZE : level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
#endif
    return size > 0 ? size : usual[level];
}

int64_t dtconv_cache_bytes(int level) {
    int64_t size = atomic_load_explicit(&known[level], memory_order_relaxed);
    if (!size) dtconv_set_cache_bytes(level, size = of_system(level));
    return size;
}

void dtconv_set_cache_bytes(int level, int64_t bytes) {
    atomic_store_explicit(&known[level], bytes, memory_order_relaxed);
}
