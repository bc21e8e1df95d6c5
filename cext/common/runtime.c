/* State of the process: the number of threads, the build level. */
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#include <stdatomic.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "dtconv.h"

static _Atomic int num_threads = 1;
static _Thread_local int alone;
static _Thread_local int held; /* 0: not held */

int dtconv_get_num_threads(void) {
    if (alone) return 1;
    return held ? held : atomic_load_explicit(&num_threads, memory_order_relaxed);
}

void dtconv_compute_alone(void) { alone = 1; }

static int limited(int threads) {
    return threads < 1 ? 1 : threads > DTCONV_MOST_THREADS ? DTCONV_MOST_THREADS : threads;
}

void dtconv_set_num_threads(int threads) {
    atomic_store_explicit(&num_threads, limited(threads), memory_order_relaxed);
}

int dtconv_hold_num_threads(int threads) {
    const int before = held;
    held = threads ? limited(threads) : 0;
    return before;
}

/* Forks.  GNU's OpenMP keeps the threads of a team for the next one; a forked child has none of them, but would wait
 * for them for ever.  So they are sent home before a fork, by the thread that forks, whose team they are: parent and
 * child make new ones when they need them.  Where that cannot be done (an old OpenMP, a fork from inside a parallel
 * region), the child goes on with one thread, for which nobody is waited.  LLVM's OpenMP looks
 * after forks itself. */
#if defined(_OPENMP) && !defined(__clang__) && __GNUC__ >= 4
static _Thread_local int team_is_lost;

static void before_fork(void) {
#if __GNUC__ >= 9
    team_is_lost = omp_in_parallel() || omp_pause_resource_all(omp_pause_soft);
#else
    team_is_lost = 1;
#endif
}

static void in_child(void) {
    if (!team_is_lost) return;
    dtconv_set_num_threads(1);
    held = held ? 1 : 0;
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(before_fork, NULL, in_child); }
#endif

const char *dtconv_level(void) {
#if defined(__AVX512F__)
    return "x86-64-v4";
#elif defined(__AVX2__)
    return "x86-64-v3";
#else
    return "generic";
#endif
}
