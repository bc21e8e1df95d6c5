/* Winograd's convolution, forward and backward_data: 3 x 3, stride 1, any dilation along height and width.
 *
 *   y tile (m x m) = A^T [ sum over c of (G g G^T) * (B^T d B) ] A       * is element by element, a x a points, a = m +
 * 2
 *
 * so for each point e a matrix product over channels, M[e] (tiles x co) = V[e] (tiles x ci) * U[e] (ci x co), with
 * a * a / (m * m) multiplications where the direct algorithm has 9 (Lavin and Gray, CVPR 2016).  backward_data is the
 * correlation of dy with the filters turned by 180 degrees, rows and columns exchanged.
 *
 * The transformed operands are never all in memory.  One of them is kept and the other made in passing, in L2:
 *   filters kept   U for all channels; each thread takes a block of tiles at a time: V of the block, then M and y for a
 *                  few panels of output channels at a time
 *   tiles kept     V for a large block of tiles; each thread takes a panel of output channels at a time: U of the
 *                  panel, then M and y for all tiles of the block.  Where U is larger than the caches
 * Images with a depth: M[e] of a plane of y is the sum over the kd planes of x that it reads, V[e] of each times U[e]
 * of a plane of filters; both lie side by side as one longer row, so that the sum is one of the product.  Filters are
 * kept, and each thread walks with its block of tiles through all planes, keeping V of the last kd planes of x: each is
 * made once.  Where a row of V ends and goes on at its beginning, the product is cut in two.
 *
 * The micro-kernel reads V in place, rows are tiles; U is written as its packed panels.
 *
 * Where a tile has numbers, sums of its points leave rounding errors also in pixels whose own window reads zeros alone,
 * where the direct method has exact zeros; a ReLU behind it would take half of them for positive.  Such pixels are
 * zeros here, too (images with a constant background).  What is normalized as it is read is not looked through.
 */
#include "activate.h"
#include "gather.h"
#include "winograd_points.h"

enum {
    CHUNK_TILES = 8,
    CHUNK_ROWS = 32,
    BLOCK_BYTES = 768 << 10, /* V and M of a thread, filters kept; of many blocks also where L2 has less: U, which is
                                read for each block, does not stay there beside them either */
    MANY_BLOCKS = 32,
    DEEP_BYTES = 1536 << 10, /* the same with a depth: V of several planes */
    BLOCK_TILES = 56,        /* at most, filters kept */
    COLUMNS = 128,           /* output channels at a time */
};

typedef struct {
    DT(tiling) w;
    points_of points;
    const DT(conv_args) * args;
    DT(conv_normalization) prologue; /* of x */
    const elem *x;
    const real *filters;
    const point *kept; /* U from outside, or NULL */
    const elem *added; /* to y, or NULL; its pixels are lda apart */
    int64_t lda;
    elem *y;
    int keep_tiles, wide_padding;                        /* windows of padding alone */
    int64_t block, columns;                              /* tiles and output channels at a time */
    int64_t ldv, ldm, v_plane, m_plane, u_step, u_plane; /* elements; of U and V, points */
    int64_t zeros_size, shared_size, own_size, m_size, packed_size,
        scratch_size; /* elements; own: U or V of a thread */
    elem *zeros;
    point *shared;
    real *threads;
    int64_t sums_size, parts_size; /* elements of what a thread gathers, and of the parts of all blocks */
    DT(gather_parts) gathered;     /* of all blocks */
} pass_state;

/* A thread's memory: U or V, M, the tile outside of the image, ... */
static int64_t size_before_sums(const pass_state *s) {
    return s->own_size + s->m_size + s->packed_size + s->scratch_size + dtconv_line(s->w.co + V);
}

/* ... and what it gathers. */
static int64_t size_of_thread(const pass_state *s) { return size_before_sums(s) + s->sums_size; }

/* What is gathered from each plane of each block is a part. */
static int64_t parts_of(const pass_state *s) { return dtconv_ceil_div(s->w.tiles, s->block) * s->w.od; }

