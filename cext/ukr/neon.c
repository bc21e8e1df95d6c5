/* NEON: 8 x 12 floats or 8 x 6 doubles, 24 accumulators of the 32 registers. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__aarch64__)
#define VBYTES 16
#define MR 8
#define NV 3
#define TARGET
#include "tile.h"

#ifdef DTCONV_DOUBLE
#define NAME "native_neon_8x6"
#else
#define NAME "native_neon_8x12"
#endif

const DT(ukr_row) DT(ukr_native_neon) = {
    .name = NAME, .mr = MR, .nr = NR, .features = DTCONV_CPU_NEON, .rank = 20, .in_place = 1, .run = run};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_native_neon) = {.name = "", .run = NULL};
#endif
