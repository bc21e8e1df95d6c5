"""The dtypes of the C library."""

cdef extern from "dtconv_any.h" nogil:
    ctypedef enum dtconv_dtype:
        DTCONV_FLOAT32
        DTCONV_FLOAT64
        DTCONV_BFLOAT16


cdef inline dtconv_dtype dtype_of(str name) except *:
    """The code of a dtype by name.  Raises ValueError for those that the library has not."""
    if name == "float32":
        return DTCONV_FLOAT32
    if name == "float64":
        return DTCONV_FLOAT64
    if name == "bfloat16":
        return DTCONV_BFLOAT16
    raise ValueError(f"dtype: expected float32, float64 or bfloat16, got {name}")