/* Sizes of blocks and of the workspace. */
static dtconv_status prepare(const dtconv_conv *p, int backward_data, int with_filters, pass_state *s) {
    const dtconv_status status = prepare_points(p, backward_data, DTCONV_TILES_OF_IMAGES, &s->w, &s->points);
    if (status) return status;
    const DT(tiling) *w = &s->w;
    const int64_t nr = w->nr, mr = w->mr, panels = dtconv_ceil_div(w->co, nr), size = sizeof(real);
    const int64_t of_point = sizeof(point);
    const int64_t l2 = dtconv_cache_bytes(2);
    const int deep = w->od > 1 || w->id > 1 || w->kd > 1;
    const int large = w->ci * w->co * 36 * of_point > MOST_BYTES && panels >= w->threads; /* each has a panel */
    s->keep_tiles = !with_filters && !deep && w->points * w->ci * panels * nr * of_point > KEPT_BYTES &&
                    (large || w->tiles * w->points <= KEPT_MOST * 36);
    s->ldv = dtconv_plane_row(w->kd * w->slot, V);
    if (s->keep_tiles) {
        const int64_t most = KEPT_TILES * 36 / w->points;
        s->block = dtconv_round_to(dtconv_ceil_div(w->tiles, dtconv_ceil_div(w->tiles, most)), mr);
        s->columns = nr;
    } else {
        const int64_t row = w->points * of_point * s->ldv;
        s->columns = MIN(panels, MAX(1, COLUMNS / nr)) * nr;
        const int64_t tile = row + w->points * size * s->columns, most = BLOCK_BYTES / tile;
        const int64_t fit = (deep ? MIN(DEEP_BYTES, l2 * 3 / 2) : MIN(BLOCK_BYTES, l2 * 3 / 4)) / tile;
        s->block = deep ? fit : MAX(fit, MIN(most, w->tiles / MANY_BLOCKS));
        s->block = MAX(1, MIN(s->block, BLOCK_TILES) / mr) * mr;
        s->block = MIN(s->block, dtconv_round_to(dtconv_ceil_div(w->tiles, w->threads), mr));
    }
    s->ldm = dtconv_plane_row(s->columns, V);
    s->u_step = w->kd * w->slot * nr;
    s->u_plane = dtconv_plane_step_of((s->keep_tiles ? s->columns / nr : panels) * s->u_step, of_point);
    s->v_plane = dtconv_plane_step_of(s->block * s->ldv, of_point);
    s->m_plane = dtconv_plane_step(s->block * s->ldm);
    s->wide_padding = !s->prologue.mean && (w->pad_t > 2 * w->dil_h || w->oh - w->pad_t > w->ih ||
                                            w->pad_l > 2 * w->dil_w || w->ow - w->pad_l > w->iw);
    const int64_t v_size = dtconv_room(w->points * s->v_plane + w->kd * s->block); /* and marks */
    const int64_t u_size = dtconv_room(w->points * s->u_plane);
    s->zeros_size = dtconv_line(w->ci + V);
    s->m_size = dtconv_line(w->points * s->m_plane);
    s->packed_size = dtconv_packs(w) ? dtconv_line(s->block * w->kd * w->slot) : 0;
    s->scratch_size = points_scratch(w);
    s->shared_size = s->keep_tiles ? v_size : with_filters ? 0 : u_size;
    s->own_size = s->keep_tiles ? u_size : v_size;
    s->sums_size = (int64_t)DT(gather_sums_bytes)(s->columns) / size;
    s->parts_size = (int64_t)DT(gather_parts_bytes)(parts_of(s), w->co) / size;
    return DTCONV_OK;
}

static size_t bytes_of(const pass_state *s) {
    return 64 +
           (size_t)(s->zeros_size + s->shared_size + s->parts_size + s->w.threads * size_of_thread(s)) * sizeof(real);
}

enum { WORDS = sizeof(elem) == 8 ? 8 : 4 }; /* 8 channels or more */

/* Whether one of WORDS words has some of these bits. */
#ifdef __AVX__
static inline int any_bits(const void *words, uint64_t bits) {
    const __m256i *w = words;
    __m256i all = _mm256_loadu_si256(w);
    if (WORDS == 8) all = all | _mm256_loadu_si256(w + 1);
    return !_mm256_testz_si256(all, _mm256_set1_epi64x((int64_t)bits));
}
#else
static inline int any_bits(const void *words, uint64_t bits) {
    uint64_t w[WORDS], all = 0;
    memcpy(w, words, sizeof w);
    for (int k = 0; k < WORDS; k++) all |= w[k];
    return (all & bits) != 0;
}
#endif

