/* The kernel that an installed BLIS would use here, when the library is built against one (BLIS_ROOT, see setup.py).
 *
 * BLIS 0.9 or newer: kernels take (m, n, k, ...).  Sizes and preferred storage come from BLIS's own header and context,
 * whose choice for this CPU is taken.
 */
#ifdef DTCONV_SYSTEM_BLIS
#include <blis.h>
#endif

#include "dtconv_real.h"
#include "dtconv_ukr.h"

int DT(ukr_register_system)(int rank) {
#ifdef DTCONV_SYSTEM_BLIS
#ifdef DTCONV_DOUBLE
    const num_t type = BLIS_DOUBLE;
#else
    const num_t type = BLIS_FLOAT;
#endif
    bli_init();
    cntx_t *context = (cntx_t *)bli_gks_query_cntx();
    const int mr = (int)bli_cntx_get_blksz_def_dt(type, BLIS_MR, context);
    const int nr = (int)bli_cntx_get_blksz_def_dt(type, BLIS_NR, context);
#ifdef DTCONV_SYSTEM_BLIS_1
    void *kernel = (void *)bli_cntx_get_ukr_dt(type, BLIS_GEMM_UKR, context);
    const int rows = bli_cntx_ukr_prefers_rows_dt(type, BLIS_GEMM_UKR, context), abi = DTCONV_ABI_BLIS_1;
#else
    void *kernel = (void *)bli_cntx_get_l3_vir_ukr_dt(type, BLIS_GEMM_UKR, context);
    const int rows = bli_cntx_l3_vir_ukr_prefers_rows_dt(type, BLIS_GEMM_UKR, context), abi = DTCONV_ABI_BLIS_1;
#endif
    const int index = DT(ukr_register)("system_blis", kernel, abi, mr, nr, rows, 0, rank);
    if (index >= 0) ((DT(ukr_row) *)DT(ukr_get)(index))->context = context;
    return index;
#else
    (void)rank;
    return -1;
#endif
}
