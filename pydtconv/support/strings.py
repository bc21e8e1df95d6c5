"""Strings in a graph: each is its FarmHash Fingerprint64, in an array of int64 whose dtype says so.

Two strings of one fingerprint would be one; among a million strings that has a chance of 3e-8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pydtconv.support.fingerprints import fingerprint64

#: the dtype of fingerprints; to all others it is int64
FINGERPRINTS = np.dtype(np.int64, metadata={"of": "strings"})


def are_strings(array: np.ndarray) -> bool:
    """Whether an array holds str or bytes."""
    kind = array.dtype.kind
    return kind in "US" or (kind == "O" and all(isinstance(value, (str, bytes)) for value in array.flat))


def are_fingerprints(array: Any) -> bool:
    return (getattr(array.dtype, "metadata", None) or {}).get("of") == "strings"


def fingerprints(strings: np.ndarray) -> np.ndarray:
    """Of each string its fingerprint, in an array of the same shape."""
    return np.array([_fingerprint(value) for value in strings.flat], FINGERPRINTS).reshape(strings.shape)


def without_strings(value: Any) -> Any:
    """An array of strings as fingerprints; all else as it is."""
    return fingerprints(value) if isinstance(value, np.ndarray) and are_strings(value) else value


def reads_strings(tensor: Any) -> bool:
    """Whether a symbolic tensor is an Input of strings."""
    return getattr(tensor.node.operation, "dtype", None) == "string"


@lru_cache(1 << 16)
def _fingerprint(value: str | bytes) -> int:
    number = fingerprint64(value if isinstance(value, bytes) else value.encode())
    return number - (1 << 64) if number >> 63 else number
