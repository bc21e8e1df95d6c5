/* Copies of pieces of an image in which tiles of a matrix product lie at one distance from row to row.
 *
 * Pixels of neighbouring images lie side by side, those of a row behind them, phases of the stride apart from each
 * other.  So 16 or 32 output pixels in a row, or the same output pixel of as many images, read pixels at one distance
 * with every tap; padding is there as zeros, channels are whole steps, and where x is to be normalized it has been.
 */
#include "bfloat16_direct.h"
#ifdef WIDENED
#include "bfloat16_widen.h"
#endif

static void clear(number *dst, int64_t n, int64_t low) {
    if (n <= 0) return;
    memset(dst, 0, (size_t)n * sizeof(number));
    if (low) memset(dst + low, 0, (size_t)n * sizeof(number));
}

#if defined(WIDENED)
static void copy_numbers(const elem *from, int64_t n, number *dst, int64_t low) {
    (void)low;
    widen_row(NULL, DTCONV_LINEAR, n, from, dst);
}

static void normalize(const DT(conv_normalization) * f, int64_t n, const elem *from, number *dst, int64_t low) {
    (void)low;
    widen_normalized(f, n, from, dst);
}
#elif defined(DTCONV_BFLOAT16)
/* A few numbers: a function of the C library takes longer to begin than these take.  What is left after whole blocks is
 * copied with some of the last one's. */
INLINE void copy_few(const half *from, int64_t n, half *dst) {
    enum { BLOCK = 8 };
    if (n < BLOCK) {
        for (int64_t i = 0; i < n; i++) dst[i] = from[i];
        return;
    }
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) memcpy(dst + i, from + i, BLOCK * sizeof(half));
    if (i < n) memcpy(dst + n - BLOCK, from + n - BLOCK, BLOCK * sizeof(half));
}

static void copy_numbers(const elem *from, int64_t n, number *dst, int64_t low) {
    (void)low;
    if (n <= 64)
        copy_few(from, n, dst);
    else
        memcpy(dst, from, (size_t)n * sizeof(half));
}

static void normalize(const DT(conv_normalization) * f, int64_t n, const elem *from, number *dst, int64_t low) {
    (void)low;
    HT(normalize_rows)(1, n, from, 0, f->mean, f->scale, f->beta, f->activation == DTCONV_RELU, dst, 0);
}
#else
static void copy_numbers(const elem *from, int64_t n, number *dst, int64_t low) {
    HT(split_row)(n, from, dst, low ? dst + low : NULL);
}

static void normalize(const DT(conv_normalization) * f, int64_t n, const elem *from, number *dst, int64_t low) {
    HT(normalize_split_row)(n, from, f->mean, f->scale, f->beta, f->activation == DTCONV_RELU, dst,
                            low ? dst + low : NULL);
}
#endif

void WAY(copy_pixel)(const image *x, const elem *from, int64_t depth, number *dst, int64_t low) {
    if (x->prologue.mean)
        normalize(&x->prologue, x->channels, from, dst, low);
    else
        copy_numbers(from, x->channels, dst, low);
    if (depth > x->channels) clear(dst + x->channels, depth - x->channels, low);
}

/* One row of one image; dst: its first pixel. */
static void copy_row(const image *x, const elem *from, const layout *l, int64_t depth, number *dst, int64_t low) {
    const int64_t next = l->images * l->pitch, end = l->column + l->columns * l->phases;
#ifdef WIDENED
    if (l->phases == 1 && next == x->channels && x->ld == next && !x->prologue.mean) { /* pixels lie side by side */
        const int64_t first = MIN(MAX(0, l->column), end), last = MAX(first, MIN(end, x->w.read));
        clear(dst, (first - l->column) * next, 0);
        copy_numbers(from + first * next, (last - first) * next, dst + (first - l->column) * next, 0);
        clear(dst + (last - l->column) * next, (end - last) * next, 0);
        return;
    }
#endif
    for (int64_t phase = 0; phase < l->phases; phase++) {
        if (!is_met(&x->w, l->column + phase)) {
            dst += l->columns * next;
            continue;
        }
        for (int64_t i = 0; i < l->columns; i++, dst += next) {
            const int64_t column = l->column + i * l->phases + phase;
            if (column < 0 || column >= x->w.read || column >= end)
                clear(dst, depth, low);
            else
                WAY(copy_pixel)(x, from + column * x->ld, depth, dst, low);
        }
    }
}

