/* Scaled dot-product attention, without the matrix of scores in memory.  No include guard: see dtconv_both.h.
 *
 *   y[b, i, h] = sum over j of P[i, j] v[b, j, h / G],    P = softmax over j of (scale q[b, i, h] . k[b, j, h / G])
 *
 * q (n, tq, heads, d), k (n, tk, kv_heads, d), v (n, tk, kv_heads, dv), y (n, tq, heads, dv); G = heads / kv_heads.
 */
#ifndef real
#include "dtconv_real.h"
#endif

#include "dtconv_limits.h"

#ifndef DTCONV_ATTENTION_PROBLEM
#define DTCONV_ATTENTION_PROBLEM
/* Strides, in elements: of a sample, a token, a head; features are neighbours.  mask: of a sample, a head, a query, a
 * key; 0 repeats.
 * causal: query i attends to keys 0 .. i.  rate: probability with which an element of P is dropped, the others being
 * divided by 1 - rate; element (b, h, i, j) is number ((b heads + h) tq + i) tk + j behind key.first.
 * zero_empty: what a query that may attend to no key gets: 0; otherwise the mean of all values.
 * add_q, add_k, add_v: add to the gradient instead of overwriting it.
 * Sizes are within the limits of dtconv_limits.h: each of them, and the products of backward. */
typedef struct {
    int64_t n, heads, kv_heads, tq, tk, d, dv;
    int64_t q[3], k[3], v[3], y[3], dy[3], dq[3], dk[3], dvalue[3];
    int64_t mask[4];
    double scale, rate;
    int causal, zero_empty, add_q, add_k, add_v;
    dtconv_random_key key;
} dtconv_attention;
#endif

/* Bytes of workspace of a pass with the threads now set. */
size_t DT(attention_workspace)(const dtconv_attention *p, int backward);

/* y, and sums (n, heads, tq): the logarithm of the sum of each query's exp(scores), which backward wants; -infinity
 * where a query may attend to no key.  mask: NULL, or not 0 where a query may attend. */
dtconv_status DT(attention_forward)(const dtconv_attention *p, const real *q, const real *k, const real *v,
                                    const uint8_t *mask, real *y, real *sums, void *workspace, size_t bytes);

/* dq, dk and dv (NULL: not wanted) from dy and what forward has read and written. */
dtconv_status DT(attention_backward)(const dtconv_attention *p, const real *q, const real *k, const real *v,
                                     const uint8_t *mask, const real *y, const real *sums, const real *dy, real *dq,
                                     real *dk, real *dv, void *workspace, size_t bytes);
