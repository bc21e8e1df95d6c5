/* The other kernels that use threads: normalization, pooling, softmax, reductions, attention, transforms, long signals,
 * products of bfloat16 and optimizers.  For races.c. */

/* Where a kernel reads and writes: arrays of ROWS x CHANNELS elements. */
typedef struct {
    float *x, *y, *dx, *slot, *vectors[6];
    void *argmax, *workspace;
    size_t bytes;
} nn_arrays;

enum { IMAGES = 4, SIDE = 24, ROWS = IMAGES * SIDE * SIDE, CHANNELS = 40, ELEMENTS = ROWS * CHANNELS };
static const dtconv_pool windows = {IMAGES, SIDE, SIDE, CHANNELS, SIDE / 2, SIDE / 2, 3, 3, 2, 2, 0, 0, 1, 1, 1, 1, 0};
/* sums over the rows: kept and reduced extents 1 each; strides of x, of x2 (none) and of y */
static const int64_t column_sums[] = {1, 1, CHANNELS, ROWS, 1, CHANNELS, 0, 0, 1};

/* attention: SAMPLES sequences of TOKENS tokens, HEADS heads of FEATURES */
enum { SAMPLES = 3, TOKENS = 64, HEADS = 4, FEATURES = 16, WIDTH = HEADS * FEATURES };
#define WALK {TOKENS * WIDTH, WIDTH, FEATURES}
static const dtconv_attention attention = {SAMPLES,  HEADS, HEADS, TOKENS, TOKENS,        FEATURES,
                                           FEATURES, WALK,  WALK,  WALK,   WALK,          WALK,
                                           WALK,     WALK,  WALK,  {0},    .scale = 0.25, .causal = 1};
static const dtconv_fft_problem transform = {IMAGES, 24, 20, 16, 20, 18, DTCONV_FFT_REAL, 1};
/* 8 signals of 4,000 elements with 65 taps, in blocks of 200 that are added in two steps */
static const dtconv_overlap signals = {.signals = 8,
                                       .a = {1, 4000},
                                       .b = {1, 65},
                                       .stop = {1, 4064},
                                       .block = {1, 200},
                                       .part = {1, 65},
                                       .steps = {1, 2},
                                       .points = {1, 16, 16},
                                       .method = DTCONV_ADD,
                                       .threads = 4};
static const dtconv_gemm_mixed_args product = {.m = 200,
                                               .n = 96,
                                               .k = 130,
                                               .a = {.rs = 130, .cs = 1},
                                               .b = {.rs = 96, .cs = 1},
                                               .ldc = 96,
                                               .alpha = 1,
                                               .activation = DTCONV_RELU,
                                               .products = 1};

static dtconv_status nn_batchnorm(nn_arrays *a) {
    float **v = a->vectors;
    dtconv_status status =
        dtconv_sbatchnorm_statistics(ROWS, CHANNELS, a->x, CHANNELS, v[0], v[1], a->workspace, a->bytes);
    if (!status) status = dtconv_sbatchnorm_scale(CHANNELS, v[1], NULL, 0.001f, v[2], v[3]);
    if (!status)
        status =
            dtconv_sbatchnorm_apply(ROWS, CHANNELS, a->x, CHANNELS, v[0], v[3], NULL, DTCONV_RELU, 0, a->y, CHANNELS);
    if (!status)
        status = dtconv_sbatchnorm_backward_sums(ROWS, CHANNELS, a->x, CHANNELS, NULL, 0, a->slot, CHANNELS, v[0], v[2],
                                                 v[3], NULL, DTCONV_RELU, 0, v[4], v[5], a->workspace, a->bytes);
    if (!status)
        status =
            dtconv_sbatchnorm_backward_apply(ROWS, CHANNELS, a->x, CHANNELS, NULL, 0, a->slot, CHANNELS, v[0], v[2],
                                             v[3], NULL, DTCONV_RELU, 0, v[4], v[5], ROWS, 0, a->dx, CHANNELS);
    return status;
}

