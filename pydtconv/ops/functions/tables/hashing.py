"""Bins of integers and texts by hash functions, for layers of categories; NumPy, of one feature or of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.functions.tables.function_of_row import apply
from pydtconv.ops.table_op import RULES, Rule, no_gradient
from pydtconv.support.fingerprints import fingerprint64, fingerprint_cat64, string_bin

#: what the fingerprint of a cross begins with, as TensorFlow has it
_CROSS_KEY = 0xDECAFCAFFE


def _categories(values: np.ndarray) -> list[Any]:
    """int or str of each element.  Floats, which tensors may hold, have to be integers that float32 holds."""
    if values.dtype.kind != "f":
        return values.reshape(-1).tolist()
    if not (np.abs(values) < 2**24).all() or (values != np.floor(values)).any():
        raise ValueError("expected integers, got floats that are none, or none below 2**24: declare an integer dtype")
    return values.astype("int64").reshape(-1).tolist()


def hash_bins(values: np.ndarray, num_bins: int, mask_value: Any, salt: Any) -> np.ndarray:
    """Bins by the text of each value; mask_value has bin 0 for itself, where there are others."""
    masked = int(mask_value is not None and num_bins > 1)
    count, key = num_bins - masked, None if salt is None else list(salt)

    def bin_of(value: Any) -> int:
        return 0 if masked and value == mask_value else string_bin(str(value), count, key) + masked

    return np.array([bin_of(value) for value in _categories(values)], "int64").reshape(values.shape)


def cross_bins(*features: np.ndarray, num_bins: int) -> np.ndarray:
    """Bins of the values that features of one shape have together."""

    def bin_of(values: Any) -> int:
        number = _CROSS_KEY
        for value in values:
            own = fingerprint64(value.encode()) if isinstance(value, str) else int(value) % (1 << 64)
            number = fingerprint_cat64(number, own)
        return number % num_bins

    columns = zip(*map(_categories, features), strict=True)
    return np.array([bin_of(values) for values in columns], "int64").reshape(features[0].shape)


RULES["hash_bins"] = Rule(hash_bins, no_gradient, lambda shape, **_: shape, "int64")
RULES["cross_bins"] = Rule(cross_bins, no_gradient, lambda *shapes, **_: shapes[0], "int64")


def bins(function: str, tensors: list[Any], **settings: Any) -> Any:
    """A function of this page on tensors."""
    return apply(function, tensors, settings)
