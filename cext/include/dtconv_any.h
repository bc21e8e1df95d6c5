/* One name for what the library has in every precision: for bindings, which would otherwise say everything twice.
 *
 * Where a function takes arrays, the type of one of them picks it when the call is compiled:
 *     dtconv_adam(n, params, ...)  is  dtconv_sadam for float *params, dtconv_dadam for double *.
 * Where it takes none, a dtconv_dtype picks it when it runs:
 *     dtconv_gemm_workspace(dtype, m, n, k)
 * Only some functions exist for bfloat16 (images are uint16_t *, parameters float *; the image picks): where a dtype
 * picks, DTCONV_FOR_EVERY says so.
 * A further precision is a row of DTCONV_OF, of DTCONV_FOR_EVERY and of dtconv_both.h.
 */
#ifndef DTCONV_ANY_H
#define DTCONV_ANY_H

#include "dtconv_both.h"
#include "dtconv_cpu.h"

typedef enum { DTCONV_FLOAT32 = 0, DTCONV_FLOAT64 = 1, DTCONV_BFLOAT16 = 2 } dtconv_dtype;

/* A micro-kernel as the bindings see it. */
typedef struct {
    const char *name;
    int mr, nr;
    unsigned features;
    int rank, in_place, foreign;
} dtconv_ukr_info;

#define real float
#define elem float
#define DT(name) dtconv_s##name
#include "dtconv_arguments.h"
#undef real
#undef elem
#undef DT

#define real double
#define elem double
#define DT(name) dtconv_d##name
#include "dtconv_arguments.h"
#undef real
#undef elem
#undef DT

#define real float
#define elem uint16_t
#define DT(name) dtconv_h##name
#include "dtconv_arguments.h"
#undef real
#undef elem
#undef DT

/* Arguments of a convolution's pass in one of the precisions; filled by dtconv_conv_set_*. */
typedef union {
    dtconv_sconv_args s;
    dtconv_dconv_args d;
    dtconv_hconv_args h;
} dtconv_conv_args;

/* How an image is normalized; filled by dtconv_conv_set_normalization. */
typedef union {
    dtconv_sconv_normalization s;
    dtconv_dconv_normalization d;
    dtconv_hconv_normalization h;
} dtconv_conv_normalization;