static dtconv_status nn_layernorm(nn_arrays *a) {
    float *mean = a->argmax, *inverse = mean + ROWS, **v = a->vectors;
    dtconv_status status =
        dtconv_slayernorm_forward(ROWS, CHANNELS, 0, a->x, CHANNELS, NULL, NULL, 0.001f, mean, inverse, a->y, CHANNELS);
    if (!status)
        status = dtconv_slayernorm_backward(ROWS, CHANNELS, 0, a->x, CHANNELS, NULL, mean, inverse, a->slot, CHANNELS,
                                            0, a->dx, CHANNELS, 0, v[0], 0, v[1], a->workspace, a->bytes);
    return status;
}

static dtconv_status nn_max_pool(nn_arrays *a) {
    const dtconv_status status = dtconv_smax_pool_forward(&windows, a->x, CHANNELS, a->y, CHANNELS, a->argmax, 1);
    return status ? status : dtconv_smax_pool_backward(&windows, a->slot, CHANNELS, a->argmax, 1, 0, a->dx, CHANNELS);
}

static dtconv_status nn_average_pool(nn_arrays *a) {
    const dtconv_status status = dtconv_saverage_pool_forward(&windows, a->x, CHANNELS, 0, a->y, CHANNELS);
    return status ? status : dtconv_saverage_pool_backward(&windows, a->slot, CHANNELS, 0, 0, a->dx, CHANNELS);
}

static dtconv_status nn_global_pool(nn_arrays *a) {
    const int64_t n = IMAGES, pixels = SIDE * SIDE, c = CHANNELS;
    dtconv_status status = dtconv_sglobal_max_pool_forward(n, pixels, c, a->x, c, a->y, c, a->argmax);
    if (!status) status = dtconv_sglobal_max_pool_backward(n, pixels, c, a->slot, c, a->argmax, 0, a->dx, c);
    if (!status) status = dtconv_sglobal_average_pool_forward(n, pixels, c, a->x, c, a->y + n * c, c);
    if (!status) status = dtconv_sglobal_average_pool_backward(n, pixels, c, a->slot, c, 1, a->dx, c);
    return status;
}

static dtconv_status nn_softmax(nn_arrays *a) {
    const int64_t c = CHANNELS;
    const dtconv_status status = dtconv_ssoftmax_forward(ROWS, c, 1, 0, a->x, c, a->y, c);
    return status ? status : dtconv_ssoftmax_backward(ROWS, c, 1, 0, a->y, c, a->slot, c, 0, a->dx, c);
}

static dtconv_status nn_reduce(nn_arrays *a) {
    return dtconv_sreduce(DTCONV_REDUCE_SUM, 0, 1, column_sums, a->x, NULL, a->y, 1, a->workspace, a->bytes);
}

static dtconv_status nn_attention(nn_arrays *a) {
    float *sums = a->argmax, *q = a->x, *k = q + SAMPLES * TOKENS * WIDTH, *v = k + SAMPLES * TOKENS * WIDTH;
    float *dk = a->dx + SAMPLES * TOKENS * WIDTH, *dv = dk + SAMPLES * TOKENS * WIDTH;
    const dtconv_status status =
        dtconv_sattention_forward(&attention, q, k, v, NULL, a->y, sums, a->workspace, a->bytes);
    return status ? status
                  : dtconv_sattention_backward(&attention, q, k, v, NULL, a->y, sums, a->slot, a->dx, dk, dv,
                                               a->workspace, a->bytes);
}

static dtconv_status nn_transform(nn_arrays *a) {
    return dtconv_sfft_batch(&transform, a->x, a->y, a->workspace, a->bytes);
}

static dtconv_status nn_signals(nn_arrays *a) {
    char plan[1 << 15];
    if (dtconv_soverlap_plan_bytes(&signals) > sizeof plan) return DTCONV_WORKSPACE;
    dtconv_soverlap_plan(&signals, plan);
    return dtconv_soverlap(&signals, a->x, a->slot, a->y, NULL, plan, a->workspace, a->bytes);
}

