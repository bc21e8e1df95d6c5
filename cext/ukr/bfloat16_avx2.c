/* AVX2 and FMA: 6 x 16, pairs are widened and multiplied in float32. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 32
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define ROW DT(ukr_pairs_avx2)
#define NAME "native_avx2_6x16"
#define FEATURES DTCONV_CPU_AVX2 | DTCONV_CPU_FMA
#define RANK 30
#include "bfloat16_pairs.h"
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_pairs_avx2) = {.name = "", .run = NULL};
#endif
