/* Sizes near those at which their sums and products overflow: functions refuse them, or compute with arrays that are
 * exactly as large as they say.  For sanitizers of memory and of signed integers.
 *
 * sizes [SEED [TRIALS]] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dtconv_both.h"
#include "dtconv_limits.h"

#define NAMES(algorithm, pass) {#algorithm, #pass},
static const char *const passes[][2] = {DTCONV_CONV_PASSES(NAMES)};
enum { PASSES = sizeof passes / sizeof *passes, SMALL = 1 << 12, WORKSPACE = 1 << 26, SECONDS = 20 };

static uint64_t state;

static uint64_t draw(uint64_t below) { /* splitmix64 */
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) % below;
}

/* A number from `least` up to least + 3, or, once in `seldom`, one near where something overflows. */
static int64_t some(int64_t least, uint64_t seldom) {
    static const int64_t edges[] = {-1,
                                    0,
                                    1 << 15,
                                    1 << 16,
                                    INT32_MAX,
                                    (int64_t)1 << 32,
                                    (int64_t)1 << 50,
                                    (int64_t)1 << 61,
                                    (int64_t)1 << 62,
                                    INT64_MAX,
                                    INT64_MIN};
    if (draw(seldom)) return least + (int64_t)draw(4);
    const int64_t edge = edges[draw(sizeof edges / sizeof *edges)], by = (int64_t)draw(5) - 2;
    int64_t found;
    return __builtin_add_overflow(edge, by, &found) ? edge : found;
}

/* How many elements an array has: -1 for one that has none or too many, INT64_MAX for more than SMALL. */
static int64_t elements(int count, const int64_t *sizes) {
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        if (sizes[i] < 1 || __builtin_mul_overflow(product, sizes[i], &product)) return -1;
    return product <= SMALL ? product : product <= DTCONV_MOST_ELEMENTS ? INT64_MAX : -1;
}
#define ELEMENTS(...) elements(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* Memory of exactly so many bytes. */
static void *memory(size_t bytes) {
    void *found = calloc(1, bytes ? bytes : 1);
    if (!found) abort();
    return found;
}

static int64_t computed, refused;

static void count(const char *name, dtconv_status status, int has_arrays) {
    if (status == DTCONV_OK && !has_arrays) {
        printf("%s: takes sizes that no array has\n", name);
        exit(1);
    }
    *(status == DTCONV_OK ? &computed : &refused) += 1;
}

static void pools(void) {
    dtconv_pool p;
    int64_t *size = (int64_t *)&p;
    for (size_t i = 0; i < sizeof p / sizeof *size; i++) size[i] = some(1, 12);
    p.top = some(0, 12), p.left = some(0, 12), p.front = some(0, 12);
    if (draw(2)) p.id = p.od = p.kd = p.sd = 1, p.front = 0;
    if (draw(4) == 0) p.sh = p.sw = 0; /* adaptive */
    if (p.iw > 0 && p.iw < 8 && p.kw > 0 && p.kw < 8) p.iw += p.kw;
    const int64_t x_size = ELEMENTS(p.n, p.id, p.ih, p.iw, p.c), y_size = ELEMENTS(p.n, p.od, p.oh, p.ow, p.c);
    if (x_size == INT64_MAX || y_size == INT64_MAX) return; /* sizes that an array may have */
    const int there = x_size > 0 && y_size > 0;
    float *x = memory((size_t)(there ? x_size : 0) * sizeof *x), *y = memory((size_t)(there ? y_size : 0) * sizeof *y);
    int32_t *argmax = memory((size_t)(there ? y_size : 0) * sizeof *argmax);
    const int bytes = draw(2) ? 4 : 1, accumulate = (int)draw(2), pad = (int)draw(2);
    const dtconv_status status = dtconv_smax_pool_forward(&p, x, p.c, y, p.c, argmax, bytes);
    count("max_pool_forward", status, there);
    if (status == DTCONV_OK)
        count("max_pool_backward", dtconv_smax_pool_backward(&p, y, p.c, argmax, bytes, accumulate, x, p.c), there);
    count("average_pool_forward", dtconv_saverage_pool_forward(&p, x, p.c, pad, y, p.c), there);
    count("average_pool_backward", dtconv_saverage_pool_backward(&p, y, p.c, pad, accumulate, x, p.c), there);
    free(x), free(y), free(argmax);
}

