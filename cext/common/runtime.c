/* State of the process: the number of threads, the build level; names of activations and losses. */
#include <stdatomic.h>

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
    const int64_t more = multiplications / DTCONV_WORTH_A_THREAD; /* beside the first */
    return more < threads - 1 ? (int)more + 1 : threads;
}

int dtconv_threads_to_move(int64_t elements) {
    enum { MULTIPLICATIONS = 16 };
    return dtconv_threads_for(elements < INT64_MAX / MULTIPLICATIONS ? MULTIPLICATIONS * elements : INT64_MAX);
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

const char *dtconv_level(void) {
#if defined(__AVX512BF16__)
    return "x86-64-v4-bf16";
#elif defined(__AVX512F__)
    return "x86-64-v4";
#elif defined(__AVX2__)
    return "x86-64-v3";
#else
    return "generic";
#endif
}

const char *dtconv_activation_kind(int code, const char **group) {
    static const struct {
        const char *kind, *group;
    } rows[] = {
#define FUSED(NAME, kind, f, gradient) {kind, "fused"},
#define FROM_OUTPUT(NAME, kind, f, gradient) {kind, "from output"},
#define KIND(NAME, kind, f, gradient) {kind, "from input"},
#include "../cuda/activations.h"
    };
    if (code < 0 || code >= DTCONV_ACTIVATIONS) return NULL;
    *group = rows[code].group;
    return rows[code].kind;
}

const char *dtconv_loss_kind(int code) {
    static const char *const kinds[] = {
#define LOSS(NAME, kind, value, slope) kind,
#include "../cuda/elementwise_losses.h"
    };
    return code >= 0 && code < (int)(sizeof kinds / sizeof *kinds) ? kinds[code] : NULL;
}
