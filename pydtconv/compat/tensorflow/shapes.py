"""Functions of tensorflow on shapes and parts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import Extents, array
from pydtconv.compat.tensorflow.specs import Shape
from pydtconv.graph.ir.deferred import ValueNeededError


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Any:
    """The tensor.  Raises ValueError where its shape is another one; None is any extent."""
    given, wanted = tuple(x.shape), None if shape is None else tuple(shape)
    if wanted is not None:
        pairs = zip(given, wanted, strict=False)
        if len(given) != len(wanted) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ValueError(f"ensure_shape: expected shape {wanted}, got {given}")
    return x


def shape_n(input: Sequence[Any], out_type: Any = None, name: str | None = None) -> list[Extents]:
    return [Extents(x.shape if hasattr(x, "shape") else np.shape(x)) for x in input]


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Shape:
    """The shape of what two of these shapes make together.  Raises ValueError where they do not fit."""
    return Shape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The same as a tensor."""
    return array(np.asarray(broadcast_static_shape(np.asarray(shape_x), np.asarray(shape_y)), "int32"))


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value, where it is known."""
    try:
        return np.asarray(tensor)
    except ValueNeededError:
        return None


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Any:
    """A part of a tensor; a bit of a mask is of one axis: where the whole begins or ends, or which is left out."""
    if ellipsis_mask or new_axis_mask:
        raise NotImplementedError("tf.strided_slice: ellipsis_mask and new_axis_mask: expected 0: index the tensor")
    steps = [1] * len(begin) if strides is None else [int(n) for n in strides]
    key: list[Any] = []
    for i, (first, last, step) in enumerate(zip(begin, end, steps, strict=True)):
        bit = 1 << i
        part = slice(None if begin_mask & bit else int(first), None if end_mask & bit else int(last), step)
        key.append(int(first) if shrink_axis_mask & bit else part)
    return array(input_)[tuple(key)]


def parallel_stack(values: Sequence[Any], name: str = "parallel_stack") -> Any:
    return ops.stack([array(x) for x in values])


def _scattered(function: Any) -> Callable[..., Any]:
    def scattered(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
        """The array with the larger, or smaller, of it and updates at the places."""
        found = np.array(array(tensor))
        function.at(found, tuple(np.moveaxis(np.asarray(indices), -1, 0)), np.asarray(updates, found.dtype))
        return array(found)

    return scattered


def table() -> dict[str, Callable[..., Any]]:
    """The functions by name."""
    own = (
        ensure_shape, shape_n, broadcast_static_shape, broadcast_dynamic_shape, get_static_value, strided_slice,
        parallel_stack,
    )  # fmt: skip
    scattered = {"tensor_scatter_nd_max": np.maximum, "tensor_scatter_nd_min": np.minimum}
    return {each.__name__: each for each in own} | {name: _scattered(each) for name, each in scattered.items()}
