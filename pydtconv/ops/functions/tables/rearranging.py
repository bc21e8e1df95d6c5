"""Functions that move elements to other places, or leave some out, or fill with zeros.

Their gradient needs no formula: the function is applied to the numbers of the elements, and what arrives at a place
goes back to the element whose number is there.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import Backward, Rule, no_gradient
from pydtconv.serialization.budget import claim
from pydtconv.support.array_cache import KeptArrays

Shape = tuple[int, ...]


#: an element that takes no memory
_NOTHING = np.zeros((), "V0")


def numbers(forward: Callable[..., np.ndarray], extents: Shape, static: tuple[tuple[str, Any], ...]) -> np.ndarray:
    """The numbers, from 1, of the elements in their new places, as a vector; 0 for no element."""
    numbered = np.arange(1, math.prod(extents) + 1).reshape(extents)
    return np.ascontiguousarray(forward(numbered, **dict(static))).reshape(-1)


_kept_numbers = KeptArrays(numbers, 256 << 20)


def moving(forward: Callable[..., np.ndarray], shape: Callable[..., Any] | None = None) -> Rule:
    """forward(x, **static) moves elements of x; 0 stands where there is none."""

    def gradient(b: Backward, **static: Any) -> Any:
        extents = b.shapes[0]
        places = _kept_numbers(forward, tuple(extents), tuple(static.items()))
        sums = np.bincount(places, b.dy[0].reshape(-1), math.prod(extents) + 1)
        return (sums[1:].reshape(extents),)

    def shape_of(extents: Shape, **static: Any) -> Any:
        claim(math.prod(extents) >> 6, f"{forward.__name__} of {tuple(extents)}")  # it may still walk the elements
        return forward(np.broadcast_to(_NOTHING, extents), **static).shape

    return Rule(forward, gradient, shape or shape_of, "promote", reads_x=False, moves=True)


def _same(extents: Shape, **static: Any) -> Shape:
    return extents


def _along_axes(extents: Shape, axis: Any, shift: Any = 0) -> Shape:
    if isinstance(shift, tuple) and axis is not None and len(shift) > 1 < np.size(axis) != len(shift):
        raise ValueError(f"shift: expected a number for each of {axis}, got {shift}")
    normalize_axes("axis", tuple(set(axis)) if isinstance(axis, tuple) else axis, len(extents))
    return extents


def _triangle(extents: Shape, k: int) -> Shape:
    return extents if len(extents) != 1 else (*extents, *extents)


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def _unfold(x: np.ndarray, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> np.ndarray:
    """(n, c, h, w) -> (n, c * kh * kw, windows)."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(_pair, (kernel_size, dilation, padding, stride))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    windows = np.lib.stride_tricks.sliding_window_view(x, ((kh - 1) * dh + 1, (kw - 1) * dw + 1), axis=(2, 3))
    windows = windows[:, :, ::sh, ::sw, ::dh, ::dw]
    n, c, rows, columns = windows.shape[:4]
    return windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * kh * kw, rows * columns)


def _on_diagonal(extents: Shape, k: int) -> Shape:
    """The matrix whose diagonal has all elements."""
    claim(k * k, f"a diagonal {k} beside the main one")
    return (math.prod(extents) + abs(k),) * 2


def _diagonal_of(extents: Shape, k: int) -> Shape:
    if len(extents) == 1:
        return _on_diagonal(extents, k)
    if len(extents) != 2:
        raise ValueError("expected a vector or a matrix")
    return (max(0, min(extents[0] + min(k, 0), extents[1] - max(k, 0))),)