/* Whether one of n channels is not 0; most often one of the first is.  -0 is 0. */
static inline int has_numbers(const elem *x, int64_t n) {
    const uint64_t signs = sizeof(elem) == 2 ? 0x8000800080008000 : sizeof(elem) == 4 ? 0x8000000080000000 : 1ull << 63;
    const int64_t step = WORDS * 8 / sizeof(elem);
    int64_t c = 0;
    for (; c + step <= n; c += step)
        if (any_bits(x + c, ~signs)) return 1;
    for (; c < n; c++)
        if (widen(x[c]) != 0) return 1;
    return 0;
}

/* The last pixel inside of the image of the 3 x 3 that end with this one, of a tile of `width`, or NULL. */
NOINLINE const elem *last_inside(const elem *const *pixel, int width, const elem *zeros) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            if (pixel[-i * width - j] != zeros) return pixel[-i * width - j];
    return NULL;
}

/* The pixels of a tile to look at: each window has one of them; returns their number. */
static int find_probes(const DT(tiling) * w, int *probes) {
    int count = 0;
    for (int i = 2; i < w->t->ah; i += 3)
        for (int j = 2; j < w->t->aw; j += 3)
            probes[count++] = MAX(2, MIN(i, w->t->ah - 3)) * w->t->aw + MAX(2, MIN(j, w->t->aw - 3));
    return count;
}

/* Whether a window of a tile may read zeros alone.  Where a probe is padding, it is the last pixel before it. */
static inline int may_be_empty(const pass_state *s, int count, const int *probes, const elem *const *pixels) {
    for (int k = 0; k < count; k++) {
        const elem *probe = pixels[probes[k]];
        if (probe == s->zeros && !(probe = last_inside(pixels + probes[k], s->w.t->aw, s->zeros))) continue;
        if (!has_numbers(probe, s->w.ci)) return 1;
    }
    return 0;
}

/* Behind V: of each of its tiles whether it has to be looked through for windows that read zeros alone. */
static unsigned char *marks_of(const pass_state *s, const point *v) {
    return (unsigned char *)(v + s->w.points * s->v_plane);
}

/* V of tiles [first, first + count) of a plane of x, from row `row` on. */
static void transform_tiles(const pass_state *s, int64_t plane, int64_t first, int64_t count, point *v, int64_t row) {
    const elem *pixels[2][TRANSFORM_PIXELS];
    const int64_t slot = plane % s->w.kd;
    unsigned char *marks = marks_of(s, v) + slot * s->block + row;
    v += slot * s->w.slot + row * s->ldv;
    int probes[TRANSFORM_MAX];
    const int probe_count = s->prologue.mean ? 0 : find_probes(&s->w, probes);
    DT(place) at = DT(tile_place)(&s->w, first, plane);
    DT(tile_of_x)(&s->w, s->x, &at, s->zeros, pixels[0]);
    for (int64_t i = 0; i < count; i++) {
        if (i + 1 < count) {
            DT(tile_next)(&s->w, &at);
            DT(tile_of_x)(&s->w, s->x, &at, s->zeros, pixels[(i + 1) % 2]);
            dtconv_prefetch(pixels[(i + 1) % 2], s->w.points, 0, 1);
        }
        marks[i] = (unsigned char)(s->wide_padding | may_be_empty(s, probe_count, probes, pixels[i % 2]));
        expand_tile(&s->w, &s->points, &s->prologue, pixels[i % 2], s->zeros, v + i * s->ldv, s->v_plane);
    }
}

/* Pixels of a tile of y, of what is added there, and of what was normalized. */
typedef struct {
    elem *y[TRANSFORM_PIXELS];
    const elem *added[TRANSFORM_PIXELS], *x[TRANSFORM_PIXELS];
} tile_pixels;

