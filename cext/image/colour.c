/* Steps of colour: rows of images whose pixels do not move.
 *
 * A row's channels are taken apart where a step treats them differently; loops over pixels are vectorised.  The space
 * of hue, saturation and value is that of A. R. Smith ("Color Gamut Transform Pairs", SIGGRAPH 1978); brightness has
 * the weights of ITU-R BT.601.
 */
#include "image_rows.h"

#include <math.h>

#define SIMD _Pragma("omp simd")

static inline real limited(real x, real low, real high) {
    const real above = x < low ? low : x;
    return above > high ? high : above;
}

static inline real whole_below(real x) {
#ifdef DTCONV_DOUBLE
    return floor(x);
#else
    return floorf(x);
#endif
}

static inline real magnitude(real x) { return x < 0 ? -x : x; }

static inline real gray_of(real r, real g, real b) { return (real)0.2989 * r + (real)0.5870 * g + (real)0.1140 * b; }

/* How much of a channel a hue (0 to 1) has, 0 to 1; `turned` by a third each. */
static inline real ramp(real hue, real turned) {
    const real t = hue + turned, place = (t - whole_below(t)) * 6 - 3;
    return limited(magnitude(place) - 1, 0, 1);
}

typedef struct {
    real hue, value, chroma; /* chroma: the largest less the least */
} RT(hue_and_value);

static inline RT(hue_and_value) hue_of(real r, real g, real b) {
    const real upper = r > g ? r : g, lower = r < g ? r : g;
    const real value = upper > b ? upper : b, least = lower < b ? lower : b, chroma = value - least;
    const real sixth = (real)(1.0 / 6) / (chroma > 0 ? chroma : 1);
    const real from_green = sixth * (b - r) + (real)(2.0 / 6), from_blue = sixth * (r - g) + (real)(4.0 / 6);
    const real from_red = sixth * (g - b), from_other = g == value ? from_green : from_blue;
    const real hue = chroma > 0 ? (r == value ? from_red : from_other) : 0;
    return (RT(hue_and_value)){hue < 0 ? hue + 1 : hue, value, chroma};
}

static void turn_hues(int64_t w, real turn, real low, real high, real *restrict rs, real *restrict gs,
                      real *restrict bs) {
    const real range = high - low, scale = 1 / range;
    SIMD for (int64_t j = 0; j < w; j++) {
        const RT(hue_and_value) of = hue_of((rs[j] - low) * scale, (gs[j] - low) * scale, (bs[j] - low) * scale);
        const real turned = of.hue + turn, hue = turned - whole_below(turned);
        const real chroma = of.value > 0 ? of.chroma : 0;
        rs[j] = limited(of.value + chroma * (ramp(hue, 1) - 1), 0, 1) * range + low;
        gs[j] = limited(of.value + chroma * (ramp(hue, (real)(2.0 / 3)) - 1), 0, 1) * range + low;
        bs[j] = limited(of.value + chroma * (ramp(hue, (real)(1.0 / 3)) - 1), 0, 1) * range + low;
    }
}

static void saturate(int64_t w, real factor, real low, real high, real *restrict rs, real *restrict gs,
                     real *restrict bs) {
    SIMD for (int64_t j = 0; j < w; j++) {
        const RT(hue_and_value) of = hue_of(rs[j], gs[j], bs[j]);
        const real saturation = of.value > 0 ? of.chroma / of.value : 0;
        const real chroma = of.value * limited(saturation * factor, low, high);
        rs[j] = of.value + chroma * (ramp(of.hue, 1) - 1);
        gs[j] = of.value + chroma * (ramp(of.hue, (real)(2.0 / 3)) - 1);
        bs[j] = of.value + chroma * (ramp(of.hue, (real)(1.0 / 3)) - 1);
    }
}

