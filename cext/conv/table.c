/* The passes of all algorithms by name, behind one check of sizes and arguments; generated from the list in
 * dtconv_conv.h. */
#include "conv_internal.h"

#define DECLARE(algorithm, pass)                                                                                \
    dtconv_status DT(conv_##algorithm##_##pass)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, \
                                                size_t bytes);                                                  \
    size_t DT(conv_##algorithm##_##pass##_workspace)(const dtconv_conv *p);
DTCONV_CONV_PASSES(DECLARE)

/* What is gathered and how x is read come with all their vectors, or not at all. */
static int is_complete(const DT(conv_args) * a) {
    const DT(conv_reductions) *of = &a->reductions;
    return !a->mean == !a->variance && (!a->prologue.mean || a->prologue.scale) && !of->sum == !of->sum_x &&
           (!of->sum || (of->x && of->mean && of->scale));
}

/* The sizes are checked here, once for all algorithms. */
#define RUN(algorithm, pass)                                                                               \
    static dtconv_status run_##algorithm##_##pass(const dtconv_conv *p, const void *args, void *workspace, \
                                                  size_t bytes) {                                          \
        if (!dtconv_fits(p) || !is_complete(args)) return DTCONV_ARGUMENT;                                 \
        return DT(conv_##algorithm##_##pass)(p, args, workspace, bytes);                                   \
    }                                                                                                      \
    static size_t workspace_##algorithm##_##pass(const dtconv_conv *p) {                                   \
        return dtconv_fits(p) ? DT(conv_##algorithm##_##pass##_workspace)(p) : 0;                          \
    }
DTCONV_CONV_PASSES(RUN)

#define ENTRY(algorithm, pass) {#algorithm, #pass, run_##algorithm##_##pass, workspace_##algorithm##_##pass},
static const dtconv_conv_entry entries[] = {DTCONV_CONV_PASSES(ENTRY)};

const dtconv_conv_entry *DT(conv_find)(const char *algorithm, const char *pass) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (!strcmp(entries[i].algorithm, algorithm) && !strcmp(entries[i].pass, pass)) return &entries[i];
    return NULL;
}
