/* AVX-512: 14 x 32 floats or 14 x 16 doubles, 28 accumulators of the 32 registers. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 64
#define MR 14
#define NV 2
#define TARGET __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")))
#include "tile.h"

#ifdef DTCONV_DOUBLE
#define NAME "native_avx512_14x16"
#else
#define NAME "native_avx512_14x32"
#endif

const DT(ukr_row) DT(ukr_native_avx512) = {
    .name = NAME, .mr = MR, .nr = NR, .features = DTCONV_CPU_AVX512, .rank = 10, .in_place = 1, .run = run};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_native_avx512) = {.name = "", .run = NULL};
#endif