static void blend_gray(int64_t w, real share, real low, real high, real *restrict rs, real *restrict gs,
                       real *restrict bs) {
    SIMD for (int64_t j = 0; j < w; j++) {
        const real gray = gray_of(rs[j], gs[j], bs[j]);
        rs[j] = limited(gray + share * (rs[j] - gray), low, high);
        gs[j] = limited(gray + share * (gs[j] - gray), low, high);
        bs[j] = limited(gray + share * (bs[j] - gray), low, high);
    }
}

static void take_colours(int64_t w, real *restrict rs, real *restrict gs, real *restrict bs) {
    SIMD for (int64_t j = 0; j < w; j++) rs[j] = gs[j] = bs[j] = gray_of(rs[j], gs[j], bs[j]);
}

static void add(int64_t n, real delta, real low, real high, real *restrict xs) {
    SIMD for (int64_t i = 0; i < n; i++) xs[i] = limited(xs[i] + delta, low, high);
}

/* scale (x - middle) + offset, limited */
static void stretch(int64_t n, real middle, real scale, real offset, real low, real high, real *restrict xs) {
    SIMD for (int64_t i = 0; i < n; i++) xs[i] = limited((xs[i] - middle) * scale + offset, low, high);
}

static void posterize(int64_t n, int bits, real low, real high, real *restrict xs) {
    const real to_bytes = 255 / (high - low), range = high - low;
    const int32_t kept = ~((1 << bits) - 1);
    SIMD for (int64_t i = 0; i < n; i++) {
        const int32_t byte = (int32_t)limited((xs[i] - low) * to_bytes, 0, 255) & kept;
        xs[i] = (real)byte / 255 * range + low;
    }
}

static void solarize(int64_t n, real addition, real threshold, real low, real high, real *restrict xs) {
    const real to_bytes = 255 / (high - low), to_range = (high - low) / 255;
    SIMD for (int64_t i = 0; i < n; i++) {
        const real byte = limited((xs[i] - low) * to_bytes + addition, 0, 255);
        xs[i] = (byte < threshold ? byte : 255 - byte) * to_range + low;
    }
}

/* From 0 to bins - 1; of what is no number 0. */
static inline int64_t bin_of(real byte, int64_t bins) {
    const real last = (real)(bins - 1), place = byte * (last / 255);
    return place > 0 ? (int64_t)(place < last ? place : last) : 0;
}

static void equalize(int64_t n, const double *table, int64_t bins, real low, real high, real *xs) {
    const real to_bytes = 255 / (high - low), to_range = (high - low) / 255;
    const int flat = table[0] < 0; /* one value: it stays */
    for (int64_t i = 0; i < n; i++) {
        const real byte = (xs[i] - low) * to_bytes;
        xs[i] = (flat ? byte : (real)table[bin_of(byte, bins)]) * to_range + low;
    }
}

/* The table of a channel from its bins' counts: ranks from 0 to 255.  Its first number is -1 where all are in one bin.
 */
static void make_table(int64_t bins, double *table) {
    double total = 0, least = 0;
    for (int64_t i = 0; i < bins; i++) {
        if (least == 0) least = table[i];
        total += table[i];
    }
    double count = 0;
    for (int64_t i = 0; i < bins; i++) {
        count += table[i];
        const double rank = total > least ? rint((count - least) * 255 / (total - least)) : -1;
        table[i] = total > least && rank < 0 ? 0 : rank;
    }
}

static void find_tables(const RT(image_room) * room, const double *step, const real *image) {
    const int64_t pixels = room->h * room->w, c = room->c, bins = (int64_t)step[1];
    const real low = (real)step[3], to_bytes = 255 / ((real)step[4] - low);
    double *tables = room->extra + (int64_t)step[2];
    memset(tables, 0, (size_t)(bins * c) * sizeof(double));
    for (int64_t i = 0; i < pixels; i++)
        for (int64_t k = 0; k < c; k++) tables[k * bins + bin_of((image[i * c + k] - low) * to_bytes, bins)]++;
    for (int64_t k = 0; k < c; k++) make_table(bins, tables + k * bins);
}

