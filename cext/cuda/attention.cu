/* What attention does between its products, one head of some images at a time; formulas: cext/nn/attention_forward.c,
 * attention_backward.c.  A warp has a query: a row of tk scores.
 *
 * sizes: n, heads, tq, tk, this head, the first image; then the mask's type and its strides of an image, a head, a
 * query and a key.  key: of dropout, see random.h; none: nothing is dropped.
 */
#include "dtconv_cuda.h"
#include "functions.h"
#include "numbers.h"
#include "random.h"

struct query {
    int64_t heads, tq, tk, image, head, number;
    int lane;
};

__device__ inline query query_of(Array<const int64_t> sizes) {
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32, tq = sizes[2];
    const query found = {sizes[1], tq, sizes[3], sizes[5] + row / tq, sizes[4], row % tq, (int)threadIdx.x % 32};
    return found;
}

/* Its place among the queries of all images and heads. */
__device__ inline int64_t place_of(const query &q) { return (q.image * q.heads + q.head) * q.tq + q.number; }

struct rules {
    Array<const int64_t> sizes;
    Array<const uint8_t> mask;
    Array<const int64_t> key;
    int64_t causal, threshold;
    real factor; /* of what is not dropped */
};

/* Whether a query may attend to key j. */
__device__ inline bool is_seen(const rules &r, const query &q, int64_t j) {
    if (r.causal && j > q.number) return false;
    if (!r.mask) return true;
    const int64_t at = q.image * r.sizes[7] + q.head * r.sizes[8] + q.number * r.sizes[9] + j * r.sizes[10];
    return number_at(r.mask, (int)r.sizes[6], at) != 0;
}

__device__ inline real dropout_of(const rules &r, const query &q, int64_t j) {
    if (!r.key) return 1;
    return is_kept(r.key, r.key[3] + place_of(q) * q.tk + j, r.threshold) ? r.factor : 0;
}

/* scores become P, with dropout; sums = the logarithm of the sum of exp(scale * score), or minus infinity where a query
 * may attend to no key: P is 1 / tk then, or 0 */
GLOBAL BOUNDS(256) forward(int64_t rows, Array<const int64_t> sizes, double scale, int64_t causal, int64_t zero_empty,
                           Array<const uint8_t> mask, Array<const int64_t> key, int64_t threshold, double factor,
                           Array<real> scores, Array<real> sums) {
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const query q = query_of(sizes);
    const rules r = {sizes, mask, key, causal, threshold, (real)factor};
    const int64_t first = row * q.tk;
    const real never = log_((real)0);
    real most = never, sum = 0;
    for (int64_t j = q.lane; j < q.tk; j += 32) {
        const real score = is_seen(r, q, j) ? (real)scale * scores[first + j] : never;
        scores[first + j] = score;
        most = score > most || score != score ? score : most;
    }
    most = warp_max(most);
    if (most == never) {
        for (int64_t j = q.lane; j < q.tk; j += 32) scores[first + j] = zero_empty ? 0 : 1 / (real)q.tk;
        if (q.lane == 0) sums[place_of(q)] = never;
        return;
    }
    for (int64_t j = q.lane; j < q.tk; j += 32) {
        const real e = exp_(scores[first + j] - most);
        scores[first + j] = e;
        sum += e;
    }
    sum = warp_sum(sum);
    for (int64_t j = q.lane; j < q.tk; j += 32) scores[first + j] = scores[first + j] / sum * dropout_of(r, q, j);
    if (q.lane == 0) sums[place_of(q)] = most + log_(sum);
}
KERNEL(forward)

/* scores become P, with dropout, and slopes, the gradient of that, become the gradient of the scores; y, dy: rows of dv
 * elements for each token and head */
GLOBAL BOUNDS(256) backward(int64_t rows, Array<const int64_t> sizes, double scale, int64_t causal, int64_t zero_empty,
                            Array<const uint8_t> mask, Array<const int64_t> key, int64_t threshold, double factor,
                            Array<const real> sums, int64_t dv, Array<const real> y, int64_t ldy, Array<const real> dy,
                            int64_t lddy, Array<real> scores, Array<real> slopes) {
    const int64_t row = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;
    const query q = query_of(sizes);
    const rules r = {sizes, mask, key, causal, threshold, (real)factor};
    const int64_t first = row * q.tk, token = (q.image * q.tq + q.number) * q.heads + q.head;
    const real sum = sums[place_of(q)];
    real dot = 0;
    for (int64_t c = q.lane; c < dv; c += 32) dot += dy[token * lddy + c] * y[token * ldy + c];
    dot = warp_sum(dot);
    const bool empty = sum == log_((real)0);
    for (int64_t j = q.lane; j < q.tk; j += 32) {
        real share = empty && !zero_empty ? 1 / (real)q.tk : 0, slope = 0;
        if (!empty && is_seen(r, q, j)) {
            const real e = exp_((real)scale * scores[first + j] - sum), kept = dropout_of(r, q, j);
            slope = e * (slopes[first + j] * kept - dot) * (real)scale;
            share = e * kept;
        }
        scores[first + j] = share;
        slopes[first + j] = slope;
    }
}
KERNEL(backward)
