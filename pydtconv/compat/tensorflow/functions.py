"""Functions of `tf`, `tf.math` and `tf.nn`, by functions of `pydtconv.ops`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import hooks, ops
from pydtconv.compat.tensorflow import (
    control,
    gather_scatter,
    linalg,
    nn,
    nn_losses,
    nn_windows,
    open_extents,
    segments,
    shapes,
    special,
)
from pydtconv.compat.tensorflow.arrays import Count, Extents, array, name_of
from pydtconv.compat.tensorflow.named import all_named
from pydtconv.compat.tensorflow.of_strings import also_of_strings
from pydtconv.compat.tensorflow.ragged import RaggedTensor
from pydtconv.compat.tensorflow.sparse import SparseTensor
from pydtconv.compat.tensorflow.variable import Variable
from pydtconv.layers.base.symbolic import KerasTensor

# --- making -----------------------------------------------------------------------------------------------------------


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    found = array(value, dtype)
    return found if shape is None else np.broadcast_to(found, shape).copy() if found.size == 1 else found.reshape(shape)


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Any:
    return array(value, dtype)


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    if isinstance(x, RaggedTensor):
        return x.with_values(array(x.values, dtype))
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, array(x.values, dtype), x.dense_shape)
    return array(x, dtype)


def zeros(shape: Any, dtype: Any = "float32", name: str | None = None) -> Any:
    return array(np.zeros(shape, name_of(dtype)))


def ones(shape: Any, dtype: Any = "float32", name: str | None = None) -> Any:
    return array(np.ones(shape, name_of(dtype)))


def fill(dims: Any, value: Any, name: str | None = None) -> Any:
    value = array(value)
    if not isinstance(value, np.ndarray) or hooks.recording_of([value]) is not None:
        return ops.broadcast_to(value, tuple(dims))
    return array(np.full(dims, value, np.asarray(value).dtype))


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
    start, limit = (0, start) if limit is None else (start, limit)
    kinds = [str(array(each).dtype) for each in (start, limit, delta)]
    widest = next((kind for kind in ("float64", "float32", "bfloat16", "float16", "int64") if kind in kinds), "int32")
    return array(np.arange(start, limit, delta), dtype or widest)


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Extents:
    """The extents, which are known while a step is traced: it is traced for each shape."""
    if isinstance(input, KerasTensor):
        return Extents(open_extents.extents(input))
    return Extents(input.shape if hasattr(input, "shape") else np.shape(input))


def size(input: Any, out_type: Any = "int32", name: str | None = None) -> Any:
    return open_extents.size(input) if isinstance(input, KerasTensor) else array(ops.size(array(input)), out_type)


def one_hot(
    indices: Any, depth: int, on_value: Any = None, off_value: Any = None, axis: int = -1, dtype: Any = "float32"
) -> Any:
    found = ops.one_hot(indices, int(depth), axis=axis, dtype=name_of(dtype))
    if on_value is None and off_value is None:
        return found
    on, off = 1.0 if on_value is None else on_value, 0.0 if off_value is None else off_value
    return found * (on - off) + off


# --- shapes -----------------------------------------------------------------------------------------------------------


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    return ops.reshape(tensor, _whole(shape))


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    return ops.tile(input, _whole(multiples))


def _whole(extents: Any) -> Any:
    """Extents that were calculated, as by `tf.math.ceil`, as integers."""
    if isinstance(extents, KerasTensor):
        return extents
    given = extents if isinstance(extents, (list, tuple)) else np.reshape(np.asarray(extents), -1)
    return tuple(n if n is None or isinstance(n, KerasTensor) else int(n) for n in given)


def split(value: Any, num_or_size_splits: Any, axis: int = 0, name: str | None = None) -> list[Any]:
    if isinstance(num_or_size_splits, int):
        return list(ops.split(value, num_or_size_splits, axis))
    return list(ops.split(value, np.cumsum(num_or_size_splits)[:-1].tolist(), axis))


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str | None = None) -> list[Any]:
    return list(ops.unstack(value, num, axis))


def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: float = 0, name: Any = None) -> Any:
    widths = tuple(tuple(int(n) for n in pair) for pair in np.asarray(paddings))
    kind = mode.lower()
    return ops.pad(tensor, widths, kind, constant_values) if kind == "constant" else ops.pad(tensor, widths, kind)


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> Any:
    return ops.transpose(a, perm if perm is None else tuple(int(axis) for axis in perm))


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """x where the condition holds, y elsewhere; without them the places (n, rank) where it does."""
    return array(np.argwhere(np.asarray(condition))) if x is None and y is None else ops.where(condition, x, y)


def argmax(input: Any, axis: Any = None, output_type: Any = "int64", name: str | None = None) -> Any:
    """The places of the largest elements along an axis: the first one unless it is named."""
    return array(ops.argmax(input, 0 if axis is None else int(axis)), output_type)


def argmin(input: Any, axis: Any = None, output_type: Any = "int64", name: str | None = None) -> Any:
    """The places of the smallest elements along an axis: the first one unless it is named."""
    return array(ops.argmin(input, 0 if axis is None else int(axis)), output_type)


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Any:
    found = ops.sort(values, axis)
    return ops.flip(found, axis) if direction == "DESCENDING" else found


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Any:
    x = array(values)
    if direction == "DESCENDING":
        x = -(x if np.dtype(str(x.dtype)).kind == "f" else array(x, "int64"))  # the smallest integer has no opposite
    return ops.argsort(x, axis)


# --- mathematics ------------------------------------------------------------------------------------------------------


def _reduce(name: str) -> Callable[..., Any]:
    function = getattr(ops, name)

    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        axes = axis if axis is None or isinstance(axis, (int, np.integer)) else tuple(int(i) for i in axis)
        x = array(input_tensor)
        if function is ops.mean and str(x.dtype).startswith(("int", "uint")):
            return _mean_of_integers(x, axes, keepdims)
        return function(x, axis=axes, keepdims=keepdims)

    return reduce


def _mean_of_integers(x: Any, axis: Any, keepdims: bool) -> Any:
    """Rounded towards zero, and of the dtype of x."""
    total, dtype = ops.sum(x, axis=axis, keepdims=keepdims), str(x.dtype)
    count = ops.sum(ops.ones_like(x, dtype=str(total.dtype)), axis=axis, keepdims=keepdims)
    return ops.cast(ops.sign(total) * (ops.abs(total) // count), dtype)


def squared_difference(x: Any, y: Any, name: str | None = None) -> Any:
    return ops.square(ops.subtract(x, y))


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    return ops.clip(t, clip_value_min, clip_value_max)


def clip_by_norm(t: Any, clip_norm: float, axes: Any = None, name: str | None = None) -> Any:
    norm = ops.sqrt(ops.sum(ops.square(t), axis=axes, keepdims=axes is not None))
    return t * (clip_norm / ops.maximum(norm, clip_norm))


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Any:
    return ops.sqrt(sum_of([ops.sum(ops.square(t)) for t in t_list if t is not None]))


def clip_by_global_norm(t_list: Sequence[Any], clip_norm: float, use_norm: Any = None, name: Any = None) -> Any:
    norm = global_norm(t_list) if use_norm is None else use_norm
    factor = clip_norm / ops.maximum(norm, clip_norm)
    return [None if t is None else t * factor for t in t_list], norm


def sum_of(inputs: Sequence[Any], name: str | None = None) -> Any:
    total = inputs[0]
    for each in inputs[1:]:
        total = total + each
    return total


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Any:
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=axis, keepdims=True), epsilon))


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    name: str | None = None,
) -> Any:
    def turned(x: Any) -> Any:
        return ops.swapaxes(x, -1, -2)

    found = ops.matmul(turned(a) if transpose_a or adjoint_a else a, turned(b) if transpose_b or adjoint_b else b)
    return found if output_type is None else array(found, output_type)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None) -> Any:
    return ops.cond(pred, true_fn, false_fn)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    return ops.while_loop(cond, body, loop_vars, maximum_iterations)


def map_fn(fn: Callable[[Any], Any], elems: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """fn of each element along the first axis, stacked; kwargs say what is known from the elements."""
    return ops.map(fn, elems)


def eye(
    num_rows: int, num_columns: int | None = None, batch_shape: Any = None, dtype: Any = "float32", name: Any = None
) -> Any:
    """The identity matrix, as often as batch_shape says."""
    found = np.eye(num_rows, num_columns, dtype=name_of(dtype))
    return array(np.broadcast_to(found, (*(batch_shape or ()), *found.shape)).copy())


def complex(real: Any, imag: Any, name: str | None = None) -> Any:
    """Complex numbers, of arrays."""
    return array((np.asarray(real) + 1j * np.asarray(imag)).astype("complex64"))


def abs(x: Any, name: str | None = None) -> Any:
    """Absolute values."""
    return array(np.abs(x)) if np.iscomplexobj(x) else ops.abs(x)


def _of_complex(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda input, name=None: array(function(np.asarray(input)))


def print(*inputs: Any, **kwargs: Any) -> None:
    """Prints values, where they are there; while code is traced, what stands for them."""
    builtins.print(*inputs, **{key: value for key, value in kwargs.items() if key in ("end", "sep")})


# --- tf.nn ------------------------------------------------------------------------------------------------------------


def sigmoid_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    # smooth at 0, where max(x, 0) and |x| have no slope, and precise on both sides
    return labels * ops.softplus(-logits) + (1.0 - labels) * ops.softplus(logits)


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Any:
    return ops.categorical_crossentropy(labels, logits, from_logits=True, axis=axis)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Any:
    return ops.leaky_relu(features, alpha)


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int = -1) -> Any:
    """dim: TensorFlow 1's name of axis."""
    return ops.softmax(logits, dim if axis is None else axis)


