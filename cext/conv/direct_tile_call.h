/* The call of direct_tile.h, of elements `elem`; included once for each kind of them.
 *
 * C (m x n) = act((bias + sum over segments and their steps of A (m) B (n)) * scale + beta + added); or to `beside`
 * without added and act: element (i, step) of A at a[i][segment.a + step * a_step], the row of B at b + segment.b +
 * step * b_step, row i of C at c[i]; m <= MR, n <= NR.  bias: n elements, or NULL for 0.  added: its row i at added[i],
 * where `add` is set; it may be C.  Where `elem` is a bfloat16, C is rounded, and both steps are those of a panel (1
 * and NR).  The sum has the same order for every element and any m and n. */
typedef struct {
    const real *a[DIRECT_MR];
    elem *c[DIRECT_MR];
    const elem *added[DIRECT_MR];
    const dtconv_segment *segments;
    int64_t segment_count, a_step, b_step;
    const real *scale, *beta; /* of column 0, or NULL, both of them */
    int add, relu;
    real *beside;             /* where sums go instead, rows NR elements apart and as if `column` were 0; NULL: to c */
    const void *const *ahead; /* lines that are loaded into L2 on the way, one every TURN steps */
    int64_t ahead_count;
} DT(direct_tile);

void DT(direct_run_tile)(const DT(direct_tile) * t, int64_t m, int64_t n, const real *b, const real *bias,
                         int64_t column);
