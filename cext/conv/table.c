/* The passes of all algorithms by name, behind one check of sizes and arguments; generated from the list in
 * dtconv_conv.h. */
#include "activate.h"
#include "conv_internal.h"

#ifdef DTCONV_BFLOAT16
#define PASSES DTCONV_CONV_BFLOAT16_PASSES
#elif defined(DTCONV_DOUBLE)
#define PASSES DTCONV_CONV_PASSES
#else
#define PASSES(X) DTCONV_CONV_PASSES(X) DTCONV_CONV_FLOAT32_PASSES(X)
#endif

#define DECLARE(algorithm, pass)                                                                                \
    dtconv_status DT(conv_##algorithm##_##pass)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, \
                                                size_t bytes);                                                  \
    size_t DT(conv_##algorithm##_##pass##_workspace)(const dtconv_conv *p);
PASSES(DECLARE)

/* What is gathered and how x is read come with all their vectors, or not at all. */
static int is_complete(const DT(conv_args) * a) {
    const DT(conv_reductions) *of = &a->reductions;
    return !a->mean == !a->variance && (!a->prologue.mean || a->prologue.scale) && !of->sum == !of->sum_x &&
           (!of->sum || (of->x && of->mean && of->scale)) && (of->sum || !of->bypass);
}

/* Whether an algorithm can write the gradient of what was normalized. */
static int bypasses(const char *algorithm) { return !strncmp(algorithm, "direct", 6); }

/* Whether an algorithm can do what follows the normalization of what it reads, and what follows its sums. */
static int activates(const char *algorithm, const DT(conv_args) * a) {
    enum { IMAGES_OF_REALS = sizeof(elem) == sizeof(real) };
    const dtconv_activation before = a->prologue.mean ? a->prologue.activation : DTCONV_LINEAR;
    const int reads_relu6 = IMAGES_OF_REALS && !strcmp(algorithm, "direct");
    if (!is_fused(a->activation)) return 0;
    return before <= DTCONV_RELU || !strcmp(algorithm, "depthwise") || (before == DTCONV_RELU6 && reads_relu6);
}

/* Whether the order of direct's sums follows from the rows of the filters, whatever the image. */
static int sums_rows(const char *algorithm, const char *pass, const dtconv_conv *p) {
#ifdef DTCONV_BFLOAT16
    (void)algorithm, (void)pass, (void)p;
    return 0;
#else
    return !strcmp(algorithm, "direct") && !strcmp(pass, "forward") && DT(direct_is_along_taps)(p, 0);
#endif
}

/* Whether filters meet the whole image and nothing else, in an algorithm for which that is a product of matrices: each
 * image is then one pixel of as many channels, where its pixels lie side by side. */
static int is_one_pixel(const char *algorithm, const char *pass, const dtconv_conv *p) {
    enum { IMAGES_OF_REALS = sizeof(elem) == sizeof(real) };
    const int cuts_tiles = !strncmp(algorithm, "fft", 3) || !strncmp(algorithm, "winograd", 8);
    const int64_t taps = dtconv_taps(p);
    return IMAGES_OF_REALS && !cuts_tiles && strcmp(algorithm, "depthwise") != 0 && p->groups == 1 && taps > 1 &&
           p->kd == p->id && p->kh == p->ih && p->kw == p->iw && p->od * p->oh * p->ow == 1 &&
           !(p->pad_f | p->pad_t | p->pad_l) && (p->dil_d == 1 || p->kd == 1) && (p->dil_h == 1 || p->kh == 1) &&
           (p->dil_w == 1 || p->kw == 1) && taps * p->ci <= INT32_MAX && !sums_rows(algorithm, pass, p);
}

static dtconv_conv one_pixel(const dtconv_conv *p) {
    const int64_t channels = dtconv_taps(p) * p->ci;
    dtconv_conv q = *p;
    q.id = q.ih = q.iw = q.kd = q.kh = q.kw = q.sd = q.sh = q.sw = q.dil_d = q.dil_h = q.dil_w = 1;
    q.ci = q.ldx = channels;
    return q;
}

/* The problem that an algorithm is given: vectors of x's channels are those of p. */
static dtconv_conv given(const char *algorithm, const char *pass, const dtconv_conv *p, const DT(conv_args) * a) {
    const int has_vectors = a->prologue.mean || a->reductions.sum;
    return is_one_pixel(algorithm, pass, p) && p->ldx == p->ci && !has_vectors ? one_pixel(p) : *p;
}

/* The sizes are checked here, once for all algorithms. */
#define RUN(algorithm, pass)                                                                                      \
    static size_t workspace_##algorithm##_##pass(const dtconv_conv *p) {                                          \
        if (!dtconv_fits(p)) return 0;                                                                            \
        const dtconv_conv q = is_one_pixel(#algorithm, #pass, p) ? one_pixel(p) : *p;                             \
        const size_t bytes = DT(conv_##algorithm##_##pass##_workspace)(p);                                        \
        return MAX(bytes, DT(conv_##algorithm##_##pass##_workspace)(&q));                                         \
    }                                                                                                             \
    static dtconv_status run_##algorithm##_##pass(const dtconv_conv *p, const void *args, void *workspace,        \
                                                  size_t bytes) {                                                 \
        if (!dtconv_fits(p) || !is_complete(args)) return DTCONV_ARGUMENT;                                        \
        if (((const DT(conv_args) *)args)->reductions.bypass && !bypasses(#algorithm)) return DTCONV_UNSUPPORTED; \
        if (!activates(#algorithm, args)) return DTCONV_UNSUPPORTED;                                              \
        const dtconv_conv q = given(#algorithm, #pass, p, args);                                                  \
        if (q.ci != p->ci && bytes < workspace_##algorithm##_##pass(p)) return DTCONV_WORKSPACE;                  \
        return DT(conv_##algorithm##_##pass)(&q, args, workspace, bytes);                                         \
    }
PASSES(RUN)

#define ENTRY(algorithm, pass) {#algorithm, #pass, run_##algorithm##_##pass, workspace_##algorithm##_##pass},
static const dtconv_conv_entry entries[] = {PASSES(ENTRY)};

const dtconv_conv_entry *DT(conv_find)(const char *algorithm, const char *pass) {
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (!strcmp(entries[i].algorithm, algorithm) && !strcmp(entries[i].pass, pass)) return &entries[i];
    return NULL;
}
