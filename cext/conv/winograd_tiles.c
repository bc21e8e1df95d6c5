/* Tiles of Winograd's convolution: choice of their size, and the pixels of each.
 *
 * An image of oh x ow outputs is cut into ceil(oh / mh) x ceil(ow / mw) tiles of mh x mw outputs; tile (i, j) reads the
 * ah x aw inputs from (i * mh - pad_t, j * mw - pad_l) on, ah = mh + 2, zeros outside of the image.  The size is the
 * one with the fewest multiplications, ah * aw for each tile.  Images with a depth have such tiles in each of their
 * planes.
 *
 * With a dilation of d along an axis, every d-th output reads every d-th input: a tile's pixels are d apart, and each
 * of the d phases, the outputs that begin with pixel 0, 1, ..., d - 1, is cut into tiles by itself.  All have as many
 * as the first one, which is the longest: a tile may lie outside of the image altogether.
 */
#include "winograd.h"

/* Of larger tiles a multiplication counts more, in eighths: their transforms are longer, those of 5 without pairs of
 * points, and their errors larger; blocks of them need more memory, above all in backward_weights.  Tiles of 7 and 8
 * are of images in bfloat16, beside whose own digits their errors are nothing, and of those who asked for them.  Where
 * transformed numbers are rounded, errors are too large with tiles above 4; in forward, where they change the signs
 * that ReLU sees, they are so with 4 x 4, too. */
static const struct {
    dtconv_tile tile;
    int weight, of_weights;
} sizes[] = {{{2, 2}, 8, 8},   {{2, 4}, 8, 8},  {{4, 4}, 8, 8},   {{2, 2}, 8, 8},
             {{5, 5}, 10, 10}, {{6, 6}, 9, 10}, {{7, 7}, 10, 10}, {{8, 8}, 11, 11}};

/* The rows of each kind: from the first to the one before the last. */
static const struct {
    int first, last;
} rows_of[] = {
    [DTCONV_TILES_OF_IMAGES] = {2, 6},       [DTCONV_TILES_OF_WEIGHTS] = {2, 6},
    [DTCONV_TILES_LARGE_OF_IMAGES] = {2, 8}, [DTCONV_TILES_LARGE_OF_WEIGHTS] = {2, 8},
    [DTCONV_TILES_ROUNDED] = {2, 4},         [DTCONV_TILES_ROUNDED_FORWARD] = {0, 2},
};

/* Gradients of transformed filters that are kept do not become larger than this by large tiles, of which
 * backward_weights takes so many at a time. */
enum { LARGE_BYTES = 32 << 20, LARGE_TILES = 64 };

dtconv_tile DT(winograd_tile)(int64_t oh, int64_t ow, int kind) {
    const int of_weights = kind == DTCONV_TILES_OF_WEIGHTS || kind == DTCONV_TILES_LARGE_OF_WEIGHTS;
    dtconv_tile best = {0, 0};
    int64_t least = INT64_MAX;
    for (int i = rows_of[kind].first; i < rows_of[kind].last; i++) {
        const dtconv_tile t = sizes[i].tile;
        const int weight = of_weights ? sizes[i].of_weights : sizes[i].weight;
        const int64_t cost = dtconv_ceil_div(oh, t.h) * dtconv_ceil_div(ow, t.w) * (t.h + 2) * (t.w + 2) * weight;
        if (cost < least) least = cost, best = t;
    }
    return best;
}

/* The tile of a pass, whose phases have high x wide pixels.  Where transformed filters, or their gradients, are large
 * and read for each of many blocks, tiles are not large: few of them would be in a block. */
static dtconv_tile tile_of(const dtconv_conv *p, int64_t oh, int64_t ow, int64_t high, int64_t wide, int kind) {
    const dtconv_tile t = DT(winograd_tile)(high, wide, kind);
    const int64_t tiles = p->n * dtconv_ceil_div(oh, t.h) * dtconv_ceil_div(ow, t.w), points = (t.h + 2) * (t.w + 2);
    const int64_t bytes = p->ci * p->co * points * (int64_t)sizeof(real);
    if (kind == DTCONV_TILES_LARGE_OF_WEIGHTS && bytes > LARGE_BYTES && tiles > LARGE_TILES)
        return DT(winograd_tile)(high, wide, DTCONV_TILES_OF_WEIGHTS);
    const int large = !dtconv_is_deep(p) && p->ci * p->co * 36 * (int64_t)sizeof(real) > MOST_BYTES;
    if (kind == DTCONV_TILES_LARGE_OF_IMAGES && bytes > KEPT_BYTES && tiles * points > KEPT_MOST * 36 && !large)
        return DT(winograd_tile)(high, wide, DTCONV_TILES_OF_IMAGES);
    return t;
}

