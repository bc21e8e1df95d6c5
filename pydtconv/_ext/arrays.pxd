"""Addresses of arrays for C functions; None is NULL."""

from libc.stdint cimport int64_t, uint8_t, uint16_t

from pydtconv._ext.dtypes cimport DTCONV_BFLOAT16, DTCONV_FLOAT64, dtconv_dtype, dtype_of

# elements of images: bfloat16 ones come as their bits
ctypedef fused element:
    float
    double
    uint16_t


cdef inline element *vector(const element[::1] a) noexcept nogil:
    return NULL if a is None else <element *> &a[0]


cdef inline element *matrix(const element[:, :] a) noexcept nogil:
    return NULL if a is None else <element *> &a[0, 0]


cdef inline int64_t ld(const element[:, :] a) noexcept nogil:
    """Elements from row to row."""
    return 0 if a is None else a.strides[0] // <int64_t> sizeof(element)


cdef inline void *reals(const element *like, object array) except? NULL:
    """The numbers of a vector (parameters, statistics) with images of `like`'s precision; float for bfloat16."""
    cdef const double[::1] doubles
    cdef const float[::1] floats
    if array is None:
        return NULL
    if element is double:
        doubles = array
        return <void *> &doubles[0]
    else:
        floats = array
        return <void *> &floats[0]


# ---- for calls that are bound once, by dtypes that are known when that happens ----

cdef struct rows_of:
    void *data
    int64_t count, width, apart  # rows, elements of each, elements from row to row


cdef inline dtconv_dtype dtype_in(object array) except *:
    """The dtype of an array of images, matrices or vectors."""
    cdef str name = array.dtype.name
    return dtype_of("bfloat16" if name == "uint16" else name)


cdef inline rows_of rows_in(object array, dtconv_dtype dtype) except *:
    """A matrix of contiguous rows."""
    cdef rows_of found
    cdef const double[:, :] doubles
    cdef const float[:, :] floats
    cdef const uint16_t[:, :] halves
    found.data, found.count, found.width, found.apart = NULL, 0, 0, 0
    if array is None:
        return found
    found.count, found.width = array.shape
    if dtype == DTCONV_FLOAT64:
        doubles = array
        found.data, found.apart = <void *> &doubles[0, 0], ld(doubles)
    elif dtype == DTCONV_BFLOAT16:
        halves = array
        found.data, found.apart = <void *> &halves[0, 0], ld(halves)
    else:
        floats = array
        found.data, found.apart = <void *> &floats[0, 0], ld(floats)
    return found


cdef struct strided:
    void *data
    int64_t rows, columns, row_step, column_step  # steps in elements


cdef inline strided strided_in(object array, dtconv_dtype dtype) except *:
    """A matrix of any strides, of float32 or float64."""
    cdef strided found
    cdef const double[:, :] doubles
    cdef const float[:, :] floats
    found.rows, found.columns = array.shape
    if dtype == DTCONV_FLOAT64:
        doubles = array
        found.data = <void *> &doubles[0, 0]
    else:
        floats = array
        found.data = <void *> &floats[0, 0]
    found.row_step, found.column_step = [step // array.itemsize for step in array.strides]
    return found


cdef inline void *elements_in(object array, dtconv_dtype dtype) except? NULL:
    """A vector in the dtype of images."""
    cdef const uint16_t[::1] halves
    if array is None or dtype != DTCONV_BFLOAT16:
        return reals_in(array, dtype)
    halves = array
    return <void *> &halves[0]


cdef inline void *reals_in(object array, dtconv_dtype dtype) except? NULL:
    """A vector (parameters, statistics) that goes with images of a dtype; float for bfloat16."""
    cdef const double[::1] doubles
    cdef const float[::1] floats
    if array is None:
        return NULL
    if dtype == DTCONV_FLOAT64:
        doubles = array
        return <void *> &doubles[0]
    floats = array
    return <void *> &floats[0]


cdef inline const int64_t *layout_in(object array) except? NULL:
    cdef const int64_t[::1] numbers = array
    return &numbers[0]


cdef struct scratch:
    void *data
    size_t size


cdef inline scratch scratch_in(object array) except *:
    """A workspace; None and an empty one are none."""
    cdef scratch found
    cdef uint8_t[::1] memory
    found.data, found.size = NULL, 0
    if array is not None and array.size:
        memory = array
        found.data, found.size = &memory[0], memory.shape[0]
    return found


cdef inline object holding(object call, tuple arrays):
    """A bound call that keeps its arrays alive."""
    call.arrays = arrays
    return call