/* Sums of rows are in `real`, a number for each place of a row; those over rows and places in doubles. */
static void find_means(const RT(image_room) * room, const real *image) {
    enum { ROWS = 16 };
    const int64_t h = room->h, w = room->w, c = room->c, wide = w * c;
    real *restrict sums = room->row, *means = room->statistics;
    double *total =
        (double *)room->statistics; /* as long as two of `real` or less; each is read before it is replaced */
    for (int64_t k = 0; k < c; k++) total[k] = 0;
    for (int64_t first = 0; first < h; first += ROWS) {
        memset(sums, 0, (size_t)wide * sizeof(real));
        for (int64_t y = first; y < h && y < first + ROWS; y++) {
            const real *restrict from = image + y * wide;
            for (int64_t i = 0; i < wide; i++) sums[i] += from[i];
        }
        for (int64_t j = 0; j < w; j++)
            for (int64_t k = 0; k < c; k++) total[k] += sums[j * c + k];
    }
    for (int64_t k = 0; k < c; k++) means[k] = (real)(total[k] / (double)(h * w));
}

static void find_ends(const RT(image_room) * room, const real *image) {
    const int64_t h = room->h, w = room->w, c = room->c, wide = w * c;
    real *restrict least = room->row, *restrict largest = room->planes, *ends = room->statistics;
    memcpy(least, image, (size_t)wide * sizeof(real));
    memcpy(largest, image, (size_t)wide * sizeof(real));
    for (int64_t y = 1; y < h; y++) {
        const real *restrict from = image + y * wide;
        SIMD for (int64_t i = 0; i < wide; i++) {
            least[i] = from[i] < least[i] ? from[i] : least[i];
            largest[i] = from[i] > largest[i] ? from[i] : largest[i];
        }
    }
    for (int64_t k = 0; k < c; k++) {
        real low = least[k], high = largest[k];
        for (int64_t j = 1; j < w; j++) {
            low = least[j * c + k] < low ? least[j * c + k] : low;
            high = largest[j * c + k] > high ? largest[j * c + k] : high;
        }
        ends[k] = low, ends[c + k] = high;
    }
}

int RT(needs_statistics)(const double *step) {
    return step[0] == DTCONV_STEP_CONTRAST || step[0] == DTCONV_STEP_AUTO_CONTRAST || step[0] == DTCONV_STEP_EQUALIZE;
}

void RT(find_statistics)(const RT(image_room) * room, const double *step, const real *image) {
    if (step[0] == DTCONV_STEP_CONTRAST)
        find_means(room, image);
    else if (step[0] == DTCONV_STEP_AUTO_CONTRAST)
        find_ends(room, image);
    else
        find_tables(room, step, image);
}

static void scale(int64_t n, real factor, real offset, real *restrict xs) {
    SIMD for (int64_t i = 0; i < n; i++) xs[i] = xs[i] * factor + offset;
}

/* A step that treats all numbers alike; 0 where it does not. */
static int change_all(const RT(image_room) * room, const double *step, int64_t n, real *xs) {
    const double *numbers;
    const real p = (real)step[1], low = (real)step[2], high = (real)step[3];
    switch ((int)step[0]) {
        case DTCONV_STEP_ADD:
            add(n, p, low, high, xs);
            return 1;
        case DTCONV_STEP_INVERT:
            SIMD for (int64_t i = 0; i < n; i++) xs[i] = p - xs[i];
            return 1;
        case DTCONV_STEP_POSTERIZE:
            posterize(n, (int)step[1], low, high, xs);
            return 1;
        case DTCONV_STEP_SOLARIZE:
            solarize(n, p, low, high, (real)step[4], xs);
            return 1;
        case DTCONV_STEP_SCALE:
            numbers = room->extra + (int64_t)step[1];
            for (int64_t k = 1; k < room->c; k++)
                if (numbers[k] != numbers[0] || numbers[room->c + k] != numbers[room->c]) return 0;
            scale(n, (real)numbers[0], (real)numbers[room->c], xs);
            return 1;
        default:
            return 0;
    }
}

