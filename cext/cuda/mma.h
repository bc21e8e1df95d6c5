/* Products on tensor cores, and copies to shared memory that go on while a thread does other things.
 *
 * Of NVIDIA's PTX: mma.sync.m16n8k8 of TF32, which is float32 with 10 bits behind the point, and cp.async.  Both are
 * there from compute capability 8.0 on; on the host, host/tensor_cores.h does what the instructions say.
 */
#ifndef DTCONV_CUDA_MMA_H
#define DTCONV_CUDA_MMA_H

/* Rows, columns and terms of a product of a warp. */
enum { MMA_ROWS = 16, MMA_COLUMNS = 8, MMA_TERMS = 8 };

#ifndef ON_HOST

/* The TF32 nearest to a number; of two that are as near the one that is further from 0. */
__device__ __forceinline__ uint32_t to_tf32(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

/* sum += a b.  Lane l = 4 g + t holds, of a, rows g and g + 8 of term t, then the same of term t + 4; of b, column g of
 * terms t and t + 4; of sum, columns 2 t and 2 t + 1 of row g, then those of row g + 8. */
__device__ __forceinline__ void multiply_tf32(float (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Waits for the thread's copies. */
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#endif

/* y[at ...] = W elements of x from `from` on, or zeros where they are not `inside`; others see them behind
 * wait_for_copies and a barrier.  AGAIN: whether the block reads them again soon, so that L1 is to keep them. */
template <int W, bool AGAIN, typename S>
__device__ __forceinline__ void copy_to_shared(S &y, int at, Array<const real> x, int64_t from, bool inside) {
#ifdef ON_HOST
    const pack<W> none = zeros<W>();
    y.copied(at, W, inside ? x.copied(from, W, AGAIN) : none.v);
#else
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(y + at), bytes = inside ? sizeof(pack<W>) : 0;
    const real *source = x + (inside ? from : 0);
    if (!AGAIN && sizeof(pack<W>) == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(source), "r"(bytes),
                     "n"(sizeof(pack<W>))
                     : "memory");
#endif
}

#endif
