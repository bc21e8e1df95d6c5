"""`tensorflow.compiler.tf2xla.python.xla`: XLA's operators on tensors, by functions of `tf`.

The semantics are those of openxla.org/xla/operation_semantics: operands of different ranks name the axes that the
smaller one has, and windows that begin too far out are moved inside.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from pydtconv import ops, random
from pydtconv.compat.tensorflow import functions, special
from pydtconv.compat.tensorflow.arrays import array

#: functions of `tf.math` with the same name and one operand, and those with another name
_UNARY = (
    "abs conj cos ceil digamma erf erfc erfinv exp expm1 floor imag is_finite lgamma log log1p logical_not real round "
    "sign sin tan tanh"
)
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "rem": "truncatemod", "max": "maximum",
    "min": "minimum", "atan2": "atan2", "complex": "complex", "logical_and": "logical_and", "logical_or": "logical_or",
    "logical_xor": "logical_xor", "eq": "equal", "ne": "not_equal", "ge": "greater_equal", "gt": "greater",
    "le": "less_equal", "lt": "less", "pow": "pow",
}  # fmt: skip


def _broadcasting(name: str, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def binary(x: Any, y: Any, broadcast_dims: Sequence[int] | None = None, name: str | None = None) -> Any:
        x, y = array(x), array(y)
        ranks = len(x.shape), len(y.shape)
        if ranks[0] != ranks[1] and 0 not in ranks:
            small, big = sorted((x, y), key=lambda each: len(each.shape))
            axes = [int(axis) for axis in broadcast_dims or ()]
            if len(axes) != len(small.shape):
                raise ValueError(
                    f"xla.{binary.__name__}: broadcast_dims: expected an axis for each of shape {tuple(small.shape)} "
                    f"in {tuple(big.shape)}, got {broadcast_dims}"
                )
            shape = [1] * len(big.shape)
            for axis, extent in zip(axes, small.shape, strict=True):
                shape[axis] = extent
            small = ops.reshape(small, shape)
            x, y = (small, y) if ranks[0] < ranks[1] else (x, small)
        return function(x, y)

    binary.__name__ = name
    return binary


def _inside(start_indices: Any, extents: Any, shape: Any) -> Any:
    """Where a window of a shape begins, moved inside."""
    start = ops.stack(list(start_indices)) if isinstance(start_indices, (list, tuple)) else start_indices
    most = [int(n) - int(m) for n, m in zip(extents, shape, strict=True)]
    if min(most, default=0) < 0:
        raise ValueError(f"expected a window inside of {tuple(extents)}, got one of shape {tuple(shape)}")
    return ops.clip(ops.cast(start, "int32"), 0, ops.convert_to_tensor(most, "int32"))


def dynamic_slice(input: Any, start_indices: Any, size_indices: Any, name: str | None = None) -> Any:
    """The window of a size that begins at start_indices."""
    x, size = array(input), tuple(int(n) for n in size_indices)
    return ops.slice(x, _inside(start_indices, x.shape, size), size)


def dynamic_update_slice(input: Any, update: Any, indices: Any, name: str | None = None) -> Any:
    """input with update in the window that begins at indices."""
    x, update = array(input), array(update)
    return ops.slice_update(x, _inside(indices, x.shape, update.shape), update)


def broadcast(x: Any, dims: Sequence[int], name: str | None = None) -> Any:
    """x along further axes in front."""
    x = array(x)
    return ops.broadcast_to(x, (*dims, *x.shape))


def clamp(a: Any, x: Any, b: Any, name: str | None = None) -> Any:
    """x between a and b."""
    return ops.minimum(ops.maximum(a, x), b)


def dot(lhs: Any, rhs: Any, name: str | None = None) -> Any:
    """The sum over the last axis of lhs and the first one of rhs."""
    return ops.tensordot(lhs, rhs, axes=1)


def reshape(x: Any, new_sizes: Any, dimensions: Any = None, name: str | None = None) -> Any:
    """x in another shape, its axes ordered first."""
    x = array(x) if dimensions is None else ops.transpose(array(x), tuple(dimensions))
    return ops.reshape(x, tuple(new_sizes))


def slice(x: Any, start_dims: Any, limit_dims: Any, strides: Any) -> Any:
    """Elements from start to below limit along each axis."""
    return array(x)[tuple(map(builtins.slice, start_dims, limit_dims, strides))]


def table() -> dict[str, Any]:
    """The names of the module."""
    math, bits, own = functions.math_table(), special.bitwise(), (broadcast, clamp, dot, reshape, slice)
    return {
        **{name: math[name] for name in _UNARY.split()},
        **{name: _broadcasting(name, math[theirs]) for name, theirs in _BINARY.items()},
        **{each.__name__: each for each in (*own, dynamic_slice, dynamic_update_slice)},
        "shift_left": _broadcasting("shift_left", bits["left_shift"]),
        "shift_right_arithmetic": _broadcasting("shift_right_arithmetic", bits["right_shift"]),
        "concatenate": math["concat"],
        "constant": math["constant"],
        "convert_element_type": math["cast"],
        "einsum": lambda a, b, equation, name=None: ops.einsum(equation, a, b),
        "neg": math["negative"],
        "optimization_barrier": lambda *args: args,
        "random_normal": lambda mu, sigma, dims, name=None: array(random.normal(tuple(dims), mu, sigma)),
        "random_uniform": lambda minval, maxval, dims, name=None: array(random.uniform(tuple(dims), minval, maxval)),
        "rev": math["reverse"],
        "select": math["where"],
        "sort": lambda input, name=None: math["sort"](input),
        "transpose": math["transpose"],
    }
