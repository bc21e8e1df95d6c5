"""Winograd's convolution: size of tiles, filters that are transformed ahead."""

from libc.stdint cimport int64_t

from pydtconv._ext.arrays cimport element, reals
from pydtconv._ext.dtconv_conv cimport dtconv_conv, dtconv_conv_args, dtconv_conv_set_arrays, problem_of
from pydtconv._ext.dtypes cimport dtconv_dtype, dtype_of

cdef extern from "dtconv_any.h" nogil:
    int DTCONV_TILES_OF_IMAGES, DTCONV_TILES_OF_WEIGHTS, DTCONV_TILES_LARGE_OF_IMAGES, DTCONV_TILES_LARGE_OF_WEIGHTS
    int DTCONV_TILES_ROUNDED, DTCONV_TILES_ROUNDED_FORWARD
    ctypedef struct dtconv_tile:
        int h, w
    dtconv_tile dtconv_swinograd_tile(int64_t oh, int64_t ow, int kind)
    size_t dtconv_winograd_filters_bytes(dtconv_dtype, const dtconv_conv *, int)
    size_t dtconv_winograd_with_filters_workspace(dtconv_dtype, const dtconv_conv *, int)
    int dtconv_winograd_filters(...)
    int dtconv_winograd_with_filters(...)


_KINDS = {
    "small": (DTCONV_TILES_OF_IMAGES, DTCONV_TILES_OF_IMAGES, DTCONV_TILES_OF_WEIGHTS),
    "large": (DTCONV_TILES_LARGE_OF_IMAGES, DTCONV_TILES_LARGE_OF_IMAGES, DTCONV_TILES_LARGE_OF_WEIGHTS),
    "rounded": (DTCONV_TILES_ROUNDED_FORWARD, DTCONV_TILES_ROUNDED, DTCONV_TILES_ROUNDED),
}


def tile(int64_t oh, int64_t ow, str direction, str kind) -> tuple[int, int]:
    """Height and width of the outputs of a tile that images of oh x ow outputs are cut into in a pass.

    kind: "small", "large" (7 x 7 and 8 x 8, too), or "rounded", where what is multiplied is rounded to bfloat16.
    """
    cdef int of_pass = _KINDS[kind][("forward", "backward_data", "backward_weights").index(direction)]
    cdef dtconv_tile found = dtconv_swinograd_tile(oh, ow, of_pass)
    return found.h, found.w


def filters_bytes(tuple sizes, bint backward_data, str dtype) -> int:
    """Bytes of the transformed filters; sizes as in `ConvProblem.sizes`."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    return dtconv_winograd_filters_bytes(dtype_of(dtype), &p, backward_data)


def workspace_bytes(tuple sizes, bint backward_data, str dtype) -> int:
    """Bytes of workspace of `filters` and `run` with the threads now set."""
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    return dtconv_winograd_with_filters_workspace(dtype_of(dtype), &p, backward_data)


def filters(tuple sizes, bint backward_data, const element[::1] like, w, u, unsigned char[::1] workspace) -> int:
    """u = the transformed w for images of the dtype of `like`; w is flat, u aligned to 64.  Returns the status."""
    cdef int status
    cdef dtconv_conv p = problem_of(sizes, sizes[3], sizes[6])
    cdef const element *image = &like[0]
    cdef void *plain = reals(image, w)
    cdef void *transformed = reals(image, u)
    with nogil:
        status = dtconv_winograd_filters(image, &p, backward_data, <const void *> plain, transformed, &workspace[0],
                                         workspace.shape[0])
    return status


def run(tuple sizes, bint backward_data, const element[:, :, :, :] x, u, const element[:, :, :, :] y, int64_t ldx,
        int64_t ldy, bias, int activation, double alpha, bint accumulate, unsigned char[::1] workspace) -> int:
    """The pass with transformed filters on arrays that the caller has checked.  Returns the status.

    Images of bfloat16 are uint16, its bits; u and bias are float32 then.
    """
    cdef int status
    cdef dtconv_conv p = problem_of(sizes, ldx, ldy)
    cdef dtconv_conv_args args
    cdef const element *like = &x[0, 0, 0, 0]
    cdef void *filters_of = reals(like, u)
    cdef void *added = reals(like, bias)
    dtconv_conv_set_arrays(<void *> &args, like, NULL, &y[0, 0, 0, 0], added, activation, alpha, accumulate)
    with nogil:
        status = dtconv_winograd_with_filters(like, &p, backward_data, <const void *> &args, filters_of, &workspace[0],
                                              workspace.shape[0])
    return status
