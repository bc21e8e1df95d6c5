/* Images after lists of steps; an image's own list, and one thread for an image.
 *
 * A list is cut into parts that are one pass over the image, a row at a time: what makes a row from the image before
 * (joined transforms, a filter, or the row itself) and the steps of colour that change it while it is in the cache.  A
 * part ends before what has to know more of the image than a row: transforms, filters, means, largest values.  Between
 * parts an image lies in the thread's own memory, which is as large as two of them.
 */
#include "image_rows.h"

#include "dtconv_thread_id.h"

enum { ALIGNED = 64, SPARE = 8 };

static int64_t rounded(int64_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

/* Lays out a thread's memory; returns its bytes. */
static int64_t lay_out(RT(image_room) * room, char *memory) {
    const int64_t w = room->w, c = room->c, wide = w * c + SPARE, image = room->h * w * c + SPARE;
    int64_t used = 0;
#define TAKE(member, count) \
    room->member = (void *)(memory + used), used += rounded((int64_t)sizeof *room->member * (count))
    TAKE(columns, w);
    TAKE(rows, w);
    TAKE(scale, w);
    TAKE(rest, w);
    TAKE(at, w);
    TAKE(right, w);
    TAKE(below, w);
    TAKE(across, w);
    TAKE(down, w);
    TAKE(row, wide);
    TAKE(planes, wide);
    TAKE(statistics, 2 * c);
    TAKE(image[0], image);
    TAKE(image[1], image);
#undef TAKE
    return used;
}

static int64_t bytes_of_room(int64_t h, int64_t w, int64_t c) {
    static char nothing[1];
    RT(image_room) room = {.h = h, .w = w, .c = c};
    return lay_out(&room, nothing);
}

size_t DT(change_images_workspace)(int64_t h, int64_t w, int64_t c) {
    return (size_t)(dtconv_get_num_threads() * bytes_of_room(h, w, c));
}

static int moves(const double *step) { return step[0] == DTCONV_STEP_AFFINE || step[0] == DTCONV_STEP_PLACES; }
static int filters(const double *step) { return step[0] == DTCONV_STEP_SHARPNESS || step[0] == DTCONV_STEP_BLUR; }
static int is_joined(const double *step) { return step[0] == DTCONV_STEP_AFFINE && step[12] != 0; }

/* Whether `count` numbers from a place on lie within `extra`. */
static int lies(double at, double count, int64_t extra) {
    return at >= 0 && count >= 0 && at == (double)(int64_t)at && at + count <= (double)extra;
}

/* One rectangle of one image; the order of numbers is that of the pixels and channels. */
static int is_rectangle(const double *step, int64_t h, int64_t w) {
    return lies(step[1], step[3], h) && lies(step[2], step[4], w) && step[3] == (double)(int64_t)step[3] &&
           step[4] == (double)(int64_t)step[4];
}

static int fits(const double *step, const double *before, int64_t h, int64_t w, int64_t c, int64_t extra) {
    const int kind = (int)step[0];
    if (!(step[0] >= 0 && step[0] < DTCONV_STEP_KINDS)) return 0;
    switch (kind) {
        case DTCONV_STEP_AFFINE:
        case DTCONV_STEP_PLACES: {
            const int known = (step[1] == 0 || step[1] == 1) && step[2] >= 0 && step[2] < DTCONV_FILL_MODES;
            const int alone =
                !is_joined(step) || (before && moves(before) && before[1] == step[1] && step[2] != DTCONV_FILL_WRAP);
            return known && alone && (kind == DTCONV_STEP_AFFINE || lies(step[4], 2.0 * (double)(h * w), extra));
        }
        case DTCONV_STEP_GRAY:
        case DTCONV_STEP_HUE:
        case DTCONV_STEP_SATURATION:
        case DTCONV_STEP_COLOUR:
            return c == 3;
        case DTCONV_STEP_POSTERIZE:
            return step[1] >= 0 && step[1] <= 8;
        case DTCONV_STEP_BLUR:
            return lies(step[2], step[1], extra) && lies(step[4], step[3], extra);
        case DTCONV_STEP_ERASE:
            return is_rectangle(step, h, w) && (step[5] < 0 || lies(step[5], step[3] * step[4] * (double)c, extra));
        case DTCONV_STEP_EQUALIZE:
            return step[1] >= 1 && lies(step[2], step[1] * (double)c, extra);
        case DTCONV_STEP_SCALE:
            return lies(step[1], 2.0 * (double)c, extra);
        default:
            return 1;
    }
}

static void erase(const RT(image_room) * room, const double *step, int64_t y) {
    const int64_t c = room->c, top = (int64_t)step[1], count = (int64_t)step[4] * c;
    if (y < top || y >= top + (int64_t)step[3]) return;
    const double low = step[7], high = step[8], *from = room->extra + (int64_t)step[5] + (y - top) * count;
    real *to = room->row + (int64_t)step[2] * c;
    for (int64_t i = 0; i < count; i++) {
        const double value = step[5] < 0 ? step[6] : from[i];
        to[i] = (real)(value < low ? low : value > high ? high : value);
    }
}

/* How many of the steps, of which there is one or more, are one pass; `makes`: how many of them make a row. */
static int64_t length_of_part(const double *steps, int64_t count, int64_t *makes) {
    const int alone = filters(steps) || steps[0] == DTCONV_STEP_ERASE;
    int64_t end = *makes = moves(steps) || alone;
    if (moves(steps))
        while (end < count && is_joined(steps + end * DTCONV_STEP_NUMBERS)) *makes = ++end;
    end = end ? end : 1;
    for (; end < count; end++) {
        const double *next = steps + end * DTCONV_STEP_NUMBERS;
        if (moves(next) || filters(next) || next[0] == DTCONV_STEP_ERASE || RT(needs_statistics)(next)) break;
    }
    return end;
}

/* One pass of `makes` steps that make rows and `colours` behind them. */
static void run_part(const RT(image_room) * room, const double *steps, int64_t makes, int64_t colours, const real *from,
                     real *to) {
    const int64_t h = room->h, wide = room->w * room->c;
    const double *behind = steps + makes * DTCONV_STEP_NUMBERS;
    if (colours && RT(needs_statistics)(behind)) RT(find_statistics)(room, behind, from);
    for (int64_t y = 0; y < h; y++) {
        if (makes && moves(steps)) {
            RT(sample_row)(room, steps, makes, y, from);
        } else if (makes && filters(steps)) {
            RT(filter_row)(room, steps, y, from);
        } else {
            memcpy(room->row, from + y * wide, (size_t)wide * sizeof(real));
            if (makes) erase(room, steps, y);
        }
        if (colours) RT(colour_row)(room, behind, colours);
        memcpy(to + y * wide, room->row, (size_t)wide * sizeof(real));
    }
}

/* Whether a row of an image after a step comes from many rows of the one before it. */
static int goes_across(const double *step) { return moves(step) && (step[0] != DTCONV_STEP_AFFINE || step[7] != 0); }

static void change_image(const RT(image_room) * room, const double *steps, int64_t count, const real *x, real *y) {
    enum { NEAR = 1 << 20 };
    const int64_t bytes = room->h * room->w * room->c * (int64_t)sizeof(real);
    if (!count) memcpy(y, x, (size_t)bytes);
    if (count && goes_across(steps) && bytes <= NEAR) { /* across rows it is read out of a cache, without new pages */
        memcpy(room->image[0], x, (size_t)bytes);
        x = room->image[0];
    }
    for (int64_t makes = 0; count > 0;) {
        const int64_t part = length_of_part(steps, count, &makes);
        real *const own = x == room->image[0] ? room->image[1] : room->image[0], *const to = part == count ? y : own;
        run_part(room, steps, makes, part - makes, x, to);
        steps += part * DTCONV_STEP_NUMBERS, count -= part, x = to;
    }
}

static int least(int64_t a, int64_t b, int64_t c) {
    const int64_t two = a < b ? a : b;
    return (int)(two < c ? two : c);
}

dtconv_status DT(change_images)(int64_t n, int64_t h, int64_t w, int64_t c, const int64_t *starts, const double *steps,
                                double *extra, int64_t extra_count, const real *x, real *y, void *workspace,
                                size_t size) {
    const int64_t image = h * w * c, bytes = bytes_of_room(h, w, c), rooms = (int64_t)size / bytes;
    if (n < 1 || image < 1) return DTCONV_OK;
    if (image >= INT32_MAX) return DTCONV_UNSUPPORTED;
    for (int64_t i = 0; i < n; i++)
        for (int64_t s = starts[i]; s < starts[i + 1]; s++) {
            const double *step = steps + s * DTCONV_STEP_NUMBERS;
            if (!fits(step, s > starts[i] ? step - DTCONV_STEP_NUMBERS : NULL, h, w, c, extra_count))
                return DTCONV_ARGUMENT;
        }
    if (rooms < 1) return DTCONV_WORKSPACE;
    const int threads = least(n, dtconv_threads_to_move(2 * n * image), rooms);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        RT(image_room) room = {.h = h, .w = w, .c = c, .extra = extra};
        lay_out(&room, (char *)workspace + dtconv_thread_id() * bytes);
        change_image(&room, steps + starts[i] * DTCONV_STEP_NUMBERS, starts[i + 1] - starts[i], x + i * image,
                     y + i * image);
    }
    return DTCONV_OK;
}
