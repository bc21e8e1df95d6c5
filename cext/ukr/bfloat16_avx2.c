/* AVX2 and FMA: 6 x 16, pairs are widened and multiplied in float32. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 32
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#include "bfloat16_pairs.h"

const DT(ukr_row) DT(ukr_pairs_avx2) = {.name = "native_avx2_6x16",
                                        .mr = MR,
                                        .nr = NR,
                                        .features = DTCONV_CPU_AVX2 | DTCONV_CPU_FMA,
                                        .rank = 30,
                                        .in_place = 1,
                                        .run = run,
                                        .rows = 1,
                                        .depth = 2,
                                        .widens = 1};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_pairs_avx2) = {.name = "", .run = NULL};
#endif