/* Whether there are so many phases of strides and dilation that the algorithms which walk them take long. */
static int takes_phases(const dtconv_conv *p) {
    const int64_t most = 64;
    return p->sd > most || p->sh > most || p->sw > most || p->dil_d > most || p->dil_h > most || p->dil_w > most;
}

static void convolutions(void) {
    dtconv_conv p = {0};
    int64_t *size = (int64_t *)&p;
    const size_t sizes = offsetof(dtconv_conv, basis_h) / sizeof *size;
    for (size_t i = 0; i < sizes; i++) size[i] = some(1, 24);
    p.pad_t = some(0, 24), p.pad_l = some(0, 24), p.pad_f = some(0, 24);
    if (draw(4)) p.groups = 1;
    if (draw(2)) p.id = p.od = p.kd = p.sd = p.dil_d = 1, p.pad_f = 0;
    if (draw(8)) p.ldx = p.ci, p.ldy = p.co;
    if (draw(4) == 0) p.kh = p.kw = 1, p.dil_h = some(1, 2), p.dil_w = some(1, 2);
    if (draw(4) == 0) p.oh = p.ow = 1, p.sh = some(1, 2), p.sw = some(1, 2);
    const int64_t x_size = ELEMENTS(p.n, p.id, p.ih, p.iw, p.ldx), y_size = ELEMENTS(p.n, p.od, p.oh, p.ow, p.ldy);
    const int64_t w_size = ELEMENTS(p.kd, p.kh, p.kw, p.groups > 0 ? p.ci / p.groups : 0, p.co);
    const int large = x_size == INT64_MAX || y_size == INT64_MAX || w_size == INT64_MAX;
    const int there = x_size > 0 && y_size > 0 && w_size > 0;
    for (int i = 0; i < PASSES; i++) {
        const dtconv_conv_entry *entry = dtconv_sconv_find(passes[i][0], passes[i][1]);
        const size_t bytes = entry->workspace(&p);
        if (large || bytes > WORKSPACE) continue;
        if (takes_phases(&p) && !strncmp(passes[i][0], "fft", 3)) continue;
        float *x = memory((size_t)(there ? x_size : 0) * sizeof *x),
              *y = memory((size_t)(there ? y_size : 0) * sizeof *y);
        float *w = memory((size_t)(there ? w_size : 0) * sizeof *w), *workspace = memory(bytes);
        const dtconv_sconv_args args = {.x = x, .w = w, .y = y};
        count(entry->algorithm, entry->run(&p, &args, workspace, bytes), there);
        free(x), free(y), free(w), free(workspace);
    }
}

static void transforms(void) {
    static const int64_t points[] = {1, 2, 3, 8, 12, 21, 256, 257};
    dtconv_fft_problem p = {some(1, 8), points[draw(8)], points[draw(8)],          some(1, 8),
                            some(1, 8), some(1, 8),      (dtconv_fft_kind)draw(4), 1};
    if (draw(2)) p.high = p.x_high = 1;
    const int64_t x_size = ELEMENTS(p.outer, p.x_high, p.x_wide, p.inner);
    const int64_t y_size = ELEMENTS(p.outer, p.high, p.wide, p.inner);
    const size_t bytes = dtconv_sfft_batch_workspace(&p);
    if (x_size != INT64_MAX && y_size != INT64_MAX && bytes <= WORKSPACE) {
        const int there = x_size > 0 && y_size > 0;
        const int64_t xs = x_size * (1 + (p.kind != DTCONV_FFT_REAL)),
                      ys = y_size / p.wide *
                           (p.kind == DTCONV_FFT_TO_REAL ? p.wide
                                                         : 2 * (p.kind == DTCONV_FFT_REAL ? p.wide / 2 + 1 : p.wide));
        float *x = memory((size_t)(there ? xs : 0) * sizeof *x), *y = memory((size_t)(there ? ys : 0) * sizeof *y);
        void *workspace = memory(bytes);
        count("fft_batch", dtconv_sfft_batch(&p, x, y, workspace, bytes), there);
        free(x), free(y), free(workspace);
    }
}