def function_table() -> dict[str, Any]:
    """The names of tensorflow's top level that are functions of tensors."""
    renamed = {
        "concat": "concatenate", "pow": "power", "floordiv": "floor_divide", "reverse": "flip", "negative": "negative",
        "truediv": "true_divide",
    }  # fmt: skip
    same = (
        "add", "divide", "exp", "maximum", "minimum", "multiply", "sigmoid", "sqrt", "square",
        "subtract", "tanh", "squeeze", "expand_dims", "stack", "repeat", "equal", "not_equal",
        "greater", "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_not", "floor", "round",
        "zeros_like", "ones_like", "einsum", "tensordot", "roll",
        "sign", "linspace", "stop_gradient", "broadcast_to", "sin", "cos", "meshgrid", "slice",
        "vectorized_map", "saturate_cast", "searchsorted", "custom_gradient",
    )  # fmt: skip
    table = {name: getattr(ops, name) for name in same if hasattr(ops, name)}
    table |= {name: getattr(ops, ours) for name, ours in renamed.items() if hasattr(ops, ours)}
    table = all_named(table)
    reduced = {"reduce_max": "max", "reduce_mean": "mean", "reduce_min": "min", "reduce_sum": "sum",
               "reduce_prod": "prod", "reduce_any": "any", "reduce_all": "all", "reduce_std": "std",
               "reduce_variance": "var", "reduce_logsumexp": "logsumexp"}  # fmt: skip
    table |= {name: _reduce(ours) for name, ours in reduced.items() if hasattr(ops, ours)}
    own = (
        constant, convert_to_tensor, cast, Variable, zeros, ones, fill, range, shape, one_hot, split, unstack, pad,
        transpose, where, clip_by_value, clip_by_norm, global_norm, clip_by_global_norm,
        matmul, cond, print, argmax, argmin, argsort, sort, while_loop, map_fn, eye, complex, abs, reshape,
        tile,
    )  # fmt: skip
    table |= {each.__name__: each for each in own}
    table |= open_extents.recorded({name: table[name] for name in ("zeros", "ones", "fill", "range", "eye", "one_hot")})
    table |= gather_scatter.table() | control.table() | segments.table()
    table |= shapes.table() | special.of_tf() | nn_windows.of_tf() | linalg.of_tf()
    table["cumsum"] = special.cumsum
    table["size"] = size
    table["rank"] = lambda input, name=None: Count(len(shape(input)))
    table["identity"] = lambda input, name=None: array(ops.copy(input))
    table["add_n"] = sum_of
    return also_of_strings(table)