/* Pointers to them, or to `outside`; loads channels [j, j + n). */
static void find_pixels(const pass_state *s, const DT(place) * at, int64_t j, int64_t n, const elem *outside,
                        tile_pixels *found) {
    const int64_t count = s->w.t->mh * s->w.t->mw;
    DT(tile_of_y)(&s->w, s->y, s->w.ldy, at, outside, (const elem **)found->y);
    dtconv_prefetch((const elem **)found->y, count, j, n);
    if (s->added) DT(tile_of_y)(&s->w, s->added, s->lda, at, outside, found->added);
    if (s->added && s->added != s->y) dtconv_prefetch(found->added, count, j, n);
    const DT(conv_reductions) *reductions = s->gathered.reductions;
    if (!reductions) return;
    DT(tile_of_y)(&s->w, reductions->x, reductions->ldx, at, outside, found->x);
    dtconv_prefetch(found->x, count, j, n);
}

/* Adds channels [j, j + n) of the pixels of one tile to what is gathered. */
static void gather(const pass_state *s, DT(gather_sums) * sums, int64_t j, int64_t n, const tile_pixels *pixels,
                   const elem *outside) {
    elem *inside[TRANSFORM_PIXELS];
    const elem *x[TRANSFORM_PIXELS];
    int64_t count = 0;
    for (int i = 0; i < s->w.t->mh * s->w.t->mw; i++)
        if (pixels->y[i] != outside) {
            if (s->gathered.reductions) x[count] = pixels->x[i];
            inside[count++] = pixels->y[i];
        }
    if (!count) return;
    DT(gather_add)(sums, &s->gathered, count, inside, x, j, n, 0, 0);
    DT(gather_count)(sums, count);
}

/* The pixels of each row of a tile of y whose windows read zeros alone, as bits; whether there are any.  A tile all of
 * which reads zeros has zeros without more ado, and has none. */
NOINLINE int find_empty(const pass_state *s, const DT(place) * at, int64_t first, int64_t end, unsigned *empty) {
    const DT(tiling) *w = &s->w;
    const int ah = w->t->ah, aw = w->t->aw, mh = w->t->mh;
    const unsigned every = (1u << w->t->mw) - 1;
    unsigned zero[TRANSFORM_MAX], some = 0, all = every;
    for (int i = 0; i < ah; i++) zero[i] = (1u << aw) - 1;
    for (int64_t plane = first; plane < end; plane++) {
        const elem *pixels[TRANSFORM_PIXELS];
        const DT(place) of = {at->image, plane, at->i, at->j};
        DT(tile_of_x)(w, s->x, &of, s->zeros, pixels);
        for (int i = 0; i < ah; i++)
            for (int j = 0; j < aw; j++)
                if (zero[i] >> j & 1 && pixels[i * aw + j] != s->zeros && has_numbers(pixels[i * aw + j], w->ci))
                    zero[i] &= ~(1u << j);
    }
    for (int i = 0; i < mh; i++) {
        const unsigned rows = zero[i] & zero[i + 1] & zero[i + 2];
        empty[i] = rows & rows >> 1 & rows >> 2 & every;
        some |= empty[i], all &= empty[i];
    }
    return some && all != every;
}

/* Channels [j, j + n) of a tile of y, from M; pixels of `empty` windows have no sums of products. */
NOINLINE void put_tile(const pass_state *s, const real *m, int64_t j, int64_t n, const tile_pixels *at,
                       const DT(contract_finish) * finish, const unsigned *empty, elem *outside) {
    const int mw = s->w.t->mw, count = s->w.t->mh * mw;
    elem *others[TRANSFORM_PIXELS] = {0};
    for (int i = 0; i < count; i++) others[i] = empty[i / mw] >> i % mw & 1 ? outside : at->y[i];
    s->points.maps->output(m, s->m_plane, j, n, others, finish);
    for (int i = 0; i < count; i++) {
        if (others[i] == at->y[i]) continue;
        for (int64_t c = j; c < j + n; c++) {
            real sum = finish->bias ? finish->bias[c] : 0;
            if (finish->scale) sum = sum * finish->scale[c] + finish->beta[c];
            if (finish->added) sum += widen(finish->added[i][c]);
            at->y[i][c] = narrow(activate(sum, finish->activation, finish->alpha));
        }
    }
}

