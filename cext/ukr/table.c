/* The table of micro-kernels, and the one in force. */
#include <string.h>

#include "dtconv_cpu.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"
#include "foreign.h"

#include "in_force.h"

extern const DT(ukr_row) DT(ukr_native_avx512), DT(ukr_native_avx2), DT(ukr_native_neon), DT(ukr_native_portable);

static DT(ukr_row) registered[DTCONV_UKR_CAPACITY];
static int registered_count;

const DT(ukr_row) * DT(ukr_get)(int index) {
    const DT(ukr_row) *
        native[] = {&DT(ukr_native_avx512), &DT(ukr_native_avx2), &DT(ukr_native_neon), &DT(ukr_native_portable)};
    for (size_t i = 0; i < sizeof native / sizeof *native; i++)
        if (native[i]->run && index-- == 0) return native[i];
    return index >= 0 && index < registered_count ? &registered[index] : NULL;
}

int DT(ukr_register)(const char *name, void *foreign, int abi, int mr, int nr, int row_preferred, unsigned features,
                     int rank) {
    const int rows = row_preferred ? mr : nr, columns = row_preferred ? nr : mr;
    if (registered_count == DTCONV_UKR_CAPACITY || rows > DTCONV_UKR_MAX_MR || columns > DTCONV_UKR_MAX_NR) return -1;
#ifdef DTCONV_EMULATED /* our code alone: this CPU runs no kernel of others that has the instructions */
    if (features & DTCONV_CPU_AVX512) features |= DTCONV_CPU_NEON;
#endif
    int index = 0;
    while (DT(ukr_get)(index)) index++;
    DT(ukr_row) *row = &registered[registered_count];
    *row = (DT(ukr_row)){.mr = rows,
                         .nr = columns,
                         .features = features,
                         .rank = rank,
                         .run = DT(ukr_run_foreign),
                         .foreign = foreign,
                         .abi = abi,
                         .exchanged = !row_preferred};
    strncpy(row->name, name, DTCONV_UKR_NAME - 1);
    registered_count++;
    return index;
}
