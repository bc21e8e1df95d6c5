/* Rows of images whose pixels come from between pixels of other images.
 *
 * Coordinates are doubles.  Several transforms one behind the other are one resampling: the places of the last one are
 * moved to where the image before it has what its mode puts outside, go through the transform before, and so on; what
 * is constant outside is blended in by a scale and a rest.  So the result is that of one after the other but for the
 * interpolation between.
 */
#include "image_rows.h"

#include <math.h>

#define SIMD _Pragma("omp simd")

typedef real quad __attribute__((vector_size(4 * sizeof(real))));
typedef real loose_quad __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
#define QUAD(x) (*(loose_quad *)(x)) /* no function: doubles are wider than what the least processors return */

static void transform(const RT(image_room) * room, const double *t) {
    const int64_t w = room->w;
    double *restrict columns = room->columns, *restrict rows = room->rows;
    if (t[6] == 0 && t[7] == 0) {
        for (int64_t j = 0; j < w; j++) {
            const double x = columns[j], y = rows[j];
            columns[j] = t[0] * x + t[1] * y + t[2];
            rows[j] = t[3] * x + t[4] * y + t[5];
        }
        return;
    }
    SIMD for (int64_t j = 0; j < w; j++) {
        const double x = columns[j], y = rows[j], k = t[6] * x + t[7] * y + 1;
        columns[j] = (t[0] * x + t[1] * y + t[2]) / k;
        rows[j] = (t[3] * x + t[4] * y + t[5]) / k;
    }
}

/* The distance of an even or odd repetition, whose period is 2 `length`; per_period: 1 / (2 length). */
static inline double folded(double t, double length, double per_period) {
    const double u = fabs(t), v = u - 2 * length * floor(u * per_period);
    return v > length ? 2 * length - v : v;
}

/* Moves places to within 0 ... extent - 1 (WRAP: below extent) as the mode says, those that are no numbers to 0.
 * CONSTANT: the share of what is outside, times `value`, goes to `rest`, and `scale` is what is left. */
static void bring_inside(int mode, double value, int64_t extent, int64_t n, double *restrict t, double *restrict scale,
                         double *restrict rest) {
    const double last = (double)extent - 1;
    int64_t inside = 0;
#pragma omp simd reduction(+ : inside)
    for (int64_t j = 0; j < n; j++) inside += (t[j] >= 0) & (t[j] <= last);
    if (inside == n) return;
    switch (mode) {
        case DTCONV_FILL_CONSTANT:
            SIMD for (int64_t j = 0; j < n; j++) {
                const double left = 1 + t[j], right = 1 + (last - t[j]), nearer = left < right ? left : right;
                const double share = nearer > 1 ? 1 : nearer > 0 ? nearer : 0;
                rest[j] += share < 1 ? value * (scale[j] * (1 - share)) : 0; /* the value may be infinite */
                scale[j] *= share;
            }
            break;
        case DTCONV_FILL_WRAP:
            SIMD for (int64_t j = 0; j < n; j++) {
                const double place = t[j] - (double)extent * floor(t[j] / (double)extent);
                t[j] = ((place >= 0) & (place < (double)extent)) ? place : 0;
            }
            return;
        case DTCONV_FILL_MIRROR:
            SIMD for (int64_t j = 0; j < n; j++) t[j] = last > 0 ? folded(t[j], last, 0.5 / last) : 0;
            break;
        case DTCONV_FILL_REFLECT:
            SIMD for (int64_t j = 0; j < n; j++) t[j] = folded(t[j] + 0.5, last + 1, 0.5 / (last + 1)) - 0.5;
            break;
        default:
            break;
    }
    SIMD for (int64_t j = 0; j < n; j++) {
        const double low = t[j] > 0 ? t[j] : 0;
        t[j] = low < last ? low : last;
    }
}

