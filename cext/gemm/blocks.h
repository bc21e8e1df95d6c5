/* Block sizes of one GEMM, and how its threads divide it. */
#include "dtconv_ukr.h"

typedef struct {
    int64_t mr, nr;
    int64_t mc;    /* rows of A that are packed and used at a time */
    int64_t kc;    /* depth of a packed panel */
    int64_t kb;    /* depth of B that is packed at a time, a multiple of kc: all of k where it fits */
    int64_t nc;    /* columns of B that are packed at a time */
    size_t b_size; /* elements of the shared packed B */
    size_t a_size; /* elements of each thread's packed A */
} DT(blocks);

DT(blocks) DT(gemm_blocks)(const DT(ukr_row) * ukr, int64_t m, int64_t n, int64_t k, int in_place);

/* Part `id` of `parts` of `count` things that come in whole units: first and number. */
int64_t DT(gemm_part)(int64_t count, int64_t unit, int64_t parts, int64_t id, int64_t *number);

/* The part of C's block (m x n) that thread `id` of `threads` computes. */
typedef struct {
    int64_t i, m, j, n;
} DT(share);
DT(share) DT(gemm_share)(const DT(blocks) * blocks, int64_t m, int64_t n, int threads, int id);
