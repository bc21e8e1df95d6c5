/* Sizes of the caches that blocks are cut for. */
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "dtconv.h"

enum { LEVELS = 3 };

static _Atomic int64_t known[LEVELS + 1]; /* 0: not asked for yet */

/* What Linux says of the cache of that level that the first processor uses; 0 where it says nothing. */
static int64_t of_linux(int level) {
    char path[64], unit = 0;
    for (int index = 0; index < 8; index++) {
        long long found = 0, size = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        FILE *file = fopen(path, "r");
        if (!file) return 0;
        const int known_level = fscanf(file, "%lld", &found) == 1;
        fclose(file);
        if (!known_level || found != level) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        if (!(file = fopen(path, "r"))) return 0;
        const int read = fscanf(file, "%lld%c", &size, &unit);
        fclose(file);
        if (read >= 1) return size * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
    }
    return 0;
}

static int64_t of_system(int level) {
    static const int64_t usual[] = {0, 32 << 10, 512 << 10, 8 << 20};
    int64_t size = level == 3 ? of_linux(level) : 0; /* the C library adds up all L3 of an AMD processor */
#ifdef _SC_LEVEL1_DCACHE_SIZE
    if (size <= 0)
        size = sysconf(level == 1   ? _SC_LEVEL1_DCACHE_SIZE
                       : level == 2 ? _SC_LEVEL2_CACHE_SIZE
                                    : _SC_LEVEL3_CACHE_SIZE);
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