void WAY(copy_piece)(const image *x, const piece *at, const layout *l, int64_t depth, number *dst, int64_t low) {
    const int64_t line = l->phases * l->columns * l->images * l->pitch;
    for (int64_t kd = 0; kd < x->d.taps; kd++) {
        const int64_t plane = plane_of(x, at->plane, kd);
        if (plane < 0) continue;
        for (int64_t i = 0; i < at->images; i++)
            for (int64_t row = 0; row < l->rows; row++) {
                if (!is_met(&x->h, l->row + row)) continue;
                const int64_t source = ((at->first + i) * x->d.read + plane) * x->h.read + l->row + row;
                copy_row(x, x->data + source * x->w.read * x->ld, l, depth,
                         dst + (kd * l->rows + row) * line + i * l->pitch, low);
            }
    }
}

#ifndef WIDENED
/* Whether the taps of a row of filters read numbers that lie side by side, and are copied as they are. */
static int side_by_side(const image *x) {
    return !x->prologue.mean && x->ld == x->channels && !x->w.turned && x->w.dilation == 1;
}

/* The taps of a row of filters for one output pixel, first column `column`; row: of x, or NULL. */
static number *join_taps(const image *x, const elem *row, int64_t column, number *dst, int64_t low) {
    const int64_t c = x->channels;
    int64_t offset;
    if (row && side_by_side(x)) {
        const int64_t first = column - x->w.pad, before = MIN(x->w.taps, MAX(0, -first));
        const int64_t end = MAX(before, MIN(x->w.taps, x->w.read - first));
        clear(dst, before * c, low);
        copy_numbers(row + (first + before) * c, (end - before) * c, dst + before * c, low);
        clear(dst + end * c, (x->w.taps - end) * c, low);
        return dst + x->w.taps * c;
    }
    for (int64_t kw = 0; kw < x->w.taps; kw++, dst += c) {
        offset_of(&x->w, 0, kw, &offset);
        const int64_t at = column + offset;
        if (!row || at < 0 || at >= x->w.read)
            clear(dst, c, low);
        else
            WAY(copy_pixel)(x, row + at * x->ld, c, dst, low);
    }
    return dst;
}

/* Rows of x that the filters meet at an output row of an image, NULL where there are none; their number. */
static int64_t lines_of(const image *x, int64_t number, int64_t output_plane, int64_t row, const elem **lines) {
    int64_t count = 0, offset;
    for (int64_t kd = 0; kd < x->d.taps; kd++) {
        const int64_t plane = plane_of(x, output_plane, kd);
        for (int64_t kh = 0; kh < x->h.taps; kh++) {
            offset_of(&x->h, 0, kh, &offset);
            const int64_t line = row * step_of(&x->h) + offset;
            const int exists = plane >= 0 && line >= 0 && line < x->h.read;
            const int64_t source = (number * x->d.read + plane) * x->h.read + line;
            lines[count++] = exists ? x->data + source * x->w.read * x->ld : NULL;
        }
    }
    return count;
}

/* Output pixels [from, to) of a row, `next` elements apart. */
static void join_columns(const image *x, const elem *const *lines, int64_t count, int64_t from, int64_t to,
                         int64_t depth, int64_t next, number *dst, int64_t low) {
    const int64_t across = step_of(&x->w), run = x->w.taps * x->channels, length = count * run;
    const int plain = side_by_side(x);
    for (int64_t column = from; column < to; column++, dst += next) {
        const int64_t first = column * across - x->w.pad;
        number *at = dst;
        if (plain && first >= 0 && first + x->w.taps <= x->w.read) {
            for (int64_t k = 0; k < count; k++, at += run)
                if (lines[k])
                    copy_numbers(lines[k] + first * x->channels, run, at, low);
                else
                    clear(at, run, low);
        } else {
            for (int64_t k = 0; k < count; k++) at = join_taps(x, lines[k], column * across, at, low);
        }
        clear(at, depth - length, low);
    }
}

void WAY(join_piece)(const image *x, const piece *at, int64_t depth, int64_t pitch, number *dst, int64_t low) {
    enum { COLUMNS = 32 }; /* at a time, of one image after the other */
    const elem *lines[JOINED_LINES];
    const int64_t line = x->w.written * at->images * pitch;
    for (int64_t row = 0; row < at->rows; row++, dst += line)
        for (int64_t column = 0; column < x->w.written; column += COLUMNS)
            for (int64_t i = 0; i < at->images; i++) {
                const int64_t count = lines_of(x, at->first + i, at->plane, at->row + row, lines);
                join_columns(x, lines, count, column, MIN(column + COLUMNS, x->w.written), depth, at->images * pitch,
                             dst + (column * at->images + i) * pitch, low);
            }
}
#endif
