/* Where elements of several operands lie.
 *
 * layout: dims, then the extents, then for each operand its strides, all in elements; none given: all operands are
 * dense and of one shape.  An operand that is broadcast has strides of 0.
 */
#ifndef DTCONV_CUDA_LAYOUT_H
#define DTCONV_CUDA_LAYOUT_H

template <int K>
struct places {
    int64_t of[K];
};

/* Where element i lies in each of K operands. */
template <int K>
__device__ inline places<K> places_of(Array<const int64_t> layout, int64_t i) {
    places<K> found;
    if (!layout) {
        for (int k = 0; k < K; k++) found.of[k] = i;
        return found;
    }
    for (int k = 0; k < K; k++) found.of[k] = 0;
    const int dims = (int)layout[0];
    for (int d = dims - 1; d >= 0; d--) {
        cell at = {0, i};
        if (d) at = cell_of(i, layout[1 + d]);
        i = at.row;
        for (int k = 0; k < K; k++) found.of[k] += at.column * layout[1 + dims + k * dims + d];
    }
    return found;
}

#endif
