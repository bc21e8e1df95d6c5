/* All passes of all convolution algorithms, and the kernels of races_nn.h, under ThreadSanitizer: alone on several
 * threads, and two callers at once while a third thread sets the number of threads.  Results must have the same bits
 * throughout.  Before that, each micro-kernel that this CPU runs, forced, against the portable one. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtconv_both.h"
#include "dtconv_cpu.h"
#include "dtconv_gemm_mixed.h"

#define NAMES(algorithm, pass) {#algorithm, #pass},
static const char *const passes[][2] = {DTCONV_CONV_PASSES(NAMES)};
static const char *const passes_of_bfloat16[][2] = {DTCONV_CONV_BFLOAT16_PASSES(NAMES)};
enum { FLOATS = sizeof passes / sizeof *passes, ROUNDS = 3 };
enum { PASSES = FLOATS + sizeof passes_of_bfloat16 / sizeof *passes_of_bfloat16 };

/* n ih iw ci oh ow co kh kw sh sw dil_h dil_w pad_t pad_l groups ldx ldy id od kd sd dil_d pad_f basis_h basis_w */
static const dtconv_conv problems[] = {
    {2, 12, 10, 20, 12, 10, 24, 3, 3, 1, 1, 1, 1, 1, 1, 1, 20, 24, 1, 1, 1, 1, 1, 0, 0, 0},
    {3, 9, 11, 12, 5, 6, 18, 3, 3, 2, 2, 1, 1, 1, 1, 3, 15, 20, 1, 1, 1, 1, 1, 0, 0, 0},
    {4, 8, 8, 40, 8, 8, 16, 1, 1, 1, 1, 1, 1, 0, 0, 1, 40, 16, 1, 1, 1, 1, 1, 0, 0, 0},
    {2, 9, 9, 16, 9, 9, 16, 3, 3, 1, 1, 1, 1, 1, 1, 16, 16, 16, 1, 1, 1, 1, 1, 0, 0, 0},
    {2, 6, 7, 12, 6, 7, 18, 3, 3, 1, 1, 1, 1, 1, 1, 1, 12, 20, 5, 5, 3, 1, 1, 1, 0, 0},
    {2, 6, 7, 8, 3, 4, 8, 3, 3, 2, 2, 1, 1, 1, 1, 8, 8, 8, 5, 3, 3, 2, 1, 1, 0, 0},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static float *filled(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    if (!x) abort();
    for (int64_t i = 0; i < count; i++) x[i] = (float)((i * 7919) % 201 - 100) / 64;
    return x;
}

static uint64_t bits_of(const float *x, int64_t count) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        sum = sum * 31 + bits + 1;
    }
    return sum;
}

/* The numbers as bfloat16, in the first half of their array. */
static void round_all(float *x, int64_t count) {
    uint16_t *bits = (uint16_t *)x;
    for (int64_t i = 0; i < count; i++) {
        uint32_t wide;
        memcpy(&wide, &x[i], sizeof wide);
        memcpy(&bits[i], (char *)&wide + sizeof(uint16_t), sizeof(uint16_t));
    }
}

#include "races_nn.h"

/* A pass: the first FLOATS are of float32, the others of bfloat16. */
static const char *const *names_of(int pass) {
    return pass < FLOATS ? passes[pass] : passes_of_bfloat16[pass - FLOATS];
}