static void signals(void) {
    static const int64_t points[] = {0, 1, 2, 15, 16, 32, 48, 257};
    dtconv_overlap o = {.signals = some(1, 8), .method = (dtconv_overlap_method)draw(4), .is_private = (int)draw(2)};
    o.threads = draw(8) ? 1 : (int)some(1, 4);
    for (int d = 0; d < 2; d++) {
        o.a[d] = some(1, 8), o.b[d] = some(1, 8), o.block[d] = some(1, 8), o.steps[d] = some(1, 4);
        o.part[d] = draw(4) ? o.method == DTCONV_PARTS ? o.block[d] : o.b[d] : some(1, 8);
        o.start[d] = some(0, 8), o.stop[d] = some(1, 8);
    }
    if (draw(2)) o.points[0] = points[draw(8)], o.points[1] = points[draw(8)], o.points[2] = points[draw(8)];
    int64_t results[2];
    for (int d = 0; d < 2; d++)
        if (__builtin_sub_overflow(o.stop[d], o.start[d], &results[d])) results[d] = -1;
    const int64_t a_size = ELEMENTS(o.signals, o.a[0], o.a[1]), b_size = ELEMENTS(o.b[0], o.b[1]);
    const int64_t r_size = ELEMENTS(o.signals, results[0], results[1]);
    const size_t more = dtconv_soverlap_workspace(&o);
    if (a_size == INT64_MAX || r_size == INT64_MAX || b_size == INT64_MAX) return;
    if (more > (size_t)(o.points[0] ? WORKSPACE : WORKSPACE / 256)) return; /* sums over many taps take long */
    const int there = a_size > 0 && r_size > 0 && b_size > 0;
    float *a = memory((size_t)(there ? a_size : 0) * sizeof *a), *b = memory((size_t)(there ? b_size : 0) * sizeof *b);
    float *r = memory((size_t)(there ? r_size : 0) * sizeof *r);
    void *workspace = memory(more), *plan = memory(dtconv_soverlap_plan_bytes(&o));
    int64_t counts[DTCONV_OVERLAP_COUNTS];
    dtconv_soverlap_plan(&o, plan);
    count("overlap", dtconv_soverlap(&o, a, b, r, counts, plan, workspace, more), there);
    free(a), free(b), free(r), free(workspace), free(plan);
}

static void attentions(void) {
    dtconv_attention p = {.n = some(1, 12),
                          .heads = some(1, 12),
                          .kv_heads = draw(4) ? 1 : some(1, 12),
                          .tq = some(1, 12),
                          .tk = some(1, 12),
                          .d = some(1, 12),
                          .dv = some(1, 12),
                          .scale = 0.5,
                          .rate = draw(2) ? 0 : 0.5,
                          .causal = (int)draw(2)};
    p.key.first = some(0, 2); /* a number that the caller counts on: it may be any */
    const int64_t q = ELEMENTS(p.n, p.tq, p.heads, p.d), k = ELEMENTS(p.n, p.tk, p.kv_heads, p.d);
    const int64_t v = ELEMENTS(p.n, p.tk, p.kv_heads, p.dv), y = ELEMENTS(p.n, p.tq, p.heads, p.dv);
    const size_t bytes[2] = {dtconv_sattention_workspace(&p, 0), dtconv_sattention_workspace(&p, 1)};
    if (q == INT64_MAX || k == INT64_MAX || v == INT64_MAX || y == INT64_MAX) return;
    const int there = q > 0 && k > 0 && v > 0 && y > 0;
    float *arrays[4], *gradients[3];
    const int64_t lengths[] = {q, k, v, y};
    for (int i = 0; i < 4; i++) arrays[i] = memory((size_t)(there ? lengths[i] : 0) * sizeof(float));
    for (int i = 0; i < 3; i++) gradients[i] = memory((size_t)(there ? lengths[i] : 0) * sizeof(float));
    float *sums = memory((size_t)(there ? p.n * p.heads * p.tq : 0) * sizeof(float));
    if (there) {
        const int64_t steps[4][3] = {{p.tq * p.heads * p.d, p.heads * p.d, p.d},
                                     {p.tk * p.kv_heads * p.d, p.kv_heads * p.d, p.d},
                                     {p.tk * p.kv_heads * p.dv, p.kv_heads * p.dv, p.dv},
                                     {p.tq * p.heads * p.dv, p.heads * p.dv, p.dv}};
        memcpy(p.q, steps[0], sizeof p.q), memcpy(p.dq, steps[0], sizeof p.q);
        memcpy(p.k, steps[1], sizeof p.q), memcpy(p.dk, steps[1], sizeof p.q);
        memcpy(p.v, steps[2], sizeof p.q), memcpy(p.dvalue, steps[2], sizeof p.q);
        memcpy(p.y, steps[3], sizeof p.q), memcpy(p.dy, steps[3], sizeof p.q);
    }
    void *first = memory(bytes[0]), *second = memory(bytes[1]);
    const dtconv_status status =
        dtconv_sattention_forward(&p, arrays[0], arrays[1], arrays[2], NULL, arrays[3], sums, first, bytes[0]);
    count("attention_forward", status, there || p.n == 0 || p.tq == 0 || p.dv == 0);
    if (status == DTCONV_OK && there)
        count("attention_backward",
              dtconv_sattention_backward(&p, arrays[0], arrays[1], arrays[2], NULL, arrays[3], sums, arrays[3],
                                         gradients[0], gradients[1], gradients[2], second, bytes[1]),
              there);
    for (int i = 0; i < 4; i++) free(arrays[i]);
    for (int i = 0; i < 3; i++) free(gradients[i]);
    free(sums), free(first), free(second);
}