dtconv_status DT(winograd_tiling)(const dtconv_conv *p, int backward_data, int kind, DT(tiling) * w) {
    if (p->kh != 3 || p->kw != 3 || p->sh != 1 || p->sw != 1 || p->groups != 1 || p->sd != 1 ||
        (p->dil_d != 1 && p->kd > 1))
        return DTCONV_UNSUPPORTED;
    if (backward_data)
        *w = (DT(tiling)){.n = p->n,
                          .ih = p->oh,
                          .iw = p->ow,
                          .ci = p->co,
                          .ldx = p->ldy,
                          .oh = p->ih,
                          .ow = p->iw,
                          .co = p->ci,
                          .ldy = p->ldx,
                          .pad_t = 2 * p->dil_h - p->pad_t,
                          .pad_l = 2 * p->dil_w - p->pad_l,
                          .id = p->od,
                          .od = p->id,
                          .pad_f = p->kd - 1 - p->pad_f,
                          .turned = 1};
    else
        *w = (DT(tiling)){.n = p->n,
                          .ih = p->ih,
                          .iw = p->iw,
                          .ci = p->ci,
                          .ldx = p->ldx,
                          .oh = p->oh,
                          .ow = p->ow,
                          .co = p->co,
                          .ldy = p->ldy,
                          .pad_t = p->pad_t,
                          .pad_l = p->pad_l,
                          .id = p->id,
                          .od = p->od,
                          .pad_f = p->pad_f};
    w->dil_h = p->dil_h, w->dil_w = p->dil_w;
    const int64_t high = dtconv_ceil_div(w->oh, w->dil_h), wide = dtconv_ceil_div(w->ow, w->dil_w); /* of a phase */
    const dtconv_tile tile = tile_of(p, w->oh, w->ow, high, wide, kind);
    const int rounded = kind == DTCONV_TILES_ROUNDED || kind == DTCONV_TILES_ROUNDED_FORWARD;
    w->t = rounded ? RT(winograd_transform_rounded)(tile) : RT(winograd_transform)(tile);
    if (!rounded) {
        w->ukr = RT(ukr_current)();
        if (!w->ukr) return DTCONV_KERNEL;
        w->mr = w->ukr->mr, w->nr = w->ukr->nr;
    }
    w->phase_th = dtconv_ceil_div(high, w->t->mh);
    w->phase_tw = dtconv_ceil_div(wide, w->t->mw);
    w->th = MIN(w->dil_h, w->oh) * w->phase_th;
    w->tw = MIN(w->dil_w, w->ow) * w->phase_tw;
    w->tiles = w->n * w->th * w->tw;
    w->points = w->t->ah * w->t->aw;
    w->threads = dtconv_threads_of(p);
    w->kd = p->kd;
    w->slot = dtconv_is_deep(p) ? dtconv_round_to(w->ci, V) : w->ci;
    return DTCONV_OK;
}

/* Pixels of a rectangle of high x wide pixels, step_h and step_w apart, the first of which is (top, left) of an image
 * of h x w pixels at x, or `outside`. */
static void rectangle(const elem *x, int64_t h, int64_t w, int64_t ld, int64_t top, int64_t left, int high, int wide,
                      int64_t step_h, int64_t step_w, const elem *outside, const elem **pixels) {
    const int within = left >= 0 && left + (wide - 1) * step_w < w;
    for (int i = 0; i < high; i++, top += step_h, pixels += wide) {
        if (top < 0 || top >= h) {
            for (int j = 0; j < wide; j++) pixels[j] = outside;
            continue;
        }
        const elem *row = x + top * w * ld;
        if (within) {
            row += left * ld;
            for (int j = 0; j < wide; j++, row += step_w * ld) pixels[j] = row;
            continue;
        }
        int64_t at = left;
        for (int j = 0; j < wide; j++, at += step_w) pixels[j] = at < 0 || at >= w ? outside : row + at * ld;
    }
}

/* The first pixel of y of tile `index` along an axis: the phases come one after the other. */
static int64_t first_of(int64_t index, int64_t tiles_of_phase, int64_t dilation, int m) {
    return dilation == 1 ? index * m : index / tiles_of_phase + index % tiles_of_phase * m * dilation;
}

DT(place) DT(tile_place)(const DT(tiling) * w, int64_t index, int64_t plane) {
    const int64_t strip = index / w->tw;
    return (DT(place)){strip / w->th, plane, strip % w->th, index % w->tw};
}