/* Where the four pixels of each place lie, and the shares of the further ones. */
static void find_pixels(const RT(image_room) * room, int wraps) {
    const int64_t w = room->w;
    const double *restrict columns = room->columns, *restrict rows = room->rows;
    int32_t *restrict at = room->at, *restrict right = room->right, *restrict below = room->below;
    real *restrict across = room->across, *restrict down = room->down;
    const int32_t wide = (int32_t)w, high = (int32_t)room->h, step = (int32_t)room->c, apart = wide * step;
    const int32_t from_right = wraps ? -(wide - 1) * step : 0, from_below = wraps ? -(high - 1) * apart : 0;
    SIMD for (int64_t j = 0; j < w; j++) {
        const int32_t column = (int32_t)columns[j], row = (int32_t)rows[j];
        across[j] = (real)(columns[j] - column);
        down[j] = (real)(rows[j] - row);
        at[j] = row * apart + column * step;
        right[j] = column + 1 < wide ? step : from_right;
        below[j] = row + 1 < high ? apart : from_below;
    }
}

static inline real between(real a, real b, real share) { return a + share * (b - a); }

static inline void mix(const real *from, int32_t right, int32_t below, real across, real down, int64_t c, real *to) {
    for (int64_t k = 0; k < c; k++) {
        const real upper = between(from[k], from[right + k], across);
        const real lower = between(from[below + k], from[below + right + k], across);
        to[k] = between(upper, lower, down);
    }
}

/* Channels in one vector; of three, the fourth number is that of the next pixel, which comes then. */
static void mix_quads(const RT(image_room) * room, const real *image, int64_t c) {
    const int64_t w = room->w, last = room->h * w * c - 4;
    real *to = room->row;
    for (int64_t j = 0; j < w; j++, to += c) {
        const int32_t right = room->right[j], below = room->below[j];
        const real across = room->across[j], down = room->down[j], *from = image + room->at[j];
        const int64_t farthest = room->at[j] + (right > 0 ? right : 0) + (below > 0 ? below : 0);
        if (farthest > last) {
            mix(from, right, below, across, down, c, to);
            continue;
        }
        const quad a = QUAD(from), b = QUAD(from + right), d = QUAD(from + below), e = QUAD(from + below + right);
        const quad upper = a + across * (b - a), lower = d + across * (e - d);
        QUAD(to) = upper + down * (lower - upper);
    }
}

static void mix_row(const RT(image_room) * room, const real *image) {
    const int64_t w = room->w, c = room->c;
    if (c == 3 || c == 4) {
        mix_quads(room, image, c);
    } else if (c == 1) {
        for (int64_t j = 0; j < w; j++)
            mix(image + room->at[j], room->right[j], room->below[j], room->across[j], room->down[j], 1, room->row + j);
    } else {
        for (int64_t j = 0; j < w; j++)
            mix(image + room->at[j], room->right[j], room->below[j], room->across[j], room->down[j], c,
                room->row + j * c);
    }
}