def math_table() -> dict[str, Any]:
    """The names of `tf.math`."""
    same = (
        "log", "log1p", "expm1", "rsqrt", "erf", "ceil", "isnan", "isfinite", "isinf", "logical_xor",
        "reciprocal", "mod", "divide_no_nan", "arctan2",
    )  # fmt: skip
    table = function_table() | all_named({name: getattr(ops, name) for name in same if hasattr(ops, name)})
    table |= special.of_math() | segments.segments()
    of_nn = nn.table()
    table |= {name: of_nn[name] for name in ("softplus", "log_softmax", "top_k", "in_top_k")}
    table |= {"count_nonzero": count_nonzero, "bincount": bincount}
    table |= {"l2_normalize": l2_normalize, "confusion_matrix": _confusion_matrix, "softmax": softmax}
    table |= {"squared_difference": squared_difference, "cumprod": special.cumprod, "floormod": table["mod"]}
    table |= {"real": _of_complex(np.real), "imag": _of_complex(np.imag), "angle": _of_complex(np.angle)}
    table["is_nan"], table["is_inf"], table["is_finite"] = ops.isnan, ops.isinf, ops.isfinite
    return table


def count_nonzero(
    input: Any, axis: Any = None, keepdims: Any = None, dtype: Any = "int64", name: str | None = None
) -> Any:
    axes = tuple(axis) if isinstance(axis, list) else axis
    return array(ops.sum(ops.cast(ops.not_equal(array(input), 0), name_of(dtype)), axis=axes, keepdims=bool(keepdims)))


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = "int32",
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Any:
    """How often each number is in an array of them, or the sums of its weights; in each row where axis is -1."""
    x = np.asarray(array(arr))
    rows = x.reshape(-1, x.shape[-1]) if axis == -1 else x.reshape(1, -1)
    count = max(int(x.max(initial=-1)) + 1, int(minlength or 0))
    count = count if maxlength is None else min(count, int(maxlength))
    found = np.zeros((len(rows), count), name_of(dtype) if weights is None else np.asarray(array(weights)).dtype)
    added = np.ones(rows.shape, found.dtype) if weights is None else np.asarray(array(weights)).reshape(rows.shape)
    for row, values, each in zip(found, rows, added, strict=True):
        np.add.at(row, values[values < count], each[values < count])
    found = (found > 0).astype(found.dtype) if binary_output else found
    return array(found.reshape(*x.shape[:-1], count) if axis == -1 else found[0])