/* Runs a pass on arrays of its own; returns a sum over the bits of what it wrote, 0 where it is not supported. */
static uint64_t run(const dtconv_conv *p, int pass) {
    const int wide = pass < FLOATS; /* images are of float32; those of bfloat16 lie in half of their arrays */
    const char *const *names = names_of(pass);
    const dtconv_conv_entry *entry =
        wide ? dtconv_sconv_find(names[0], names[1]) : dtconv_hconv_find(names[0], names[1]);
    const int64_t xs = p->n * p->id * p->ih * p->iw * p->ldx, ys = p->n * p->od * p->oh * p->ow * p->ldy;
    const int64_t ws = p->kd * p->kh * p->kw * (p->ci / p->groups) * p->co;
    float *x = filled(xs), *w = filled(ws), *y = filled(ys);
    dtconv_sconv_args floats = {.x = x, .w = w, .y = y};
    dtconv_hconv_args halves = {.x = (uint16_t *)x, .w = w, .y = (uint16_t *)y};
    const void *args = wide ? (void *)&floats : (void *)&halves;
    if (!wide) round_all(x, xs), round_all(y, ys);
    const int before = dtconv_hold_num_threads(dtconv_get_num_threads());
    const size_t bytes = entry->workspace(p);
    void *workspace = malloc(bytes + 64);
    const dtconv_status status = entry->run(p, args, workspace, bytes);
    dtconv_hold_num_threads(before);
    const int forward = !strcmp(names[1], "forward"), data = !strcmp(names[1], "backward_data");
    const uint64_t sum = bits_of(forward ? y : data ? x : w, forward ? ys : data ? xs : ws);
    free(x), free(w), free(y), free(workspace);
    if (status != DTCONV_OK && status != DTCONV_UNSUPPORTED && (wide || status != DTCONV_KERNEL)) {
        printf("%s %s: status %d\n", names[0], names[1], status);
        exit(1);
    }
    return status == DTCONV_OK ? sum : 0;
}

static uint64_t want[PROBLEMS][PASSES], want_of_kernel[KERNELS];

static void compare_all(void) {
    for (int i = 0; i < KERNELS; i++)
        if (run_kernel(i) != want_of_kernel[i]) {
            printf("%s: other bits\n", kernels[i].name);
            exit(1);
        }
    for (int i = 0; i < PROBLEMS; i++)
        for (int j = 0; j < PASSES; j++)
            if (run(&problems[i], j) != want[i][j]) {
                printf("%s %s of problem %d: other bits\n", names_of(j)[0], names_of(j)[1], i);
                exit(1);
            }
}

static void *compare_often(void *unused) {
    for (int round = 0; round < ROUNDS; round++) compare_all();
    return unused;
}

static atomic_int over;

static void *set_often(void *unused) {
    for (int i = 0; !atomic_load(&over); i++) dtconv_set_num_threads(1 + i % 4);
    return unused;
}

/* Each micro-kernel of a precision that this CPU runs, on full and edge tiles, against the portable one. */
#define CHECK_MICROKERNELS(DT)                                      \
    for (int i = 0; DT##ukr_get(i); i++)                            \
        if (!(DT##ukr_get(i)->features & ~dtconv_cpu_features())) { \
            if (!(DT##ukr_check(DT##ukr_get(i)) < 1)) {             \
                printf("%s%s: wrong\n", #DT, DT##ukr_get(i)->name); \
                exit(1);                                            \
            }                                                       \
            count++;                                                \
        }

static int check_microkernels(void) {
    int count = 0;
    CHECK_MICROKERNELS(dtconv_s)
    CHECK_MICROKERNELS(dtconv_d)
    CHECK_MICROKERNELS(dtconv_h)
    return count;
}

int main(void) {
    int ran = 0;
    const int microkernels = check_microkernels();
    for (int i = 0; i < KERNELS; i++) want_of_kernel[i] = run_kernel(i);
    for (int i = 0; i < PROBLEMS; i++)
        for (int j = 0; j < PASSES; j++) ran += (want[i][j] = run(&problems[i], j)) != 0;
    for (int threads = 1; threads <= 3; threads++) {
        dtconv_set_num_threads(threads);
        compare_all();
    }
    pthread_t callers[2], setter;
    pthread_create(&setter, NULL, set_often, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&callers[i], NULL, compare_often, NULL);
    for (int i = 0; i < 2; i++) pthread_join(callers[i], NULL);
    atomic_store(&over, 1);
    pthread_join(setter, NULL);
    printf("%d micro-kernels are right; %d passes of %d problems, %d other kernels, 1 to 4 threads: the same bits\n",
           microkernels, ran, PROBLEMS, KERNELS);
    return 0;
}
