"""`tf.nn`: what is computed of windows by shifted parts of images; blocks of images as samples."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array


def _shifted(
    x: Any, window: tuple[int, int], steps: tuple[int, int], rates: tuple[int, int], padding: str
) -> tuple[list[Any], list[tuple[int, int]]]:
    """For each place of the window what lies there (n, oh, ow, c), with the lowest number around "SAME" images."""
    reach = [(k - 1) * r + 1 for k, r in zip(window, rates, strict=True)]
    extents, sides = x.shape[1:3], [(0, 0), (0, 0)]
    if padding == "SAME":
        counts = [-(-n // s) for n, s in zip(extents, steps, strict=True)]
        missing = [max((c - 1) * s + k - n, 0) for c, s, k, n in zip(counts, steps, reach, extents, strict=True)]
        sides = [(m // 2, m - m // 2) for m in missing]
        lowest = float(np.finfo("float32").min)
        x = ops.pad(x, ((0, 0), *sides, (0, 0)), "constant", lowest)
    else:
        counts = [(n - k) // s + 1 for n, k, s in zip(extents, reach, steps, strict=True)]
    parts = []
    for i in range(window[0]):
        for j in range(window[1]):
            begin = i * rates[0], j * rates[1]
            ends = [b + (c - 1) * s + 1 for b, c, s in zip(begin, counts, steps, strict=True)]
            parts.append(x[:, begin[0] : ends[0] : steps[0], begin[1] : ends[1] : steps[1], :])
    return parts, sides


def _two(value: Any) -> tuple[int, int]:
    given = [int(n) for n in np.reshape(value, -1)]
    return (given[1], given[2]) if len(given) == 4 else (given[0], given[-1])


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: Any = "int64",
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The largest of each window, and its place (y * w + x) * c + channel, behind other samples' if asked."""
    if data_format != "NHWC":
        raise ValueError(f"max_pool_with_argmax: data_format: expected NHWC, got {data_format!r}")
    x = array(input)
    n, h, w, c = x.shape
    window, steps = _two(ksize), _two(strides)
    parts, sides = _shifted(x, window, steps, (1, 1), padding)
    stacked = ops.stack(parts, axis=-1)
    best = ops.argmax(stacked, axis=-1)
    rows = np.arange(best.shape[1], dtype="int32")[:, None, None] * steps[0] - sides[0][0]
    columns = np.arange(best.shape[2], dtype="int32")[:, None] * steps[1] - sides[1][0]
    best = ops.cast(best, "int32")
    places = ((rows + best // window[1]) * w + columns + best % window[1]) * c + np.arange(c, dtype="int32")
    if include_batch_in_index:
        places = places + (np.arange(n, dtype="int32") * (h * w * c))[:, None, None, None]
    kind = output_dtype if isinstance(output_dtype, str) else np.dtype(output_dtype).name
    return ops.max(stacked, axis=-1), ops.cast(places, kind)


def dilation2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Any:
    """The largest sum of image and filter (kh, kw, c) in each window: grey dilation."""
    kh, kw, c = filters.shape
    parts, _ = _shifted(array(input), (kh, kw), _two(strides), _two(dilations), padding)
    weights = ops.reshape(array(filters), (kh * kw, c))
    return functools.reduce(ops.maximum, [part + weights[i] for i, part in enumerate(parts)])


def erosion2d(
    value: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    dilations: Any = 1,
    name: str | None = None,
) -> Any:
    """The smallest difference of image and mirrored filter in each window: grey erosion."""
    mirrored = ops.flip(ops.flip(array(filters), 0), 1)
    return -dilation2d(-array(value), mirrored, strides, padding, data_format, dilations)


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Any:
    """x / (bias + alpha * sum of squares of the channels around) ** beta: Krizhevsky et al., 2012."""
    x = array(input)
    c, radius = x.shape[-1], int(depth_radius)
    around = ops.pad(ops.square(x), ((0, 0),) * (len(x.shape) - 1) + ((radius, radius),))
    total = functools.reduce(ops.add, [around[..., i : i + c] for i in range(2 * radius + 1)])
    return x / (bias + alpha * total) ** beta


def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Any:
    """Each pixel of a block in a sample of its own: (n * pixels of a block, h / block, w / block, ...)."""
    x = array(input)
    rank = np.asarray(paddings).shape[0]
    block = [int(b) for b in np.broadcast_to(np.reshape(block_shape, -1), (rank,))]
    sides = tuple((int(a), int(b)) for a, b in np.asarray(paddings))
    x = ops.pad(x, ((0, 0), *sides, *((0, 0),) * (len(x.shape) - 1 - rank)))
    n, *extents = x.shape
    inner = [part for m, b in zip(extents, block, strict=False) for part in (m // b, b)]
    rest = extents[rank:]
    y = ops.reshape(x, (n, *inner, *rest))
    axes = [2 + 2 * i for i in range(rank)] + [0] + [1 + 2 * i for i in range(rank)]
    y = ops.transpose(y, (*axes, *range(1 + 2 * rank, len(y.shape))))
    return array(ops.reshape(y, (n * math.prod(block), *inner[::2], *rest)))


def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Any:
    """The opposite of `space_to_batch`, without so many pixels at each side."""
    x = array(input)
    rank = np.asarray(crops).shape[0]
    block = [int(b) for b in np.broadcast_to(np.reshape(block_shape, -1), (rank,))]
    n, extents = x.shape[0] // math.prod(block), x.shape[1:]
    y = ops.reshape(x, (*block, n, *extents))
    axes = [rank] + [axis for i in range(rank) for axis in (rank + 1 + i, i)]
    y = ops.transpose(y, (*axes, *range(2 * rank + 1, len(y.shape))))
    whole = [m * b for m, b in zip(extents, block, strict=False)]
    y = ops.reshape(y, (n, *whole, *extents[rank:]))
    kept = (slice(int(a), m - int(b)) for (a, b), m in zip(np.asarray(crops), whole, strict=True))
    return array(y[(slice(None), *kept)])


def table() -> dict[str, Any]:
    """The names of `tf.nn` that stand here."""
    own = (
        max_pool_with_argmax, dilation2d, erosion2d, local_response_normalization, space_to_batch,
    )  # fmt: skip
    return {each.__name__: each for each in own} | {"lrn": local_response_normalization}


def of_tf() -> dict[str, Any]:
    """What tensorflow itself has of it."""
    return {"space_to_batch": space_to_batch, "space_to_batch_nd": space_to_batch, "batch_to_space": batch_to_space}