void DT(tile_next)(const DT(tiling) * w, DT(place) * at) {
    if (++at->j < w->tw) return;
    at->j = 0;
    if (++at->i < w->th) return;
    at->i = 0;
    at->image++;
}

void DT(tile_of_x)(const DT(tiling) * w, const elem *x, const DT(place) * at, const elem *zeros, const elem **pixels) {
    const RT(transform) *t = w->t;
    rectangle(x + (at->image * w->id + at->plane) * w->ih * w->iw * w->ldx, w->ih, w->iw, w->ldx,
              first_of(at->i, w->phase_th, w->dil_h, t->mh) - w->pad_t,
              first_of(at->j, w->phase_tw, w->dil_w, t->mw) - w->pad_l, t->ah, t->aw, w->dil_h, w->dil_w, zeros,
              pixels);
}

void DT(tile_of_y)(const DT(tiling) * w, const elem *y, int64_t ldy, const DT(place) * at, const elem *outside,
                   const elem **pixels) {
    const RT(transform) *t = w->t;
    rectangle(y + (at->image * w->od + at->plane) * w->oh * w->ow * ldy, w->oh, w->ow, ldy,
              first_of(at->i, w->phase_th, w->dil_h, t->mh), first_of(at->j, w->phase_tw, w->dil_w, t->mw), t->mh,
              t->mw, w->dil_h, w->dil_w, outside, pixels);
}

void DT(load_x_ahead)(dtconv_ahead *to, const DT(tiling) * w, const elem *x, int64_t plane, int64_t first,
                      int64_t count, const elem *zeros) {
    const elem *pixels[TRANSFORM_PIXELS];
    const RT(transform) *t = w->t;
    if (count <= 0) return;
    DT(place) at = DT(tile_place)(w, first, plane);
    for (int64_t k = 0; k < count; k++, DT(tile_next)(w, &at)) {
        DT(tile_of_x)(w, x, &at, zeros, pixels);
        for (int i = t->ah - t->mh; i < t->ah; i++)
            for (int j = t->aw - t->mw; j < t->aw; j++)
                dtconv_ahead_add(to, pixels[i * t->aw + j], w->ci * (int64_t)sizeof(elem));
    }
}

void DT(load_y_ahead)(dtconv_ahead *to, const DT(tiling) * w, const elem *y, int64_t ldy, int64_t plane, int64_t first,
                      int64_t count, int64_t j, int64_t n, const elem *outside) {
    const elem *pixels[TRANSFORM_PIXELS];
    if (count <= 0) return;
    DT(place) at = DT(tile_place)(w, first, plane);
    for (int64_t t = 0; t < count; t++, DT(tile_next)(w, &at)) {
        DT(tile_of_y)(w, y, ldy, &at, outside, pixels);
        for (int i = 0; i < w->t->mh * w->t->mw; i++) dtconv_ahead_add(to, pixels[i] + j, n * (int64_t)sizeof(elem));
    }
}

void DT(expand_columns)(const DT(tiling) * w, DT(expand_fn) expand, const elem *const *x, int64_t first, int64_t count,
                        int64_t room, real *to, int64_t plane) {
    const int64_t filled = dtconv_round_to(MAX(count, 0), V);
    if (filled <= room) {
        if (count > 0) expand(x, first, count, to, plane);
        if (filled < room)
            for (int64_t e = 0; e < w->points; e++)
                memset(to + e * plane + filled, 0, (size_t)(room - filled) * sizeof(real));
        return;
    }
    real vector[TRANSFORM_PIXELS * V]; /* panels that are no whole vectors */
    for (int64_t c = 0; c < room; c += V) {
        const int64_t some = MIN(V, room - c);
        memset(vector, 0, sizeof vector);
        if (c < count) expand(x, first + c, MIN(V, count - c), vector, V);
        for (int64_t e = 0; e < w->points; e++) memcpy(to + e * plane + c, vector + e * V, (size_t)some * sizeof(real));
    }
}

void DT(expand_panels)(const DT(tiling) * w, DT(expand_fn) expand, const elem *const *x, int64_t first,
                       int64_t channels, real *panels, int64_t row, int64_t panel_step, int64_t plane) {
    const int64_t nr = w->nr;
    for (int64_t j = 0; j < channels; j += nr)
        DT(expand_columns)(w, expand, x, first + j, MIN(nr, channels - j), nr, panels + j / nr * panel_step + row * nr,
                           plane);
}
