/* The passes of all algorithms by name; generated from the list in dtconv_conv.h. */
#include "conv_internal.h"

#define DECLARE(algorithm, pass)                                                                                \
    dtconv_status DT(conv_##algorithm##_##pass)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, \
                                                size_t bytes);                                                  \
    size_t DT(conv_##algorithm##_##pass##_workspace)(const dtconv_conv *p);
DTCONV_CONV_PASSES(DECLARE)

#define RUN(algorithm, pass)                                                                               \
    static dtconv_status run_##algorithm##_##pass(const dtconv_conv *p, const void *args, void *workspace, \
                                                  size_t bytes) {                                          \
        return DT(conv_##algorithm##_##pass)(p, args, workspace, bytes);                                   \
    }
DTCONV_CONV_PASSES(RUN)

#define ENTRY(algorithm, pass) {#algorithm, #pass, run_##algorithm##_##pass, DT(conv_##algorithm##_##pass##_workspace)},
static const dtconv_conv_entry entries[] = {DTCONV_CONV_PASSES(ENTRY)};

const dtconv_conv_entry *DT(conv_find)(const char *algorithm, const char *pass) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (!strcmp(entries[i].algorithm, algorithm) && !strcmp(entries[i].pass, pass)) return &entries[i];
    return NULL;
}
