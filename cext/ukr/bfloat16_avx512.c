/* AVX-512 without BF16: 12 x 32, pairs are widened and multiplied in float32. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 64
#define MR 12
#define NV 2
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#define ROW DT(ukr_pairs_avx512)
#define NAME "native_avx512_12x32"
#define FEATURES DTCONV_CPU_AVX512
#define RANK 20
#include "bfloat16_pairs.h"
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_pairs_avx512) = {.name = "", .run = NULL};
#endif
