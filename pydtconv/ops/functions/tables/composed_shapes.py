"""Shapes, kinds and pieces of tensors, made of other functions, which give them their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import dtypes
from pydtconv.extents import LARGEST, check
from pydtconv.hooks import as_result
from pydtconv.ops.checks import check_axis
from pydtconv.ops.functions.arithmetic import (
    divide,
    maximum,
    minimum,
)
from pydtconv.ops.functions.operands import as_tensor, is_symbolic
from pydtconv.ops.functions.shape import (
    cast,
    concatenate,
    expand_dims,
    get_item,
    ravel,
    reshape,
    slice_along,
    squeeze,
)
from pydtconv.ops.functions.tables import elementwise, rearranging, selecting
from pydtconv.ops.functions.tables.counting import nonzero
from pydtconv.ops.functions.tables.creating import zeros_like
from pydtconv.ops.functions.tables.function_of_row import apply, operands_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import RULES

__all__ = exported(
    numpy="""
        append array_split conj conjugate copy dsplit dstack hsplit hstack imag meshgrid ndim real size
        true_divide view vsplit vstack where
    """,
    core="saturate_cast slice unstack",
    own="dtype is_tensor shape",
)

true_divide = divide
RULES["where"] = elementwise.WHERE
_isnan: Any = elementwise._FUNCTIONS["isnan"]


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """x1 where the condition is true, else x2; without these the indices of what is true."""
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError(f"where: expected both x1 and x2, or neither, got {x1!r} and {x2!r}")
    x1, x2 = operands_of(x1, x2)
    return apply("where", [condition, x1, x2], {})


# -- shapes and kinds ------------------------------------------------------------------------------------------------


def shape(x: Any) -> tuple[int | None, ...]:
    """The shape; None where an extent is not known."""
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


def ndim(x: Any) -> int:
    """The number of axes."""
    return len(shape(x))


def size(x: Any) -> int:
    """The number of elements."""
    return math.prod(shape(x))  # type: ignore[arg-type]


def dtype(x: Any) -> str:
    """The name of the dtype."""
    return dtypes.name_of(x.dtype)


def is_tensor(x: Any) -> bool:
    """Whether x is an array of NumPy or symbolic."""
    return isinstance(x, np.ndarray) or is_symbolic(x)


def copy(x: Any) -> Any:
    """x; a copy of an array, of a variable its value as it is now."""
    if hasattr(x, "assign"):
        return x * 1 if x.dtype.startswith("float") else cast(cast(x, "float64") * 1, x.dtype)
    return x if is_symbolic(x) else as_result(np.array(x))


def view(x: Any, dtype: Any = None) -> Any:
    """The bytes of the last axis read as another dtype; x for its own, or None."""
    if is_symbolic(x):
        own, wanted = dtypes.name_of(x.dtype), dtypes.name_of(dtype or x.dtype)
        if own == wanted:
            return x
        if dtypes.BFLOAT16 in (own, wanted):
            raise NotImplementedError(f"ops.view: bfloat16 is here for arrays only, got {x!r} and {dtype!r}")
        return rearranging._FUNCTIONS["_view"](x, wanted, np.dtype(own).itemsize)
    return np.asarray(x) if dtype is None else np.asarray(x).view(dtypes.name_of(dtype))


def real(x: Any) -> Any:
    """The real part: x where it is not complex."""
    return x if is_symbolic(x) else np.real(x)


def imag(x: Any) -> Any:
    """The imaginary part: zeros where x is not complex, as a model's tensors are not."""
    return zeros_like(x) if is_symbolic(x) else np.imag(np.asarray(x))


def conj(x: Any) -> Any:
    """The complex conjugate: x where it is not complex."""
    return np.conj(x) if np.iscomplexobj(x) else x


conjugate = conj


def saturate_cast(x: Any, dtype: str) -> Any:
    """x in another dtype, limited to what that can hold."""
    dtype = dtypes.name_of(dtype)
    if dtype == dtypes.BFLOAT16:
        largest = float(dtypes.from_bits(np.array(0x7F7F, "uint16")))
        return cast(minimum(maximum(x, -largest), largest), dtype)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info: Any = np.iinfo(kind)
    elif kind.kind == "f":
        info = np.finfo(kind)
    else:
        return cast(x, dtype)
    low, high = float(info.min), float(info.max)
    if is_symbolic(x):
        x = x if dtypes.name_of(x.dtype) in dtypes.FLOATING else cast(x, "float64")
        return cast(minimum(maximum(x, low), high), dtype)
    array = np.asarray(x)
    if array.dtype.kind in "iu" and kind.kind in "iu":  # exactly, as float64 has not all integers
        have = np.iinfo(array.dtype)
        return as_result(np.clip(array, max(info.min, have.min), min(info.max, have.max)).astype(kind))
    array = array.astype("float64")
    with np.errstate(invalid="ignore"):
        found = np.clip(array, low, high).astype(kind)
    # the largest integer may be no float, and the float beside it wraps
    return as_result(found if kind.kind == "f" else np.where(array >= high, kind.type(info.max), found))


# -- pieces ----------------------------------------------------------------------------------------------------------


