/* Sums over the rows of matrices, and what is made of them: gradients of biases, batch normalization.
 *
 * Parts of rows are summed as column_sums.h says, then `column_totals` sums what they have found, in an order that does
 * not depend on anything else.
 */
#include "dtconv_cuda.h"
#include "column_sums.h"

enum activation {
#define KIND(NAME, kind, f, gradient) NAME,
#include "activations.h"
};

#include "functions.h"
#define F(name) name##_
#define PART __device__ inline
#include "activation_parts.h"

__device__ inline real activate(int kind, real alpha, real x) {
    const real p[] = {alpha};
    switch (kind) {
#define FUSED(NAME, kind, f, gradient) \
    case NAME:                         \
        return f;
#define CURVED FUSED
#include "activations.h"
    }
    return x;
}

/* Whether the slope does not follow from y; g becomes g act' from x then. */
__device__ inline bool through_input(int kind, real x, real &g) {
    switch (kind) {
#define CURVED(NAME, kind, f, gradient) \
    case NAME:                          \
        g = gradient;                   \
        return true;
#include "activations.h"
    }
    return false;
}

/* g act' from y */
__device__ inline real through(int kind, real alpha, real y, real g) {
    const real p[] = {alpha};
    switch (kind) {
#define FUSED(NAME, kind, f, gradient) \
    case NAME:                         \
        return gradient;
#include "activations.h"
    }
    return g;
}

/* What batch normalization's backward reads; y: none where it is computed again. */
struct normalization {
    Array<const real> x, y, dy, mean, scale, beta;
    int64_t ldx, ldy, lddy;
    int kind;
    real alpha;
};

/* dy * act'(y) of W elements of a row, from column j on; away: x - mean of them */
template <int W>
__device__ inline pack<W> gradient(const normalization &a, int64_t row, int64_t j, const pack<W> &away) {
    pack<W> g = load<W>(a.dy, row * a.lddy + j), out;
    if (a.kind == LINEAR) return g;
    if (a.y) {
        out = load<W>(a.y, row * a.ldy + j);
    } else {
        const pack<W> factor = load<W>(a.scale, j);
        for (int e = 0; e < W; e++) out.v[e] = away.v[e] * factor.v[e];
        if (a.beta) add(out, load<W>(a.beta, j));
        bool found = false;
        for (int e = 0; e < W; e++) found = through_input(a.kind, out.v[e], g.v[e]);
        if (found) return g;
        for (int e = 0; e < W; e++) out.v[e] = activate(a.kind, a.alpha, out.v[e]);
    }
    for (int e = 0; e < W; e++) g.v[e] = through(a.kind, a.alpha, out.v[e], g.v[e]);
    return g;
}

/* parts of the sums of x's columns; with mean: of (x - mean)^2 */
GLOBAL BOUNDS(256)
    column_sums(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<const real> mean, Array<real> parts) {
    sum_columns(rows, c, parts, 1, [&](int64_t i, int64_t j) {
        const real value = x[i * ldx + j], away = mean ? value - mean[j] : 0;
        const two found = {mean ? away * away : value, 0};
        return found;
    });
}
KERNEL(column_sums)

/* y (+)= factor * sum of `count` parts, for each column of each of some sets of parts */
GLOBAL BOUNDS(256) column_totals(int64_t sets, int64_t count, int64_t c, Array<const real> parts, double factor,
                                 int64_t accumulate, Array<real> y) {
    SHARED(double, sums, WIDTH *HEIGHT);
    const int lane = threadIdx.x % WIDTH, line = threadIdx.x / WIDTH;
    const int64_t column = (int64_t)blockIdx.x * WIDTH + lane;
    const cell at = cell_of(column, c);
    double sum = 0;
    if (column < sets * c)
        for (int64_t i = line; i < count; i += HEIGHT) sum += (double)parts[(at.row * count + i) * c + at.column];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (line || column >= sets * c) return;
    for (int i = 1; i < HEIGHT; i++) sum += sums[i * WIDTH + lane];
    const real value = (real)(sum * factor);
    y[column] = accumulate ? y[column] + value : value;
}
KERNEL(column_totals)

/* parts of the sums of g and of g * (x - mean), g = dy * act' */
GLOBAL BOUNDS(256)
    normalization_sums(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<const real> y, int64_t ldy,
                       Array<const real> dy, int64_t lddy, Array<const real> mean, Array<const real> scale,
                       Array<const real> beta, int64_t kind, double alpha, Array<real> parts) {
    const normalization a = {x, y, dy, mean, scale, beta, ldx, ldy, lddy, (int)kind, (real)alpha};
    sum_columns(rows, c, parts, 2, [&](int64_t i, int64_t j) {
        const pack<1> away = {{a.x[i * a.ldx + j] - a.mean[j]}};
        const real g = gradient(a, i, j, away).v[0];
        const two found = {g, g * away.v[0]};
        return found;
    });
}
KERNEL(normalization_sums)

/* inverse = 1 / sqrt(variance + epsilon), scale = gamma * inverse; moving = moving * momentum + batch * (1 - momentum)
 */
