"""The cost model behind the ranking of convolution algorithms: what a pass does, times what that costs.

`work_of_...` count, per family of algorithms, what a pass does: floating-point operations with their padding to whole
vectors, tiles, bytes.  COSTS says what each costs an algorithm: coefficients of 0 or more, fitted to measurements by
`python -m benchmarks.ranking` (relative errors over a grid of layers, two threads of an AVX-512 CPU), products that no
transform saves at the cores' peak or more.  On another machine only their ratios mean something: `pydtconv tune
--calibrate` fits them there (calibration.py), and `pydtconv tune` measures where the model does not hold.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from pydtconv._ext import conv as ext
from pydtconv._ext import runtime
from pydtconv._ext import winograd as winograd_ext
from pydtconv.conv import bases
from pydtconv.conv.problem import Axis, ConvProblem
from pydtconv.conv.tap_counts import taps_met
from pydtconv.extents import LARGEST

#: the direct algorithm has its own micro-kernel, at the vector length of the build; matrix products find wider ones
NARROW = 3.0 if runtime.level() == "generic" else 1.0

#: what the products of direct's backward_weights cost with tiles of six rows: a line of x is read for six channels, of
#: pixels that a stride moves apart
FEW_ROWS = 1.4 if runtime.level() == "x86-64-v3" else 1.0

#: what the direct algorithm's products cost forward where an image is one pixel: sums of thousands of channels leave
#: the caches
LONG_SUMS = 2.5

#: what direct's backward_weights of pointwise convolutions takes of its model: the micro-kernel of matrix products
#: multiplies, filters' gradients are written less often, and there is little to begin with (pointwise_weights.c)
POINTWISE = {"products": 0.83, "filters": 0.115, "calls": 0.1}

#: what fft by phases (strides) takes beyond its model: tiles of phases are small, and of many channels
PHASES = {"signals": 1.15, "images": 1.6}
#: what it takes of its model for filters of seven taps and more, without strides
WIDE_FILTERS = 0.75


#: multiplications of vectors that take as long as the sum of a vector's numbers, and the rest that a result takes
LAST_SUMS = 10
#: by how much a product of vectors takes longer for each channel that meets a vector that was loaded
LOADS = 1.5

#: what filters cost that are read where they lie, once for each tile of pixels, and where they lie in short pieces
IN_PLACE, PIECES = 0.22, 5.0
#: bytes beyond which rows of more than so many channels are such pieces: of those that caches hold it does not matter
IN_CACHE, NARROW_ROWS = 2 << 20, 64

#: products of vectors in turns below which the processor waits for a sum; operations that take as long as to begin
#: with pixels that other taps meet
LATENCY, BEGINNING = 8, 1.2e4

#: bytes below which what is packed of an image at once, or added to one, takes as long as if it were so many
SHORT_RUN = {"forward": 60, "backward_data": 120, "backward_weights": 60}

#: pixels below which filters' gradients are sums of few products, and by how much writing them takes longer then
FEW_PIXELS, OF_FEW_PIXELS = 64, 10.0

#: elements of B of which `strassen` packs the sums at a time (cext/gemm/strassen.c)
_PACKED = 4 * (32 << 20) // 7 // 4


class Work(NamedTuple):
    """What a pass does, or what a unit of it costs in picoseconds."""

    products: float  # floating-point operations
    tiles: float  # direct: tiles, or operations that rows they lack would do; winograd: bytes of transformed tiles
    matrix: float  # bytes of im2col's matrix, packed or stored
    images: float  # bytes of x and y
    filters: float  # bytes of w, transformed or not
    calls: float  # groups


def _itemsize(p: ConvProblem) -> int:
    return {"float64": 8, "float32": 4, "bfloat16": 2}[p.dtype]


def _realsize(p: ConvProblem) -> int:
    """Of the numbers of the arithmetic, and of filters."""
    return 8 if p.dtype == "float64" else 4


def _vectors(channels: int, p: ConvProblem) -> int:
    """Channels in whole vectors."""
    vector = 64 // _realsize(p)
    return -(-channels // vector) * vector


def _images(p: ConvProblem) -> float:
    return (prod(p.x_shape) + prod(p.y_shape)) * _itemsize(p)


def _seen(p: ConvProblem) -> ConvProblem:
    """The problem as products of matrices and direct are given it: an image that filters meet whole is one pixel."""
    taps = prod(p.kernel)
    whole = p.kernel == p.spatial and all(axis.dilation == 1 or axis.kernel == 1 for axis in p.axes)
    if not whole or taps == 1 or p.groups > 1 or p.dtype == "bfloat16" or p.ci * taps > LARGEST:
        return p
    if any(side for sides in p.padding for side in sides) or prod(p.out) > 1:
        return p
    return ConvProblem(p.n, 1, 1, p.ci * taps, p.co, 1, dtype=p.dtype)


def work_of_gemm(p: ConvProblem, direction: str) -> Work:
    """An m x co x k product; the matrix of pointwise convolutions is the image, which only backward_weights packs.

    Numbers that lie side by side in x are packed together: few channels are short runs.  Of few pixels filters'
    gradients are sums of few products, and writing them takes longer.
    """
    p = _seen(p)
    ci, co, taps, pixels = p.ci // p.groups, p.co // p.groups, prod(p.kernel), p.n * prod(p.out)
    k = taps * ci if direction == "forward" else _vectors(taps * ci, p)
    wide = co if direction == "backward_data" else _vectors(co, p)
    packed = taps > 1 or direction == "backward_weights"
    run = ci * _itemsize(p) * (p.kernel[-1] if p.dilation[-1] == 1 else 1)
    short = max(1.0, SHORT_RUN[direction] / run) if taps > 1 else 1.0
    few = 1 + OF_FEW_PIXELS * min(1.0, FEW_PIXELS / pixels) if direction == "backward_weights" else 1.0
    begun = 0 if direction == "backward_weights" else 8  # rows of the last tile, and what a row of tiles begins with
    return Work(
        products=2.0 * p.groups * (pixels + begun) * k * wide * _itemsize(p) / 4,
        tiles=0.0,
        matrix=float(packed * pixels * taps * p.ci * _itemsize(p)) * short,
        images=_images(p),
        filters=float(taps * ci * p.co * _itemsize(p)) * few,
        calls=p.groups,
    )


def work_of_strassen(p: ConvProblem, direction: str) -> Work:
    """Seven products of quarters, in whole tiles; tiles: bytes of the sums that are packed, and of what is added to C.

    Where the convolution is not pointwise, its matrix is built.  C is added to once for each depth of B that is packed.
    """
    p = _seen(p)
    ci, co, taps, pixels = p.ci // p.groups, p.co // p.groups, prod(p.kernel), p.n * prod(p.out)
    m, n, k = {
        "forward": (pixels, co, taps * ci),
        "backward_data": (pixels, taps * ci, co),
        "backward_weights": (taps * ci, co, pixels),
    }[direction]
    m, n = -(-m // 28) * 28, -(-n // 64) * 64
    packed = 1.75 * (m * k * -(-n // 2048) + k * n)
    written = 3.0 * m * n * -(-k * min(n, 2048) // _PACKED)
    return Work(
        products=1.75 * p.groups * m * n * k * _itemsize(p) / 4,
        tiles=p.groups * (packed + written) * _itemsize(p),
        matrix=0.0 if p.is_pointwise else float(pixels * taps * p.ci * _itemsize(p)),
        images=_images(p),
        filters=float(taps * ci * p.co * _itemsize(p)),
        calls=p.groups,
    )


def _share_of_taps(axis: Axis) -> float:
    """The share of an axis's taps that do not fall on padding."""
    met = taps_met(axis.out, axis.kernel, axis.stride, axis.dilation, axis.before, axis.extent)
    return met / (axis.kernel * axis.out)


