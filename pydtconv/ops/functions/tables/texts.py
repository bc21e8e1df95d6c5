"""Functions of texts, for tensors of their fingerprints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.ops.functions.tables.function_of_row import apply
from pydtconv.ops.table_op import RULES, Rule, no_gradient
from pydtconv.support.strings import strings_of


def _of_fingerprints(values: np.ndarray, function: Callable[[np.ndarray], Any], inner: Any, dtype: str) -> np.ndarray:
    found = np.asarray(function(strings_of(values)), dtype)
    found = found if found.size else np.zeros((len(values), *inner), dtype)  # extents are 1 or more
    if found.shape[1:] != tuple(inner):
        raise ValueError(f"expected results of shape {tuple(inner)} each, got {found.shape[1:]}")
    return found


RULES["of_texts"] = Rule(_of_fingerprints, no_gradient, lambda shape, inner, **_: (shape[0], *inner))


def of_texts(texts: Any, function: Callable[[np.ndarray], Any], inner: tuple[int, ...], dtype: str) -> Any:
    """function(array of strings), of shape (n, *inner), for a tensor of n texts' fingerprints."""
    return apply("of_texts", [texts], {"function": function, "inner": inner, "dtype": dtype})
