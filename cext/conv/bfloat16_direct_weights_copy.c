/* What backward_weights by products of bfloat16 copies: rows of channels of x, and panels of pairs of pixels of dy.
 *
 * Neighbouring pixels of a row are those of many images, which lie far from each other in memory, often a power of two
 * of bytes: in the same sets of the caches.  So some columns of one image are read after the other.
 */
#include "bfloat16_direct_weights.h"
#include "dtconv_burst.h"
#include "bfloat16_finish.h"
#ifdef WIDENED
#include "bfloat16_widen.h"
#endif

enum { ELEM = sizeof(elem) };

/* A stage has, one behind the other: a pixel of zeros, pixels that are left over, and the columns of each image. */
static int64_t wide_of(const weights *s) { return dtconv_round_to(s->channels, SQUARE); }
static int64_t image_of(const weights *s) { return s->stage_columns * wide_of(s) + SQUARE; } /* another set each */

int64_t WAY(stage_elements)(const weights *s) { return (1 + SQUARE) * wide_of(s) + s->images * image_of(s); }

/* n elements that lie in some lines, from where it takes long. */
static inline void look_ahead(const elem *next, int64_t n) {
    for (int64_t k = 0; k < n; k += 64 / (int64_t)sizeof(elem)) __builtin_prefetch(next + k, 0, 2);
}

/* Some columns of an image; next: elements from it to what is wanted after it; n: channels that are written, more than
 * the image's are zeros. */
static void stage_columns(const weights *s, const image *x, const elem *from, int64_t next, int64_t columns, int64_t n,
                          number *dst) {
    const int64_t low = s->halves == 1 ? 0 : s->low_stage;
#if defined(DTCONV_BFLOAT16) && !defined(WIDENED)
    if (n == x->channels && !x->prologue.mean) {
        for (int64_t i = 0; i < columns; i++, from += x->ld, dst += n)
            for (int64_t k = 0; k < n; k += SQUARE) {
                __builtin_prefetch(from + next + k, 0, 2);
                memcpy(dst + k, from + k, SQUARE * sizeof(number));
            }
        return;
    }
#endif
    for (int64_t i = 0; i < columns; i++, from += x->ld, dst += n) {
        look_ahead(from + next, x->channels);
        WAY(copy_pixel)(x, from, n, dst, low);
    }
}

#if defined(WIDENED) && defined(__AVX2__)
/* Rows and columns of 8 x 8 numbers exchanged. */
INLINE void transpose_8(const number *const *rows, int64_t from, number *dst, int64_t ld) {
    __m256 r[8], t[8];
    UNROLL for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(rows[i] + from);
    UNROLL for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(dst + i * ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(dst + (i + 4) * ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

/* 32 columns of the transpose: dst[j * ld + i] = rows[i][j], j < n. */
static void turn_square(int64_t n, const number *const *rows, number *dst, int64_t ld) {
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int64_t i = 0; i < SQUARE; i += 8) transpose_8(rows + i, j, dst + j * ld + i, ld);
    for (; j < n; j++)
        for (int64_t i = 0; i < SQUARE; i++) dst[j * ld + i] = rows[i][j];
}
#elif defined(WIDENED)
static void turn_square(int64_t n, const number *const *rows, number *dst, int64_t ld) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < SQUARE; i++) dst[j * ld + i] = rows[i][j];
}
#else
#define turn_square HT(transpose_square)
#endif

/* 32 pixels become columns of the rows of all channels. */
static void turn(const weights *s, const number *const *pixels, int64_t n, number *copy) {
    for (int64_t k = 0; k < n; k += SQUARE)
        for (int64_t low = 0; low < s->halves; low++) {
            const number *rows[SQUARE];
            for (int64_t i = 0; i < SQUARE; i++) rows[i] = pixels[i] + low * s->low_stage + k;
            turn_square(MIN(SQUARE, n - k), rows, copy + low * s->low_copy + k * s->pitch, s->pitch);
        }
}

typedef struct {
    const number *pixels[SQUARE];
    int64_t filled, done;
} queue;

/* Whether pixels lie as they are wanted. */
static int in_order(const image *x, const layout *l) {
    return sizeof(elem) == sizeof(number) && l->images == 1 && x->channels % SQUARE == 0 && !x->prologue.mean;
}

