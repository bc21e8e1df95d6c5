/* The micro-kernel: one contract, several providers, one table.
 *
 *   C (m x n) = alpha * A (m x k) * B (k x n) + beta * C      m <= MR, n <= NR; C row-major, rows ldc apart
 *
 * A is the operand whose elements are broadcast, B the one that is loaded as vectors along C's rows:
 *
 *        A panel, MR rows: element (i, p) at a[i * rs_a + p * cs_a]     packed: rs_a = 1, cs_a = MR
 *        B panel, NR columns: element (p, j) at b[p * NR + j]           always packed, filled up to NR
 *
 * A packed A panel is filled up to MR rows, too; a kernel with `in_place` set reads A from a plain matrix instead, with
 * rs_a == 1 or cs_a == 1, and touches no row past m.  beta == 0 means that C is not read.
 * A kernel that prefers columns (BLIS's skx_asm_32x12) is in the table with its operands exchanged: MR = 12, NR = 32.
 *
 * The order of the sum over k is the same for every element of C, wherever it lies in the tile.
 *
 * In bfloat16 (`elem` is uint16_t) operands are bfloat16 and C is float32, and the contract is another one, which reads
 * images in place:
 *
 *   C (m x NR) = beta * C + sum over steps s of A_s (m x k) * B_s (k x NR)        beta 0 or 1; alpha and n are not used
 *
 *        element (i, p) of A_s at a[steps[s].a + i * rs_a + p]
 *        element (p, j) of B_s at b[steps[s].b + (p / 2) * 2 * NR + 2 * j + p % 2]        pairs, as dot products want
 *
 * cs_a is 1; kernels with `strided` also take pairs of A that lie apart, cs_a > 1 elements from one to the next:
 *
 *        element (i, p) of A_s at a[steps[s].a + i * rs_a + (p / 2) * cs_a + p % 2]
 *
 * Kernels with `fetches` take any number of rows, one tile after the other.
 * Kernels with `finishes` also take `finish`, beta 0: what is written is then not C but rounded rows of NR elements,
 *
 *        to[i][j] = act(sum + bias[j] + added[i][j])        act: ReLU, or nothing
 *
 * k is a multiple of `depth`.  Rows of A up to the next multiple of `rows` may be read, and such rows of C be written.
 * A thread calls begin() before its first call and end() after its last one: AMX has tiles to set up and to give back.
 *
 * No include guard: include it after dtconv_real.h, once; dtconv_both.h includes it once per precision.
 */

/* bfloat16: where rows of results go, and what is done to them before; bias and added may be NULL. */
typedef struct {
    elem *const *to;
    const elem *const *added; /* its rows may be those of `to` */
    const real *bias;
    int relu;
} DT(ukr_finish);

#ifndef DTCONV_UKR_STEP
#define DTCONV_UKR_STEP
/* Where one term of a sum of products lies: elements from A's and B's first ones. */
typedef struct {
    int64_t a, b;
} dtconv_ukr_step;
#endif

typedef struct {
    int64_t m, n, k;
    real alpha;
    const elem *a;
    int64_t rs_a, cs_a;
    const elem *b;
    real beta;
    real *c;
    int64_t ldc;
    const elem *a_next, *b_next; /* panels of the next call, to be prefetched; any address will do */
    const void *const *fetch;    /* where kernels with `fetches`: lines that are prefetched on the way, or NULL */
    int64_t fetch_count;
    const dtconv_ukr_step *steps; /* bfloat16, and what follows */
    int64_t step_count;
    const DT(ukr_finish) * finish; /* NULL: C is written */
} DT(ukr_call);

struct DT(ukr_row);
typedef void (*DT(ukr_fn))(const struct DT(ukr_row) * row, const DT(ukr_call) * call);