def append(x1: Any, x2: Any, axis: int | None = None) -> Any:
    """x2 behind x1 along an axis; both flat where it is None."""
    return concatenate([ravel(x1), ravel(x2)], 0) if axis is None else concatenate([x1, x2], axis)


def _at_least(x: Any, rank: int) -> Any:
    x = as_tensor(x)
    if rank == 3 and len(x.shape) < 3:
        return expand_dims(x, -1) if len(x.shape) == 2 else reshape(x, (1, x.shape[0] if x.shape else 1, 1))
    return x if len(x.shape) >= rank else reshape(x, (1,) * (rank - len(x.shape)) + tuple(x.shape))


def hstack(xs: Sequence[Any]) -> Any:
    """Tensors side by side: along axis 1, vectors along axis 0."""
    parts = [_at_least(x, 1) for x in xs]
    return concatenate(parts, 0 if len(parts[0].shape) == 1 else 1)


def vstack(xs: Sequence[Any]) -> Any:
    """Tensors one above the other, vectors as rows."""
    return concatenate([_at_least(x, 2) for x in xs], 0)


def dstack(xs: Sequence[Any]) -> Any:
    """Tensors along the third axis."""
    return concatenate([_at_least(x, 3) for x in xs], 2)


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Any]:
    """The tensors along an axis, without it."""
    x = as_tensor(x)
    extent = x.shape[check_axis("unstack", axis, len(x.shape))]
    if extent is None or num not in (None, extent):
        raise ValueError(f"unstack: num: expected {extent}, the extent of axis {axis}, which must be known, got {num}")
    return [squeeze(slice_along(x, axis, i, i + 1), axis) for i in range(extent)]


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """x cut along an axis; sections need not be equal."""
    x = as_tensor(x)
    extent = x.shape[check_axis("array_split", axis, len(x.shape))]
    check(
        "array_split: indices_or_sections",
        indices_or_sections,
        least=1 if isinstance(indices_or_sections, int) else -LARGEST,
    )
    if isinstance(indices_or_sections, int):
        each, more = divmod(extent, indices_or_sections)
        starts = (i * each + min(i, more) for i in range(indices_or_sections))
        return [slice_along(x, axis, a, a + each + (i < more)) for i, a in enumerate(starts)]
    cuts = [min(int(cut), extent) for cut in indices_or_sections]
    return [slice_along(x, axis, a, b) for a, b in zip([0, *cuts], [*cuts, extent], strict=True)]


def _even_split(x: Any, indices_or_sections: Any, axis: int) -> list[Any]:
    extent = shape(x)[check_axis("split", axis, ndim(x))]
    if isinstance(indices_or_sections, int) and indices_or_sections and extent % indices_or_sections:  # type: ignore[operator]
        raise ValueError(f"split: expected a divisor of {extent} as the number of sections, got {indices_or_sections}")
    return array_split(x, indices_or_sections, axis)


def vsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """x cut along axis 0."""
    return _even_split(x, indices_or_sections, 0)


def hsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """x cut along axis 1; a vector along axis 0."""
    return _even_split(x, indices_or_sections, 0 if ndim(x) == 1 else 1)


def dsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """x cut along axis 2."""
    return _even_split(x, indices_or_sections, 2)


def slice(inputs: Any, start_indices: Any, shape: Sequence[int]) -> Any:
    """The window of a shape that begins at start_indices; -1 is the rest of an axis, where the indices are numbers.

    Raises ValueError for a window that is not inside.
    """
    if is_symbolic(start_indices):
        if -1 in shape:
            raise ValueError(f"slice: shape: expected extents, as start_indices are symbolic, got {tuple(shape)}")
        return selecting._FUNCTIONS["_slice"](inputs, start_indices, tuple(shape))
    x, start = as_tensor(inputs), [int(a) for a in start_indices]
    sizes = [n - a if size == -1 else int(size) for a, size, n in zip(start, shape, x.shape, strict=True)]
    if any(not 0 <= a <= a + size <= n for a, size, n in zip(start, sizes, x.shape, strict=True)):
        raise ValueError(f"slice: expected a window inside of {tuple(x.shape)}, got {tuple(shape)} at {tuple(start)}")
    return get_item(x, tuple(builtin_slice(a, a + size) for a, size in zip(start, sizes, strict=True)))


def meshgrid(*x: Any, indexing: str = "xy") -> list[Any]:
    """Coordinates of a grid from vectors."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing: expected 'xy' or 'ij', got {indexing!r}")
    vectors = [ravel(v) if is_symbolic(v) else np.asarray(v).reshape(-1) for v in x]
    extents = [v.shape[0] for v in vectors]
    order = [1, 0, *range(2, len(x))] if indexing == "xy" and len(x) > 1 else list(range(len(x)))
    grid = [extents[i] for i in order]
    wide: Any = rearranging._FUNCTIONS["broadcast_to"]
    result = []
    for i, v in enumerate(vectors):
        along = [1] * len(x)
        along[order.index(i)] = extents[i]
        result.append(wide(reshape(v, along) if is_symbolic(v) else v.reshape(along), tuple(grid)))
    return result


builtin_slice = type(np.s_[:])
