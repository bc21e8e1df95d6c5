"""What `keras.backend` had in Keras 2.3 beyond what Keras 3 still gives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops, random
from pydtconv.compat.keras2 import backend_windows, noticed
from pydtconv.compat.keras2.arguments import refused
from pydtconv.compat.keras2.functions import function, gradients, learning_phase, set_learning_phase
from pydtconv.compat.keras2.sessions import Session
from pydtconv.compat.tensorflow import sparse
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers import Input
from pydtconv.layers.base import context
from pydtconv.layers.base.symbolic import KerasTensor

ORDERINGS = {"tf": "channels_last", "th": "channels_first"}


def image_dim_ordering() -> str:
    """ "tf" or "th", Keras 1's names of "channels_last" and "channels_first"."""
    noticed.once("image_dim_ordering", "K.image_dim_ordering is an old name: write keras.config.image_data_format")
    return next(old for old, new in ORDERINGS.items() if new == config.image_data_format())


def set_image_dim_ordering(dim_ordering: str) -> None:
    """Sets the data format.  Raises ValueError for an unknown one."""
    noticed.once("set_image_dim_ordering", "K.set_image_dim_ordering is an old name: write set_image_data_format")
    if dim_ordering not in ORDERINGS:
        raise ValueError(f"dim_ordering: expected 'tf' or 'th', got {dim_ordering!r}")
    config.set_image_data_format(ORDERINGS[dim_ordering])


def placeholder(
    shape: Any = None, ndim: int | None = None, dtype: Any = None, sparse: bool = False, name: Any = None
) -> Any:
    """An input of a function: a symbolic tensor."""
    extents = tuple(shape) if shape is not None else (None,) * int(ndim or 0)
    return Input(batch_shape=extents, dtype=dtype, name=name)


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """The sums over an axis of each sample: by default x's last and y's last but one (last, of two axes).

    Of tensors of four axes or more, all but the last two go along, as in Keras 2.0 to 2.2.
    """
    m, n = len(x.shape), len(y.shape)
    if axes is None:
        axes = (m - 1, n - 2 if n > 2 else n - 1)
    a, b = (axes, axes) if isinstance(axes, int) else axes
    a, b = a % m, b % n
    if m == n == 2:
        return ops.sum(x * y, axis=-1, keepdims=True)
    if n < m:
        y = ops.reshape(y, (*_open(y), *(1,) * (m - n)))
    elif m < n:
        x = ops.reshape(x, (*_open(x), *(1,) * (n - m)))
    last = max(m, n) - 1
    x = x if a == last else ops.swapaxes(x, -1, -2)
    y = ops.swapaxes(y, -1, -2) if b == last else y
    found = ops.matmul(x, y)
    return found if m == n else ops.squeeze(found, -1 if m > n else m - 1)


def _open(x: Any) -> tuple[int, ...]:
    return tuple(-1 if extent is None else extent for extent in x.shape)


def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Any:
    if (data_format or config.image_data_format()) == "channels_first" and len(bias.shape) == 1:
        return x + ops.reshape(bias, (1, -1, *(1,) * (len(x.shape) - 2)))
    return x + bias


def dropout(x: Any, level: float, noise_shape: Any = None, seed: int | None = None) -> Any:
    """Elements set to 0 with probability level, the others divided by what is left."""
    if not 0 <= level < 1:
        raise ValueError(f"dropout: level: expected a number from 0 to below 1, got {level!r}")
    shape = tuple(x.shape) if noise_shape is None else tuple(noise_shape)
    kept = ops.cast(random.uniform(shape, 0, 1, seed=seed) >= level, x.dtype)
    return x * kept / (1.0 - level)


