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
