"""`Written`: a tensor that NumPy's functions take, so that code of arrays can be read as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pydtconv import ops

_NAMES = {"invert": "bitwise_not", "absolute": "abs", "remainder": "mod"}


class Written(NDArrayOperatorsMixin):
    """Each function of NumPy becomes that of `ops` with its name."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        return len(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.tensor.dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            return NotImplemented
        return _apply(_function(ufunc.__name__), inputs, {})

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return _apply(_function(function.__name__), args, kwargs)

    def __bool__(self) -> bool:
        raise TypeError("expected no condition on elements, which are not known yet; np.where chooses between arrays")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("expected functions of NumPy on the gradient and the inputs as they are, got np.asarray")

    def __getitem__(self, key: Any) -> Written:
        return Written(ops.get_item(self.tensor, key))

    def astype(self, dtype: Any) -> Written:
        return Written(ops.cast(self.tensor, np.dtype(dtype).name))

    def reshape(self, *shape: Any) -> Written:
        return Written(ops.reshape(self.tensor, shape[0] if isinstance(shape[0], tuple) else shape))

    def transpose(self, *axes: int) -> Written:
        return Written(ops.transpose(self.tensor, axes or None))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Written:
        return Written(ops.sum(self.tensor, axis=axis, keepdims=keepdims))


def _function(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(ops, _NAMES.get(name, name))
    return found


def _apply(function: Callable[..., Any], args: Any, kwargs: Any) -> Written:
    return Written(function(*map(read, args), **{name: read(value) for name, value in kwargs.items()}))


def read(value: Any) -> Any:
    """What a written value stands for; lists and tuples by their elements."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(read, value))
    return value.tensor if isinstance(value, Written) else value