def _classes(axis: Axis, turned: bool) -> list[tuple[int, int]]:
    """(pixels, taps) of those along an axis that meet the same taps; without strides and dilation."""
    written, read = (axis.extent, axis.out) if turned else (axis.out, axis.extent)
    before = axis.kernel - 1 - axis.before if turned else axis.before
    first, last = min(before, written), min(max(read + before - axis.kernel + 1, 0), written)
    at_ends = {*range(max(first, 0)), *range(max(last, 0), written)}
    found = [(1, max(0, min(axis.kernel, read + before - i) - max(0, before - i))) for i in sorted(at_ends)]
    inside = written - len(at_ends)
    return found + ([(inside, axis.kernel)] if inside else [])


def _borders(p: ConvProblem, direction: str, sums: float) -> tuple[float, float]:
    """By how much products of tiles take longer that have few rows, because few pixels meet the same taps, and the
    operations that take as long as to begin with these; sums: of a row.
    """
    if p.rank != 2 or p.is_pointwise or {*p.strides, *p.dilation} != {1} or max(p.kernel) > 32:
        return 1.0, 0.0
    turned = direction == "backward_data"
    high, wide = (_classes(axis, turned) for axis in p.axes[1:])
    read = prod(p.y_shape if turned else p.x_shape) // p.n * _itemsize(p)
    images = min(p.n, max(1, (384 << 10) // read))
    whole = waited = 0.0
    for pixels_h, taps_h in high:
        for pixels_w, taps_w in wide:
            pixels = images * pixels_h * pixels_w
            whole += pixels * taps_h * taps_w
            waited += pixels * taps_h * taps_w * max(1.0, LATENCY / (min(14, pixels) * sums))
    begun = (len(high) * len(wide) - 1) * p.n / images
    return waited / whole if whole else 1.0, begun * BEGINNING


def work_of_direct(p: ConvProblem, direction: str) -> Work:
    """Products of the taps that exist, in whole vectors of the channels that lie along them.

    In forward and backward_data each tile of 14 pixels and 32 channels costs something by itself; in backward_weights
    the tile's rows are input channels, or of all taps of a few, and what counts are rows that stay empty.  Where few
    channels are written, or filters are few, vectors lie along rows of taps.  Filters' gradients of pointwise
    convolutions without groups are one product of matrices.  Images in bfloat16 have a method of their own.
    """
    if p.dtype == "bfloat16":
        return work_of_bfloat16(p, direction)
    seen = _seen(p)
    if direction == "backward_weights" and seen.is_pointwise and p.groups == 1:
        return _work_of_pointwise_weights(seen)
    if ext.direct_is_along_taps(seen.sizes, direction, p.dtype):
        weights = direction == "backward_weights"
        return _work_of_few_filters(seen) if weights else _work_along_taps(seen, direction)
    in_place = direction == "forward" and ext.direct_reads_in_place(seen.sizes, p.dtype)
    is_long = direction == "forward" and seen is not p and not in_place
    narrow = NARROW * (LONG_SUMS if is_long else 1.0)
    p = seen
    ci, co, taps = p.ci // p.groups, p.co // p.groups, prod(p.kernel)
    share = prod(_share_of_taps(axis) for axis in p.axes)
    across, down = (ci, co) if direction == "backward_data" else (co, ci)
    wide = _vectors(across, p)
    products = 2.0 * p.groups * p.n * prod(p.out) * share * taps * down * wide * _itemsize(p) / 4
    if direction == "backward_weights":
        rows = ci if ci > 8 else taps * ci
        tiles = products * (-(-rows // 14) * 14 - rows) / rows
        narrow *= FEW_ROWS if ci > 8 and seen.strides != (1,) * p.rank else 1.0
    else:
        written = p.n * prod(p.spatial if direction == "backward_data" else p.out)
        wait, begun = _borders(p, direction, min(2, wide * _realsize(p) / 64))
        products = products * wait + begun * p.groups * -(-wide * _realsize(p) // 128)
        tiles = float(p.groups * -(-written // 14) * -(-across * _itemsize(p) // 128))
    filters = float(taps * ci * p.co * _itemsize(p))
    if in_place:
        pieces = PIECES if filters > IN_CACHE and co > NARROW_ROWS else 1.0
        filters *= IN_PLACE * pieces * -(-p.n * prod(p.out) // 14)
    return Work(
        products=products * narrow,
        tiles=tiles * narrow,
        matrix=0.0,
        images=_images(p),
        filters=filters,
        calls=1.0,
    )


def _work_of_pointwise_weights(p: ConvProblem) -> Work:
    return Work(
        products=2.0 * p.n * prod(p.out) * p.ci * _vectors(p.co, p) * _itemsize(p) / 4 * POINTWISE["products"],
        tiles=0.0,
        matrix=0.0,
        images=_images(p),
        filters=float(p.ci * p.co * _itemsize(p)) * POINTWISE["filters"],
        calls=POINTWISE["calls"],
    )


def _work_along_taps(p: ConvProblem, direction: str) -> Work:
    """Rows of taps in whole vectors, or single taps where these lie apart; and for each result a vector's sum."""
    written, read = (p.ci, p.co) if direction == "backward_data" else (p.co, p.ci)
    in_rows = p.dil_w == 1 and (direction == "forward" or p.sw == 1)
    lines, run = (p.kd * p.kh, p.kw * read) if in_rows else (prod(p.kernel), read)
    results = p.n * prod(p.spatial if direction == "backward_data" else p.out) * written
    share = prod(_share_of_taps(axis) for axis in p.axes)
    summed = p.n * prod(p.out) * written * share * lines * _vectors(run, p)
    vectors = summed + results * _vectors(1, p) * LAST_SUMS
    wait, begun = _borders(p, direction, float(min(written, 4)))
    return Work(
        products=(2.0 * vectors * (wait + LOADS / min(written, 4)) + begun) * _itemsize(p) / 4,
        tiles=0.0,
        matrix=0.0,
        images=_images(p),
        filters=float(prod(p.kernel) * p.ci * p.co * _itemsize(p)),
        calls=1.0,
    )


def _work_of_few_filters(p: ConvProblem) -> Work:
    """A row of taps of few channels is no whole vector."""
    pixels = p.n * p.oh * p.ow
    return Work(
        products=2.0 * pixels * p.kh * _vectors(p.kw * p.ci, p) * p.co * _itemsize(p) / 4,
        tiles=0.0,
        matrix=0.0,
        images=_images(p),
        filters=float(prod(p.kernel) * p.ci * p.co * _itemsize(p)),
        calls=1.0,
    )


def work_of_bfloat16(p: ConvProblem, direction: str) -> Work:
    """Products of whole tiles, 32 pixels, 32 channels written and 32 that are summed; copies of what is read.

    In backward_weights the tile is of channels, what is summed are pixels, and each part of x's channels copies y.
    """
    ci, co, taps = p.ci // p.groups, p.co // p.groups, prod(p.kernel)
    across, down = (ci, co) if direction == "backward_data" else (co, ci)
    share = prod(_share_of_taps(axis) for axis in p.axes)
    wide, joined = -(-across // 32) * 32, -(-taps * down // 32) * 32
    deep = joined if taps * -(-down // 32) * 32 >= 1.5 * joined else share * taps * -(-down // 32) * 32
    pixels = p.n * prod(p.out)
    read = prod(p.y_shape if direction == "backward_data" else p.x_shape)
    if direction == "backward_weights":
        read += -(-ci // min(256, max(32, 576 // taps))) * prod(p.y_shape)
    return Work(
        products=2.0 * p.groups * pixels * deep * wide,
        tiles=float(p.groups * -(-pixels // 32) * wide // 32),
        matrix=float(read * _itemsize(p)),
        images=_images(p),
        filters=float(taps * ci * p.co * _realsize(p)),
        calls=float(p.groups),
    )


def work_of_winograd(p: ConvProblem, direction: str) -> Work:
    """Products of transformed tiles, with a start-up per row of each; tiles and filters written and read.

    With a depth each tile of y has products with the planes of filters that meet a plane of x.  Products are then of
    the tiles of one plane of all images: where these are few, the micro-kernel's rows stay empty.  backward_weights
    reads and writes the transformed filters for every 256 tiles.  With a dilation each phase has tiles of its own.
    Tiles and filters are float32 where images are bfloat16.
    """
    return _work_of_tiles(p, direction, "large" if p.dtype == "bfloat16" else "small")


def work_of_large_winograd(p: ConvProblem, direction: str) -> Work:
    """The same with tiles of 7 x 7 and 8 x 8 as well."""
    return _work_of_tiles(p, direction, "large")


def work_of_rounded_winograd(p: ConvProblem, direction: str) -> Work:
    """The same with tiles of 2 x 2, 4 x 4 and 2 x 4 alone; tiles and filters are counted as if they were float32."""
    return _work_of_tiles(p, direction, "rounded")


def _work_of_tiles(p: ConvProblem, direction: str, kind: str) -> Work:
    oh, ow = (p.ih, p.iw) if direction == "backward_data" else (p.oh, p.ow)
    high, wide, phases = -(-oh // p.dil_h), -(-ow // p.dil_w), min(p.dil_h, oh) * min(p.dil_w, ow)
    mh, mw = winograd_ext.tile(high, wide, direction, kind)
    tiles, points, depth = p.n * phases * -(-high // mh) * -(-wide // mw), (mh + 2) * (mw + 2), p.axes[0]
    planes = depth.kernel * depth.out * _share_of_taps(depth)
    filters, rows = float(p.kd), tiles
    if p.rank == 3 and direction == "backward_weights":
        filters += p.kd * -(-tiles * depth.out // 256)
    elif p.rank == 3:
        rows = -(-tiles // 14) * 14
    return Work(
        products=2.0 * points * rows * planes * (_vectors(p.ci, p) + 8) * (_vectors(p.co, p) + 8) * _realsize(p) / 4,
        tiles=float(points * tiles * (p.ci * p.id + p.co * p.od) * _realsize(p)),
        matrix=0.0,
        images=_images(p),
        filters=points * filters * p.ci * p.co * _realsize(p),
        calls=1.0,
    )


def work_of_fft(p: ConvProblem, direction: str, basis: bases.Basis | None = None, family: str = "fft") -> Work:
    """What the C library's model says, which chooses the basis by it; of `basis`, where there is one."""
    beyond = 1.0 if {p.sh, p.sw} == {1} else PHASES["signals" if p.ih == 1 else "images"]
    wide = max(p.kernel) >= 7 and {*p.strides} == {1} and p.dtype != "bfloat16"
    beyond *= WIDE_FILTERS if wide else 1.0
    return Work(bases.seconds(p, direction, basis, family) * beyond * 1e12, 0.0, 0.0, _images(p), 0.0, p.groups)


def work_of_depthwise(p: ConvProblem, direction: str) -> Work:
    """Nothing else supports what it does with several channels, so that a rough figure will do.

    A single channel, of x or of y, fills no vector, and each of its numbers is moved by itself.
    """
    alone = 16 if 1 in (p.ci, p.co) else 1
    return Work(float(p.flops) * alone * _vectors(p.co, p) / p.co, 0.0, 0.0, _images(p), 0.0, 1.0)


#: threads that COSTS were fitted with
FITTED_THREADS = 2

COSTS: dict[tuple[str, str], Work] = {
    ("im2col", "forward"): Work(4.71, 0, 76, 20.5, 52.3, 0),
    ("im2col", "backward_data"): Work(4.7, 0, 42.9, 30.7, 53, 0),
    ("im2col", "backward_weights"): Work(4.7, 0, 78, 62.7, 1.95, 0),
    ("convgemm", "forward"): Work(4.63, 0, 17.9, 24, 55.3, 0),
    ("deconvgemm", "backward_data"): Work(4.66, 0, 31.1, 32.9, 63.3, 0),
    ("rdx", "backward_weights"): Work(4.6, 0, 350, 24, 132, 0),
    ("exchanged_strides", "backward_weights"): Work(4.6, 0, 39.4, 132, 132, 0),
    ("convgemm_trans", "backward_weights"): Work(4.94, 0, 23.1, 23.8, 7.92, 0),
    ("direct", "forward"): Work(4.67, 2.37e04, 0, 9.48, 115, 0),
    ("direct", "backward_data"): Work(4.88, 3.32e03, 0, 7.55, 129, 3.7e06),
    ("direct", "backward_weights"): Work(5.22, 1.38, 0, 23.4, 68.9, 4.3e06),
    ("strassen", "forward"): Work(4.63, 60, 76, 24, 55.3, 0),  # as by matrix products; tiles as on Zen 4 and 5
    ("strassen", "backward_data"): Work(4.66, 60, 42.9, 32.9, 63.3, 0),
    ("strassen", "backward_weights"): Work(4.7, 90, 78, 62.7, 1.95, 0),
    ("direct_bf16x3", "forward"): Work(1.3, 1.4e06, 0, 64, 760, 0),  # these three as within steps of two threads
    ("direct_bf16x3", "backward_data"): Work(1.1, 0, 0, 135, 800, 0),
    ("direct_bf16x3", "backward_weights"): Work(2.9, 0, 225, 205, 380, 0),
    ("direct_bf16", "forward"): Work(0.25, 6.36e05, 0, 39, 185, 0),
    ("direct_bf16", "backward_data"): Work(0.3, 0, 0, 89.6, 216, 0),
    ("direct_bf16", "backward_weights"): Work(1.09, 1.24e05, 108, 0, 215, 0),
    ("winograd", "forward"): Work(5.5, 0, 0, 2.54, 47.4, 5e06),
    ("winograd", "backward_data"): Work(4.4, 39.4, 0, 0, 50.3, 5e06),
    ("winograd", "backward_weights"): Work(6.53, 0.765, 0, 0, 19, 5e06),
    ("winograd_large", "forward"): Work(6.2, 0, 0, 2.54, 32, 5e06),
    ("winograd_large", "backward_data"): Work(5, 39.4, 0, 0, 34, 5e06),
    ("winograd_large", "backward_weights"): Work(7.3, 0.765, 0, 0, 19, 5e06),
    ("winograd_bf16", "forward"): Work(20, 40, 0, 0, 100, 0),
    ("winograd_bf16", "backward_data"): Work(20, 40, 0, 0, 100, 0),  # on any kernel but those of OF_BFLOAT16
    ("winograd_bf16", "backward_weights"): Work(20, 40, 0, 0, 100, 0),
    ("fft", "forward"): Work(0.41, 0, 0, 0, 0, 3e6),
    ("fft", "backward_data"): Work(0.41, 0, 0, 0, 0, 3e6),
    ("fft", "backward_weights"): Work(0.41, 0, 0, 0, 0, 3e6),
    ("fft_overlap_add", "forward"): Work(0.41, 0, 0, 0, 0, 3e6),
    ("fft_overlap_add", "backward_data"): Work(0.41, 0, 0, 0, 0, 3e6),
    ("fft_overlap_add", "backward_weights"): Work(0.41, 0, 0, 0, 0, 3e6),
    ("depthwise", "forward"): Work(9, 0, 0, 39, 0, 1e7),
    ("depthwise", "backward_data"): Work(9, 0, 0, 39, 0, 1e7),
    ("depthwise", "backward_weights"): Work(9, 0, 0, 39, 0, 1e7),
}

#: where images are in bfloat16, by its micro-kernel in force; "": any other.  Direct's with AMX are those where it
#: multiplies float32; what avx512_bf16 has was fitted on a CPU with it, forward and backward_data on two threads, 3x3
#: filters; all else on one, calls to problems of some microseconds.  Without products of bfloat16 all is as in float32
OF_BFLOAT16: dict[tuple[str, str, str], Work] = {
    ("amx_bf16", "direct", "forward"): COSTS["direct_bf16", "forward"],
    ("amx_bf16", "direct", "backward_data"): COSTS["direct_bf16", "backward_data"],
    ("amx_bf16", "direct", "backward_weights"): COSTS["direct_bf16", "backward_weights"],
    ("avx512_bf16", "direct", "forward"): Work(2.35, 7.83e04, 0, 40.3, 138, 5e06),
    ("avx512_bf16", "direct", "backward_data"): Work(2.35, 0, 0, 49, 116, 5e06),
    ("avx512_bf16", "direct", "backward_weights"): Work(2.17, 6.96e04, 320, 0, 89.4, 0),
    ("avx512_bf16", "winograd", "forward"): Work(5.9, 0, 0, 0, 14.4, 5e06),  # products: for larger tiles, as above
    ("avx512_bf16", "winograd", "backward_data"): Work(5.5, 13.8, 0, 0, 21.6, 5e06),
    ("avx512_bf16", "winograd_bf16", "forward"): Work(2.44, 13.3, 0, 0, 52.6, 1e07),
    ("avx512_bf16", "winograd_bf16", "backward_data"): Work(2.37, 21.7, 0, 0, 45, 1e07),
    ("avx512_bf16", "winograd_bf16", "backward_weights"): Work(2.73, 29, 0, 0, 46.4, 0),
    ("avx512_bf16", "fft", "forward"): Work(0.31, 0, 0, 0, 0, 3e6),
    ("avx512_bf16", "fft", "backward_data"): Work(0.31, 0, 0, 0, 0, 3e6),
    ("avx512_bf16", "fft", "backward_weights"): Work(0.31, 0, 0, 0, 0, 3e6),
    ("avx512_bf16", "fft_overlap_add", "forward"): Work(0.31, 0, 0, 0, 0, 3e6),
    ("avx512_bf16", "fft_overlap_add", "backward_data"): Work(0.31, 0, 0, 0, 0, 3e6),
    ("avx512_bf16", "fft_overlap_add", "backward_weights"): Work(0.31, 0, 0, 0, 0, 3e6),
    ("", "winograd", "forward"): COSTS["winograd_large", "forward"],
    ("", "winograd", "backward_data"): COSTS["winograd_large", "backward_data"],
    ("", "winograd", "backward_weights"): COSTS["winograd_large", "backward_weights"],
}


def costs(family: str, direction: str, dtype: str, kernel: str) -> Work:
    """Of the machine of COSTS; kernel: the micro-kernel of `dtype` in force."""
    if dtype != "bfloat16":
        return COSTS[family, direction]
    names = [(kernel, family, direction), ("", family, direction)]
    return next((OF_BFLOAT16[name] for name in names if name in OF_BFLOAT16), COSTS[family, direction])


def seconds(cost: Work, work: Work) -> float:
    """The model's estimate of a pass."""
    return 1e-12 * sum(amount * each for amount, each in zip(work, cost, strict=True))
