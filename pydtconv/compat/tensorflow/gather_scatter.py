"""Functions of tensorflow that take elements by their places, and put elements there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array, name_of


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: int | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """The parts at indices along an axis; those of each sample by its own indices where batch_dims is 1 or more."""
    if not batch_dims:
        return ops.take(params, indices, axis=0 if axis is None else int(axis))
    x, index = array(params), array(indices)
    batch = batch_dims if batch_dims > 0 else batch_dims + len(index.shape)
    if (batch if axis is None else axis % len(x.shape)) != batch:
        raise NotImplementedError(f"tf.gather: axis: expected batch_dims={batch_dims}, got {axis}: use tf.transpose")
    count, (first, *others) = math.prod(index.shape[batch:]), (-1 if n is None else n for n in index.shape[:batch])
    flat = ops.reshape(index, (first, *others, count, *[1] * (len(x.shape) - batch - 1)))
    found = ops.take_along_axis(x, flat, axis=batch)
    return ops.reshape(found, (first, *others, *index.shape[batch:], *x.shape[batch + 1 :]))


def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Any:
    """The parts of params at places (..., coordinates along the first axes)."""
    if batch_dims:
        raise NotImplementedError(f"tf.gather_nd: batch_dims: expected 0, got {batch_dims}: use tf.gather")
    x, index = array(params), array(indices)
    depth = index.shape[-1]
    steps = np.cumprod([1, *x.shape[1:depth][::-1]])[::-1].astype("int32")
    places = ops.sum(index * np.ascontiguousarray(steps), axis=-1)
    return ops.take(ops.reshape(x, (-1, *x.shape[depth:])), places, axis=0)


def boolean_mask(tensor: Any, mask: Any, axis: int | None = None, name: str | None = None) -> Any:
    """The elements where mask holds, in one axis in the place of the mask's axes, of which the first one is axis."""
    x, chosen, first = array(tensor), np.asarray(mask, bool), int(axis or 0)
    last = first + chosen.ndim
    if not chosen.ndim or tuple(x.shape[first:last]) != chosen.shape:
        raise ValueError(
            f"boolean_mask: mask: expected extents of {tuple(x.shape)} from axis {first} on, got {chosen.shape}"
        )
    flat = ops.reshape(x, (*x.shape[:first], chosen.size, *x.shape[last:]))
    return array(ops.take(flat, np.flatnonzero(chosen).astype("int32"), axis=first))


def scatter_nd(indices: Any, updates: Any, shape: Sequence[int], name: str | None = None) -> Any:
    """Zeros of this shape, with updates added at the places."""
    return ops.scatter(indices, updates, tuple(int(n) for n in shape))


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """The tensor with updates at the places."""
    return ops.scatter_update(tensor, indices, updates)


def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """The tensor with updates added at the places."""
    return tensor + scatter_nd(indices, updates, tensor.shape)


def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
    """The tensor with updates subtracted at the places."""
    return tensor - scatter_nd(indices, updates, tensor.shape)


def sequence_mask(lengths: Any, maxlen: int | None = None, dtype: Any = "bool", name: str | None = None) -> Any:
    """(..., maxlen): whether a place lies before the length; maxlen is the largest one where it is not given."""
    index = array(lengths)
    extent = int(np.max(np.asarray(index))) if maxlen is None else int(maxlen)
    return ops.cast(ops.less(np.arange(extent, dtype="int32"), ops.expand_dims(index, -1)), name_of(dtype))


def table() -> dict[str, Callable[..., Any]]:
    """The functions by name."""
    own = (
        gather, gather_nd, boolean_mask, scatter_nd, tensor_scatter_nd_update, tensor_scatter_nd_add,
        tensor_scatter_nd_sub, sequence_mask,
    )  # fmt: skip
    return {each.__name__: each for each in own}
