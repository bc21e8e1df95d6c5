/* Numbers of any type as real ones, and real ones as numbers of other types; rows of c elements. */
#include "dtconv_cuda.h"

template <typename T>
__device__ inline void to_real(int64_t rows, int64_t c, Array<const T> x, int64_t ldx, int64_t accumulate,
                               Array<real> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const cell at = cell_of(i, c);
        const real value = (real)(T)x[at.row * ldx + at.column];
        const int64_t place = at.row * ldy + at.column;
        y[place] = accumulate ? y[place] + value : value;
    }
}

/* Towards zero. */
template <typename T>
__device__ inline void from_real(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<T> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const cell at = cell_of(i, c);
        y[at.row * ldy + at.column] = (T)(real)x[at.row * ldx + at.column];
    }
}

GLOBAL from_int8(int64_t rows, int64_t c, Array<const int8_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                 int64_t ldy) {
    to_real<int8_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_int8)

GLOBAL from_uint8(int64_t rows, int64_t c, Array<const uint8_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                  int64_t ldy) {
    to_real<uint8_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_uint8)

GLOBAL from_int16(int64_t rows, int64_t c, Array<const int16_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                  int64_t ldy) {
    to_real<int16_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_int16)

GLOBAL from_uint16(int64_t rows, int64_t c, Array<const uint16_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                   int64_t ldy) {
    to_real<uint16_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_uint16)

GLOBAL from_int32(int64_t rows, int64_t c, Array<const int32_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                  int64_t ldy) {
    to_real<int32_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_int32)

GLOBAL from_uint32(int64_t rows, int64_t c, Array<const uint32_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                   int64_t ldy) {
    to_real<uint32_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_uint32)

GLOBAL from_int64(int64_t rows, int64_t c, Array<const int64_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                  int64_t ldy) {
    to_real<int64_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_int64)

GLOBAL from_uint64(int64_t rows, int64_t c, Array<const uint64_t> x, int64_t ldx, int64_t accumulate, Array<real> y,
                   int64_t ldy) {
    to_real<uint64_t>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_uint64)

GLOBAL from_float32(int64_t rows, int64_t c, Array<const float> x, int64_t ldx, int64_t accumulate, Array<real> y,
                    int64_t ldy) {
    to_real<float>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_float32)

GLOBAL from_float64(int64_t rows, int64_t c, Array<const double> x, int64_t ldx, int64_t accumulate, Array<real> y,
                    int64_t ldy) {
    to_real<double>(rows, c, x, ldx, accumulate, y, ldy);
}
KERNEL(from_float64)

GLOBAL to_int8(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<int8_t> y, int64_t ldy) {
    from_real<int8_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_int8)

GLOBAL to_uint8(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<uint8_t> y, int64_t ldy) {
    from_real<uint8_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_uint8)

GLOBAL to_int16(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<int16_t> y, int64_t ldy) {
    from_real<int16_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_int16)

GLOBAL to_uint16(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<uint16_t> y, int64_t ldy) {
    from_real<uint16_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_uint16)

GLOBAL to_int32(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<int32_t> y, int64_t ldy) {
    from_real<int32_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_int32)

GLOBAL to_uint32(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<uint32_t> y, int64_t ldy) {
    from_real<uint32_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_uint32)

GLOBAL to_int64(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<int64_t> y, int64_t ldy) {
    from_real<int64_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_int64)

GLOBAL to_uint64(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<uint64_t> y, int64_t ldy) {
    from_real<uint64_t>(rows, c, x, ldx, y, ldy);
}
KERNEL(to_uint64)

/* 0 or 1 */
GLOBAL to_bool(int64_t rows, int64_t c, Array<const real> x, int64_t ldx, Array<uint8_t> y, int64_t ldy) {
    FOR_EACH(i, rows * c) {
        const cell at = cell_of(i, c);
        y[at.row * ldy + at.column] = x[at.row * ldx + at.column] != 0;
    }
}
KERNEL(to_bool)
