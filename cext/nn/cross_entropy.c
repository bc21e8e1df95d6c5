/* Cross-entropy over classes, from scores, from probabilities, or together with the softmax.
 *
 *   loss = -sum_j t_j log q_j;   x, t (outer, k, inner), loss (outer, inner)
 *   scores:        log q_j = x_j - m - log(sum exp(x - m));            dx = (q * sum t - t) * dloss
 *   probabilities: q_j = clip(x_j / S, epsilon, 1 - epsilon), S = sum x;
 *                  dq_j = -t_j / q_j where not clipped, else 0;        dx = (dq - sum(dq * x / S)) / S * dloss
 *
 * t is given, smoothed, or one-hot for a label.  Labels are all checked before anything is written.  Nothing is saved
 * for backward: the softmax of scores is computed again, a sample stays in cache.
 */
#include "dtconv_nn_losses.h"
#include "norm_common.h"

/* The true distribution of one sample: t[j * stride] * keep + add, or one-hot. */
typedef struct {
    const real *t;
    int64_t label;
    real keep, add;
} truth;

INLINE real truth_at(const truth *a, int64_t j, int64_t stride) {
    return a->t ? a->t[j * stride] * a->keep + a->add : (j == a->label ? (real)1 : (real)0);
}

/* A label as an integer; -1 - 2^62 stands for a float that is not finite or too large. */
static int64_t label_at(const dtconv_targets *a, int64_t i) {
    double value;
    switch (a->label_type) {
        case DTCONV_LABEL_INT32:
            return ((const int32_t *)a->labels)[i];
        case DTCONV_LABEL_INT64:
            return ((const int64_t *)a->labels)[i];
        case DTCONV_LABEL_FLOAT32:
            value = (double)((const float *)a->labels)[i];
            break;
        default:
            value = ((const double *)a->labels)[i];
    }
    return value > -1e15 && value < 1e15 ? (int64_t)value : -1 - ((int64_t)1 << 62);
}

static int labels_valid(const dtconv_targets *a, int64_t count, int64_t k) {
    if (a->t) return 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t label = label_at(a, i);
        if ((label < 0 || label >= k) && !(a->use_ignore && label == a->ignore)) return 0;
    }
    return 1;
}

/* The truth of sample (o, i); returns 0 for a sample that is ignored. */
static int truth_of(const dtconv_targets *a, int64_t o, int64_t k, int64_t inner, int64_t i, truth *result) {
    *result = (truth){a->t ? (const real *)a->t + o * k * inner + i : NULL, -1, (real)(1 - a->smoothing),
                      (real)(a->smoothing / (double)k)};
    if (a->t) return 1;
    result->label = label_at(a, o * inner + i);
    return !(a->use_ignore && result->label == a->ignore);
}

INLINE real clipped(real q, real epsilon) { return q < epsilon ? epsilon : (q > 1 - epsilon ? 1 - epsilon : q); }

INLINE real loss_of_scores(const real *x, int64_t k, int64_t stride, const truth *a, real *p) {
    const real m = maximum(x, k, stride);
    real s = 0, loss = 0;
    if (p) {
#pragma omp simd reduction(+ : s)
        for (int64_t j = 0; j < k; j++) {
            p[j * stride] = fast_exp(x[j * stride] - m);
            s += p[j * stride];
        }
    } else {
#pragma omp simd reduction(+ : s)
        for (int64_t j = 0; j < k; j++) s += fast_exp(x[j * stride] - m);
    }
    const real log_s = (real)log((double)s), share = 1 / s;
    if (p)
        for (int64_t j = 0; j < k; j++) p[j * stride] *= share;
    if (!a) return 0;
    if (!a->t) return log_s - (x[a->label * stride] - m);
#pragma omp simd reduction(+ : loss)
    for (int64_t j = 0; j < k; j++) loss += truth_at(a, j, stride) * (log_s - (x[j * stride] - m));
    return loss;
}

INLINE real sum_of(const real *x, int64_t k, int64_t stride) {
    real s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t j = 0; j < k; j++) s += x[j * stride];
    return s;
}

INLINE real loss_of_probabilities(const real *x, int64_t k, int64_t stride, const truth *a, real epsilon) {
    const real s = sum_of(x, k, stride);
    if (!a->t) return (real)-log((double)clipped(x[a->label * stride] / s, epsilon));
    double loss = 0;
    for (int64_t j = 0; j < k; j++)
        loss -= (double)truth_at(a, j, stride) * log((double)clipped(x[j * stride] / s, epsilon));
    return (real)loss;
}

INLINE real sample_loss(dtconv_prediction prediction, const real *x, int64_t k, int64_t stride, const truth *a,
                        real epsilon, int ignored, real *p) {
    if (prediction == DTCONV_PROBABILITIES) return ignored ? 0 : loss_of_probabilities(x, k, stride, a, epsilon);
    if (ignored && !p) return 0;
    return loss_of_scores(x, k, stride, ignored ? NULL : a, p);
}

