"""Addresses of arrays for C functions; None is NULL."""

from libc.stdint cimport int64_t, uint16_t

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