void RT(sample_row)(const RT(image_room) * room, const double *steps, int64_t count, int64_t y, const real *image) {
    const int64_t h = room->h, w = room->w, c = room->c;
    const int nearest = steps[1] == 0;
    int constant = 0;
    for (int64_t j = 0; j < w; j++) room->columns[j] = (double)j, room->rows[j] = (double)y;
    for (int64_t i = count - 1; i >= 0; i--) {
        const double *step = steps + i * DTCONV_STEP_NUMBERS, value = step[3];
        const int mode = (int)step[2];
        if (step[0] == DTCONV_STEP_AFFINE) {
            transform(room, step + 4);
        } else {
            const double *places = room->extra + (int64_t)step[4] + y * w;
            memcpy(room->rows, places, (size_t)w * sizeof(double));
            memcpy(room->columns, places + h * w, (size_t)w * sizeof(double));
        }
        if (nearest)
            for (int64_t j = 0; j < w; j++)
                room->columns[j] = rint(room->columns[j]), room->rows[j] = rint(room->rows[j]);
        if (mode == DTCONV_FILL_CONSTANT && !constant) {
            constant = 1;
            for (int64_t j = 0; j < w; j++) room->scale[j] = 1, room->rest[j] = 0;
        }
        bring_inside(mode, value, w, w, room->columns, room->scale, room->rest);
        bring_inside(mode, value, h, w, room->rows, room->scale, room->rest);
    }
    find_pixels(room, steps[2] == DTCONV_FILL_WRAP);
    if (nearest) {
        for (int64_t j = 0; j < w; j++)
            for (int64_t k = 0; k < c; k++) room->row[j * c + k] = image[room->at[j] + k];
    } else {
        mix_row(room, image);
    }
    if (!constant) return;
    for (int64_t j = 0; j < w; j++) {
        const real scale = (real)room->scale[j], rest = (real)room->rest[j];
        for (int64_t k = 0; k < c; k++) /* what is outside alone has nothing of a pixel, which may be infinite */
            room->row[j * c + k] = scale > 0 ? scale * room->row[j * c + k] + rest : rest;
    }
}

/* The mean of 3 x 3 pixels, zeros outside, whose middle counts five times. */
static void smooth_row(const RT(image_room) * room, int64_t y, const real *image, real *sums) {
    const int64_t h = room->h, c = room->c, wide = room->w * c;
    const real *middle = image + y * wide, *above = middle - wide, *below = middle + wide;
    real *three = room->planes;
    for (int64_t i = 0; i < wide; i++) three[i] = middle[i] + (y > 0 ? above[i] : 0) + (y + 1 < h ? below[i] : 0);
    for (int64_t i = 0; i < wide; i++)
        sums[i] = (three[i] + (i >= c ? three[i - c] : 0) + (i + c < wide ? three[i + c] : 0) + 4 * middle[i]) / 13;
}

static inline real limited(real x, real low, real high) {
    const real above = x < low ? low : x;
    return above > high ? high : above;
}

static void blur_row(const RT(image_room) * room, const double *step, int64_t y, const real *image, real *to) {
    const int64_t h = room->h, c = room->c, wide = room->w * c, count_down = (int64_t)step[1];
    const int64_t count_across = (int64_t)step[3];
    const double *weights_down = room->extra + (int64_t)step[2], *weights_across = room->extra + (int64_t)step[4];
    real *restrict sums = room->planes;
    memset(sums, 0, (size_t)wide * sizeof(real));
    for (int64_t i = 0; i < count_down; i++) {
        const int64_t row = y + i - count_down / 2;
        if (row < 0 || row >= h) continue;
        const real weight = (real)weights_down[i], *restrict from = image + row * wide;
        for (int64_t j = 0; j < wide; j++) sums[j] += weight * from[j];
    }
    memset(to, 0, (size_t)wide * sizeof(real));
    for (int64_t i = 0; i < count_across; i++) {
        const int64_t shift = (i - count_across / 2) * c;
        const int64_t from = shift < 0 ? -shift : 0, end = shift > 0 ? wide - shift : wide;
        const real weight = (real)weights_across[i];
        for (int64_t j = from; j < end; j++) to[j] += weight * sums[j + shift];
    }
    const real low = (real)step[5], high = (real)step[6];
    for (int64_t i = 0; i < wide; i++) to[i] = limited(to[i], low, high);
}

void RT(filter_row)(const RT(image_room) * room, const double *step, int64_t y, const real *image) {
    if (step[0] == DTCONV_STEP_BLUR) {
        blur_row(room, step, y, image, room->row);
        return;
    }
    const int64_t wide = room->w * room->c;
    const real share = (real)step[1], low = (real)step[2], high = (real)step[3], *middle = image + y * wide;
    smooth_row(room, y, image, room->row);
    for (int64_t i = 0; i < wide; i++) room->row[i] = limited(between(room->row[i], middle[i], share), low, high);
}
