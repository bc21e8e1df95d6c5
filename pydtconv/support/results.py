"""Arrays with the mask of a model's output."""

from __future__ import annotations

from typing import Any

import numpy as np


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