def _confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: int | None = None,
    weights: Any = None,
    dtype: Any = "int32",
    name: Any = None,
) -> Any:
    labels, predictions = np.asarray(labels).reshape(-1), np.asarray(predictions).reshape(-1)
    count = int(max(labels.max(), predictions.max()) + 1) if num_classes is None else num_classes
    found = np.zeros((count, count), name_of(dtype))
    np.add.at(
        found, (labels, predictions), 1 if weights is None else np.asarray(weights).reshape(-1).astype(found.dtype)
    )
    return array(found)


def linalg_table() -> dict[str, Any]:
    """The names of `tf.linalg`."""
    tensors = function_table()
    shared = ("einsum", "eye", "matmul", "tensordot", "eig", "eigvals", "norm", "global_norm")
    return linalg.of_matrices() | {name: tensors[name] for name in shared} | {"l2_normalize": l2_normalize}


def nn_table() -> dict[str, Any]:
    """The names of `tf.nn`."""
    own = (
        leaky_relu, softmax, l2_normalize, sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits,
        sparse_softmax_cross_entropy_with_logits, special.zero_fraction, special.approx_max_k, special.approx_min_k,
    )  # fmt: skip
    return nn.table() | nn_windows.table() | nn_losses.table() | {each.__name__: each for each in own}
