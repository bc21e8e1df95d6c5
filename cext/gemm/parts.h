/* Sums of parts of a matrix, packed.  To be included after dtconv_gemm.h. */
enum { MOST_TERMS = 4 };

/* A matrix as its packing sees it: `wide` elements across panels, `deep` along them. */
typedef struct {
    const real *data;
    int64_t across, along; /* from an element to the next one */
    int64_t wide, deep;
} DT(operand);

/* sum of sign[t] * the part that begins at (across[t], along[t]). */
typedef struct {
    int count;
    int64_t across[MOST_TERMS], along[MOST_TERMS];
    real sign[MOST_TERMS]; /* 1 or -1 */
} DT(parts);

/* Packs elements [j, j + n) across and [p, p + k) along of a sum into panels of `width`, `panel` elements from each
 * other: element (j, p) of a panel at p * width + j.  n is a multiple of width; beyond the matrix there are zeros. */
void DT(pack_parts)(const DT(operand) * x, const DT(parts) * sum, int64_t j, int64_t n, int64_t p, int64_t k,
                    int64_t width, int64_t panel, real *dst);