GLOBAL normalization_scale(int64_t c, Array<const real> mean, Array<const real> variance, Array<const real> gamma,
                           double epsilon, double momentum, Array<real> kept, Array<real> inverse, Array<real> scale,
                           Array<real> moving_mean, Array<real> moving_variance) {
    FOR_EACH(j, c) {
        const real root = 1 / sqrt_(variance[j] + (real)epsilon), m = mean[j], keep = (real)momentum;
        kept[j] = m;
        inverse[j] = root;
        scale[j] = gamma ? gamma[j] * root : root;
        if (moving_mean) {
            moving_mean[j] = moving_mean[j] * keep + m * (1 - keep);
            moving_variance[j] = moving_variance[j] * keep + variance[j] * (1 - keep);
        }
    }
}
KERNEL(normalization_scale)

/* y = act((x - mean) * scale + beta) */
GLOBAL normalize(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<const real> mean,
                 Array<const real> scale, Array<const real> beta, int64_t kind, double alpha, Array<real> y,
                 int64_t ldy) {
    const bool packs = (c | ldx | ldy) % PACK == 0 && aligned(x, mean, scale, beta, y);
    sweep(rows * c, packs, [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const cell at = cell_of(i, c);
        pack<W> z = load<W>(x, at.row * ldx + at.column);
        const pack<W> middle = load<W>(mean, at.column), factor = load<W>(scale, at.column);
        for (int e = 0; e < W; e++) z.v[e] = (z.v[e] - middle.v[e]) * factor.v[e];
        if (beta) add(z, load<W>(beta, at.column));
        for (int e = 0; e < W; e++) z.v[e] = activate((int)kind, (real)alpha, z.v[e]);
        store<W>(y, at.row * ldy + at.column, z);
    });
}
KERNEL(normalize)

/* dx (+)= scale * (g - sum_g / count - (x - mean) * inverse^2 * sum_gx / count); without sums: scale * g */
GLOBAL normalization_gradient(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<const real> y,
                              int64_t ldy, Array<const real> dy, int64_t lddy, Array<const real> mean,
                              Array<const real> scale, Array<const real> beta, int64_t kind, double alpha,
                              Array<const real> inverse, Array<const real> sums, double count, int64_t accumulate,
                              Array<real> dx, int64_t lddx) {
    const normalization a = {x, y, dy, mean, scale, beta, ldx, ldy, lddy, (int)kind, (real)alpha};
    const real share = (real)(1 / count);
    const bool packs =
        (c | ldx | ldy | lddy | lddx) % PACK == 0 && aligned(x, y, dy, mean, scale, beta, inverse, sums, dx);
    sweep(rows * c, packs, [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const cell at = cell_of(i, c);
        const int64_t j = at.column;
        const pack<W> middle = load<W>(mean, j), factor = load<W>(scale, j);
        pack<W> away = load<W>(x, at.row * ldx + j);
        for (int e = 0; e < W; e++) away.v[e] -= middle.v[e];
        pack<W> g = gradient(a, at.row, j, away);
        if (sums) {
            const pack<W> of_g = load<W>(sums, j), of_products = load<W>(sums, c + j), root = load<W>(inverse, j);
            for (int e = 0; e < W; e++)
                g.v[e] -= of_g.v[e] * share + away.v[e] * root.v[e] * root.v[e] * of_products.v[e] * share;
        }
        for (int e = 0; e < W; e++) g.v[e] *= factor.v[e];
        const int64_t place = at.row * lddx + j;
        if (accumulate) add(g, load<W>(readable(dx), place));
        store<W>(dx, place, g);
    });
}
KERNEL(normalization_gradient)

/* dgamma (+)= sum_gx * inverse, dbeta (+)= sum_g */
GLOBAL normalization_parameters(int64_t c, Array<const real> sums, Array<const real> inverse, int64_t add_gamma,
                                int64_t add_beta, Array<real> dgamma, Array<real> dbeta) {
    FOR_EACH(j, c) {
        if (dgamma) dgamma[j] = (add_gamma ? (real)dgamma[j] : 0) + sums[c + j] * inverse[j];
        if (dbeta) dbeta[j] = (add_beta ? (real)dbeta[j] : 0) + sums[j];
    }
}
KERNEL(normalization_parameters)

/* dy *= act'(y), rows of c elements */
GLOBAL slope(int64_t rows, int64_t c, int64_t kind, double alpha, Array<const real> y, int64_t ldy, Array<real> dy,
             int64_t lddy) {
    sweep(rows * c, (c | ldy | lddy) % PACK == 0 && aligned(y, dy), [&](int64_t i, auto size) {
        constexpr int W = decltype(size)::of;
        const cell at = cell_of(i, c);
        const pack<W> out = load<W>(y, at.row * ldy + at.column);
        pack<W> g = load<W>(readable(dy), at.row * lddy + at.column);
        for (int e = 0; e < W; e++) g.v[e] = through((int)kind, (real)alpha, out.v[e], g.v[e]);
        store<W>(dy, at.row * lddy + at.column, g);
    });
}
KERNEL(slope)