/* Some columns of a line, from column `column` of the phase on; first: where the line begins in the first image. */
static void turn_columns(const weights *s, const image *x, const elem *first, int64_t column, int64_t columns,
                         const layout *l, number *stage, number *copy, queue *q) {
    const int64_t wide = dtconv_round_to(x->channels, SQUARE), of_image = image_of(s),
                  size = x->d.read * x->h.read * x->w.read * x->ld;
    number *rest = stage + wide, *staged = rest + SQUARE * wide;
    const int64_t step = l->phases, before = column < 0 ? dtconv_ceil_div(-column, step) : 0;
    const int64_t end = column < x->w.read ? dtconv_ceil_div(x->w.read - column, step) : 0;
    const int64_t from = MIN(columns, before), to = MAX(from, MIN(columns, end));
    const number *at = staged;
    int64_t distance = wide;
    if (first && in_order(x, l)) {
        at = (const number *)(first + column * x->ld), distance = step * x->ld;
        dtconv_read_burst(first + (column + from * step) * x->ld, step * x->ld * ELEM, to - from, x->channels * ELEM);
    } else if (first) {
        image apart = *x;
        apart.ld *= step;
        for (int64_t i = 0; i < l->images; i++)
            stage_columns(s, &apart, first + i * size + (column + from * step) * x->ld, size, to - from, wide,
                          staged + i * of_image + from * wide);
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < l->images; i++) {
            q->pixels[q->filled++] = first && j >= from && j < to ? at + i * of_image + j * distance : stage;
            if (q->filled < SQUARE) continue;
            turn(s, q->pixels, x->channels, copy + q->done);
            q->filled = 0, q->done += SQUARE;
        }
    for (int64_t k = 0; k < q->filled; k++) { /* the stage is wanted for the next columns */
        if (q->pixels[k] != stage && q->pixels[k] != rest + k * wide)
            for (int64_t low = 0; low < s->halves; low++)
                memcpy(rest + k * wide + low * s->low_stage, q->pixels[k] + low * s->low_stage,
                       (size_t)wide * sizeof(number));
        if (q->pixels[k] != stage) q->pixels[k] = rest + k * wide;
    }
}

#ifdef DTCONV_BFLOAT16
enum { FEW_CHANNELS = 8 };

#ifdef WIDENED
#define number_of(x) widen(x)
#else
#define number_of(x) (x)
#endif

/* All of a line where channels are so few that squares would be empty: element by element, one channel after the other.
 * Arguments as of turn_columns. */
static void turn_few(const image *x, const elem *first, int64_t column, const layout *l, int64_t pitch, number *copy) {
    const int64_t size = x->d.read * x->h.read * x->w.read * x->ld, step = l->phases, columns = l->columns;
    const int64_t before = column < 0 ? dtconv_ceil_div(-column, step) : 0;
    const int64_t end = column < x->w.read ? dtconv_ceil_div(x->w.read - column, step) : 0;
    const int64_t from = first ? MIN(columns, before) : columns, to = MAX(from, MIN(columns, end));
    for (int64_t c = 0; c < x->channels; c++, copy += pitch) {
        memset(copy, 0, (size_t)(from * l->images) * sizeof(number));
        for (int64_t i = 0; i < l->images && first; i++) {
            const elem *at = first + i * size + (column + from * step) * x->ld + c;
            for (int64_t j = from; j < to; j++, at += step * x->ld) copy[j * l->images + i] = number_of(*at);
        }
        memset(copy + to * l->images, 0, (size_t)((columns - to) * l->images) * sizeof(number));
    }
}
#endif

void WAY(turn_piece)(const weights *s, const image *x, const piece *at, const layout *l, number *stage, number *copy) {
    const int64_t n = x->channels, wide = dtconv_round_to(n, SQUARE);
    queue q = {.filled = 0};
    for (int64_t k = 0; k < s->halves; k++) memset(stage + k * s->low_stage, 0, (size_t)wide * sizeof(number));
    for (int64_t kd = 0; kd < x->d.taps; kd++) {
        const int64_t plane = plane_of(x, at->plane, kd);
        for (int64_t line = 0; line < l->rows * l->phases; line++) {
            const int64_t row = l->row + line / l->phases;
            const elem *first = x->data + ((at->first * x->d.read + plane) * x->h.read + row) * x->w.read * x->ld;
#ifdef DTCONV_BFLOAT16
            if (n <= FEW_CHANNELS && !x->prologue.mean) {
                turn_few(x, plane < 0 ? NULL : first, l->column + line % l->phases, l, s->pitch, copy + q.done);
                q.done += l->columns * l->images;
                continue;
            }
#endif
            for (int64_t j = 0; j < l->columns; j += s->stage_columns)
                turn_columns(s, x, plane < 0 ? NULL : first, l->column + line % l->phases + j * l->phases,
                             MIN(s->stage_columns, l->columns - j), l, stage, copy, &q);
        }
    }
    while (q.filled && q.filled < SQUARE) q.pixels[q.filled++] = stage;
    if (q.filled) turn(s, q.pixels, n, copy + q.done), q.done += SQUARE;
    for (int64_t k = 0; k < s->halves; k++, copy += s->low_copy)
        for (int64_t i = 0; i < n; i++)
            memset(copy + i * s->pitch + q.done, 0, (size_t)(s->pitch - q.done) * sizeof(number));
}

