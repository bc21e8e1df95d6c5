/* Results of forward and backward_data from their spectra: see fourier.c. */
#include "fourier_pass.h"

/* Some pixels of a row of y, every other vector of `line`: bias, scale and what is added, then to y, or (z) to vectors
 * one after the other. */
INLINE void finish_pixels(const DT(fourier_pass) * s, const real *line, int64_t pixels, int64_t c, int64_t count,
                          elem *y, const elem *added, int64_t step, int64_t added_step, int relu, int has_added,
                          real *z) {
    const vec b = s->bias ? load_part(s->bias + c, count) : (vec){0};
    const vec scale = s->scale ? load_part(s->scale + c, count) : (vec){0};
    const vec beta = s->scale ? load_part(s->args->beta + c, count) : (vec){0};
    for (int64_t i = 0; i < pixels; i++, line += 2 * V, y += step, added += added_step) {
        vec sum = load(line) + b;
        if (s->scale) sum = multiply_add(sum, scale, beta);
        if (has_added) sum += load_first(added, count);
        if (relu) sum = positive(sum);
        if (z)
            store(z + i * V, sum);
        else
            store_first(y, count, sum);
    }
}

static void finish_row(const DT(fourier_pass) * s, const DT(fourier_memory) * own, const real *line, int64_t pixels,
                       int64_t c, int64_t count, int64_t pixel, int64_t step) {
    const DT(conv_args) *a = s->args;
    const dtconv_activation activation = s->f.turned ? DTCONV_LINEAR : a->activation;
    elem *y = s->y + pixel * s->f.ldy + c;
    const elem *added = s->added ? s->added + pixel * s->lda + c : y;
    const int64_t ldy = step * s->f.ldy, lda = step * s->lda;
    const int relu = activation == DTCONV_RELU;
    if (activation != DTCONV_LINEAR && !relu) { /* before it is rounded; the transforms' scratch memory is free */
        real *z = own->room.scratch;
        finish_pixels(s, line, pixels, c, count, y, added, ldy, lda, 0, s->added != NULL, z);
        RT(activate_numbers)(pixels * V, activation, a->alpha, z);
        for (int64_t i = 0; i < pixels; i++) store_first(y + i * ldy, count, load(z + i * V));
    } else if (s->added) {
        finish_pixels(s, line, pixels, c, count, y, added, ldy, lda, relu, 1, NULL);
    } else if (count == V && relu) {
        finish_pixels(s, line, pixels, c, V, y, added, ldy, lda, 1, 0, NULL);
    } else if (count == V) {
        finish_pixels(s, line, pixels, c, V, y, added, ldy, lda, 0, 0, NULL);
    } else {
        finish_pixels(s, line, pixels, c, count, y, added, ldy, lda, relu, 0, NULL);
    }
}

/* Row r of a tile from the row of results, of which the first may lie at its end. */
static void finish_tile_row(const DT(fourier_pass) * s, const DT(fourier_memory) * own, const real *line,
                            const fourier_outputs *of, int64_t r, int64_t c) {
    const fourier_axis *w = &s->f.w;
    const int64_t count = MIN(V, s->f.co - c), pixel = of->offset + r * of->row_step,
                  early = MIN(w->shift, of->columns);
    if (early) finish_row(s, own, line + (w->points - w->shift) * 2 * V, early, c, count, pixel, of->step);
    finish_row(s, own, line, of->columns - early, c, count, pixel + early * of->step, of->step);
}

/* Adds the pixels of a tile to what is gathered. */
static void gather(const DT(fourier_pass) * s, const DT(fourier_memory) * own, DT(gather_sums) * sums,
                   const fourier_outputs *of) {
    const int64_t most = s->f.h.kept * s->f.w.kept;
    elem **y = own->pixels;
    const elem **x = (const elem **)own->pixels + most;
    int64_t count = 0;
    const DT(conv_reductions) *reductions = s->gathered.reductions;
    for (int64_t i = 0; i < of->rows; i++)
        for (int64_t j = 0; j < of->columns; j++) {
            const int64_t pixel = of->offset + i * of->row_step + j * of->step;
            if (reductions) x[count] = reductions->x + pixel * reductions->ldx;
            y[count++] = s->y + pixel * s->f.ldy;
        }
    DT(gather_add)(sums, &s->gathered, count, y, x, 0, s->f.co, 0, 0);
    DT(gather_count)(sums, count);
}

/* Loads channels from c on of the pixels of a tile of y, which are about to be written. */
static void load_ahead(const DT(fourier_pass) * s, const fourier_outputs *of, int64_t c) {
    for (int64_t r = 0; r < of->rows; r++) {
        const elem *y = s->y + (of->offset + r * of->row_step) * s->f.ldy + c;
        for (int64_t i = 0; i < of->columns; i++) __builtin_prefetch(y + i * of->step * s->f.ldy, 1, 2);
    }
}

