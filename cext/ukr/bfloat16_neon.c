/* NEON: 8 x 8, pairs are widened and multiplied in float32. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if defined(__aarch64__)
#define VBYTES 16
#define MR 8
#define NV 2
#define TARGET
#define ROW DT(ukr_pairs_neon)
#define NAME "native_neon_8x8"
#define FEATURES DTCONV_CPU_NEON
#define RANK 30
#include "bfloat16_pairs.h"
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_pairs_neon) = {.name = "", .run = NULL};
#endif
