"""What functions on arrays return: NumPy's arrays, or those of a class that knows TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np

_kind: list[type[np.ndarray]] = []
_number: list[type[float]] = []


def set_kind(kind: type[np.ndarray] | None, number: type[float] | None = None) -> None:
    """Lets results be arrays and floats of these classes; None: NumPy's and Python's own."""
    _kind[:] = [] if kind is None else [kind]
    _number[:] = [] if number is None else [number]


def as_result(value: Any) -> Any:
    """An array or a float as one of the class that is set; anything else as it is."""
    if _number and isinstance(value, float):
        return _number[0](value)
    return value.view(_kind[0]) if _kind and isinstance(value, np.ndarray) else value


class MaskedArray(np.ndarray):
    """An array with the mask of a model's output: where it is 0, losses and metrics do not count.

    What is computed of it has no mask.
    """

    _keras_mask: Any = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)


def with_mask(array: Any, mask: Any) -> Any:
    """The array with a mask; as it is where that is None."""
    if mask is None:
        return array
    array = np.asanyarray(array)
    masked: Any = array.view(MaskedArray) if type(array) is np.ndarray else array.view()
    masked._keras_mask = np.asarray(mask)
    return masked
