/* Which core a thread is on, whether it runs, and how it gets to another one; Linux. */
#ifndef DTCONV_CORES_H
#define DTCONV_CORES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CORE_WORDS = 16, CORE_BITS = 8 * sizeof(unsigned long) };

/* Processors, as sched_setaffinity has them: those from CORE_WORDS * CORE_BITS on are not moved to. */
typedef struct {
    unsigned long bits[CORE_WORDS];
} core_set;

static inline uint32_t core_here(void) {
    unsigned core = 0;
    syscall(SYS_getcpu, &core, NULL, NULL);
    return core;
}

/* The time that a thread has run so far, ns; -1: it is not known. */
static inline int64_t time_run(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t)) return -1;
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Moves a thread to `core`, or, where `there` is false, away from it, if it may run there.  It may run wherever it
 * could before. */
static inline void move_thread(pid_t thread, uint32_t core, bool there) {
    core_set may, wanted = {{0}};
    const long bytes = core < CORE_WORDS * CORE_BITS ? syscall(SYS_sched_getaffinity, thread, sizeof may, &may) : -1;
    bool any = false;
    for (uint32_t i = 0; (long)i < bytes / (long)sizeof *may.bits; i++) {
        const unsigned long bit = i == core / CORE_BITS ? 1ul << core % CORE_BITS : 0;
        wanted.bits[i] = may.bits[i] & (there ? bit : ~bit);
        any |= wanted.bits[i] != 0;
    }
    if (!any || syscall(SYS_sched_setaffinity, thread, bytes, &wanted)) return;
    syscall(SYS_sched_setaffinity, thread, bytes, &may);
}

#endif
