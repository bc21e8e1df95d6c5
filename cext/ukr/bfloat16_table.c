/* The table of micro-kernels for bfloat16 operands, and the one in force. */
#include "dtconv_cpu.h"
#include "dtconv_real.h"
#include "dtconv_ukr.h"

extern const DT(ukr_row) DT(ukr_amx_bf16), DT(ukr_avx512_bf16), DT(ukr_pairs_avx512), DT(ukr_pairs_avx2),
    DT(ukr_pairs_neon), DT(ukr_pairs_portable);

static const DT(ukr_row) * current;
static int (*ask)(void);

const DT(ukr_row) * DT(ukr_get)(int index) {
    const DT(ukr_row) * rows[] = {&DT(ukr_amx_bf16),   &DT(ukr_avx512_bf16), &DT(ukr_pairs_avx512),
                                  &DT(ukr_pairs_avx2), &DT(ukr_pairs_neon),  &DT(ukr_pairs_portable)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i]->run && index-- == 0) return rows[i];
    return NULL;
}

void DT(ukr_select)(const DT(ukr_row) * row) { __atomic_store_n(&current, row, __ATOMIC_RELEASE); }

void DT(ukr_set_chooser)(int (*chooser)(void)) { ask = chooser; }

const DT(ukr_row) * DT(ukr_in_force)(void) { return __atomic_load_n(&current, __ATOMIC_ACQUIRE); }

static const DT(ukr_row) * best(void) {
    const unsigned features = dtconv_cpu_features();
    const DT(ukr_row) *first = NULL, *row;
    for (int i = 0; (row = DT(ukr_get)(i)); i++)
        if ((row->features & ~features) == 0 && (!first || DT(ukr_rank)(row, features) < DT(ukr_rank)(first, features)))
            first = row;
    return first;
}

const DT(ukr_row) * DT(ukr_current)(void) {
    const DT(ukr_row) *row = DT(ukr_in_force)();
    if (row) return row;
    if (ask) {
        if (ask() != 0) return NULL;
        row = DT(ukr_in_force)();
    }
    if (!row) DT(ukr_select)(row = best());
    return row;
}
