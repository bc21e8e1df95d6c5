/* State of the process: the number of threads, the build level. */
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <sys/resource.h>
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

int64_t dtconv_piece(int64_t count) {
    enum { PIECES = 8 }; /* for each thread: to fetch the number of the next one costs nothing beside its work */
    return count / (PIECES * (int64_t)dtconv_get_num_threads()) + 1;
}

/* Multiplications that are worth a thread: about 4 us.  Builds that look for races take 1. */
#ifndef DTCONV_WORTH_A_THREAD
#define DTCONV_WORTH_A_THREAD (1 << 18)
#endif

int dtconv_threads_for(int64_t multiplications) {
    const int threads = dtconv_get_num_threads();
    const int64_t useful = multiplications / DTCONV_WORTH_A_THREAD + 1;
    return useful < threads ? (int)useful : threads;
}

void dtconv_compute_alone(void) { alone = 1; }

static int limited(int threads) {
    return threads < 1 ? 1 : threads > DTCONV_MOST_THREADS ? DTCONV_MOST_THREADS : threads;
}

void dtconv_set_num_threads(int threads) {
    atomic_store_explicit(&num_threads, limited(threads), memory_order_relaxed);
}

/* GNU's OpenMP ends the process where it cannot start a thread.  So where the process's memory is limited, threads that
 * do nothing try whether there is room for those of a team, before the first team of that size; where there is not,
 * fewer compute.  The C library keeps the stacks of what has been tried for those that follow. */
#if defined(_OPENMP) && defined(__unix__) && !defined(__clang__)
static _Thread_local int team; /* threads that this thread's team has had, or may have */

static void *pass(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

static int startable(int threads) {
    struct rlimit limit;
    if (threads <= team || alone) return threads;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return team = threads;
    pthread_t others[DTCONV_MOST_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int count = 0, arrived = 0;
    pthread_mutex_lock(&gate); /* all are there at once */
    while (count + 1 < threads && !pthread_create(&others[count], NULL, pass, &gate)) count++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++) pthread_join(others[i], NULL);
    if (count < threads - 1) count -= count > 0; /* the team wants a little memory besides */
    if (count + 1 > team) {
#pragma omp parallel num_threads(count + 1) reduction(+ : arrived) /* before anybody else takes the memory */
        arrived++;
        team = arrived;
    }
    return team;
}
#else
static int startable(int threads) { return threads; }
#endif

int dtconv_hold_num_threads(int threads) {
    const int before = held;
    held = threads ? startable(limited(threads)) : 0;
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
    team = 0;
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
