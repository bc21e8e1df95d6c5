"""What functions on arrays return: NumPy's arrays, or those of a class that knows TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np

_kind: list[type[np.ndarray]] = []


def set_kind(kind: type[np.ndarray] | None) -> None:
    """Lets results be arrays of this class; None: NumPy's own."""
    _kind[:] = [] if kind is None else [kind]


def as_result(value: Any) -> Any:
    """An array as one of the class that is set; anything else as it is."""
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