static void change_channel(const RT(image_room) * room, const double *step, int64_t k, real *xs) {
    const int64_t w = room->w, c = room->c;
    const real *found = room->statistics;
    switch ((int)step[0]) {
        case DTCONV_STEP_CONTRAST:
            stretch(w, found[k], (real)step[1], found[k], (real)step[2], (real)step[3], xs);
            break;
        case DTCONV_STEP_AUTO_CONTRAST:
            if (found[c + k] > found[k]) {
                const real low = (real)step[1], high = (real)step[2];
                stretch(w, found[k], (high - low) / (found[c + k] - found[k]), low, low, high, xs);
            }
            break;
        case DTCONV_STEP_EQUALIZE: {
            const int64_t bins = (int64_t)step[1];
            equalize(w, room->extra + (int64_t)step[2] + k * bins, bins, (real)step[3], (real)step[4], xs);
            break;
        }
        case DTCONV_STEP_SCALE: {
            const double *numbers = room->extra + (int64_t)step[1];
            scale(w, (real)numbers[k], (real)numbers[c + k], xs);
            break;
        }
    }
}

static void change_planes(const RT(image_room) * room, const double *step) {
    const int64_t w = room->w;
    const real p = (real)step[1], low = (real)step[2], high = (real)step[3];
    real *r = room->planes, *g = r + w, *b = g + w;
    if (change_all(room, step, w * room->c, r)) return;
    switch ((int)step[0]) {
        case DTCONV_STEP_GRAY:
            take_colours(w, r, g, b);
            break;
        case DTCONV_STEP_HUE:
            turn_hues(w, p, low, high, r, g, b);
            break;
        case DTCONV_STEP_SATURATION:
            saturate(w, p, low, high, r, g, b);
            break;
        case DTCONV_STEP_COLOUR:
            blend_gray(w, p, low, high, r, g, b);
            break;
        default:
            for (int64_t k = 0; k < room->c; k++) change_channel(room, step, k, r + k * w);
    }
}

/* Channels apart, and back. */
static void take_apart(int64_t w, int64_t c, const real *restrict row, real *restrict planes) {
    if (c == 3) {
        real *restrict gs = planes + w, *restrict bs = gs + w;
        SIMD for (int64_t j = 0; j < w; j++) planes[j] = row[3 * j], gs[j] = row[3 * j + 1], bs[j] = row[3 * j + 2];
        return;
    }
    for (int64_t k = 0; k < c; k++)
        for (int64_t j = 0; j < w; j++) planes[k * w + j] = row[j * c + k];
}

static void put_together(int64_t w, int64_t c, const real *restrict planes, real *restrict row) {
    if (c == 3) {
        const real *restrict gs = planes + w, *restrict bs = gs + w;
        SIMD for (int64_t j = 0; j < w; j++) row[3 * j] = planes[j], row[3 * j + 1] = gs[j], row[3 * j + 2] = bs[j];
        return;
    }
    for (int64_t k = 0; k < c; k++)
        for (int64_t j = 0; j < w; j++) row[j * c + k] = planes[k * w + j];
}

void RT(colour_row)(const RT(image_room) * room, const double *steps, int64_t count) {
    const int64_t w = room->w, c = room->c;
    int64_t alike = 0; /* the first steps treat all numbers alike */
    while (alike < count && change_all(room, steps + alike * DTCONV_STEP_NUMBERS, w * c, room->row)) alike++;
    if (alike == count) return;
    take_apart(w, c, room->row, room->planes);
    for (int64_t i = alike; i < count; i++) change_planes(room, steps + i * DTCONV_STEP_NUMBERS);
    put_together(w, c, room->planes, room->row);
}
