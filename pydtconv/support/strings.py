"""Strings in a graph: each is its FarmHash Fingerprint64, in an array of int64 whose dtype says so.

Two strings of one fingerprint would be one; among a million strings that has a chance of 3e-8.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from itertools import count
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


class _Strings(dict[int, Any]):
    """The strings of an array by their fingerprints."""


#: strings by fingerprint, of all arrays of fingerprints that there are, and of the latest ones
_kept: weakref.WeakValueDictionary[int, _Strings] = weakref.WeakValueDictionary()
_latest: deque[_Strings] | None = None
_numbers = count()


def keep_strings() -> None:
    """From now on `strings_of` knows the strings of `fingerprints`."""
    global _latest
    _latest = deque(maxlen=64) if _latest is None else _latest


def fingerprints(strings: np.ndarray) -> np.ndarray:
    """Of each string its fingerprint, in an array of the same shape."""
    found = np.array([_fingerprint(value) for value in strings.flat], FINGERPRINTS).reshape(strings.shape)
    if _latest is not None:
        own = _kept[next(_numbers)] = _Strings(zip(found.ravel().tolist(), strings.flat, strict=True))
        _latest.append(own)
        weakref.finalize(found, own.get, 0).atexit = False  # which holds them as long as the array is there
    return found


def strings_of(values: np.ndarray) -> np.ndarray:
    """The strings of fingerprints; of 0, which stands for no data, an empty one.

    They are known as long as the array of `fingerprints` is there, or is one of the latest 64.
    Raises ValueError for others.
    """
    books: list[dict[int, Any]] = [{0: ""}, *list(_kept.values())[::-1]]
    found = np.empty(values.shape, object)
    try:
        found.reshape(-1)[:] = [next(book[each] for book in books if each in book) for each in values.ravel().tolist()]
    except StopIteration:
        raise ValueError("expected fingerprints of strings that are in memory: give arrays, or smaller parts") from None
    return found


def decoded(values: Iterable[Any], encoding: str) -> list[str]:
    """Bytes, and what has a text, as strings."""
    return [value.decode(encoding) if isinstance(value, bytes) else str(value) for value in values]


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