static dtconv_status nn_product(nn_arrays *a) {
    dtconv_gemm_mixed_args p = product;
    p.a.data = a->x, p.b.data = a->slot, p.c = a->y;
    const dtconv_status status = dtconv_gemm_mixed(&p, a->workspace, a->bytes);
    return status == DTCONV_KERNEL ? DTCONV_OK : status; /* Python puts the micro-kernel in force */
}

static dtconv_status nn_weighted_mean(nn_arrays *a) {
    return dtconv_sweighted_mean_forward(ELEMENTS, 1, DTCONV_MEAN_OF_VALUES, a->x, a->slot, a->y);
}

static dtconv_status nn_adam(nn_arrays *a) {
    memset(a->dx, 0, ELEMENTS * sizeof(float));
    return dtconv_sadam(ELEMENTS, a->y, a->x, a->slot, a->dx, NULL, 0.01, 0.9, 0.99, 1e-7, 1, 0.1);
}

static dtconv_status nn_momentum(nn_arrays *a) {
    return dtconv_smomentum(ELEMENTS, a->y, a->x, a->slot, 0.01, 0.9, 1, 0.1);
}

static dtconv_status nn_norm(nn_arrays *a) {
    double norm;
    const dtconv_status status = dtconv_ssquared_norm(ELEMENTS, a->x, &norm);
    a->y[0] = (float)norm;
    return status;
}

static const struct {
    const char *name;
    dtconv_status (*run)(nn_arrays *);
} kernels[] = {{"batchnorm", nn_batchnorm},
               {"layernorm", nn_layernorm},
               {"max_pool", nn_max_pool},
               {"average_pool", nn_average_pool},
               {"global_pool", nn_global_pool},
               {"softmax", nn_softmax},
               {"reduce", nn_reduce},
               {"attention", nn_attention},
               {"transform", nn_transform},
               {"signals", nn_signals},
               {"product", nn_product},
               {"weighted_mean", nn_weighted_mean},
               {"adam", nn_adam},
               {"momentum", nn_momentum},
               {"squared_norm", nn_norm}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Runs a kernel on arrays of its own; returns a sum over the bits of all that it wrote. */
static uint64_t run_kernel(int which) {
    nn_arrays a = {.x = filled(ELEMENTS), .y = filled(ELEMENTS), .dx = filled(ELEMENTS), .slot = filled(ELEMENTS)};
    const int before = dtconv_hold_num_threads(dtconv_get_num_threads());
    const size_t sizes[] = {dtconv_sbatchnorm_workspace(ROWS, CHANNELS),
                            dtconv_slayernorm_workspace(ROWS, CHANNELS),
                            dtconv_sreduce_workspace(column_sums),
                            dtconv_sattention_workspace(&attention, 0),
                            dtconv_sattention_workspace(&attention, 1),
                            dtconv_sfft_batch_workspace(&transform),
                            dtconv_soverlap_workspace(&signals),
                            dtconv_gemm_mixed_workspace(product.m, product.n, product.k, product.products)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) a.bytes = sizes[i] > a.bytes ? sizes[i] : a.bytes;
    for (int i = 0; i < 6; i++) a.vectors[i] = filled(CHANNELS);
    a.workspace = malloc(a.bytes + 64), a.argmax = calloc(ELEMENTS, sizeof(int32_t));
    if (!a.workspace || !a.argmax) abort();
    const dtconv_status status = kernels[which].run(&a);
    dtconv_hold_num_threads(before);
    if (status != DTCONV_OK) {
        printf("%s: status %d\n", kernels[which].name, status);
        exit(1);
    }
    uint64_t sum = bits_of(a.y, ELEMENTS) + 3 * bits_of(a.dx, ELEMENTS) + 5 * bits_of(a.slot, ELEMENTS);
    for (int i = 0; i < 6; i++) {
        sum = sum * 7 + bits_of(a.vectors[i], CHANNELS);
        free(a.vectors[i]);
    }
    free(a.x), free(a.y), free(a.dx), free(a.slot), free(a.argmax), free(a.workspace);
    return sum;
}
