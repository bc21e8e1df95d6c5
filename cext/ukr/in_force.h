/* The micro-kernel in force: what the tables of both kinds of operands share.  Comes after dtconv_ukr.h. */
static const DT(ukr_row) * current;
static int (*ask)(void);

void DT(ukr_select)(const DT(ukr_row) * row) { __atomic_store_n(&current, row, __ATOMIC_RELEASE); }

void DT(ukr_set_chooser)(int (*chooser)(void)) { ask = chooser; }

const DT(ukr_row) * DT(ukr_in_force)(void) { return __atomic_load_n(&current, __ATOMIC_ACQUIRE); }

/* The fastest of the library's own. */
static const DT(ukr_row) * best(void) {
    const unsigned features = dtconv_cpu_features();
    const DT(ukr_row) *first = NULL, *row;
    for (int i = 0; (row = DT(ukr_get)(i)); i++)
        if (!row->foreign && (row->features & ~features) == 0 &&
            (!first || DT(ukr_rank)(row, features) < DT(ukr_rank)(first, features)))
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
