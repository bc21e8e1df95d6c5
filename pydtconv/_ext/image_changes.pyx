"""Changes of images by lists of steps (cext/include/dtconv_image_changes.h)."""

from cython cimport floating
from libc.stdint cimport int64_t, uint8_t

from pydtconv._ext.dtypes cimport dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    enum:
        DTCONV_STEP_NUMBERS
    size_t dtconv_change_images_workspace(...)
    int dtconv_schange_images(int64_t, int64_t, int64_t, int64_t, const int64_t *, const double *, double *, int64_t,
                              const float *, float *, void *, size_t)
    int dtconv_dchange_images(int64_t, int64_t, int64_t, int64_t, const int64_t *, const double *, double *, int64_t,
                              const double *, double *, void *, size_t)

NUMBERS = DTCONV_STEP_NUMBERS


def workspace(int64_t height, int64_t width, int64_t channels, str dtype) -> int:
    """Bytes for `change`, on the threads that are set now."""
    return dtconv_change_images_workspace(dtype_of(dtype), height, width, channels)


def change(const floating[:, :, :, ::1] x, const int64_t[::1] starts, const double[:, ::1] steps, double[::1] extra,
           floating[:, :, :, ::1] y, uint8_t[::1] memory):
    """y = images x (n, h, w, c) after the steps starts[i] ... starts[i + 1] - 1 of image i, a row of numbers each.

    Raises ValueError for shapes and steps that do not fit, and where there is less memory than `workspace` says.
    """
    cdef int64_t n = x.shape[0], h = x.shape[1], w = x.shape[2], c = x.shape[3], i
    cdef const double *rows = &steps[0, 0] if steps.shape[0] else NULL
    cdef double *more = &extra[0] if extra.shape[0] else NULL
    cdef int status = 0
    if not (y.shape[0] == n and y.shape[1] == h and y.shape[2] == w and y.shape[3] == c):
        raise ValueError("y: expected the shape of x")
    if starts.shape[0] != n + 1 or steps.shape[1] != DTCONV_STEP_NUMBERS or starts[0] != 0:
        raise ValueError(f"steps: expected {n + 1} starts from 0 on, of rows of {DTCONV_STEP_NUMBERS} numbers")
    for i in range(n):
        if starts[i + 1] < starts[i]:
            raise ValueError("steps: expected starts that rise")
    if starts[n] != steps.shape[0]:
        raise ValueError(f"steps: expected {starts[n]} rows, got {steps.shape[0]}")
    if n * h * w * c == 0:
        return
    with nogil:
        if floating is float:
            status = dtconv_schange_images(n, h, w, c, &starts[0], rows, more, extra.shape[0], &x[0, 0, 0, 0],
                                           &y[0, 0, 0, 0], &memory[0], memory.shape[0])
        else:
            status = dtconv_dchange_images(n, h, w, c, &starts[0], rows, more, extra.shape[0], &x[0, 0, 0, 0],
                                           &y[0, 0, 0, 0], &memory[0], memory.shape[0])
    check(status)
