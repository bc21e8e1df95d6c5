/* AVX-512 without BF16: 12 x 32, pairs are widened and multiplied in float32. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 64
#define MR 12
#define NV 2
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#include "bfloat16_pairs.h"

const DT(ukr_row) DT(ukr_pairs_avx512) = {.name = "native_avx512_12x32",
                                          .mr = MR,
                                          .nr = NR,
                                          .features = DTCONV_CPU_AVX512,
                                          .rank = 20,
                                          .in_place = 1,
                                          .run = run,
                                          .rows = 1,
                                          .depth = 2,
                                          .widens = 1};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_pairs_avx512) = {.name = "", .run = NULL};
#endif