dtconv_status DT(cross_entropy_forward)(int64_t outer, int64_t k, int64_t inner, dtconv_prediction prediction,
                                        real epsilon, const real *x, const dtconv_targets *targets, real *p,
                                        real *loss) {
    if (k < 1 || !labels_valid(targets, outer * inner, k)) return DTCONV_ARGUMENT;
    if (prediction != DTCONV_SOFTMAX) p = NULL;
#pragma omp parallel for collapse(2) schedule(static) num_threads(dtconv_threads_to_move(outer * inner * k * 8))
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t at = o * k * inner + i;
            truth a;
            const int ignored = !truth_of(targets, o, k, inner, i, &a);
            if (inner == 1)
                loss[o] = sample_loss(prediction, x + at, k, 1, &a, epsilon, ignored, p ? p + at : NULL);
            else
                loss[o * inner + i] =
                    sample_loss(prediction, x + at, k, inner, &a, epsilon, ignored, p ? p + at : NULL);
        }
    return DTCONV_OK;
}

INLINE void put(real *dx, int accumulate, real value) { *dx = accumulate ? *dx + value : value; }

INLINE void gradient_of_probabilities(const real *x, int64_t k, int64_t stride, const truth *a, real epsilon,
                                      real dloss, int accumulate, real *dx) {
    const real share = 1 / sum_of(x, k, stride);
    real inside = 0; /* -sum(dq * q) */
    for (int64_t j = 0; j < k; j++) {
        const real q = x[j * stride] * share;
        inside += q >= epsilon && q <= 1 - epsilon ? truth_at(a, j, stride) : 0;
    }
    for (int64_t j = 0; j < k; j++) {
        const real q = x[j * stride] * share;
        const real dq = q >= epsilon && q <= 1 - epsilon ? -truth_at(a, j, stride) / q : 0;
        const real slope = (dq + inside) * share;
        put(dx + j * stride, accumulate, slope == 0 ? 0 : slope * dloss); /* outside, however large dloss is */
    }
}

INLINE void gradient_of_scores(const real *x, int64_t k, int64_t stride, const truth *a, real dloss, int accumulate,
                               real *dx) {
    const real m = maximum(x, k, stride);
    real s = 0, total = 0;
#pragma omp simd reduction(+ : s, total)
    for (int64_t j = 0; j < k; j++) {
        s += fast_exp(x[j * stride] - m);
        total += truth_at(a, j, stride);
    }
    const real factor = total / s;
#pragma omp simd
    for (int64_t j = 0; j < k; j++)
        put(dx + j * stride, accumulate, (fast_exp(x[j * stride] - m) * factor - truth_at(a, j, stride)) * dloss);
}

/* a NULL: the sample is ignored, only dp counts. */
INLINE void gradient_of_softmax(const real *p, int64_t k, int64_t stride, const truth *a, real dloss, const real *dp,
                                int accumulate, real *dx) {
    real total = 0, inner_product = 0;
    if (a)
        for (int64_t j = 0; j < k; j++) total += truth_at(a, j, stride);
    if (dp)
        for (int64_t j = 0; j < k; j++) inner_product += dp[j * stride] * p[j * stride];
    for (int64_t j = 0; j < k; j++) {
        const real q = p[j * stride];
        const real from_loss = a ? (q * total - truth_at(a, j, stride)) * dloss : 0;
        put(dx + j * stride, accumulate, from_loss + (dp ? q * (dp[j * stride] - inner_product) : 0));
    }
}

INLINE void sample_gradient(dtconv_prediction prediction, const real *x, int64_t k, int64_t stride, const truth *a,
                            real epsilon, int ignored, real dloss, const real *dp, int accumulate, real *dx) {
    if (prediction == DTCONV_SOFTMAX)
        gradient_of_softmax(x, k, stride, ignored ? NULL : a, dloss, dp, accumulate, dx);
    else if (ignored)
        for (int64_t j = 0; j < k; j++) put(dx + j * stride, accumulate, 0);
    else if (prediction == DTCONV_PROBABILITIES)
        gradient_of_probabilities(x, k, stride, a, epsilon, dloss, accumulate, dx);
    else
        gradient_of_scores(x, k, stride, a, dloss, accumulate, dx);
}

dtconv_status DT(cross_entropy_backward)(int64_t outer, int64_t k, int64_t inner, dtconv_prediction prediction,
                                         real epsilon, const real *x, const dtconv_targets *targets, const real *dloss,
                                         const real *dp, int accumulate, real *dx) {
    if (k < 1 || !labels_valid(targets, outer * inner, k)) return DTCONV_ARGUMENT;
#pragma omp parallel for collapse(2) schedule(static) num_threads(dtconv_threads_to_move(outer * inner * k * 8))
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const int64_t at = o * k * inner + i;
            const real *own = dp ? dp + at : NULL, g = dloss ? dloss[o * inner + i] : 0;
            truth a;
            const int ignored = !truth_of(targets, o, k, inner, i, &a);
            if (inner == 1)
                sample_gradient(prediction, x + at, k, 1, &a, epsilon, ignored, g, own, accumulate, dx + at);
            else
                sample_gradient(prediction, x + at, k, inner, &a, epsilon, ignored, g, own, accumulate, dx + at);
        }
    return DTCONV_OK;
}