/* Tiles, and the plane of y where they are. */
typedef struct {
    int64_t first, count, plane;
} tiles_of;

/* M[e] of the tiles of a block, n columns: of all planes that plane `plane` of y reads. */
static void multiply(const pass_state *s, int64_t plane, int64_t count, int64_t n, const point *v, const point *u,
                     real *m, real *packed, dtconv_ahead *ahead) {
    const DT(tiling) *w = &s->w;
    const int64_t from = plane - w->pad_f, last = MIN(w->kd, w->id - from);
    real beta = 0;
    for (int64_t tap = MAX(0, -from), run; tap < last; tap += run, beta = 1) {
        const int64_t slot = (from + tap) % w->kd;
        run = MIN(last - tap, w->kd - slot);
        multiply_points(w, &s->points, count, n, run * w->slot, v + slot * w->slot, s->ldv, 1,
                        u + tap * w->slot * w->nr, s->u_step, beta, m, s->ldm, packed, ahead);
    }
    for (int64_t i = 0; !(beta > 0) && i < count; i++) memset(m + i * s->ldm, 0, (size_t)n * sizeof(real));
}

/* y of some tiles, channels [j, j + n), from V and the panels of U that begin with column j.  Meanwhile x of the tiles
 * `next` is loaded, if there are any. */
static void products(const pass_state *s, const tiles_of *of, const tiles_of *next, int64_t j, int64_t n,
                     const point *v, const point *u, real *m) {
    const DT(tiling) *w = &s->w;
    real *packed = m + s->m_size;
    elem *outside = (elem *)(packed + s->packed_size + s->scratch_size);
    const DT(conv_reductions) *reductions = s->gathered.reductions;
    const int64_t first = of->first, count = of->count, plane = of->plane;
    const int64_t from_plane = MAX(0, plane - w->pad_f), end_plane = MIN(w->id, plane - w->pad_f + w->kd);
    const unsigned char *marks = marks_of(s, v) + from_plane % w->kd * s->block;
    dtconv_ahead ahead;
    for (int64_t e = 0; e < w->points; e++) {
        dtconv_ahead_begin(&ahead);
        const int64_t from = count * e / w->points, to = count * (e + 1) / w->points;
        DT(load_y_ahead)(&ahead, w, s->y, w->ldy, plane, first + from, to - from, j, n, outside);
        if (s->added && s->added != s->y)
            DT(load_y_ahead)(&ahead, w, s->added, s->lda, plane, first + from, to - from, j, n, outside);
        if (reductions)
            DT(load_y_ahead)(&ahead, w, reductions->x, reductions->ldx, plane, first + from, to - from, j, n, outside);
        if (next->count > 0) {
            const int64_t turns = dtconv_ceil_div(w->co, s->columns) * w->points, turn = j / s->columns * w->points + e;
            const int64_t begin = next->count * turn / turns, end = next->count * (turn + 1) / turns;
            DT(load_x_ahead)(&ahead, w, s->x, next->plane, next->first + begin, end - begin, s->zeros);
        }
        multiply(s, plane, count, n, v + e * s->v_plane, u + e * s->u_plane, m + e * s->m_plane, packed, &ahead);
    }
    DT(contract_finish) finish = {0};
    if (!w->turned)
        finish = (DT(contract_finish)){.bias = s->args->bias,
                                       .activation = s->args->activation,
                                       .alpha = s->args->alpha,
                                       .scale = s->args->scale,
                                       .beta = s->args->beta};
    DT(gather_sums) sums = {0};
    if (s->gathered.wanted) {
        sums = DT(gather_sums_on)(m - s->own_size + size_before_sums(s), s->columns);
        DT(gather_begin)(&sums);
    }
    DT(place) at = DT(tile_place)(w, first, plane);
    tile_pixels pixels[2];
    find_pixels(s, &at, j, n, outside, &pixels[0]);
    for (int64_t i = 0; i < count; i++) {
        const tile_pixels *now = &pixels[i % 2];
        unsigned empty[TRANSFORM_MAX];
        const int has_empty = from_plane < end_plane && marks[i] && find_empty(s, &at, from_plane, end_plane, empty);
        if (i + 1 < count) {
            DT(tile_next)(w, &at);
            find_pixels(s, &at, j, n, outside, &pixels[(i + 1) % 2]);
        }
        if (s->added) finish.added = now->added;
        if (has_empty)
            put_tile(s, m + i * s->ldm, j, n, now, &finish, empty, outside);
        else
            s->points.maps->output(m + i * s->ldm, s->m_plane, j, n, now->y, &finish);
        if (s->gathered.wanted) gather(s, &sums, j, n, now, outside);
    }
    if (s->gathered.wanted) DT(gather_end)(&sums, &s->gathered, first / s->block * w->od + plane, j, n);
}

