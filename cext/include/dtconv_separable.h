/* Separable convolution: a depthwise one, and a pointwise one that reads its result.
 *
 *   t[n, oh, ow, c * mult + i] = sum over (kh, kw) of x[n, ih, iw, c] * deep[kh, kw, c * mult + i]
 *   y[n, oh, ow, co] = sum over k of t[n, oh, ow, k] * w[k, co]
 *
 * t never reaches memory: a thread makes some rows of it at a time, which stay in its cache.
 *
 * No include guard: see dtconv_both.h.
 */

/* p: the depthwise convolution from x to t, but for ldy, which is of y; co: channels of y.  In float32 and float64.
 * Arguments are those of the pointwise convolution where they are not x's: w, bias, scale, activation, residual and
 * moments; and x's: prologue.  between: t becomes act((t - mean) * scale + beta) before w meets it; NULL: it does not.
 */

/* DTCONV_UNSUPPORTED: rows of x are too long for a thread's cache (see depthwise_rows.c). */
dtconv_status DT(separable_forward)(const dtconv_conv *p, int64_t co, const DT(conv_args) * a, const real *deep,
                                    const DT(conv_normalization) * between, void *workspace, size_t bytes);
size_t DT(separable_forward_workspace)(const dtconv_conv *p, int64_t co);

/* a->w: the gradient of w, which is written; a->y: that of y. */
dtconv_status DT(separable_backward_weights)(const dtconv_conv *p, int64_t co, const DT(conv_args) * a,
                                             const real *deep, void *workspace, size_t bytes);
size_t DT(separable_backward_weights_workspace)(const dtconv_conv *p, int64_t co);

/* Whether t can be made row by row. */
int DT(separable_fits)(const dtconv_conv *p, int64_t co);
