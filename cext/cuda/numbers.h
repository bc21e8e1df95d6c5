/* Elements of arrays of any type of numbers, which come as bytes. */
#ifndef DTCONV_CUDA_NUMBERS_H
#define DTCONV_CUDA_NUMBERS_H

/* The codes are those of pydtconv/kernels/gpu/arrays.py. */
enum number_type { INT32, INT64, FLOAT32, FLOAT64, INT8, UINT8, INT16, UINT16, UINT32, UINT64 };

template <typename T>
__device__ inline T value_at(Array<const uint8_t> bytes, int64_t i) {
    union {
        T value;
        uint8_t bytes[sizeof(T)];
    } found;
    for (unsigned b = 0; b < sizeof(T); b++) found.bytes[b] = bytes[i * (int64_t)sizeof(T) + b];
    return found.value;
}

/* An element as an integer; of a float what lies before the point. */
__device__ inline int64_t whole_at(Array<const uint8_t> bytes, int type, int64_t i) {
    switch (type) {
        case INT32:
            return value_at<int32_t>(bytes, i);
        case INT64:
            return value_at<int64_t>(bytes, i);
        case FLOAT32:
            return (int64_t)value_at<float>(bytes, i);
        case FLOAT64:
            return (int64_t)value_at<double>(bytes, i);
        case INT8:
            return (int8_t)bytes[i];
        case UINT8:
            return bytes[i];
        case INT16:
            return value_at<int16_t>(bytes, i);
        case UINT16:
            return value_at<uint16_t>(bytes, i);
        case UINT32:
            return value_at<uint32_t>(bytes, i);
    }
    return (int64_t)value_at<uint64_t>(bytes, i);
}

/* An element as a real number. */
__device__ inline double number_at(Array<const uint8_t> bytes, int type, int64_t i) {
    switch (type) {
        case FLOAT32:
            return value_at<float>(bytes, i);
        case FLOAT64:
            return value_at<double>(bytes, i);
        case UINT64:
            return (double)value_at<uint64_t>(bytes, i);
    }
    return (double)whole_at(bytes, type, i);
}

#endif
