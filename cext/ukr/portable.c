/* Plain C with short vectors, for any CPU and as the reference of the self-test: 4 x 8 floats or 4 x 4 doubles. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"

#if 1
#define VBYTES 16
#define MR 4
#define NV 2
#define TARGET
#include "tile.h"

#ifdef DTCONV_DOUBLE
#define NAME "portable_4x4"
#else
#define NAME "portable_4x8"
#endif

const DT(ukr_row)
    DT(ukr_native_portable) = {.name = NAME, .mr = MR, .nr = NR, .features = 0, .rank = 90, .in_place = 1, .run = run};
#else
#include "dtconv_ukr.h"
const DT(ukr_row) DT(ukr_native_portable) = {.name = "", .run = NULL};
#endif
