/* AVX2 and FMA: 6 x 16 floats or 6 x 8 doubles, 12 accumulators of the 16 registers. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__x86_64__)
#define VBYTES 32
#define MR 6
#define NV 2
#define TARGET __attribute__((target("avx2,fma")))
#define ADD_PRODUCT ADD_PRODUCT_AVX2
#include "tile.h"

#ifdef DTCONV_DOUBLE
#define NAME "native_avx2_6x8"
#else
#define NAME "native_avx2_6x16"
#endif

const DT(ukr_row) DT(ukr_native_avx2) = {.name = NAME,
                                         .mr = MR,
                                         .nr = NR,
                                         .features = DTCONV_CPU_AVX2 | DTCONV_CPU_FMA,
                                         .rank = 26,
                                         .in_place = 1,
                                         .fetches = 1,
                                         .run = run};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_native_avx2) = {.name = "", .run = NULL};
#endif
