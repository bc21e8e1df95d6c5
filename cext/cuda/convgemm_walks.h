/* How CONVGEMM's kernels walk images: sizes of a launch, coordinates of rows, taps of filters. */
#ifndef DTCONV_CUDA_CONVGEMM_WALKS_H
#define DTCONV_CUDA_CONVGEMM_WALKS_H

/* So many blocks on a multiprocessor: three of 128 threads leave 168 registers for each. */
#ifdef ON_HOST
#define RESIDENT(threads, blocks)
#else
#define RESIDENT(threads, blocks) __launch_bounds__(threads, blocks)
#endif

/* Sizes of a launch, as 32 bits: IMAGES, INPUTS (channels of a group that are summed over), OUTPUTS (columns), and of
 * depth, height and width those of `axis_size`: ROWS of the matrix, which begin at pixel SCALE * row + OFFSET of the
 * EXTENT pixels that are read; TAPS, STEP pixels apart, which are the taps FIRST + PERIOD * i of the KERNEL's; row r is
 * pixel START + STRIDE * r of the RESULTS. */
enum launch_size { IMAGES, INPUTS, OUTPUTS, AXES };
enum axis_size { ROWS, EXTENT, SCALE, OFFSET, STEP, TAPS, FIRST, PERIOD, KERNEL, RESULTS, START, STRIDE, AXIS_SIZES };
enum { SIZES = AXES + 3 * AXIS_SIZES, DEPTH = AXES, HEIGHT = DEPTH + AXIS_SIZES, WIDTH = HEIGHT + AXIS_SIZES };
/* a coordinate that is outside of every image, whatever is added */
enum { OUTSIDE = -(1 << 30) };

template <typename S>
__device__ inline void copy_sizes(S &size, Array<const int64_t> sizes, int64_t first) {
    for (int i = threadIdx.x; i < SIZES; i += blockDim.x) size[i] = (int32_t)sizes[first + i];
    __syncthreads();
}

/* A row of the matrix by its coordinates; each is found by two divisions. */
struct coordinates {
    int32_t image, d, h, w;
};

template <typename S>
__device__ inline coordinates coordinates_of(S &size, uint32_t row) {
    coordinates at;
    const uint32_t line = row / (uint32_t)size[WIDTH + ROWS], plane = line / (uint32_t)size[HEIGHT + ROWS];
    at.w = row - line * size[WIDTH + ROWS];
    at.h = line - plane * size[HEIGHT + ROWS];
    at.image = plane / (uint32_t)size[DEPTH + ROWS];
    at.d = plane - at.image * size[DEPTH + ROWS];
    return at;
}

/* The terms that a thread loads: channel c of a tap, whose pixel is at_d, at_h, at_w from a row's. */
template <typename S>
struct taps {
    S &size;
    int32_t channels, c, d, h, w, at_d, at_h, at_w, away;

    __device__ taps(S &sizes, int32_t term) : size(sizes), channels(sizes[INPUTS]), c(term), d(0), h(0), w(0) {
        at_d = size[DEPTH + OFFSET];
        at_h = size[HEIGHT + OFFSET];
        at_w = size[WIDTH + OFFSET];
        settle();
    }
    __device__ void advance(int32_t by) {
        c += by;
        if (c >= channels) settle();
    }
    __device__ void settle() {
        for (; c >= channels; c -= channels) next();
        away = (at_d * size[HEIGHT + EXTENT] + at_h) * size[WIDTH + EXTENT] + at_w;
    }
    __device__ void next() {
        at_w += size[WIDTH + STEP];
        if (++w < size[WIDTH + TAPS]) return;
        w = 0;
        at_w = size[WIDTH + OFFSET];
        at_h += size[HEIGHT + STEP];
        if (++h < size[HEIGHT + TAPS]) return;
        h = 0;
        at_h = size[HEIGHT + OFFSET];
        at_d = ++d < size[DEPTH + TAPS] ? at_d + size[DEPTH + STEP] : OUTSIDE;
    }
    __device__ bool there() const { return at_d != OUTSIDE; }
    /* The filter's tap. */
    __device__ int32_t tap() const {
        const int32_t tap_d = size[DEPTH + FIRST] + d * size[DEPTH + PERIOD];
        const int32_t tap_h = size[HEIGHT + FIRST] + h * size[HEIGHT + PERIOD];
        return (tap_d * size[HEIGHT + KERNEL] + tap_h) * size[WIDTH + KERNEL] + size[WIDTH + FIRST] +
               w * size[WIDTH + PERIOD];
    }
};

/* The pixel of x that a tap has for a pixel of dy, as pixels of dy go on.  Divisions find it where a line begins. */
template <typename S>
struct tapped {
    S &size;
    int32_t at_d, at_h;   /* of the tap */
    int32_t w, end, line; /* along the line, which begins at pixel `line` of x; negative: it is on the padding */

    /* of a tap; where it is not `there`, nothing is read */
    __device__ tapped(S &sizes, int32_t tap, bool there) : size(sizes) {
        const int32_t lines = tap / size[WIDTH + KERNEL], tap_d = lines / size[HEIGHT + KERNEL];
        const int32_t at_w = size[WIDTH + OFFSET] + (tap - lines * size[WIDTH + KERNEL]) * size[WIDTH + STEP];
        at_h = size[HEIGHT + OFFSET] + (lines - tap_d * size[HEIGHT + KERNEL]) * size[HEIGHT + STEP];
        at_d = there ? size[DEPTH + OFFSET] + tap_d * size[DEPTH + STEP] : OUTSIDE;
        end = at_w + size[WIDTH + ROWS] * size[WIDTH + SCALE];
    }
    __device__ void begin(uint32_t pixel) {
        const coordinates at = coordinates_of(size, pixel);
        const int32_t d = at.d * size[DEPTH + SCALE] + at_d, h = at.h * size[HEIGHT + SCALE] + at_h;
        const bool there =
            (uint32_t)d < (uint32_t)size[DEPTH + EXTENT] && (uint32_t)h < (uint32_t)size[HEIGHT + EXTENT];
        const int32_t plane = at.image * size[DEPTH + EXTENT] + d;
        line = there ? (plane * size[HEIGHT + EXTENT] + h) * size[WIDTH + EXTENT] : -1;
        w = end - (size[WIDTH + ROWS] - at.w) * size[WIDTH + SCALE];
    }
    /* To `pixel`, `by` pixels of x further along the line, if that has so many. */
    __device__ void advance(int32_t by, uint32_t pixel) {
        w += by;
        if (w >= end) begin(pixel);
    }
};

#endif
