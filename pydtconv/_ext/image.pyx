"""Bindings of what is done to images and to batches of samples (cext/include/dtconv_image.h).

Images come as (pixels, c) views (see kernels/cpu/rows.py): pixels may lie apart, the channels of one not.  Those of
bfloat16 are uint16: its bits.  What `bind_*` returns is called in every step: it is bound to addresses.
"""

from cython cimport floating
from libc.stdint cimport int64_t, uint8_t

from pydtconv._ext.arrays cimport dtype_in, holding, layout_in, reals_in, rows_in, rows_of, scratch, scratch_in
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of
from pydtconv._ext.status cimport check

cdef extern from "dtconv_any.h" nogil:
    ctypedef struct dtconv_band:
        int64_t rows, extent, width, same_from, same_to
        const int64_t *starts
        const int64_t *counts
        const void *weights

    int dtconv_take_samples(...)
    int dtconv_sample_places(...)
    size_t dtconv_bands_workspace(dtconv_dtype, ...)
    int dtconv_bands(...)
    size_t dtconv_sbands_of_bytes_workspace(const dtconv_band *columns, int64_t c)
    int dtconv_sbands_of_bytes(const dtconv_band *rows, const dtconv_band *columns, int64_t c, const uint8_t *x,
                               uint8_t *y, float *workspace)


#: dtypes of samples; the rows of cext/include/dtconv_sample_types.h
SAMPLES = ("uint8", "int8", "uint16", "int16", "int32", "int64", "float32", "float64")


def take_samples(int type, str dtype, int64_t count, int64_t numbers, const int64_t[::1] order, x, y):
    """y (count, numbers), of a dtype of images, = rows of x (samples, numbers).

    type: the index of x's dtype in SAMPLES.  Both are dense and come as bytes; order: the numbers of the rows, None for
    one after the other.
    """
    cdef const uint8_t[::1] samples = x
    cdef uint8_t[::1] batch = y
    cdef dtconv_dtype dtype_ = dtype_of(dtype)
    cdef const int64_t *order_ = NULL
    if order is not None:
        order_ = &order[0]
    with nogil:
        check(dtconv_take_samples(dtype_, type, count, numbers, order_, <const void *> &samples[0], <void *> &batch[0]))


cdef class Band:
    """A matrix (rows, extent) of numbers that lie side by side: weights (rows, width), starts and counts (rows,).

    same: from and to which row each one is the one before it, a column further on.
    """

    cdef dtconv_band band
    cdef object arrays

    def __init__(self, int64_t extent, weights, starts, counts, same):
        self.arrays = (weights, starts, counts)
        self.band.rows, self.band.width = weights.shape
        self.band.extent = extent
        self.band.same_from, self.band.same_to = same
        self.band.starts, self.band.counts = layout_in(starts), layout_in(counts)
        self.band.weights = reals_in(weights.reshape(-1), dtype_of(weights.dtype.name))


cdef inline dtconv_band *of_band(Band band) noexcept:
    return NULL if band is None else &band.band


def bands_workspace(str dtype, Band columns, int64_t width, int64_t c) -> int:
    """Bytes of scratch memory of `bind_bands`; width: pixels of a row of x."""
    return dtconv_bands_workspace(dtype_of(dtype), <dtconv_band *> NULL, of_band(columns), width, c)


def bind_bands(Band rows, Band columns, bint accumulate, int64_t n, int64_t height, int64_t width, x, y,
               workspace) -> object:
    """A call for y (+)= n images x (height, width, c) with columns and rows multiplied by these; None: as they are."""
    cdef dtconv_dtype dtype = dtype_in(x)
    cdef rows_of image = rows_in(x, dtype), out = rows_in(y, dtype)
    cdef scratch memory = scratch_in(workspace)
    cdef dtconv_band *rows_ = of_band(rows)
    cdef dtconv_band *columns_ = of_band(columns)

    def run():
        with nogil:
            check(dtconv_bands(dtype, rows_, columns_, accumulate, n, height, width, image.width, image.data,
                               image.apart, out.data, out.apart, memory.data, memory.size))

    return holding(run, (rows, columns, x, y, workspace))


def bands_of_bytes_workspace(Band columns not None, int64_t c) -> int:
    """Bytes of scratch memory of `bands_of_bytes`."""
    return dtconv_sbands_of_bytes_workspace(&columns.band, c)


def bands_of_bytes(Band rows not None, Band columns not None, const uint8_t[:, :, ::1] x, uint8_t[:, :, ::1] y,
                   float[::1] workspace):
    """y = the bytes nearest to x (height, width, 1 to 4) with columns and rows multiplied by these, in float32.

    On the thread that calls, without the lock of Python.
    """
    cdef tuple expected = (rows.band.extent, columns.band.extent, x.shape[2])
    if (x.shape[0], x.shape[1], x.shape[2]) != expected:
        raise ValueError(f"x: expected {expected}, got {(x.shape[0], x.shape[1], x.shape[2])}")
    expected = (rows.band.rows, columns.band.rows, x.shape[2])
    if (y.shape[0], y.shape[1], y.shape[2]) != expected:
        raise ValueError(f"y: expected {expected}, got {(y.shape[0], y.shape[1], y.shape[2])}")
    if workspace.shape[0] * 4 < bands_of_bytes_workspace(columns, x.shape[2]):
        raise ValueError(f"workspace: expected {bands_of_bytes_workspace(columns, x.shape[2])} bytes or more")
    with nogil:
        check(dtconv_sbands_of_bytes(&rows.band, &columns.band, x.shape[2], &x[0, 0, 0], &y[0, 0, 0], &workspace[0]))


def sample_places(const int64_t[::1] extents, int order, int mode, double value, const double[::1] places,
                  const floating[::1] x, floating[::1] y):
    """y (points, inner) = x (extents ..., inner) at places (rank, points) between its elements; all come flat.

    mode: a dtconv_fill.  Raises ValueError for arrays that do not fit each other.
    """
    cdef int rank = extents.shape[0]
    cdef int64_t points = places.shape[0] // rank, inner = y.shape[0] // points, elements = inner
    for i in range(rank):
        elements *= extents[i]
    if elements != x.shape[0] or rank * points != places.shape[0] or points * inner != y.shape[0]:
        raise ValueError("sample_places: expected arrays that fit each other")
    with nogil:
        check(dtconv_sample_places(rank, &extents[0], inner, order, mode, value, points, &places[0], &x[0], &y[0]))