#ifdef WIDENED
/* Channels [j, j + n) of a pixel, filled up with zeros; NULL: none. */
static void pack_pixel(const packing *dy, const elem *pixel, int64_t j, int64_t n, real *dst) {
    DT(conv_normalization) f = dy->prologue;
    if (!pixel || n < DIRECT_NR) memset(dst, 0, DIRECT_NR * sizeof(real));
    if (!pixel) return;
    if (!f.mean && n == DIRECT_NR) {
        UNROLL for (int v = 0; v < DIRECT_NV; v++) store(dst + v * V, load_elem(pixel + j + v * V));
        return;
    }
    if (!f.mean) {
        widen_row(NULL, DTCONV_LINEAR, n, pixel + j, dst);
        return;
    }
    f.mean += j, f.scale += j;
    if (f.beta) f.beta += j;
    widen_normalized(&f, n, pixel + j, dst);
}

static void pack_pixels(const weights *s, const packing *dy, const elem *first, const elem *second, number *panels) {
    const int64_t size = panel_of(s);
    for (int64_t j = 0; j < dy->n; j += DIRECT_NR, panels += size) {
        const int64_t n = MIN(DIRECT_NR, dy->n - j);
        pack_pixel(dy, first, j, n, panels);
        pack_pixel(dy, second, j, n, panels + DIRECT_NR);
    }
}
#else
/* Channels of a pixel, as halves; those of an image in bfloat16 that is not normalized are where they are. */
static const half *halves_of(const weights *s, const packing *dy, const elem *pixel, int64_t j, int64_t n,
                             half (*to)[TILE_COLUMNS]) {
    const DT(conv_normalization) *f = &dy->prologue;
    static const half none[TILE_COLUMNS];
    if (!pixel) return none;
#ifdef DTCONV_BFLOAT16
    (void)s;
    if (!f->mean) return pixel + j;
    HT(normalize_rows)(1, n, pixel + j, 0, f->mean + j, f->scale + j, f->beta ? f->beta + j : NULL,
                       f->activation == DTCONV_RELU, to[0], 0);
#else
    half *low = s->halves == 1 ? NULL : to[1];
    if (f->mean)
        HT(normalize_split_row)(n, pixel + j, f->mean + j, f->scale + j, f->beta ? f->beta + j : NULL,
                                f->activation == DTCONV_RELU, to[0], low);
    else
        HT(split_row)(n, pixel + j, to[0], low);
#endif
    return to[0];
}

/* Two pixels of all panels; NULL: none. */
static void pack_pixels(const weights *s, const packing *dy, const elem *first, const elem *second, half *panels) {
    const int64_t nr = s->ukr->nr, size = panel_of(s);
    half own[2][2][TILE_COLUMNS];
    for (int64_t j = 0; j < dy->n; j += nr, panels += size) {
        const int64_t n = MIN(nr, dy->n - j);
        const half *a = halves_of(s, dy, first, j, n, own[0]), *b = halves_of(s, dy, second, j, n, own[1]);
        HT(pack_pairs)(n, nr, a, b, panels);
        if (s->halves == 1) continue;
        HT(pack_pairs)(n, nr, first ? a + TILE_COLUMNS : a, second ? b + TILE_COLUMNS : b, panels + s->low_panel);
    }
}
#endif

void WAY(pack_piece)(const weights *s, const piece *at, const packing *dy, int64_t row, int64_t rows, int64_t span,
                     number *panels) {
    const dtconv_conv *p = &s->p;
    const int64_t images = at->images, line = images * p->ow, nr = s->ukr->nr, begin = span * s->span;
    const int64_t size = p->od * p->oh * p->ow * p->ldy;
    const int by_image = images % 2 == 0 && begin % images == 0 && s->span % images == 0 && begin + s->span <= line;
    for (int64_t r = at->row + row; r < at->row + row + rows; r++, panels += s->span * nr) {
        const elem *from = dy->data + ((at->first * p->od + at->plane) * p->oh + r) * p->ow * p->ldy;
        for (int64_t i = 0; by_image && i < images; i += 2) {
            const elem *pixel = from + i * size + begin / images * p->ldy;
            for (int64_t q = i; q < s->span; q += images, pixel += p->ldy) {
                look_ahead(pixel + 2 * size, dy->n), look_ahead(pixel + 3 * size, dy->n);
                pack_pixels(s, dy, pixel, pixel + size, panels + q * nr);
            }
        }
        const int64_t burst = MAX(1, DTCONV_BURST / (dy->n * ELEM) / 2) * 2;
        for (int64_t q = 0; !by_image && q < s->span; q += 2) {
            if (images == 1 && q % burst == 0)
                dtconv_read_burst(from + (begin + q) * p->ldy, p->ldy * ELEM,
                                  MIN(burst, MIN(s->span, line - begin) - q), dy->n * ELEM);
            const elem *pair[2];
            for (int64_t k = 0; k < 2; k++) {
                const int64_t pixel = begin + q + k;
                pair[k] = pixel < line ? from + pixel % images * size + pixel / images * p->ldy : NULL;
            }
            pack_pixels(s, dy, pair[0], pair[1], panels + q * nr);
        }
    }
}