/* Random numbers of elements behind any number. */
static void numbers(void) {
    const dtconv_random_key key = {1, 2, 3, some(0, 2)};
    float x[64] = {0}, y[64];
    count("dropout", dtconv_sdropout(&key, 0.5, 0, 4, 16, x, 16, y, 16), 1);
    count("gaussian_noise", dtconv_sgaussian_noise(&key, 0.5, 4, 16, x, 16, y, 16), 1);
    count("random_window", dtconv_srandom_window_forward(&key, 3, 1, 8, 8, 3, 5, 1, x, 1, y, 1), 1);
}

/* What a function wants for sizes that arrays may have. */
static void workspaces(void) {
    int64_t size[4];
    for (int i = 0; i < 4; i++) size[i] = (int64_t)(draw(2) ? draw((uint64_t)1 << 31) : draw(1 << 10)) + 1;
    dtconv_threads_for(some(1, 2) & INT64_MAX);
    dtconv_threads_to_move(some(1, 2) & INT64_MAX);
    dtconv_piece(some(1, 2) & INT64_MAX);
    if (!DTCONV_FIT_WITHIN(DTCONV_MOST_ELEMENTS, size[0], size[1], size[2])) return;
    dtconv_sgemm_workspace(size[0], size[1], size[2]);
    for (int levels = 0; levels < 3; levels++)
        dtconv_sgemm_batched_workspace(size[3], size[0], size[1], size[2], levels);
    dtconv_sbatchnorm_workspace(size[0], size[1]);
    dtconv_slayernorm_workspace(size[0], size[1]);
    dtconv_sdense_bias_backward_workspace(size[0], size[1]);
}

/* A loop that does not end ends the process. */
static void too_long(int signal) {
    (void)signal;
    abort();
}

int main(int arguments, char **values) {
    static void (*const rooms[])(void) = {pools, convolutions, transforms, signals, attentions, numbers, workspaces};
    const uint64_t seed = arguments > 1 ? strtoull(values[1], NULL, 0) : 1;
    const int64_t trials = arguments > 2 ? strtoll(values[2], NULL, 0) : 20000;
    signal(SIGALRM, too_long);
    for (int64_t trial = 0; trial < trials; trial++) {
        alarm(SECONDS);
        state = seed * 1000003 + (uint64_t)trial;
        dtconv_set_num_threads(1 + (int)draw(2));
        rooms[draw(sizeof rooms / sizeof *rooms)]();
    }
    printf("%lld calls computed, %lld refused\n", (long long)computed, (long long)refused);
    return 0;
}
