/* Products of real sequences of 2 n elements modulo t^(2 n) + 1, by transforms of n complex points of any length.
 *
 *   z[j] = x[j] + i x[j + n]         the real sequences modulo t^(2 n) + 1 are the complex ones modulo t^n - i
 *   Z[k] = sum over j of z[j] exp(-2 pi i j (k - 1/4) / n)       their values at the roots of t^n = i
 *
 * Products of values are values of products: no frequency meets another one, as it does where real sequences are
 * transformed in pairs.  What overlaps the end comes back at the beginning with the other sign.
 *
 * A sequence is a matrix of rows; its columns are transformed, times twiddle factors, then its rows, V columns or V
 * rows at a time (D. H. Bailey, "FFTs in external or hierarchical memory", 1990).  Rows that are too long for a cache
 * are matrices in their turn.  Values stay in the order in which they come; the inverse walks the same steps back.
 *
 * No include guard: include it after dtconv_real.h and dtconv_fft.h, once.
 */

/* Transforms of the columns of a matrix (length, width), and what its elements are multiplied by before and after. */
typedef struct {
    int64_t length, width;
    DT(fft_plan) plan;
    const real *weights; /* (length, 2), or NULL: of rows, before */
    /* after: the product of (length, 2, V), (RING_NEAR, length, 2) and (width / V / RING_NEAR, length, 2) */
    const real *lanes, *near, *far;
} DT(ring_columns);

typedef struct {
    int64_t n, levels; /* of columns */
    DT(ring_columns) columns[2];
    DT(fft_plan) rows;
} DT(ring);

enum { RING_NEAR = 64 };

typedef enum {
    RING_SPECTRUM, /* the values of x to `spectrum`; x is overwritten */
    RING_PRODUCT,  /* x times the sequence whose values are `spectrum` */
    RING_BACK,     /* x from its values `spectrum` */
} ring_task;

/* Work in pieces, of which each may be done by another thread, with `scratch` of its own. */
typedef void (*ring_piece)(const void *job, int64_t piece, real *scratch);
void DT(ring_each)(int threads, int64_t pieces, ring_piece piece, const void *job, real *scratch, int64_t step);

/* Whether there is a ring of first x high x wide complex points: wide and high multiples of a vector's numbers; first
 * is 1 where there are two levels. */
int DT(ring_fits)(int64_t first, int64_t high, int64_t wide);
/* Elements of memory of a ring's factors, and of a thread's scratch. */
int64_t DT(ring_plan_size)(int64_t first, int64_t high, int64_t wide);
int64_t DT(ring_scratch_size)(int64_t first, int64_t high, int64_t wide);
void DT(ring_on)(int64_t first, int64_t high, int64_t wide, real *memory, DT(ring) * ring);

/* One of the tasks on the 2 n elements of x, by so many threads with `step` elements of scratch each.  What
 * RING_PRODUCT and RING_BACK leave is scaled. */
void DT(ring_run)(const DT(ring) * ring, ring_task task, int threads, real *x, real *spectrum, real *scratch,
                  int64_t step);