/* The dtype of the elements of an array. */
#define DTCONV_DTYPE(p) _Generic(*(p), float: DTCONV_FLOAT32, double: DTCONV_FLOAT64, uint16_t: DTCONV_BFLOAT16)
/* The function of the precision of *p. */
#define DTCONV_OF(p, name) _Generic(*(p), float: dtconv_s##name, double: dtconv_d##name, uint16_t: dtconv_h##name)
/* The function of a dtype, float32 or float64. */
#define DTCONV_FOR(dtype, name) ((dtype) == DTCONV_FLOAT64 ? dtconv_d##name : dtconv_s##name)
/* The call of the function of a dtype that is known when it runs, float32 or float64; arrays come as void *. */
#define DTCONV_RUN(dtype, name, ...) \
    ((dtype) == DTCONV_FLOAT64 ? dtconv_d##name(__VA_ARGS__) : dtconv_s##name(__VA_ARGS__))
/* The same of any dtype. */
#define DTCONV_RUN_EVERY(dtype, name, ...) \
    ((dtype) == DTCONV_BFLOAT16 ? dtconv_h##name(__VA_ARGS__) : DTCONV_RUN(dtype, name, __VA_ARGS__))
/* The function of any dtype. */
#define DTCONV_FOR_EVERY(dtype, name) ((dtype) == DTCONV_BFLOAT16 ? dtconv_h##name : DTCONV_FOR(dtype, name))

/* DTCONV_<i>(name, arguments): the call of name, whose i-th argument, not its last, is the array that picks. */
#define DTCONV_2(name, a, b, ...) DTCONV_OF(b, name)(a, b, __VA_ARGS__)
#define DTCONV_3(name, a, b, c, ...) DTCONV_OF(c, name)(a, b, c, __VA_ARGS__)
#define DTCONV_4(name, a, b, c, d, ...) DTCONV_OF(d, name)(a, b, c, d, __VA_ARGS__)
#define DTCONV_5(name, a, b, c, d, e, ...) DTCONV_OF(e, name)(a, b, c, d, e, __VA_ARGS__)
#define DTCONV_6(name, a, b, c, d, e, f, ...) DTCONV_OF(f, name)(a, b, c, d, e, f, __VA_ARGS__)
#define DTCONV_7(name, a, b, c, d, e, f, g, ...) DTCONV_OF(g, name)(a, b, c, d, e, f, g, __VA_ARGS__)
#define DTCONV_8(name, a, b, c, d, e, f, g, h, ...) DTCONV_OF(h, name)(a, b, c, d, e, f, g, h, __VA_ARGS__)
#define DTCONV_9(name, a, b, c, d, e, f, g, h, i, ...) DTCONV_OF(i, name)(a, b, c, d, e, f, g, h, i, __VA_ARGS__)
#define DTCONV_10(name, a, b, c, d, e, f, g, h, i, j, ...) DTCONV_OF(j, name)(a, b, c, d, e, f, g, h, i, j, __VA_ARGS__)

/* element-wise, reductions, random */
#define dtconv_unary_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, unary_forward, __VA_ARGS__)
#define dtconv_unary_backward(dtype, ...) DTCONV_RUN_EVERY(dtype, unary_backward, __VA_ARGS__)
#define dtconv_add_activation(dtype, ...) DTCONV_RUN_EVERY(dtype, add_activation, __VA_ARGS__)
#define dtconv_binary_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, binary_forward, __VA_ARGS__)
#define dtconv_binary_backward(dtype, ...) DTCONV_RUN_EVERY(dtype, binary_backward, __VA_ARGS__)
#define dtconv_copy(dtype, ...) DTCONV_RUN_EVERY(dtype, copy, __VA_ARGS__)
#define dtconv_permute(dtype, ...) DTCONV_RUN_EVERY(dtype, permute, __VA_ARGS__)
#define dtconv_dropout(...) DTCONV_6(dropout, __VA_ARGS__)
#define dtconv_gaussian_noise(...) DTCONV_5(gaussian_noise, __VA_ARGS__)
#define dtconv_random_window_forward(...) DTCONV_9(random_window_forward, __VA_ARGS__)
#define dtconv_random_window_backward(...) DTCONV_10(random_window_backward, __VA_ARGS__)
#define dtconv_reduce(dtype, ...) DTCONV_RUN_EVERY(dtype, reduce, __VA_ARGS__)
#define dtconv_reduce_workspace(dtype, ...) DTCONV_FOR_EVERY(dtype, reduce_workspace)(__VA_ARGS__)

/* normalization */
#define dtconv_batchnorm_statistics(dtype, ...) DTCONV_RUN_EVERY(dtype, batchnorm_statistics, __VA_ARGS__)
#define dtconv_batchnorm_exact_statistics(dtype, ...) DTCONV_RUN_EVERY(dtype, batchnorm_exact_statistics, __VA_ARGS__)
#define dtconv_batchnorm_scale(dtype, ...) DTCONV_RUN(dtype, batchnorm_scale, __VA_ARGS__)
#define dtconv_batchnorm_moving(dtype, ...) DTCONV_RUN(dtype, batchnorm_moving, __VA_ARGS__)
#define dtconv_batchnorm_apply(dtype, ...) DTCONV_RUN_EVERY(dtype, batchnorm_apply, __VA_ARGS__)
#define dtconv_batchnorm_backward_sums(dtype, ...) DTCONV_RUN_EVERY(dtype, batchnorm_backward_sums, __VA_ARGS__)
#define dtconv_batchnorm_backward_apply(dtype, ...) DTCONV_RUN_EVERY(dtype, batchnorm_backward_apply, __VA_ARGS__)
#define dtconv_batchnorm_backward_means(dtype, ...) DTCONV_RUN_EVERY(dtype, batchnorm_backward_means, __VA_ARGS__)
#define dtconv_normalized_sums(dtype, ...) DTCONV_RUN_EVERY(dtype, normalized_sums, __VA_ARGS__)
#define dtconv_normalized_product(dtype, ...) DTCONV_RUN_EVERY(dtype, normalized_product, __VA_ARGS__)
#define dtconv_normalized_gradient(dtype, ...) DTCONV_RUN_EVERY(dtype, normalized_gradient, __VA_ARGS__)
#define dtconv_batchnorm_given_sums(dtype, ...) DTCONV_RUN(dtype, batchnorm_given_sums, __VA_ARGS__)
#define dtconv_batchnorm_mean_terms(dtype, ...) DTCONV_RUN(dtype, batchnorm_mean_terms, __VA_ARGS__)
#define dtconv_batchnorm_workspace(dtype, ...) DTCONV_FOR_EVERY(dtype, batchnorm_workspace)(__VA_ARGS__)
#define dtconv_layernorm_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, layernorm_forward, __VA_ARGS__)
#define dtconv_layernorm_backward(dtype, ...) DTCONV_RUN_EVERY(dtype, layernorm_backward, __VA_ARGS__)
#define dtconv_layernorm_workspace(dtype, ...) DTCONV_FOR_EVERY(dtype, layernorm_workspace)(__VA_ARGS__)

/* attention, products of tokens */
#define dtconv_attention_workspace(dtype, ...) DTCONV_FOR(dtype, attention_workspace)(__VA_ARGS__)
#define dtconv_attention_forward(...) DTCONV_2(attention_forward, __VA_ARGS__)
#define dtconv_attention_backward(...) DTCONV_2(attention_backward, __VA_ARGS__)
#define dtconv_gemm_batched_workspace(dtype, ...) DTCONV_FOR(dtype, gemm_batched_workspace)(__VA_ARGS__)
#define dtconv_gemm_batched(...) DTCONV_7(gemm_batched, __VA_ARGS__)
#define dtconv_dense_forward(dtype, ...) DTCONV_RUN(dtype, dense_forward, __VA_ARGS__)
#define dtconv_dense_bias_backward_workspace(dtype, ...) DTCONV_FOR(dtype, dense_bias_backward_workspace)(__VA_ARGS__)
#define dtconv_dense_bias_backward(dtype, ...) DTCONV_RUN(dtype, dense_bias_backward, __VA_ARGS__)
#define dtconv_take_rows(...) DTCONV_4(take_rows, __VA_ARGS__)
#define dtconv_add_to_rows(...) DTCONV_5(add_to_rows, __VA_ARGS__)

/* softmax and losses */
#define dtconv_softmax_forward(...) DTCONV_5(softmax_forward, __VA_ARGS__)
#define dtconv_softmax_backward(...) DTCONV_5(softmax_backward, __VA_ARGS__)
#define dtconv_cross_entropy_forward(...) DTCONV_6(cross_entropy_forward, __VA_ARGS__)
#define dtconv_cross_entropy_backward(...) DTCONV_6(cross_entropy_backward, __VA_ARGS__)
#define dtconv_elementwise_loss_forward(...) DTCONV_7(elementwise_loss_forward, __VA_ARGS__)
#define dtconv_elementwise_loss_backward(...) DTCONV_7(elementwise_loss_backward, __VA_ARGS__)
#define dtconv_weighted_mean_forward(...) DTCONV_4(weighted_mean_forward, __VA_ARGS__)
#define dtconv_weighted_mean_backward(...) DTCONV_4(weighted_mean_backward, __VA_ARGS__)
#define dtconv_l1_l2_forward(...) DTCONV_4(l1_l2_forward, __VA_ARGS__)
#define dtconv_l1_l2_backward(...) DTCONV_4(l1_l2_backward, __VA_ARGS__)

/* pooling */
#define dtconv_max_pool_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, max_pool_forward, __VA_ARGS__)
#define dtconv_max_pool_backward(dtype, ...) DTCONV_RUN_EVERY(dtype, max_pool_backward, __VA_ARGS__)
#define dtconv_average_pool_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, average_pool_forward, __VA_ARGS__)
#define dtconv_average_pool_backward(dtype, ...) DTCONV_RUN_EVERY(dtype, average_pool_backward, __VA_ARGS__)
#define dtconv_global_average_pool_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, global_average_pool_forward, __VA_ARGS__)
#define dtconv_global_average_pool_backward(dtype, ...) \
    DTCONV_RUN_EVERY(dtype, global_average_pool_backward, __VA_ARGS__)
#define dtconv_global_max_pool_forward(dtype, ...) DTCONV_RUN_EVERY(dtype, global_max_pool_forward, __VA_ARGS__)
#define dtconv_global_max_pool_backward(dtype, ...) DTCONV_RUN_EVERY(dtype, global_max_pool_backward, __VA_ARGS__)

/* images */
#define dtconv_take_samples(dtype, ...) DTCONV_RUN_EVERY(dtype, take_samples, __VA_ARGS__)
#define dtconv_bands(dtype, ...) DTCONV_RUN_EVERY(dtype, bands, __VA_ARGS__)
#define dtconv_sample_places(...) DTCONV_9(sample_places, __VA_ARGS__)
#define dtconv_bands_workspace(dtype, ...) DTCONV_FOR_EVERY(dtype, bands_workspace)(__VA_ARGS__)

/* optimizers */
#define dtconv_sgd(...) DTCONV_2(sgd, __VA_ARGS__)
#define dtconv_momentum(...) DTCONV_2(momentum, __VA_ARGS__)
#define dtconv_rmsprop(...) DTCONV_2(rmsprop, __VA_ARGS__)
#define dtconv_adam(...) DTCONV_2(adam, __VA_ARGS__)
#define dtconv_nadam(...) DTCONV_2(nadam, __VA_ARGS__)
#define dtconv_adagrad(...) DTCONV_2(adagrad, __VA_ARGS__)
#define dtconv_adadelta(...) DTCONV_2(adadelta, __VA_ARGS__)
#define dtconv_adamax(...) DTCONV_2(adamax, __VA_ARGS__)
#define dtconv_lion(...) DTCONV_2(lion, __VA_ARGS__)
#define dtconv_ftrl(...) DTCONV_2(ftrl, __VA_ARGS__)
#define dtconv_squared_norm(...) DTCONV_2(squared_norm, __VA_ARGS__)
#define dtconv_scale(...) DTCONV_2(scale, __VA_ARGS__)
#define dtconv_clip_values(...) DTCONV_2(clip_values, __VA_ARGS__)
#define dtconv_add_scaled(...) DTCONV_2(add_scaled, __VA_ARGS__)
#define dtconv_moving_average(...) DTCONV_2(moving_average, __VA_ARGS__)
#define dtconv_has_nonfinite(...) DTCONV_2(has_nonfinite, __VA_ARGS__)

/* sums over processes */
#define dtconv_to_bfloat16(...) DTCONV_2(to_bfloat16, __VA_ARGS__)
#define dtconv_from_bfloat16(n, x, y) DTCONV_OF(y, from_bfloat16)(n, x, y)
#define dtconv_narrow_rows(...) DTCONV_3(narrow_rows, __VA_ARGS__)
#define dtconv_widen_rows(n, c, x, ldx, y, ldy) DTCONV_OF(y, widen_rows)(n, c, x, ldx, y, ldy)
#define dtconv_sum_rows(...) DTCONV_3(sum_rows, __VA_ARGS__)

/* convolution */
#define dtconv_conv_bias_forward(...) DTCONV_3(conv_bias_forward, __VA_ARGS__)
#define dtconv_conv_bias_backward(...) DTCONV_3(conv_bias_backward, __VA_ARGS__)
#define dtconv_conv_bias_backward_workspace(dtype, ...) \
    DTCONV_FOR_EVERY(dtype, conv_bias_backward_workspace)(__VA_ARGS__)
#define dtconv_separable_fits(dtype, ...) DTCONV_FOR(dtype, separable_fits)(__VA_ARGS__)
#define dtconv_separable_forward_workspace(dtype, ...) DTCONV_FOR(dtype, separable_forward_workspace)(__VA_ARGS__)
#define dtconv_separable_forward(dtype, ...) DTCONV_RUN(dtype, separable_forward, __VA_ARGS__)
#define dtconv_separable_backward_weights_workspace(dtype, ...) \
    DTCONV_FOR(dtype, separable_backward_weights_workspace)(__VA_ARGS__)
#define dtconv_separable_backward_weights(dtype, ...) DTCONV_RUN(dtype, separable_backward_weights, __VA_ARGS__)
#define dtconv_fft_basis(dtype, ...) DTCONV_FOR(dtype, fft_basis)(__VA_ARGS__)
#define dtconv_fft_spectra_size(dtype, ...) DTCONV_FOR(dtype, fft_spectra_size)(__VA_ARGS__)
#define dtconv_fft_dy_spectra_size(dtype, ...) DTCONV_FOR(dtype, fft_dy_spectra_size)(__VA_ARGS__)
#define dtconv_direct_is_along_taps(dtype, ...) DTCONV_FOR(dtype, direct_is_along_taps)(__VA_ARGS__)
#define dtconv_direct_reads_in_place(dtype, ...) DTCONV_FOR(dtype, direct_reads_in_place)(__VA_ARGS__)
#define dtconv_conv_find(dtype, ...) DTCONV_FOR_EVERY(dtype, conv_find)(__VA_ARGS__)
#define dtconv_conv_set_arrays(...) DTCONV_2(conv_set_arrays, __VA_ARGS__)
/* an image comes first and picks: vectors are of its precision's numbers */
#define dtconv_conv_set_moments(image, ...) DTCONV_OF(image, conv_set_moments)(__VA_ARGS__)
#define dtconv_conv_set_prologue(image, ...) DTCONV_OF(image, conv_set_prologue)(__VA_ARGS__)
#define dtconv_conv_set_normalization(image, ...) DTCONV_OF(image, conv_set_normalization)(__VA_ARGS__)
#define dtconv_conv_set_scale(image, ...) DTCONV_OF(image, conv_set_scale)(__VA_ARGS__)
#define dtconv_conv_set_reductions(...) DTCONV_2(conv_set_reductions, __VA_ARGS__)
#define dtconv_conv_set_residual(...) DTCONV_2(conv_set_residual, __VA_ARGS__)
#define dtconv_conv_set_spectra(image, ...) DTCONV_OF(image, conv_set_spectra)(__VA_ARGS__)
#define dtconv_winograd_filters(image, ...) DTCONV_OF(image, winograd_filters)(__VA_ARGS__)
#define dtconv_winograd_filters_bytes(dtype, ...) DTCONV_FOR_EVERY(dtype, winograd_filters_bytes)(__VA_ARGS__)
#define dtconv_winograd_with_filters(image, ...) DTCONV_OF(image, winograd_with_filters)(__VA_ARGS__)
#define dtconv_winograd_with_filters_workspace(dtype, ...) \
    DTCONV_FOR_EVERY(dtype, winograd_with_filters_workspace)(__VA_ARGS__)

/* Fourier transforms */
#define dtconv_fft_batch(...) DTCONV_2(fft_batch, __VA_ARGS__)
#define dtconv_overlap_run(...) DTCONV_2(overlap, __VA_ARGS__)
#define dtconv_overlap_values(dtype, ...) DTCONV_FOR(dtype, overlap_values)(__VA_ARGS__)
#define dtconv_overlap_layer(...) DTCONV_3(overlap_layer, __VA_ARGS__)
#define dtconv_overlap_workspace(dtype, ...) DTCONV_FOR(dtype, overlap_workspace)(__VA_ARGS__)
#define dtconv_overlap_plan_bytes(dtype, ...) DTCONV_FOR(dtype, overlap_plan_bytes)(__VA_ARGS__)
#define dtconv_overlap_plan(dtype, ...) DTCONV_RUN(dtype, overlap_plan, __VA_ARGS__)
#define dtconv_fft_batch_workspace(dtype, ...) DTCONV_FOR(dtype, fft_batch_workspace)(__VA_ARGS__)

/* micro-kernels */
#define dtconv_ukr_describe(dtype, ...) DTCONV_FOR_EVERY(dtype, ukr_describe)(__VA_ARGS__)
#define dtconv_ukr_sizes(dtype, ...) DTCONV_FOR_EVERY(dtype, ukr_sizes)(__VA_ARGS__)
#define dtconv_ukr_register(dtype, ...) DTCONV_FOR(dtype, ukr_register)(__VA_ARGS__)
#define dtconv_ukr_register_system(dtype, ...) DTCONV_FOR(dtype, ukr_register_system)(__VA_ARGS__)
#define dtconv_ukr_select_index(dtype, ...) DTCONV_FOR_EVERY(dtype, ukr_select_index)(__VA_ARGS__)
#define dtconv_ukr_active_index(dtype) DTCONV_FOR_EVERY(dtype, ukr_active_index)()
#define dtconv_ukr_set_chooser(dtype, ...) DTCONV_FOR_EVERY(dtype, ukr_set_chooser)(__VA_ARGS__)
#define dtconv_ukr_self_test(dtype, ...) DTCONV_FOR_EVERY(dtype, ukr_self_test)(__VA_ARGS__)
#define dtconv_ukr_peak(dtype, ...) DTCONV_FOR_EVERY(dtype, ukr_peak)(__VA_ARGS__)
#define dtconv_ukr_repeat_index(...) DTCONV_4(ukr_repeat_index, __VA_ARGS__)

/* images */
#define dtconv_change_images_workspace(dtype, ...) DTCONV_FOR(dtype, change_images_workspace)(__VA_ARGS__)

/* matrix products */
#define dtconv_gemm_strided(dtype, ...) DTCONV_RUN(dtype, gemm_strided, __VA_ARGS__)
#define dtconv_gemm_workspace(dtype, ...) DTCONV_FOR(dtype, gemm_workspace)(__VA_ARGS__)

#endif
