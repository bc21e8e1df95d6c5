/* NEON: 8 x 8, pairs are widened and multiplied in float32. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__aarch64__)
#define VBYTES 16
#define MR 8
#define NV 2
#define TARGET
#include "bfloat16_pairs.h"

const DT(ukr_row) DT(ukr_pairs_neon) = {.name = "native_neon_8x8",
                                        .mr = MR,
                                        .nr = NR,
                                        .features = DTCONV_CPU_NEON,
                                        .rank = 30,
                                        .in_place = 1,
                                        .run = run,
                                        .rows = 1,
                                        .depth = 2,
                                        .widens = 1};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_pairs_neon) = {.name = "", .run = NULL};
#endif