void DT(fourier_results)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t count,
                         int64_t row) {
    const RT(fourier) *f = &s->f;
    DT(gather_sums) sums = {0};
    if (s->gathered.wanted) sums = DT(gather_sums_on)(own->sums, f->co);
    for (int64_t i = 0; i < count; i += 2) {
        fourier_outputs of[4] = {{0}};
        for (int t = 0; t < 4 && i + t < count; t++) of[t] = RT(fourier_tile_of_y)(f, first + i + t);
        const int64_t begin = of[0].rows || !of[1].rows ? 0 : 1; /* a tile without results is no partner */
        for (int64_t c = 0; c < (of[0].rows || of[1].rows ? f->co : 0); c += V) {
            const RT(fourier_spectra) from = {.at = own->spectra + (row + i + begin) * s->ld + c,
                                              .plane = s->plane,
                                              .second = of[0].rows && of[1].rows ? s->ld : 0,
                                              .far = s->shared};
            RT(fourier_columns_inverse)(f, &own->room, &from);
            for (int t = 2; t < 4; t++) load_ahead(s, &of[t], c);
            for (int64_t r = 0; r < MAX(of[0].rows, of[1].rows); r++) {
                RT(fourier_row_inverse)(f, &own->room, (r + f->h.points - f->h.shift) % f->h.points);
                for (int t = 0; t < 2; t++)
                    if (r < of[t].rows) finish_tile_row(s, own, own->room.line + t * V, &of[t], r, c);
            }
        }
        if (!s->gathered.wanted) continue;
        DT(gather_begin)(&sums);
        for (int t = 0; t < (i + 1 < count ? 2 : 1); t++) gather(s, own, &sums, &of[t]);
        DT(gather_end)(&sums, &s->gathered, (first + i) / FOURIER_PAIR, 0, f->co);
    }
}

void DT(fourier_tile_results)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t count, int64_t row) {
    const RT(fourier) *f = &s->f;
    const int64_t wide = f->w.points;
    for (int64_t i = 0; i < count; i += 2)
        for (int64_t c = 0; c < f->co; c += V) {
            real *at = own->spectra + (row + i) * s->ld + c;
            const int two = i + 1 < count;
            const RT(fourier_spectra) from = {.at = at, .plane = s->plane, .second = two ? s->ld : 0, .far = s->shared};
            RT(fourier_columns_inverse)(f, &own->room, &from);
            for (int64_t r = 0; r < f->h.points; r++) {
                RT(fourier_row_inverse)(f, &own->room, r);
                const real *line = own->room.line;
                for (int64_t j = 0; j < wide; j++, line += 2 * V) {
                    real *to = at + (r * wide + j) * s->plane;
                    store(to, load(line));
                    if (two) store(to + s->ld, load(line + V));
                }
            }
        }
}

/* Results of a tile along an axis: from coordinate `base` on, and before it, those of a negative shift. */
static int64_t base_of(const fourier_axis *a, int64_t index) {
    return a->before + index % a->step + a->step * a->kept * (index / a->step);
}

/* Adds what a tile, one of those along w, gives to results [begin, end) of a row: its plane of shift i is at
 * at + i plane. */
static void add_tile(const fourier_axis *a, int64_t index, const real *at, int64_t plane, int64_t begin, int64_t end,
                     real *line) {
    const int64_t base = base_of(a, index);
    const int64_t first = MAX(1 - a->taps, dtconv_ceil_div(begin - base, a->step));
    const int64_t last = MIN(a->kept - 1, dtconv_ceil_div(end - base, a->step) - 1);
    for (int64_t i = first; i <= last; i++) {
        real *to = line + (base + i * a->step - begin) * 2 * V;
        store(to, load(to) + load(at + (i < 0 ? i + a->points : i) * plane));
    }
}

void DT(fourier_added_row)(const DT(fourier_pass) * s, const DT(fourier_memory) * own, int64_t first, int64_t y_row) {
    const RT(fourier) *f = &s->f;
    const fourier_axis *h = &f->h, *w = &f->w;
    const int64_t image = y_row / h->out, row = y_row % h->out, tile = image * h->tiles * w->tiles - first;
    real *line = own->room.line;
    for (int64_t begin = 0; begin < w->out; begin += w->points)
        for (int64_t c = 0; c < f->co; c += V) {
            const int64_t end = MIN(begin + w->points, w->out);
            memset(line, 0, (size_t)((end - begin) * 2 * V) * sizeof(real));
            for (int64_t i = 0; i < h->tiles; i++) {
                const int64_t away = row - base_of(h, i), shift = away / h->step;
                if (away % h->step || shift <= -h->taps || shift >= h->kept) continue;
                const int64_t plane = (shift < 0 ? shift + h->points : shift) * w->points * s->plane;
                for (int64_t j = 0; j < w->tiles; j++)
                    add_tile(w, j, own->spectra + plane + (tile + i * w->tiles + j) * s->ld + c, s->plane, begin, end,
                             line);
            }
            finish_row(s, own, line, end - begin, c, MIN(V, f->co - c), y_row * w->out + begin, 1);
        }
}
