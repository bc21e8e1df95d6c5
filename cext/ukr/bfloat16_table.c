/* The table of micro-kernels for bfloat16 operands, and the one in force. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

#include "in_force.h"

extern const DT(ukr_row) DT(ukr_amx_bf16), DT(ukr_avx512_bf16), DT(ukr_pairs_avx512), DT(ukr_pairs_avx2),
    DT(ukr_pairs_neon), DT(ukr_pairs_portable);

const DT(ukr_row) * DT(ukr_get)(int index) {
    const DT(ukr_row) * rows[] = {&DT(ukr_amx_bf16),   &DT(ukr_avx512_bf16), &DT(ukr_pairs_avx512),
                                  &DT(ukr_pairs_avx2), &DT(ukr_pairs_neon),  &DT(ukr_pairs_portable)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i]->run && index-- == 0) return rows[i];
    return NULL;
}