def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x in training, else alt; each may be a function without arguments."""
    if training is None:
        training = context.training()
    chosen = x if training else alt
    return chosen() if callable(chosen) else chosen


def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    return in_train_phase(alt, x, training)


def is_keras_tensor(x: Any) -> bool:
    return isinstance(x, KerasTensor)


def is_tensor(x: Any) -> bool:
    return isinstance(x, (KerasTensor, Tensor, Variable, np.ndarray))


def l2(x: Any) -> Any:
    return ops.sum(ops.square(x))


def map_fn(fn: Callable[..., Any], elems: Any, name: Any = None, dtype: Any = None) -> Any:
    return ops.map(fn, elems)


def foldl(fn: Callable[..., Any], elems: Any, initializer: Any = None, name: Any = None) -> Any:
    first, rest = (elems[0], elems[1:]) if initializer is None else (initializer, elems)
    found, _ = ops.scan(lambda carry, x: (fn(carry, x), None), first, rest)
    return found


def foldr(fn: Callable[..., Any], elems: Any, initializer: Any = None, name: Any = None) -> Any:
    return foldl(fn, ops.flip(elems, 0), initializer)


def to_dense(tensor: Any) -> Any:
    return sparse.to_dense(tensor) if is_sparse(tensor) else tensor


def is_sparse(tensor: Any) -> bool:
    return isinstance(tensor, sparse.SparseTensor)


def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> sparse.SparseTensor:
    """The first labels (n, length) of each sample, as many as its length (n) says."""
    x, lengths = np.asarray(labels), np.asarray(label_lengths).reshape(-1)
    places = np.argwhere(np.arange(x.shape[1]) < lengths[:, None])
    return sparse.SparseTensor(places, x[tuple(places.T)], x.shape)


def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    return x.assign(x * momentum + value * (1.0 - momentum))


def normalize_batch_in_training(x: Any, gamma: Any, beta: Any, reduction_axes: Any, epsilon: float = 1e-3) -> Any:
    mean, variance = ops.moments(x, tuple(reduction_axes), keepdims=True)  # type: ignore[operator]
    normed = (x - mean) / ops.sqrt(variance + epsilon)
    return normed * (1 if gamma is None else gamma) + (0 if beta is None else beta), mean, variance


def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Any:
    normed = (x - mean) / ops.sqrt(var + epsilon)
    return normed * (1 if gamma is None else gamma) + (0 if beta is None else beta)


def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: int | None = None) -> Any:
    return array(ops.cast(random.uniform(tuple(shape), seed=seed) <= p, dtype or config.floatx()))


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: int | None = None
) -> Any:
    return array(random.truncated_normal(tuple(shape), mean, stddev, dtype, seed))


def _variable_of(draw: Callable[..., Any]) -> Callable[..., Any]:
    def function(shape: Any, a: float, b: float, dtype: Any = None, name: Any = None, seed: int | None = None) -> Any:
        value = np.asarray(draw(tuple(shape), a, b, dtype, seed))
        return Variable(value, value.shape, value.dtype.name, name=name)

    return function


def repeat(x: Any, n: int) -> Any:
    """(n, d) as (n, repeated, d)."""
    return ops.repeat(ops.expand_dims(x, 1), n, 1)


def batch_get_value(variables: Sequence[Any]) -> list[np.ndarray]:
    return [np.array(each) for each in variables]


def batch_set_value(tuples: Sequence[tuple[Any, Any]]) -> None:
    for variable, value in tuples:
        variable.assign(value)


def print_tensor(x: Any, message: str = "") -> Any:
    if not isinstance(x, (Tensor, KerasTensor)):
        print(message, np.asarray(x))
    return x


def slice_of(x: Any, start: Any, size: Any) -> Any:
    return ops.slice(x, start, [n - a if s == -1 else s for a, s, n in zip(start, size, x.shape, strict=True)])


def nothing(*_: Any, **__: Any) -> None:
    """Of sessions, which are not here."""


def table() -> dict[str, Any]:
    """The functions by name."""
    own = (
        batch_dot, batch_get_value, batch_normalization, batch_set_value, bias_add, ctc_label_dense_to_sparse, dropout,
        foldl, foldr, function, gradients, image_dim_ordering, in_test_phase, in_train_phase, is_keras_tensor,
        is_sparse, is_tensor, l2, learning_phase, map_fn, moving_average_update, normalize_batch_in_training,
        placeholder, print_tensor, random_binomial, repeat, set_image_dim_ordering, set_learning_phase, to_dense,
        truncated_normal,
    )  # fmt: skip
    sessions = (
        "set_session", "manual_variable_initialization", "reset_uids", "clear_session",
        "disable_v2_behavior", "v1_variable_initialization",
    )  # fmt: skip
    none: Any = contextlib.nullcontext
    return {
        **backend_windows.table(),
        **{each.__name__: each for each in own},
        **{name: nothing for name in sessions if name != "clear_session"},
        "control_dependencies": none,
        "eager": lambda f: f,
        "get_session": Session,
        "get_variable_shape": lambda x: tuple(x.shape),
        "identity": lambda x, name=None: x,
        "is_placeholder": is_keras_tensor,
        "is_variable": lambda x: isinstance(x, Variable),
        "name_scope": none,
        "normalize_data_format": lambda value: value or config.image_data_format(),
        "random_normal_variable": _variable_of(random.normal),
        "random_uniform_variable": _variable_of(random.uniform),
        "rnn": refused("K.rnn", "write a loop with ops.scan"),
        "size": lambda x, name=None: ops.size(x),
        "slice": slice_of,
        "symbolic": lambda f: f,
    }