/* The functions from here to `run` are run by all threads of a team; own: the thread's own memory. */
static void all_filters(const pass_state *s, real *own, point *u) {
    const DT(tiling) *w = &s->w;
    const int64_t nr = w->nr, panels = dtconv_ceil_div(w->co, nr), cuts = dtconv_ceil_div(w->ci, CHUNK_ROWS);
    real *scratch = own + s->own_size + s->m_size + s->packed_size;
#pragma omp for schedule(static)
    for (int64_t unit = 0; unit < panels * cuts * w->kd; unit++) {
        const int64_t j = unit % panels * nr, k = unit / panels % cuts * CHUNK_ROWS, tap = unit / panels / cuts;
        point *to = u + j / nr * s->u_step + (tap * w->slot + k) * nr;
        transform_points(w, &s->points, dtconv_filters_of(w, s->filters, tap), k, MIN(CHUNK_ROWS, w->ci - k), j,
                         MIN(nr, w->co - j), to, s->u_step, s->u_plane, scratch);
        if (sizeof(point) != sizeof(real) || k + CHUNK_ROWS < w->ci || w->slot == w->ci) continue;
        for (int64_t e = 0; e < w->points; e++) /* rows that V is filled up with */
            memset(to + e * s->u_plane + (w->ci - k) * nr, 0, (size_t)((w->slot - w->ci) * nr) * sizeof(point));
    }
}

/* A block of tiles, in each plane of y; own: V of the planes of x that the last one read. */
static void run_block(const pass_state *s, int64_t first, real *own, const point *u) {
    const DT(tiling) *w = &s->w;
    const int64_t nr = w->nr;
    point *v = (point *)own;
    tiles_of of = {first, MIN(s->block, w->tiles - first), 0}, next = of;
    int64_t made = 0; /* planes of x */
    for (; of.plane < w->od; of.plane++) {
        const int64_t from = of.plane - w->pad_f, end = MIN(w->id, from + w->kd);
        for (made = MAX(made, from); made < end; made++) transform_tiles(s, made, first, of.count, v, 0);
        next.plane = made;
        if (made < w->id && of.plane + 1 < w->od) {
            next.first = first, next.count = of.count;
        } else {
            next.first = first + w->threads * s->block, next.count = MIN(s->block, w->tiles - next.first);
            next.plane = 0;
        }
        for (int64_t j = 0; j < w->co; j += s->columns)
            products(s, &of, &next, j, MIN(s->columns, w->co - j), v, u + j / nr * s->u_step, own + s->own_size);
    }
}

static void run_filters_kept(const pass_state *s, real *own) {
    if (!s->kept) all_filters(s, own, s->shared);
    const point *u = s->kept ? s->kept : s->shared;
#pragma omp for schedule(dynamic, 1)
    for (int64_t first = 0; first < s->w.tiles; first += s->block) run_block(s, first, own, u);
}

static void run_tiles_kept(const pass_state *s, real *own) {
    const DT(tiling) *w = &s->w;
    real *m = own + s->own_size, *scratch = m + s->m_size + s->packed_size;
    point *u = (point *)own;
    for (int64_t first = 0; first < w->tiles; first += s->block) {
        const int64_t count = MIN(s->block, w->tiles - first);
        const tiles_of of = {first, count, 0}, none = {0};
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i += CHUNK_TILES)
            transform_tiles(s, 0, first + i, MIN(CHUNK_TILES, count - i), s->shared, i);
#pragma omp for schedule(dynamic, 1)
        for (int64_t j = 0; j < w->co; j += s->columns) {
            const int64_t n = MIN(s->columns, w->co - j);
            transform_points(w, &s->points, s->filters, 0, w->ci, j, n, u, s->u_step, s->u_plane, scratch);
            products(s, &of, &none, j, n, s->shared, u, m);
        }
    }
}