/* How a kernel that is not ours is called (dtconv_ukr_row.foreign). */
#ifndef DTCONV_UKR_ABI
#define DTCONV_UKR_ABI
enum {
    DTCONV_ABI_NATIVE = 0,
    DTCONV_ABI_BLIS_0 = 1, /* BLIS below 1.0: (k, alpha, a, b, beta, c, rs_c, cs_c, auxinfo, cntx) */
    DTCONV_ABI_BLIS_1 = 2, /* BLIS from 1.0: (m, n, k, alpha, ...) */
};
enum { DTCONV_UKR_MAX_MR = 32, DTCONV_UKR_MAX_NR = 64, DTCONV_UKR_CAPACITY = 48, DTCONV_UKR_NAME = 48 };
#endif

typedef struct DT(ukr_row) {
    char name[DTCONV_UKR_NAME];
    int mr, nr;
    unsigned features;     /* CPU features that it needs: dtconv_cpu.h */
    int rank;              /* expected order of speed among usable kernels, best first (smallest) */
    unsigned slow_without; /* features where it has that rank; else ... */
    int slow_rank;         /* ... this one */
    int in_place;          /* reads A with rs_a != 1 where cs_a == 1, or rs_a == 1 with any cs_a */
    int fetches;           /* prefetches ukr_call.fetch */
    DT(ukr_fn) run;
    /* bfloat16 */
    int rows, depth;
    int strided;                       /* takes cs_a > 1 */
    int widens;                        /* multiplies in `real` what it widens first */
    int models_amx;                    /* sums in AMX's order, and is wanted for that */
    int finishes;                      /* takes ukr_call.finish */
    void (*begin)(void), (*end)(void); /* NULL: nothing to do */
    /* for kernels of other libraries */
    void *foreign;
    void *context; /* its last argument */
    int abi;       /* DTCONV_ABI_* */
    int exchanged; /* the foreign kernel loads its own A as vectors: call it with operands exchanged */
} DT(ukr_row);

/* Its rank on a CPU with these features. */
static inline int DT(ukr_rank)(const DT(ukr_row) * row, unsigned features) {
    return row->slow_without & ~features ? row->slow_rank : row->rank;
}

/* The table: native kernels first, then what has been registered.  NULL past the end. */
const DT(ukr_row) * DT(ukr_get)(int index);

/* Adds a kernel of another library; mr, nr, exchanged as in its own words (mr x nr of the foreign routine).
 * Returns its index, or -1 when the table is full or the sizes exceed DTCONV_UKR_MAX_*. */
int DT(ukr_register)(const char *name, void *foreign, int abi, int mr, int nr, int row_preferred, unsigned features,
                     int rank);

/* Adds the kernel of the BLIS that the library was built against; -1 where it was built without one. */
int DT(ukr_register_system)(int rank);

/* Puts a kernel in force; NULL: the chooser is asked again at the next use. */
void DT(ukr_select)(const DT(ukr_row) * row);

/* The kernel in force, or NULL where none has been chosen yet. */
const DT(ukr_row) * DT(ukr_in_force)(void);

/* The same, chosen where it has to be.  The first call asks the chooser, or takes the best native one where there is no
 * chooser. NULL when the chooser could not choose. */
const DT(ukr_row) * DT(ukr_current)(void);

/* Runs `row` and the portable kernel on full and edge tiles; returns the largest error in units of the tolerance,
 * so that a correct kernel gives less than 1. */
double DT(ukr_check)(const DT(ukr_row) * row);

/* Called `repeats` times on the same packed panels of depth k: the speed of a kernel in cache. */
void DT(ukr_repeat)(const DT(ukr_row) * row, int64_t repeats, int64_t k, const elem *a, const elem *b, real *c);

/* Independent fused multiply-adds in registers, on vectors of the widest type among `features`; returns the number of
 * floating-point operations done. */
double DT(ukr_peak)(unsigned features, int64_t repeats);

/* The whole kernel table asks this function when a kernel is wanted for the first time; returns 0 when done. */
void DT(ukr_set_chooser)(int (*chooser)(void));