def _unfolded(extents: Shape, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Shape:
    n, c, *image = extents
    if len(image) != 2:
        raise ValueError("expected images (n, c, h, w)")
    settings = zip(image, *map(_pair, (kernel_size, dilation, padding, stride)), strict=True)
    windows = [(extent + 2 * p - (k - 1) * d - 1) // s + 1 for extent, k, d, p, s in settings]
    if min(windows) < 1:
        raise ValueError(f"no window of {kernel_size} fits")
    return (n, c * math.prod(_pair(kernel_size)), math.prod(windows))


def _fold_numbers(extents: Shape, output_size: Any, **window: Any) -> tuple[np.ndarray, Shape]:
    """The number of the pixel that each element of unfolded images belongs to, and the images' shape."""
    kh, kw = _pair(window["kernel_size"])
    image = (extents[0], extents[1] // (kh * kw), *_pair(output_size))
    numbered = np.arange(1, math.prod(image) + 1).reshape(image)
    return _unfold(numbered, **window), image


def _fold(x: np.ndarray, output_size: Any, **window: Any) -> np.ndarray:
    places, image = _fold_numbers(x.shape, output_size, **window)
    return np.bincount(places.reshape(-1), x.reshape(-1), math.prod(image) + 1)[1:].reshape(image)


def _fold_shape(extents: Shape, output_size: Any, kernel_size: Any, **window: Any) -> Shape:
    kh, kw = _pair(kernel_size)
    if len(extents) != 3 or extents[1] % (kh * kw):
        raise ValueError(f"expected (n, channels * {kh * kw}, windows)")
    return (extents[0], extents[1] // (kh * kw), *_pair(output_size))


def _blocks_to_depth(x: np.ndarray, block_size: int, data_format: str) -> np.ndarray:
    b = block_size
    if data_format == "channels_first":
        n, c, h, w = x.shape
        return x.reshape(n, c, h // b, b, w // b, b).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * b * b, h // b, w // b)
    n, h, w, c = x.shape
    return x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, b * b * c)


def _depth_to_blocks(x: np.ndarray, block_size: int, data_format: str) -> np.ndarray:
    b = block_size
    if data_format == "channels_first":
        n, c, h, w = x.shape
        return x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, -1, h * b, w * b)
    n, h, w, c = x.shape
    return x.reshape(n, h, w, b, b, c // (b * b)).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // (b * b))


def _patches(x: np.ndarray, size: Shape, strides: Shape, dilation: Shape) -> np.ndarray:
    """(n, extents..., c) -> (n, windows..., size * c)."""
    rank = len(size)
    reach = tuple((s - 1) * d + 1 for s, d in zip(size, dilation, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(1, rank + 1)))
    steps = (
        slice(None),
        *(slice(None, None, s) for s in strides),
        slice(None),
        *(slice(None, None, d) for d in dilation),
    )
    windows = np.moveaxis(windows[steps], rank + 1, -1)
    return windows.reshape(*windows.shape[: rank + 1], -1)


def _tokens(side: str) -> list[list[str]]:
    """ "b (h w) c" -> [["b"], ["h", "w"], ["c"]]."""
    found = re.findall(r"\(([^()]*)\)|(\S+)", side)
    return [group.split() if not single else [single] for group, single in found]


def _rearrange(x: np.ndarray, pattern: str, sizes: tuple[tuple[str, int], ...]) -> np.ndarray:
    """einops's notation: axes by name, those in parentheses joined, 1 for an axis of extent 1, ... for others."""
    left, arrow, right = pattern.partition("->")
    before, after = _tokens(left), _tokens(right)
    if not arrow:
        raise ValueError(f"rearrange: pattern: expected 'axes -> axes', got {pattern!r}")
    if ["..."] in before:
        at = before.index(["..."])
        more = [[f"...{i}"] for i in range(x.ndim - len(before) + 1)]
        before[at : at + 1] = more
        after = list(itertools.chain(*(more if token == ["..."] else [token] for token in after)))
    if len(before) != x.ndim:
        raise ValueError(f"rearrange: pattern {pattern!r}: expected {len(before)} axes, got shape {x.shape}")
    known, found = dict(sizes), {}
    for names, extent in zip(before, x.shape, strict=True):
        names = [name for name in names if name != "1"]
        rest = [name for name in names if name not in known]
        done = math.prod(known[name] for name in names if name in known)
        if len(rest) > 1 or extent % done or (not rest and done != extent):
            raise ValueError(f"rearrange: pattern {pattern!r} with {known}: cannot split an axis of {extent}")
        found.update({name: known.get(name, extent // done) for name in names})
    order = [name for names in before for name in names if name != "1"]
    wanted = [name for names in after for name in names if name != "1"]
    if sorted(order) != sorted(wanted):
        raise ValueError(f"rearrange: pattern {pattern!r}: expected the same names on both sides")
    x = x.reshape([found[name] for name in order]).transpose([order.index(name) for name in wanted])
    return x.reshape([math.prod(found[name] for name in names if name != "1") for names in after])


def _tile(x: np.ndarray, repeats: Any) -> np.ndarray:
    return np.tile(x, repeats)


def _tiled(extents: Shape, repeats: Any) -> Shape:
    times = [repeats] if isinstance(repeats, int) else list(repeats)
    rank = max(len(times), len(extents))
    times = [1] * (rank - len(times)) + times
    return tuple(a * b for a, b in zip([1] * (rank - len(extents)) + list(extents), times, strict=True))


def _repeated(extents: Shape, repeats: Any, axis: int | None) -> Shape:
    if axis is None:
        extents, axis = (math.prod(extents),), 0
    each = [repeats] if isinstance(repeats, int) else list(repeats)
    if len(each) not in (1, extents[axis]):
        raise ValueError(f"repeats: expected one number or {extents[axis]}, got {len(each)}")
    total = each[0] * extents[axis] if len(each) == 1 else sum(each)
    return (*extents[:axis], total, *extents[axis % len(extents) + 1 :])


def _index(x: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    parts = [slice(*part[1:]) if isinstance(part, tuple) and part[:1] == ("slice",) else part for part in key]
    return x[tuple(np.asarray(p[1:]) if isinstance(p, tuple) and p[:1] == ("array",) else p for p in parts)]


def _viewed(extents: Shape, dtype: str, width: int) -> Shape:
    """width: the bytes of an element of what is read."""
    rest = extents[-1] * width % np.dtype(dtype).itemsize if extents else width != np.dtype(dtype).itemsize
    if rest:
        raise ValueError(f"view: expected a last axis whose bytes are whole elements of {dtype}")
    return (*extents[:-1], extents[-1] * width // np.dtype(dtype).itemsize) if extents else ()


ROWS: list[Row] = [
    ("flip(x, axis=None)", "x with its elements reversed along axes (None: all).", moving(np.flip, _along_axes)),
    ("fliplr(x)", "x reversed along axis 1.", moving(np.fliplr, _same)),
    ("flipud(x)", "x reversed along axis 0.", moving(np.flipud, _same)),
    (
        "roll(x, shift, axis=None)",
        "Elements moved along axes; what leaves comes in again.",
        moving(np.roll, _along_axes),
    ),
    ("rot90(array, k=1, axes=(0, 1))", "x turned by k quarters in the plane of two axes.", moving(np.rot90)),
    (
        "tile(x, repeats)",
        "x repeated as a whole along each axis.",
        moving(_tile, _tiled),
    ),
    ("repeat(x, repeats, axis=None)", "Each element repeated along an axis.", moving(np.repeat, _repeated)),
    (
        "broadcast_to(x, shape)",
        "x repeated to a shape.",
        moving(np.broadcast_to, lambda extents, shape: np.broadcast_shapes(extents, tuple(shape))),
    ),
    ("diagonal(x, offset=0, axis1=0, axis2=1)", "Diagonals of matrices, as the last axis.", moving(np.diagonal)),
    ("diag(x, k=0)", "The diagonal of a matrix, or the matrix of a diagonal.", moving(np.diag, _diagonal_of)),
    ("diagflat(x, k=0)", "The matrix whose diagonal has all elements.", moving(np.diagflat, _on_diagonal)),
    ("tril(x, k=0)", "Matrices without what lies above a diagonal.", moving(np.tril, _triangle)),
    ("triu(x, k=0)", "Matrices without what lies below a diagonal.", moving(np.triu, _triangle)),
    (
        "unfold(x, kernel_size, dilation=1, padding=0, stride=1)",
        "The windows of images (n, c, h, w) as (n, c * kernel, windows).",
        moving(_unfold, _unfolded),
    ),
    (
        "fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1)",
        "The reverse of unfold: windows added up to images (n, c, h, w).",
        Rule(
            _fold,
            lambda b, output_size, **window: (_unfold(b.dy[0], **window),),
            _fold_shape,
            "promote",
            reads_x=False,
        ),
    ),
    (
        "space_to_depth(x, block_size, data_format='channels_last')",
        "Blocks of pixels as channels.",
        moving(_blocks_to_depth),
    ),
    (
        "depth_to_space(x, block_size, data_format='channels_last')",
        "Channels as blocks of pixels (pixel shuffle).",
        moving(_depth_to_blocks),
    ),
    ("_patches(x, size, strides, dilation)", "Windows along the middle axes as the last one.", moving(_patches)),
    ("_rearrange(x, pattern, sizes)", "See rearrange.", moving(_rearrange)),
    (
        "_view(x, dtype, width)",
        "The bytes of the last axis as another dtype; width: those of an element of x.",
        Rule(lambda x, dtype, width: np.ascontiguousarray(x).view(dtype), no_gradient, _viewed),
    ),
    ("_index(x, key)", "x[key] for keys that are not plain slices.", moving(_index)),
]

_NARROW = """
    flip fliplr flipud roll rot90 tile repeat broadcast_to diagonal diag diagflat tril triu unfold space_to_depth
    depth_to_space _patches _rearrange _index
"""
_FUNCTIONS = functions_of(__name__, ROWS, narrow=_NARROW)
globals().update(_FUNCTIONS)


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """Axes in another order, split and joined as einops writes it: rearrange(x, "b (h p) c -> b h (p c)", p=2)."""
    return _FUNCTIONS["_rearrange"](tensor, pattern, tuple(axes_lengths.items()))


__all__ = exported(
    [name for name in _FUNCTIONS if not name.startswith("_")],
    nn="unfold fold space_to_depth depth_to_space",
    einops="rearrange",
)