/* transformed: where U alone is wanted; else NULL. */
static dtconv_status run(pass_state *s, point *transformed, void *workspace, size_t bytes) {
    if (bytes < bytes_of(s)) return DTCONV_WORKSPACE;
    real *memory = dtconv_aligned(workspace);
    s->zeros = (elem *)memory;
    s->shared = (point *)(memory + s->zeros_size);
    real *parts = memory + s->zeros_size + s->shared_size;
    if (!transformed) s->gathered = DT(gather_parts_on)(parts, parts_of(s), s->w.co, s->args, s->w.turned);
    s->threads = parts + s->parts_size;
    memset(s->zeros, 0, (size_t)s->zeros_size * sizeof(real));
#pragma omp parallel num_threads((int)s->w.threads)
    {
        real *own = s->threads + dtconv_thread_id() * size_of_thread(s);
        if (transformed)
            all_filters(s, own, transformed);
        else if (s->keep_tiles)
            run_tiles_kept(s, own);
        else
            run_filters_kept(s, own);
        DT(gather_merge)(&s->gathered);
    }
    return DTCONV_OK;
}

/* A pass, or with `kept` the pass with these filters. */
static dtconv_status run_pass(const dtconv_conv *p, int backward_data, const DT(conv_args) * a, const point *kept,
                              void *workspace, size_t bytes) {
    pass_state s = {.args = a, .filters = a->w, .kept = kept};
    s.x = backward_data ? a->y : a->x;
    s.y = backward_data ? a->x : a->y;
    s.added = !backward_data ? a->residual : a->accumulate ? a->x : NULL;
    s.lda = backward_data ? p->ldx : a->ldr;
    if (!backward_data) s.prologue = a->prologue;
    const dtconv_status status = prepare(p, backward_data, kept != NULL, &s);
    return status ? status : run(&s, NULL, workspace, bytes);
}

static size_t workspace_of(const dtconv_conv *p, int backward_data, int with_filters) {
    pass_state s = {0};
    return prepare(p, backward_data, with_filters, &s) ? 0 : bytes_of(&s);
}

size_t PASS(backward_data_workspace)(const dtconv_conv *p) { return workspace_of(p, 1, 0); }

dtconv_status PASS(backward_data)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    return run_pass(p, 1, a, NULL, workspace, bytes);
}

size_t PASS(forward_workspace)(const dtconv_conv *p) { return workspace_of(p, 0, 0); }

dtconv_status PASS(forward)(const dtconv_conv *p, const DT(conv_args) * a, void *workspace, size_t bytes) {
    return run_pass(p, 0, a, NULL, workspace, bytes);
}

#if !defined(ROUNDED) && !defined(LARGE)
size_t DT(winograd_with_filters_workspace)(const dtconv_conv *p, int backward_data) {
    return workspace_of(p, backward_data, 1);
}

dtconv_status DT(winograd_with_filters)(const dtconv_conv *p, int backward_data, const DT(conv_args) * a, const real *u,
                                        void *workspace, size_t bytes) {
    return u ? run_pass(p, backward_data, a, u, workspace, bytes) : DTCONV_ARGUMENT;
}

size_t DT(winograd_filters_bytes)(const dtconv_conv *p, int backward_data) {
    pass_state s = {0};
    if (prepare(p, backward_data, 1, &s)) return 0;
    return (size_t)(s.w.points * s.u_plane) * sizeof(real);
}

dtconv_status DT(winograd_filters)(const dtconv_conv *p, int backward_data, const real *w, real *u, void *workspace,
                                   size_t bytes) {
    pass_state s = {.filters = w};
    const dtconv_status status = prepare(p, backward_data, 1, &s);
    return status ? status : run(&s, u, workspace, bytes);
}
#endif
