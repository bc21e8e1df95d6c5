/* The contract of the C layer: status codes, scalar types, threads.
 *
 * Everything here is plain C11 + OpenMP and knows nothing of Python.  Rules that hold for every function:
 *  - it takes sizes, arrays and a workspace that the caller owns, and returns a dtconv_status;
 *  - it never allocates, prints or exits;
 *  - arrays, and matrices whose sizes a *_workspace function is asked with, have at most DTCONV_MOST_ELEMENTS elements
 *    (dtconv_limits.h); sizes that no array has (windows, strides, padding) it checks itself;
 *  - images are NHWC, filters HWIO.  An image argument comes as a pointer and a leading dimension `ld*`: the distance,
 *    in elements, between two neighbouring pixels.  ld == channels for a dense tensor, larger for a slice of channels
 *    (how concatenations are written and read without a copy);
 *  - results do not depend on the number of threads unless its comment says so.
 *
 * Each function exists for float and for double, and where images may be in bfloat16 for that, too.  A source file is
 * written once with `real`, `elem` and DT(name) and compiled once per precision: DT(gemm) is dtconv_sgemm or
 * dtconv_dgemm (dtconv_real.h).
 */
#ifndef DTCONV_H
#define DTCONV_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    DTCONV_OK = 0,
    DTCONV_UNSUPPORTED = 1, /* the algorithm does not do this problem */
    DTCONV_WORKSPACE = 2,   /* the workspace is smaller than the matching *_workspace function says */
    DTCONV_ARGUMENT = 3,    /* sizes or strides that contradict each other */
    DTCONV_KERNEL = 4,      /* no micro-kernel could be chosen (pydtconv.microkernels says why) */
} dtconv_status;

/* Iterations that a thread takes at once of a loop with `count`, for schedule(dynamic, dtconv_piece(count)).  Where
 * others use a core too, its thread does less, and nobody waits for it long. */
int64_t dtconv_piece(int64_t count);

/* Threads used by every parallel function: one value for the process, 1 to DTCONV_MOST_THREADS. */
enum { DTCONV_MOST_THREADS = 1024 };
int dtconv_get_num_threads(void);
void dtconv_set_num_threads(int threads);
/* Threads that are worth starting for so many multiplications: a team costs what some hundred thousands take. */
int dtconv_threads_for(int64_t multiplications);
/* ... and to read and write so many elements, each of which takes as long as 16 multiplications. */
int dtconv_threads_to_move(int64_t elements);
/* How long waiting threads spin before they sleep.  -1: OpenMP's library decides, there is no team of our own
 * (team.c). */
int64_t dtconv_spin_ns(void);
/* Threads of the calling thread's team that sleep spin again, where others leave them their cores: there will soon be
 * work for them.  Waking them takes longer than a small function. */
void dtconv_rouse_threads(void);
/* From now on the calling thread has no team: for it the number of threads is 1, whatever is set. */
void dtconv_compute_alone(void);

/* From now on the functions that the calling thread calls use so many threads, whatever the process's value becomes;
 * 0: the process's value again.  Returns what was held before, for whoever puts it back.  A workspace is asked for and
 * used under one hold: then it has the size that is needed, even where another thread sets the number meanwhile. */
int dtconv_hold_num_threads(int threads);

/* Bytes of the data cache of a level, 1 to 3, that a core has or shares: as the system says, else as is usual.  Blocks
 * are cut for them.  Set them before the first workspace is asked for; 0: as the system says. */
int64_t dtconv_cache_bytes(int level);
void dtconv_set_cache_bytes(int level, int64_t bytes);

/* Which build of the library this is: "generic", "x86-64-v3" (AVX2 + FMA), "x86-64-v4" (AVX-512) or
 * "x86-64-v4-bf16" (AVX-512 BF16). */
const char *dtconv_level(void);

/* Activations and other functions of one argument, by the table.  Operators fuse those up to TANH; batch normalization,
 * and what reads through it, SILU and HARD_SILU besides.  alpha: the slope of LEAKY_RELU below zero. */
typedef enum {
#define KIND(NAME, kind, f, gradient) DTCONV_##NAME,
#include "../cuda/activations.h"
    DTCONV_ACTIVATIONS
} dtconv_activation;

/* The kind of a code, as Python calls it, and whether it is "fused", "from output" or "from input"; NULL behind the
 * last one. */
const char *dtconv_activation_kind(int code, const char **group);

/* The kind of loss of a code of dtconv_loss; NULL behind the last one. */
const char *dtconv_loss_kind(int code);

/* Sets a counter that other processes read, after everything that was written before, by all threads of this one. */
void dtconv_publish(int64_t *counter, int64_t value);

/* The least of counters `stride` apart; what their processes wrote before they set them can then be read. */
int64_t dtconv_least(int64_t count, int64_t stride, const int64_t *counters);

#endif
