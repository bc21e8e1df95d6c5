/* Products of a large matrix with a thin one, which is all that is packed.  To be included after dtconv_gemm.h. */

/* Computes C = beta * C + alpha * A * B where that is faster; returns 0, with nothing done, elsewhere.
 * The result does not depend on the number of threads.  workspace: of gemm_thin_workspace bytes, aligned to vectors;
 * these are no fewer than any product needs whose m, n and k are not larger. */
int DT(gemm_thin)(const DT(gemm_args) * g, real alpha, int threads, real *workspace);
/* Whether sizes are thin: few rows meet a large B, or so few products make an element of a large C. */
int DT(gemm_has_few_rows)(int64_t m, int64_t n, int64_t k);
int DT(gemm_is_shallow)(int64_t m, int64_t n, int64_t k);
size_t DT(gemm_thin_workspace)(int64_t m, int64_t n, int64_t k, int threads);
