/* What bindings need of types that differ between precisions: structures filled from arrays, micro-kernels by index.
 * In the precision that `real`, `elem` and DT() say, and without an include guard: dtconv_any.h includes it once per
 * precision.
 */

/* Convolution: `args` is a dtconv_conv_args.  All that a pass needs; what else it may have is set by the functions
 * below. */
static inline void DT(conv_set_arrays)(void *args, const elem *x, const real *w, const elem *y, const real *bias,
                                       int activation, double alpha, int accumulate) {
    *(DT(conv_args) *)args = (DT(conv_args)){
        .x = (elem *)x,
        .w = (real *)w,
        .y = (elem *)y,
        .bias = bias,
        .activation = (dtconv_activation)activation,
        .alpha = (real)alpha,
        .accumulate = accumulate,
    };
}

static inline void DT(conv_set_moments)(void *args, real *mean, real *variance) {
    DT(conv_args) *a = args;
    a->mean = mean;
    a->variance = variance;
}

static inline void DT(conv_set_prologue)(void *args, const real *mean, const real *scale, const real *beta,
                                         int activation) {
    ((DT(conv_args) *)args)->prologue = (DT(conv_normalization)){mean, scale, beta, (dtconv_activation)activation};
}

/* normalization: a dtconv_conv_normalization. */
static inline void DT(conv_set_normalization)(void *normalization, const real *mean, const real *scale,
                                              const real *beta, int activation) {
    *(DT(conv_normalization) *)normalization =
        (DT(conv_normalization)){mean, scale, beta, (dtconv_activation)activation};
}

static inline void DT(conv_set_reductions)(void *args, const elem *x, int64_t ldx, const real *mean, const real *scale,
                                           const real *beta, int activation, const real *sum, const real *sum_x,
                                           int bypass) {
    ((DT(conv_args) *)args)->reductions = (DT(conv_reductions)){
        x, ldx, mean, scale, beta, (dtconv_activation)activation, (real *)sum, (real *)sum_x, bypass};
}

static inline void DT(conv_set_scale)(void *args, const real *scale, const real *beta) {
    ((DT(conv_args) *)args)->scale = scale;
    ((DT(conv_args) *)args)->beta = beta;
}

static inline void DT(conv_set_residual)(void *args, const elem *residual, int64_t ldr) {
    DT(conv_args) *a = args;
    a->residual = residual;
    a->ldr = ldr;
}

static inline void DT(conv_set_spectra)(void *args, const real *spectra, const real *dy_spectra) {
    DT(conv_args) *a = args;
    a->spectra = (real *)spectra;
    a->dy_spectra = (real *)dy_spectra;
}

/* C = alpha * A * B + beta * C; element (i, j) of A at a[i * ars + j * acs], of B likewise, rows of C ldc apart. */
static inline dtconv_status DT(gemm_strided)(int64_t m, int64_t n, int64_t k, const real *a, int64_t ars, int64_t acs,
                                             const real *b, int64_t brs, int64_t bcs, real *c, int64_t ldc,
                                             double alpha, double beta, void *workspace, size_t bytes) {
    const DT(matrix) left = {a, ars, acs}, right = {b, brs, bcs};
    const DT(gemm_args) args = DT(gemm_of_matrices)(m, n, k, &left, &right, c, ldc, beta);
    return DT(gemm_scaled)(&args, (real)alpha, workspace, bytes);
}

/* Writes what the micro-kernel at this index is; 0 where there is none. */
static inline int DT(ukr_describe)(int index, dtconv_ukr_info *info) {
    const DT(ukr_row) *row = DT(ukr_get)(index);
    if (!row) return 0;
    *info = (dtconv_ukr_info){
        row->name,           row->mr, row->nr, row->features, DT(ukr_rank)(row, dtconv_cpu_features()), row->in_place,
        row->foreign != NULL};
    return 1;
}

/* MC, KC and NC of a large problem with it. */
static inline void DT(ukr_sizes)(int index, int64_t *sizes) {
    const DT(gemm_sizes) s = DT(gemm_sizes_of)(DT(ukr_get)(index));
    sizes[0] = s.mc, sizes[1] = s.kc, sizes[2] = s.nc;
}

/* Puts it in force; -1: none, so that the chooser is asked again. */
static inline void DT(ukr_select_index)(int index) { DT(ukr_select)(index < 0 ? NULL : DT(ukr_get)(index)); }

/* The one in force; -1: none has been chosen yet. */
static inline int DT(ukr_active_index)(void) {
    for (int index = 0; DT(ukr_get)(index); index++)
        if (DT(ukr_get)(index) == DT(ukr_in_force)()) return index;
    return -1;
}

static inline double DT(ukr_self_test)(int index) { return DT(ukr_check)(DT(ukr_get)(index)); }

static inline void DT(ukr_repeat_index)(int index, int64_t repeats, int64_t k, const elem *a, const elem *b, real *c) {
    DT(ukr_repeat)(DT(ukr_get)(index), repeats, k, a, b, c);
}
